"""What comes next, how sure the model is of it, and how temperature, top-k and top-p choose."""

from dataclasses import replace
from functools import partial
from html import escape

import pandas as pd
import streamlit as st
import torch

from gptviz import Run
from gptviz.analysis import next_token as numbers
from gptviz.analysis.shapes import run_first_block
from gptviz.both import Both
from gptviz.engine.sampling import AS_IT_IS, Sampling, distribution, draw
from gptviz.figures import next_token as figures
from gptviz.figures.candidates import all_others, candidate_rows, column_heads
from gptviz.figures.marks import UNCHANGED
from gptviz.ui import sheet, words
from gptviz.ui.components.candidates import candidate_bars, held_sliders
from gptviz.ui.shell import prompt as prompt_box, sampling as controls, state, target
from gptviz.ui.shell.navigation import page_target

ROWS = (10, 20, 50, 100)  # how many bars
COUNT = sheet.Param("next_rows", int, ROWS[0], sheet.if_there)
CERTAIN = 0.9  # the probability from which on a model is nearly certain
MANY = 20  # tokens that "Write 20 tokens" writes
SAID = "next_said"  # in the session: a sentence, and the text it is about
TAIL = 36  # characters of the prompt before the predicted token

frame = sheet.start_page("Next token", choices=[*controls.PARAMS, COUNT])
prompt = sheet.read_text(frame)
scene = sheet.trace(prompt, keep=["final"])

last = scene.position == len(scene.tokens) - 1
came = None if last else scene.tokens[scene.position + 1].id
runs_of = Both(scene.run, scene.other)


def first(found: numbers.Candidates) -> int:
    return int(found.table["id"].iloc[0])


def found_for(sampling: Sampling, count: int) -> Both[numbers.Candidates]:
    """The bars of each model: the first `count`, the token that came, and the unchanged one's first."""
    also = () if came is None else (came,)
    if scene.other is not None:
        also = (
            *also,
            first(target.candidates_at(scene.other, scene.position, AS_IT_IS, ROWS[0], also)),
        )
    return runs_of.map(lambda run: target.candidates_at(run, scene.position, sampling, count, also))


def chance(run: Run, token: int) -> float:
    """A token's probability after the selected position, at temperature 1, with nothing cut off."""
    return float(torch.softmax(target.logits_at(run, scene.position).double(), dim=0)[token])


def sentence() -> str:
    """The model's first choice, how unsure it is, and the chance it gave to what came next.

    All at temperature 1, with nothing cut off: the page's settings change nothing in it.
    """
    lm = scene.lm
    candidates = found_for(AS_IT_IS, ROWS[0])
    best = first(candidates.now)
    given = runs_of.map(lambda run: chance(run, best))
    unsure = candidates.map(lambda of_run: of_run.entropy.perplexity)
    old = best
    if candidates.was is not None:
        old = first(candidates.was)
    if old == best:
        says = given.arrow("%")
    else:  # what happened is told of the token that was first
        says = words.percent(given.now)
    model = "the **changed** model"
    if scene.other is None:
        model = "the model"
    token = words.as_code(words.show_id(lm, best))
    text = f"After {words.as_code(scene.label)}, {model} finds {token} most likely: **{says}**. "
    if old != best:
        before = runs_of.map(lambda run: chance(run, old)).arrow("%")
        text += f"Before your change, {words.as_code(words.show_id(lm, old))} came first: **{before}**. "
    certain = "It is as uncertain as if"
    if given.now >= CERTAIN:
        certain = "It is nearly certain: as if"
    if unsure.now < 1.005:
        text += "It is all but certain."
    else:
        chooses = words.significant(unsure.now)
        text += f"{certain} it had to choose between {chooses} equally likely tokens."
    if came == best:
        text += " In your text it does come next."
    elif came is not None:
        p = words.percent(chance(scene.run, came))
        rank = int(candidates.now.chosen.rank[came]) + 1
        after = words.as_code(words.show_token(scene.tokens[scene.position + 1].raw))
        text += f" Your text goes on with {after} instead: {p}, rank {rank:,}."
    return text


