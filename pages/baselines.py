"""Counts, a network that learns them, a small MLP: the models that a GPT has to beat."""

import html
import math
from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from gptviz import Run
from gptviz.analysis.tokens import chapter
from gptviz.both import Both
from gptviz.figures import maps
from gptviz.lessons import bigram, compared, mlp
from gptviz.ui import sheet, words

KEPT_STEPS = (0, 1, 2, 5, 10, 20, 50, 100, 200, 400)
CONTEXTS = (1, 2, 3, 5, 8)
STEP = sheet.Param("base_step", int, 20, sheet.if_there)
CONTEXT = sheet.Param("base_context", int, 3, sheet.if_there)
STEPS = sheet.Param("base_steps", int, 600, sheet.between)
# None: where that is quick
MEASURE: sheet.Param[str | None] = sheet.Param("base_measure", str, None, sheet.if_there)

SHOWN = 30  # characters in the picture
SAMPLE = 240  # characters that each writes
MEASURED_EVERY = 50  # steps of the MLP
SINGLE = "counted: characters"
PAIRS = "counted: pairs (bigram)"
TRIPLES = "counted: triples (trigram)"

frame = sheet.start_page(
    "Baselines", choices=[STEP, CONTEXT, STEPS, MEASURE], reads_text=False, of_model=False
)
text = chapter()
name = words.as_code(frame.lm.name)


# ---- what is learnt of the chapter knows no model ----


@st.cache_resource(show_spinner=False)
def learnt() -> tuple[bigram.Counts, compared.Counted, dict[int, bigram.NeuralBigram]]:
    """The chapter's counts, their bits per byte, and the network that learns them at some steps."""
    counts = bigram.count(text)
    networks = list(bigram.learn(counts, steps=KEPT_STEPS[-1]))
    return counts, compared.counted(text), {step: networks[step] for step in KEPT_STEPS}


@st.cache_resource(max_entries=16, show_spinner=False)
def fit_of(recipe: mlp.Recipe) -> compared.Fit:
    """The training with this recipe: begun here, or where somebody has left it."""
    return compared.Fit(text, recipe)


counts, bits, networks = learnt()
names = [words.show_token(character.encode()) for character in counts.characters]
often = sorted(
    np.argsort(-np.bincount(counts.tokenizer.encode(text)), kind="stable")[:SHOWN].tolist()
)

# ---- how far counting gets, and a GPT: bits per byte of the same unseen text ----

above = st.container()
place = st.container()

# ---- the two tables ----

st.subheader("Can a network learn what we counted?", anchor=False)


@st.fragment
def both_tables() -> None:
    """Draw what was counted, and what the network has learnt by the step under the slider."""
    sentence = st.container()
    step = STEP.choose("Steps of training, right", KEPT_STEPS, st.select_slider)
    h = counts.characters.index("h")
    best = int(counts.pairs[h].argmax())
    loss = words.significant(networks[step].loss(counts), 4)
    trained = "before training, with random numbers"
    if step:
        trained = f"after {words.counted(step, 'step')}"
    with sentence:
        words.prose(
            f"Left: the counts of pairs. After `h`, {words.as_code(names[best])} comes "
            f"{words.percent(float(counts.probabilities[h, best]))} of the time. Right: a network of "
            f"one matrix, {trained}. Its loss is {loss} nats per character; blind guessing has "
            f"{words.significant(math.log(len(names)), 4)}. Move the slider: the network approaches the "
            f"counts and their loss, {words.significant(counts.loss, 4)}. No table of pairs can do "
            "better on this chapter."
        )
    square = np.ix_(often, often)
    shown = [names[i] for i in often]
    tables = {"Counted": counts.probabilities, f"Learnt, {trained}": networks[step].probabilities}
    panels = [
        maps.Map(t, Both(p[square]), "probability", "probability", (0, 0.5))
        for t, p in tables.items()
    ]
    fig = maps.maps(
        panels, shown, shown, None, frame.mode, joint=True, place="is followed by `%{x}`"
    )
    alt = "The probability of each character after each other: counted, and learnt by a network"
    sheet.sideways("baselines_pairs")
    frame.chart(fig, key="baselines_pairs", which=(f"step{step}",), alt=alt)
    st.caption(
        f"Rows: a character. Columns: the next one. The picture shows the {len(often)} most "
        f"frequent of {len(names)} characters; *Details* has all."
    )


both_tables()

# ---- the GPT on the same text ----

