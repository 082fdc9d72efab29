"""Counts, a network that learns them, a small MLP: the models that a GPT has to beat."""

import html
import math

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from gptviz import Run
from gptviz.analysis.losses import losses
from gptviz.analysis.tokens import chapter
from gptviz.both import Both
from gptviz.digits import fixed, percent, significant
from gptviz.figures.baselines import pair_table, two_losses
from gptviz.lessons import bigram, mlp
from gptviz.lessons.bigram import Counts, NeuralBigram
from gptviz.lessons.compared import Counted, Fit, counted, reading
from gptviz.lessons.mlp import MLP, Recipe
from gptviz.tokenizer import show_token
from gptviz.ui import sheet
from gptviz.ui.glossary import prose
from gptviz.ui.shell import prompt, state
from gptviz.ui.shell.address import end_page
from gptviz.ui.shell.details import in_code, in_numbers
from gptviz.ui.shell.page import frame
from gptviz.ui.shell.params import Param, between, if_there
from gptviz.ui.words import as_code
from gptviz.ui.words import counted as so_many

ALICE, PROMPT = "a chapter of Alice", "this prompt"
KEPT_STEPS = (0, 1, 2, 5, 10, 20, 50, 100, 200, 400)
CONTEXTS = (1, 2, 3, 5, 8)
SOURCE = Param("base_text", str, ALICE, if_there)
STEP = Param("base_step", int, 20, if_there)
CONTEXT = Param("base_context", int, 3, if_there)
STEPS = Param("base_steps", int, 600, between)

SHORTEST, LONGEST = 20, 100_000  # characters of a text to learn from
MOST_CHARACTERS = 300  # different ones: the table has as many rows and columns
SHOWN = 30  # of them in the picture
SAMPLE = 240  # characters that each writes
UNASKED, MOST_PASSES = 10**11, 64  # parameters x tokens, and passes, that are not asked for: a few seconds
MEASURED_EVERY, AT_ONCE = 50, 150  # steps of the MLP before it is measured, and before the page shows it
STOPPED = "base_stopped"  # in the session: the recipe that is not to be gone on with
READ, ASKED = "base_read", "base_asked"  # what GPTs cost, by their keys; the keys of those to be read

scene = frame("Baselines", (SOURCE, STEP, CONTEXT, STEPS))
lm_name, key, put = scene.lm.name, scene.key, st.session_state.__setitem__  # for callbacks
SOURCE.within((ALICE, PROMPT))
source = SOURCE.widget(
    st.segmented_control, "Learn from", options=[ALICE, PROMPT], required=True, label_visibility="collapsed"
)
text = chapter()
if source == PROMPT:
    prompt.box()
    whole = state.current().text
    text = whole[:LONGEST]
    if len(whole) > len(text):
        st.warning(f"Only the first {LONGEST:,} characters are counted.")
    refused = ""
    if len(text) < SHORTEST:
        refused = (
            f"This text has {so_many(len(text), 'character')}; to count pairs in it takes at least "
            f"{SHORTEST}. Type more, or choose the chapter."
        )
    elif len(set(text)) > MOST_CHARACTERS:
        refused = (
            f"This text has {len(set(text)):,} different characters; this page's table goes up to "
            f"{MOST_CHARACTERS}. Choose a text of an alphabet, or the chapter."
        )
    if refused:
        st.info(refused)
        end_page()


# ---- what is learnt of a text's characters knows no model: its key is the text ----


@st.cache_resource(max_entries=8, show_spinner=False)
def learnt(text: str) -> tuple[Counts, NDArray[np.float64], dict[int, NDArray[np.float64]], list[int]]:
    """Counts, the loss before each step of the network and after the last, its rows at some steps, and the
    most frequent characters. A tenth of a second for a chapter."""
    counts, losses, rows = bigram.count(text), [], {}
    for model in bigram.learn(counts, steps=KEPT_STEPS[-1]):
        losses.append(model.loss(counts))
        if model.step in KEPT_STEPS:
            rows[model.step] = model.probabilities
    often = np.argsort(-np.bincount(counts.tokenizer.encode(text)), kind="stable")[:SHOWN]
    return counts, np.array(losses), rows, sorted(int(i) for i in often)