words.prose(sentence(), "perplexity")


@st.fragment
def stage() -> None:  # it may outlive the visit: it holds the scene, and looks up the rest
    lm = scene.lm
    top = st.container(key="next_headline", horizontal=True, horizontal_alignment="distribute")
    # not columns: on a phone they would fill the screen before the picture
    row = st.container(key="set_next", horizontal=True, vertical_alignment="bottom", gap="small")
    sampling = controls.sampling_controls(row, lm.config.vocab_size)
    COUNT.within(ROWS)
    count = COUNT.widget(
        row.selectbox, "Rows", options=ROWS, width=100, help="How many bars to show."
    )
    found = found_for(sampling, count)
    headline(top, found, at_zero=sampling.temperature == 0)
    show = partial(words.show_id, lm)
    whole = partial(words.is_whole, lm)
    rows, rest = candidate_rows(found.now, sampling, show, whole, came, found.was)
    settings = {
        "temperature": sampling.temperature,
        "top_k": sampling.top_k,
        "top_p": sampling.top_p,
    }
    # what tells the picture from the one of the model as it is, for the file's name
    which = [
        f"{name.replace('_', '-')}{value:g}"
        for name, value in settings.items()
        if value not in (None, 1.0)
    ]
    text = scene.run.ids[: scene.position + 1]
    live = held_sliders(
        runs_of.map(lambda run: target.logits_at(run, scene.position)),
        settings,
        {"temperature": controls.TEMPERATURE.name, "top_p": controls.TOP_P.name},
        stale="next_headline",
        about=controls.name_of([*scene.key.encode(), *text]),
    )
    candidate_bars(
        rows,
        rest,
        column_heads(sampling, compared=scene.other is not None),
        lambda i: say(append(i)),
        action="Append" if last else "Continue with it",
        saved=scene.saved("next_token", "The most probable next tokens", *which),
        live=live,
    )
    go_on(sampling)
    look_for(sampling, found)
    show_vocabulary(found)
    details(sampling, found)


def headline(
    place: st.delta_generator.DeltaGenerator, found: Both[numbers.Candidates], at_zero: bool
) -> None:
    """The end of the text with the most probable next token after it, and the entropy of the bars.

    `at_zero`: the temperature is 0, so nothing is left to chance.
    """
    colors = scene.palette
    quiet = "font-size: 0.9rem; margin-left: 0.7em"
    text = words.show_token(
        b"".join(token.raw for token in scene.tokens[: scene.position + 1])
    ).replace("·", " ")
    tail = ("…" if len(text) > TAIL else "") + text[-TAIL:]

    def token(one: numbers.Candidates, test_id: str, style: str) -> str:
        p = float(one.table["probability"].iloc[0])
        return (
            f'<b data-testid="{test_id}" data-id="{first(one)}" data-probability="{p}" '
            f'style="{style}; white-space: pre">{escape(words.show_id(scene.lm, first(one)))}</b> '
            f'<span style="color: {colors.quiet}; {quiet}">'
            f"{words.probability_text(p)}</span>"
        )

    best = token(
        found.now, "predicted", f"color: {colors.accent}; border-bottom: 2px solid {colors.accent}"
    )
    if found.was is not None:
        was = token(found.was, "predicted-unchanged", f"border-bottom: 2px dashed {colors.ghost}")
        best += f'<span style="color: {colors.quiet}; {quiet}">{UNCHANGED} {was}</span>'
    place.html(
        '<div data-testid="headline" style="font-size: 1.15rem; line-height: 1.5; overflow-wrap: anywhere">'
        f'<span style="color: {colors.quiet}">{escape(tail)}</span>{best}</div>'
    )
    bits = found.map(lambda one: words.fixed(one.entropy.bits, 2)).arrow()
    vocabulary = scene.lm.config.vocab_size
    kept = f"all {vocabulary:,} tokens can be drawn"
    if found.now.kept < vocabulary:
        kept = f"{found.now.kept:,} of {vocabulary:,} tokens can be drawn"
    if at_zero:
        kept = "the first is always drawn"
    now = found.now.entropy
    ghost = ""
    said = (
        f"entropy {bits} bits = {words.fixed(now.nats, 2)} nats · perplexity "
        f"{words.significant(now.perplexity)} · {kept}"
    )
    if found.was is not None:  # beside a longer headline
        said = f"entropy {bits} bits · {kept}"
        ghost = f' data-unchanged-nats="{found.was.entropy.nats}"'
    place.html(
        f'<div data-testid="entropy" data-nats="{now.nats}"{ghost} style="font-size: 0.92rem">{said}</div>'
    )