cost = None
read = compared.reading(frame.lm)
with place:
    if read is None:
        st.markdown(
            f"{name} is missing: it lacks a token of the held-out text, or predicts none of it."
        )
    elif sheet.is_wanted(MEASURE, frame.lm, len(read.windows[0]), len(read.windows)):
        says = "the model reads the held-out text: {} of {} windows".format
        stop = partial(MEASURE.set, "off")
        cost = sheet.worked(
            Run(frame.key, (0,)),
            compared.bits_per_byte,
            read,
            says=says,
            key="base_stop",
            stop=stop,
        )
    else:
        sheet.button(
            f"Measure {name} ({len(read.windows):,} passes)",
            "base_measure_start",
            MEASURE.set,
            "on",
        )

with above:
    counted = min(bits.unigram, bits.bigram, bits.trigram)
    said = "A GPT must beat counting: how few bits does each need for a byte of other books?"
    if cost is not None:
        beats = "no less than one chapter's counts need"
        if cost < counted:
            beats = "less than one chapter's counts need"
        if cost < counted / 2:
            beats = "less than half of what one chapter's counts need"
        measured = words.fixed(cost, 2)
        said = f"A byte of other books costs {name} **{measured} bits**: {beats}."
    words.prose(
        f"{said} We count in a chapter of *Alice* ({len(text):,} characters): how often each character "
        "comes, which one follows which, and which one follows which two. The other books are held out: "
        "the bundled model has not read them."
    )


def on_one_scale(more: dict[str, float]) -> dict[str, float]:
    """Draw the bars, shorter is better; `more` are those of models that have been trained by now."""
    scale = {
        f"blind guess among {bits.characters}": bits.blind,
        SINGLE: bits.unigram,
        PAIRS: bits.bigram,
        TRIPLES: bits.trigram,
    }
    scale |= more
    chosen = None
    if cost is not None:
        scale[frame.lm.name] = cost
        chosen = len(scale) - 1
    with place:
        sheet.bars(
            frame,
            "baselines_scale",
            Both(np.array([*scale.values()])),
            [*scale],
            "bits per byte (fewer is better)",
            "Bits per byte of the same held-out text: " + ", ".join(scale),
            at=chosen,
            lying=True,
            text=Both([words.fixed(value, 2) for value in scale.values()]),
            height=70 + 44 * len(scale),
        )
    return scale


if not sheet.is_near("mlp"):
    on_one_scale({})

# ---- the MLP ----

st.subheader("Does it help to look further back?", anchor=False)
sheet.end_unless_near("mlp")  # its training takes seconds
with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
    context = CONTEXT.choose("Characters it sees", {n: str(n) for n in CONTEXTS})
    steps = STEPS.number(st.number_input, "Steps of training", 50, 3000, step=50, width=160)
recipe = mlp.Recipe(context=context, steps=steps)
fit = fit_of(recipe)
bar = st.empty()
size = len(fit.tokenizer.vocabulary)
while not fit.done:  # a click interrupts it, and it goes on from there
    bar.progress(fit.step / recipe.steps, f"The MLP learns: step {fit.step} of {recipe.steps}")
    fit.go_on(MEASURED_EVERY)
bar.empty()
held_out = fit.held_out[-1]
lowest = int(np.argmin(fit.held_out))
sees = f"the last {context}"
if context == 1:
    sees = "one, too"
said = (
    f"A bigram sees one character; this network sees {sees}. It turns each into a "
    f"vector of {recipe.embedding} numbers, and passes them through {recipe.hidden} hidden units: "
    f"{recipe.parameters(size):,} parameters (Bengio and others, 2003). After {recipe.steps} steps "
    f"of {recipe.batch} examples it needs {words.fixed(fit.own[-1], 2)} bits per byte of its own "
    f"text, and **{words.fixed(held_out, 2)}** on unseen books, where the bigram needs "
    f"{words.fixed(bits.bigram, 2)}."
)
if held_out > fit.held_out[lowest] + 0.02 and fit.own[-1] < fit.own[lowest]:
    said += (
        f" After {fit.steps[lowest]} steps it was at {words.fixed(fit.held_out[lowest], 2)}. Since "
        "then it has become better on its own text, and worse on others: it overfits."
    )