@st.cache_resource(max_entries=8, show_spinner=False)
def counted_bits(text: str) -> Counted:
    return counted(text)


@st.cache_resource(max_entries=16, show_spinner=False)
def fit_of(text: str, recipe: Recipe) -> Fit:
    """The training of this text with this recipe: begun here, or where somebody has left it."""
    return Fit(text, recipe)


counts, network_losses, rows, often = learnt(text)
bits, names = counted_bits(text), [show_token(character.encode()) for character in counts.characters]
above = st.empty()

# ---- the two tables ----


@st.fragment
def tables() -> None:
    """What was counted, and what the network has learnt by the step under the slider."""
    STEP.within(KEPT_STEPS)
    sentence = st.container()
    step = STEP.widget(st.select_slider, "Steps of training, right", options=KEPT_STEPS)
    h = counts.characters.index("h") if "h" in counts.characters else -1
    row = h if h in often else max(often, key=lambda i: int(counts.firsts[i]))
    best, loss, blind = int(counts.pairs[row].argmax()), network_losses[step], math.log(len(names))
    right = (
        f"a network of one matrix after {so_many(step, 'step')} on the same text: its loss is "
        f"{significant(loss, 4)} nats per character."
        if step
        else "a network of one matrix that has learnt nothing: random numbers, and a loss of "
        f"{significant(loss, 4)} nats per character, where a blind guess has {significant(blind, 4)}."
    )
    with sentence:
        prose(
            f"Left, the counts: after {as_code(names[row])} comes {as_code(names[best])} "
            f"{percent(float(counts.probabilities[row, best]))} of the time. Right, {right} Move the steps: "
            f"it arrives at the counts, whose own loss is {significant(counts.loss, 4)}. No table of pairs "
            "can have less."
        )
    square = np.ix_(often, often)
    after = f"Learnt, after {so_many(step, 'step')}" if step else "Random, before the first step"
    sides = (
        ("counted", "Counted", counts.probabilities, counts.pairs[square], ()),
        ("learnt", after, rows[step], None, (f"step{step}",)),
    )
    for column, (name, title, chances, times, which) in zip(st.columns(2), sides, strict=True):
        with column:
            st.markdown(f"**{title}**")
            fig = pair_table(chances[square], times, [names[i] for i in often], scene.mode)
            alt = f"{title}: the probability of each character after each other"
            scene.chart(fig, key=f"baselines_{name}", which=which, alt=alt)
    said = "A row is the character that stands there, a column the next; the strongest purple is 0.5 or more."
    if len(often) < len(names):
        said += f" The {len(often)} most frequent of {len(names)} are shown; *In numbers* has all."
    st.caption(said)


tables()

# ---- the MLP, trained while one looks ----

st.subheader("Further back: a small MLP", anchor=False)
with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
    CONTEXT.within(CONTEXTS)
    context = CONTEXT.widget(
        st.segmented_control, "Characters it looks back", options=CONTEXTS, required=True
    )
    STEPS.within((50, 3000))
    limits = {"min_value": 50, "max_value": 3000, "step": 50, "width": 160}
    steps = STEPS.widget(st.number_input, "Steps of training", **limits)
recipe = Recipe(context=int(context), steps=int(steps))
fit = fit_of(text, recipe)
size = len(fit.tokenizer.vocabulary)
looks = "the last character" if recipe.context == 1 else f"the last {recipe.context} characters"
prose(
    f"A bigram forgets all but one character. This network looks {looks} up in a table of {size} rows of "
    f"{recipe.embedding} numbers, and sends what it finds through {recipe.hidden} hidden units: "
    f"{recipe.parameters(size):,} parameters, {recipe.steps} steps of {recipe.batch} examples (Bengio and "
    "others, 2003).",
    "parameter",
)
scene.chart(
    two_losses(fit.steps, fit.own, fit.held_out, bits.bigram, recipe.steps, scene.mode),
    key="baselines_mlp",
    which=(f"context{recipe.context}",),
    alt="What the MLP costs while it learns: on its own text, and on the held-out one",
)