def look_for(sampling: Sampling, found: Both[numbers.Candidates]) -> None:
    said = (
        f"**What to look for.** The model gives each of the {scene.lm.config.vocab_size:,} tokens in its "
        "vocabulary a score, its logit. Softmax turns the scores into probabilities."
    )
    if sampling.changes_nothing:
        said += " Lower the temperature: the first token gains, and in the end it gets everything."
    else:
        own = words.fixed(found.now.model_entropy.bits, 2)
        bits = words.fixed(found.now.entropy.bits, 2)
        if bits == own:
            said += f" Your settings leave the entropy at {own} bits."
        else:
            said += f" Your settings change the entropy: **{own} → {bits} bits**."
        cut = found.now.kept < scene.lm.config.vocab_size  # a temperature alone cuts nothing
        if cut:
            said += " Cut tokens get 0, and the others grow until they sum to 1."
    if scene.other is not None:
        said += " Grey outline: the model before your change. A shorter bar has lost, a longer one has gained."
    elif not sampling.changes_nothing:
        said += " Dashed outline: the model without your settings."
    words.prose(said, "logit", "vocabulary", "softmax", "entropy", "temperature", "top-k", "top-p")


def curve_of(run: Run, candidates: numbers.Candidates) -> tuple[pd.DataFrame, list[str]]:
    """The line of a model over the whole vocabulary, and the tokens as the screen shows them."""
    line = numbers.curve(target.logits_at(run, scene.position), candidates)
    return line, [words.show_id(scene.lm, i) for i in line["id"]]


def show_vocabulary(found: Both[numbers.Candidates]) -> None:
    lm = scene.lm
    own = found.now
    now, names = curve_of(scene.run, own)
    old = None
    if scene.other is not None and found.was is not None:
        old = curve_of(scene.other, found.was)
    arrived = None
    if came is not None:
        arrived = (int(own.chosen.rank[came]) + 1, words.show_id(lm, came))
    st.markdown("#### The whole vocabulary")
    fig = figures.vocabulary_curve(now, names, own.kept, scene.mode, arrived, old)
    scene.chart(
        fig, key="next_curve", alt="The probability of every token of the vocabulary by its rank"
    )
    said = "Grey: the model by itself. Teal: with your settings."
    if old is not None:
        said = "Teal: the changed model. Dashed: the model before your change, sorted by its own ranks."
    tilts = "Temperature tilts the line; top-k and top-p cut it off."
    st.markdown(
        f"All tokens, from the most to the least probable; both axes count in powers of ten. {said} {tilts}"
    )


# ---- going on: one token that a person picks or a seed draws; many are written on Generate ----


def say(sentence: str) -> None:
    """Under the buttons, as long as the text is the same. A toast would be lost: the bars are a fragment."""
    st.session_state[SAID] = (sentence, state.TEXT.value)


def append(token: int) -> str:
    """Callback: the text up to the selected token, and then this one; or a sentence why that cannot be."""
    return prompt_box.append(scene.lm, list(scene.tokens[: scene.position + 1]), token) or ""