words.prose(said, "parameter")
ticks = range(0, len(fit.steps), 1 + len(fit.steps) // 13)
sheet.curves(
    frame,
    "baselines_mlp",
    {"the held-out text": Both(fit.held_out), "the text it learns from": Both(fit.own)},
    [f"after {step} steps" for step in fit.steps],
    "bits per byte",
    "What the MLP costs while it learns: on its own text, and on the held-out one",
    which=(f"context{context}",),
    axis={
        "title": {"text": "steps of training"},
        "tickvals": [*ticks],
        "ticktext": fit.steps[:: ticks.step],
    },
    rest=bits.bigram,
    many=True,
)
st.caption("The horizontal line: the bigram on the held-out text.")

scale = on_one_scale({f"MLP, {context} back": held_out})
words.prose("Its bar now stands in the first picture of this page.")

# ---- why these numbers can be compared ----

st.subheader("How can characters and tokens be compared?", anchor=False)
said = (
    "Losses per character and per token cannot be compared. So all models predict the same text, and "
    "we divide what it costs them by its bytes. The text: the beginnings of five books that neither "
    "these models nor the bundled GPT were trained on. The bigram is mixed with the frequencies of "
    f"single characters (k = {bits.strength:g}), since a pair that it never saw would cost infinitely "
    "much; the trigram is mixed with the bigram. A trained GPT has read far more than this chapter, sees "
    "more of the text, and has more parameters."
)
if cost is not None and read is not None:
    tokens = sum(len(window) - 1 for window in read.windows)
    vocabulary = frame.lm.config.vocab_size
    blind = tokens * math.log2(vocabulary) / read.bytes
    said += (
        f" The model {name} reads windows of up to {len(read.windows[0]):,} tokens, and knows little at "
        f"the beginning of each. Blind guessing among its {vocabulary:,} tokens would need "
        f"{words.fixed(blind, 2)} bits per byte: a token has {words.fixed(read.bytes / tokens, 1)} "
        "bytes on average."
    )
words.prose(said, "token")

# ---- samples ----

st.subheader("What they write", anchor=False)
st.markdown(
    "Each model draws one character after the other from its probabilities. The bigram knows which "
    "letters go together; the MLP begins to spell. A GPT writes words: see the page *Generate*."
)
ids = counts.tokenizer.encode(text[0])
line_end = "\n"
before = fit.tokenizer.encode(line_end * context + text[0])
for writer, sample in (
    ("Counted bigram", counts.tokenizer.decode(bigram.write(counts.probabilities, ids[0], SAMPLE))),
    (f"MLP, {context} back", fit.tokenizer.decode(mlp.write(fit.model, before, SAMPLE))),
):
    st.markdown(f"**{writer}**")
    st.html(
        f'<p data-testid="sample" data-of="{writer}" style="white-space: pre-wrap; font-family: monospace; '
        f'margin: 0; overflow-wrap: anywhere">{html.escape(text[0] + sample)}</p>'
    )

# ---- details ----


def pairs() -> pd.DataFrame:
    step = STEP.value
    first, second = np.indices(counts.pairs.shape).reshape(2, -1)  # (2, V, V) -> (2, V*V)
    shares = {"share": counts.probabilities, f"after {step} steps": networks[step].probabilities}
    found = pd.DataFrame({"this": [names[i] for i in first], "next": [names[i] for i in second]})
    return found.assign(
        counted=counts.pairs.ravel(), **{name: p.ravel() for name, p in shares.items()}
    )


told = (
    "How often each pair was counted, its share among all pairs with the same first character, and "
    "the network's probability at the step shown."
)
program = f"""\
from gptviz.analysis.tokens import chapter
from gptviz.lessons.bigram import count, learn
from gptviz.lessons.compared import Fit, counted
from gptviz.lessons.mlp import Recipe

counts = count(chapter())
*_, network = learn(counts, steps={STEP.value})
picture = counts.probabilities, network.probabilities
print("nats per character:", counts.loss, network.loss(counts))

fit = Fit(chapter(), Recipe(context={context}, steps={recipe.steps}))
fit.go_on({recipe.steps})
print("bits per byte of the held-out text:", counted(chapter()), fit.held_out[-1])
"""
with sheet.details():
    sheet.numbers_of("baselines_pairs", pairs, told, "every pair")
    measured = pd.DataFrame({"step": fit.steps, "own text": fit.own, "held-out text": fit.held_out})
    sheet.numbers_of(
        "baselines_mlp", measured, "In bits per byte, at each of these steps.", "the MLP's loss"
    )
    measured = pd.DataFrame({"model": scale.keys(), "bits per byte": scale.values()})
    caption = "Nats, summed over the whole held-out text, turned into bits (by ln 2), and divided by its bytes."
    sheet.numbers_of("baselines_scale", measured, caption, "on one scale")
    sheet.in_code(
        [
            bigram.NeuralBigram.loss,
            bigram.NeuralBigram.gradient,
            mlp.MLP.loss_and_gradients,
            compared.counted,
        ],
        program,
    )