stopped = st.session_state.get(STOPPED) == recipe
if not fit.done:
    label, then = ("Go on", None) if stopped else ("Stop", recipe)
    st.button(label, key="base_stop", type="primary", on_click=put, args=(STOPPED, then))
if fit.step:
    held_out, difference = fit.held_out[-1], bits.bigram - fit.held_out[-1]
    said = (
        f"After {fit.step} steps it {'ends' if fit.done else 'is'} at {fixed(fit.own[-1], 2)} bits per byte "
        f"of the text it learns from, and **{fixed(held_out, 2)}** of the held-out one, "
    )
    way = "fewer" if difference > 0 else "more"
    said += (
        "like the bigram."
        if abs(difference) < 0.005
        else f"{fixed(abs(difference), 2)} {way} than the bigram."
    )
    lowest = int(np.argmin(fit.held_out))
    if held_out > fit.held_out[lowest] + 0.02:
        said += (
            f" After {fit.steps[lowest]} steps it was {fixed(fit.held_out[lowest], 2)} there: since then it "
            "has learnt this text by heart, and nothing about others."
        )
    st.markdown(said)

# ---- on one scale: bits per byte of the same held-out text ----

st.subheader("On one scale", anchor=False)
scale = {
    f"blind guess among {bits.characters}": bits.blind,
    "single characters": bits.unigram,
    "bigram": bits.bigram,
}
if fit.step:
    scale[f"MLP, {recipe.context} back"] = fit.held_out[-1]
cost, read = st.session_state.get(READ, {}).get(key), reading(scene.lm)
if cost is not None:
    scale[lm_name] = cost
sheet.bars(
    scene,
    "baselines_scale",
    Both(np.array([*scale.values()])),
    [*scale],
    "bits for a byte of the held-out text",
    "Bits for a byte of the same held-out text: " + ", ".join(scale),
    at=2 if cost is None else len(scale) - 1,
    lying=True,
    text=Both([fixed(value, 2) for value in scale.values()]),
    height=70 + 44 * len(scale),
)
wanted, asked = False, st.session_state.get(ASKED, set())
if read is None:
    st.markdown(
        f"{as_code(lm_name)} is not among them: it lacks a token that the held-out text has, or predicts "
        "none."
    )
elif cost is None:
    quick = scene.lm.config.parameters * sum(map(len, read.windows)) <= UNASKED
    wanted = (quick and len(read.windows) <= MOST_PASSES) or key in asked
    if not wanted:
        label = f"Measure {as_code(lm_name)} ({len(read.windows):,} passes)"
        st.button(label, key="base_measure", on_click=put, args=(ASKED, asked | {key}))
said = (
    "A character and a token are different units: their losses cannot be compared. So all pay for the same "
    "text, the beginnings of five books that none of them was trained on, and what they pay is divided by "
    f"its bytes. The bigram is mixed with the single characters (k = {bits.strength:g}): a pair that it "
    "never saw would cost infinitely much."
)
if cost is not None:
    said += (
        f" {as_code(lm_name)} has read far more than this text: part of its lead is what it read, part is "
        "how far back it looks."
    )
prose(said + ("" if fit.step else " The MLP joins them when it has been trained."), "token")
with above:
    which = "a chapter of *Alice*" if source == ALICE else "your prompt"
    than = "" if cost is None else f", and the model {as_code(lm_name)} needs **{fixed(cost, 2)}**"
    prose(
        f"Count which character follows which in {which} ({len(text):,} characters): that is the smallest "
        f"language model. A byte of books that it never saw costs it **{fixed(bits.bigram, 2)} bits**; a "
        f"blind guess among {bits.characters} characters costs {fixed(bits.blind, 2)}{than}."
    )

# ---- samples ----