def sample_one(sampling: Sampling) -> None:
    chances = distribution(target.logits_at(scene.run, scene.position), sampling)
    number = sampling.seed or 0
    token = draw(chances, sampling.points(1)[0])
    refusal = append(token)
    p = words.probability_text(float(chances.probabilities[token]))
    say(
        f"Seed {number} drew {words.as_code(words.show_id(scene.lm, token))}, which had "
        f"probability {p}. {refusal}"
    )
    controls.SEED.set((number + 1) % controls.SEEDS)


def write_on(seed: int) -> None:
    controls.SEED.set(seed)  # as it stands here, also where nobody chose it
    controls.WRITTEN.set(controls.written(MANY, scene.run.ids[: scene.position + 1]))


def go_on(sampling: Sampling) -> None:
    """Seed, "Draw one token" and "Write 20 tokens", with what the one gave."""
    row = st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="next_go_on")
    seed = controls.seed_input(
        row, "The same seed draws the same tokens from the same text and settings."
    )
    told = "Draw one token from these probabilities, append it, and take the next seed."
    how = replace(sampling, seed=seed)
    sampled = row.button(
        "Draw one token", key="next_sample", on_click=sample_one, args=(how,), help=told
    )
    label = f"Write {MANY} tokens"
    told = "Opens Generate and writes token after token with these settings, a forward pass each."
    writing = row.button(label, key="next_write", on_click=write_on, args=(seed,), help=told)
    if sampled:
        st.rerun()
    said, about = st.session_state.get(SAID, ("", None))
    if said and about == scene.text:
        st.markdown(said)
    if writing:
        st.switch_page(page_target("generate"), query_params=state.link())


def details(sampling: Sampling, found: Both[numbers.Candidates]) -> None:
    lm = scene.lm
    ids = tuple(int(i) for i in found.now.table["id"])

    def rows(run: Run) -> pd.DataFrame:
        frame = sheet.once(run, numbers.next_table, scene.position, sampling, ids)
        frame = frame.astype({"rank": "Int64", "id": "Int64"})
        frame.insert(1, "token", [words.show_id(lm, i) for i in ids])
        logits = target.logits_at(run, scene.position)
        shown = torch.tensor(ids)
        settings = {"probability": sampling, "model_probability": AS_IT_IS}
        others = {
            name: numbers.rest_of(distribution(logits, how).probabilities, shown)
            for name, how in settings.items()
        }
        rest = pd.DataFrame([{"token": all_others(found.now.rest)} | others])
        if found.now.rest:
            return pd.concat([frame, rest], ignore_index=True)
        return frame

    def unsure(run: Run) -> pd.DataFrame:
        return sheet.once(run, numbers.entropies, scene.position, sampling)

    told = (
        "From logit to probability, for the bars above. `filter`: which filter cut a token. "
        "`model_probability`: without your settings."
    )
    if found.now.rest:
        told += " The last row sums all other tokens."
    with sheet.details():
        sheet.numbers_of("next_token", lambda: runs_of.map(rows), told, what="the next token")
        unsure_of = "how unsure"
        sheet.numbers_of("entropy", lambda: runs_of.map(unsure), what=unsure_of)

        def run() -> None:  # what is shown, once, so that its shapes can be taken down
            run_first_block(scene.lm, scene.run.ids)
            distribution(target.logits_at(scene.run, scene.position), sampling)

        sources = ("model", "hidden", distribution)
        sheet.code_of(scene, sources, numbers.next_table, scene.position, sampling, ids, run=run)
        asked = (scene.position, sampling)
        sheet.code_of(
            scene,
            [numbers.entropy],
            numbers.entropies,
            *asked,
            key="in_code_entropy",
            what=unsure_of,
        )


stage()
asked = "How surprising was each token of this text? Loss"
st.page_link(
    page_target("loss"), label=asked, icon=":material/trending_down:", query_params=state.link()
)