st.subheader("What they write", anchor=False)
st.markdown(
    "Each draws one character after the other from its own probabilities. The bigram knows which letters go "
    "together; the MLP begins to spell. A GPT writes words: see the page *Next token*."
)
ids, before = counts.tokenizer.encode(text[0]), fit.tokenizer.encode("\n" * recipe.context + text[0])
written = {
    "Counted bigram": counts.tokenizer.decode(bigram.write(counts.probabilities, ids[0], SAMPLE)),
    f"MLP, {recipe.context} back, after {fit.step} steps": fit.tokenizer.decode(
        mlp.write(fit.model, before, SAMPLE)
    ),
}
for name, sample in written.items():
    st.markdown(f"**{name}**")
    st.html(
        f'<p data-testid="sample" data-of="{html.escape(name)}" style="white-space: pre-wrap; '
        f'font-family: monospace; margin: 0; overflow-wrap: anywhere">{html.escape(text[0] + sample)}</p>'
    )

# ---- details ----


def pairs() -> pd.DataFrame:
    step, (first, second) = STEP.value, np.indices(counts.pairs.shape).reshape(2, -1)  # (2, V, V) -> (2, V*V)
    return pd.DataFrame(
        {
            "this": [names[i] for i in first],
            "next": [names[i] for i in second],
            "counted": counts.pairs.ravel(),
            "share": counts.probabilities.ravel(),
            f"after {step} steps": rows[step].ravel(),
        }
    )


def steps_of_network() -> pd.DataFrame:
    return pd.DataFrame({"step": range(len(network_losses)), "loss": network_losses})


def steps_of_mlp() -> pd.DataFrame:
    return pd.DataFrame({"step": fit.steps, "own text": fit.own, "held-out text": fit.held_out})


caption = (
    "How often each pair was counted, its share of all that came after the first character, and what the "
    "network gives it at the step that is shown."
)
in_numbers(pairs, "baselines_pairs", caption, "every pair")
caption = "The network's loss before the first step and after each, in nats per character."
in_numbers(steps_of_network, "baselines_losses", caption, "the network's loss")
in_numbers(steps_of_mlp, "baselines_mlp", "In bits per byte, at each of these steps.", "the MLP's loss")
table = pd.DataFrame({"model": scale.keys(), "bits a byte": scale.values()})
caption = "Nats, summed over the whole held-out text, turned into bits (by ln 2), and divided by its bytes."
in_numbers(table, "baselines_scale", caption, "on one scale")
learnt_from = "chapter()" if source == ALICE else repr(text)
in_code(
    [NeuralBigram.loss, NeuralBigram.gradient, MLP.loss_and_gradients, counted],
    f"""\
from gptviz.analysis.tokens import chapter
from gptviz.lessons.bigram import count, learn
from gptviz.lessons.compared import Fit, counted
from gptviz.lessons.mlp import Recipe

text = {learnt_from}
counts = count(text)
*_, network = learn(counts, steps={STEP.value})
picture = counts.probabilities, network.probabilities
print("nats per character:", counts.loss, network.loss(counts))

fit = Fit(text, Recipe(context={recipe.context}, steps={recipe.steps}))
fit.go_on({recipe.steps})
print("bits per byte of the held-out text:", counted(text), fit.held_out[-1])
""",
)

# ---- at the end, so that any click interrupts it: what takes longer, then the page again ----

if wanted and read is not None:
    bar, nats = st.empty(), 0.0
    for number, window in enumerate(read.windows, start=1):
        said = f"the model reads the held-out text: window {number} of {len(read.windows)}"
        bar.progress(number / len(read.windows), said)
        nats += float(sheet.once(Run(key, window), losses)["nats"].sum())
    st.session_state[READ] = {**st.session_state.get(READ, {}), key: nats / math.log(2) / read.bytes}
    st.rerun()
if not fit.done and not stopped:
    target, bar = fit.step + AT_ONCE, st.empty()
    while fit.step < target and not fit.done:
        bar.progress(fit.step / recipe.steps, f"the MLP learns: step {fit.step} of {recipe.steps}")
        fit.go_on(MEASURED_EVERY)
    st.rerun()
