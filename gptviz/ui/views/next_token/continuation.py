"""Going on with the text: one token that a person picks or a seed draws, or twenty written in a row."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from html import escape

import streamlit as st

from gptviz import LanguageModel
from gptviz.figures.theme import palette
from gptviz.generate import Step, steps
from gptviz.sampling import Sampling, distribution, draw
from gptviz.tokenizer import END_OF_TEXT, named_bytes
from gptviz.ui.shell import params, prompt, state
from gptviz.ui.shell.params import Param
from gptviz.ui.shell.scene import Scene
from gptviz.ui.views.next_token import words
from gptviz.ui.views.next_token.derived import logits_at
from gptviz.ui.words import is_named, nameless, show_id

MANY = 20
KEPT = "next_kept"  # what was written has just gone into the prompt
PENDING = "next_pending"  # the Sampling, seed included, of a "Write on" that is to begin
SAID, WRITTEN = "next_said", "next_written"  # SAID: a sentence, and the text it is about
SEED: Param[int | None] = Param("seed", int, None)
SEEDS = params.LARGEST


@dataclass
class Written:
    """What was written on after some ids, kept in the session step by step: a stop loses nothing."""

    after: tuple[int, ...]
    model: str
    sampling: Sampling
    steps: list[Step] = field(default_factory=list)


def go_on_with(scene: Scene, token_id: int) -> None:
    """Callback: the text up to the selected token, and then this one; or a sentence why that cannot be."""
    _say(_go_on(scene, token_id))


def _go_on(scene: Scene, token_id: int) -> str:
    tokens = list(scene.tokens[: scene.position + 1])
    return prompt.append(scene.lm, tokens, token_id) or ""


def _say(sentence: str) -> None:
    """Under the buttons, as long as the text is the same. A toast would be lost: the bars are a fragment."""
    st.session_state[SAID] = (sentence, state.current().text)


def controls(scene: Scene, sampling: Sampling) -> None:
    """Seed, "Sample one" and "Write on", with what they gave."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="next_go_on"):
        SEED.widget(
            st.number_input,
            "Seed",
            min_value=0,
            max_value=SEEDS - 1,
            value=None,
            placeholder="0",
            step=1,
            width=130,
            help="The same seed draws the same tokens from the same text and settings.",
        )
        sampled = st.button(
            "Sample one",
            key="next_sample",
            on_click=_sample_one,
            args=(scene, sampling),
            help="Draw one token from these probabilities, append it, and take the next seed.",
        )
        writing = st.button(
            f"Write on, {MANY} tokens",
            key="next_write",
            help="Draw token after token with these settings, each from a forward pass of its own.",
        )
    if sampled:
        st.rerun()
    sentence, about = st.session_state.get(SAID, ("", None))
    if sentence and about == scene.text:
        st.markdown(sentence)
    if writing:
        st.session_state[PENDING] = replace(sampling, seed=_seed())
        st.rerun()
    _show_written(scene)


def write_on(scene: Scene) -> None:
    """Write, if that was asked for. Call it outside every fragment: a click within one interrupts nothing."""
    if PENDING in st.session_state:
        _write(scene, st.session_state.pop(PENDING))
        st.rerun()


def _sample_one(scene: Scene, sampling: Sampling) -> None:
    seed = _seed()
    chances = distribution(logits_at(scene.run, scene.position), sampling)
    chosen = draw(chances, replace(sampling, seed=seed).points(1)[0])
    refusal = _go_on(scene, chosen)
    _say(f"{words.drew(seed, show_id(scene.lm, chosen), float(chances.probabilities[chosen]))} {refusal}")
    SEED.set((seed + 1) % SEEDS)


def _seed() -> int:
    return SEED.value or 0


def _write(scene: Scene, sampling: Sampling) -> None:
    """Write step by step. Any click interrupts it between two steps: what is written stays in the session."""
    ids = [token.id for token in scene.tokens[: scene.position + 1]]
    written = Written(tuple(ids), scene.key, sampling)
    st.session_state[WRITTEN] = written
    st.button("Stop", key="next_stop", type="primary")
    progress = st.progress(0.0)
    text = st.empty()
    for step in steps(scene.lm, ids, MANY, sampling):
        written.steps.append(step)
        progress.progress(len(written.steps) / MANY, f"token {len(written.steps)} of {MANY}")
        text.html(_as_html(scene, written))


def _show_written(scene: Scene) -> None:
    """What was written on after this very text, and what can be done with it."""
    if st.session_state.pop(KEPT, False):
        st.rerun()  # the prompt is outside this fragment
    written: Written | None = st.session_state.get(WRITTEN)
    here = tuple(token.id for token in scene.tokens[: scene.position + 1])
    if written is None or not written.steps or (written.after, written.model) != (here, scene.key):
        return
    with st.container(key="next_written"):
        st.html(_as_html(scene, written))
        with st.container(horizontal=True, vertical_alignment="center", gap="small"):
            st.button("Put it into the prompt", key="next_keep", on_click=_keep, args=(scene, written))
            st.button("Discard", key="next_discard", on_click=_discard)
            st.caption(words.how(len(written.steps), written.sampling))


def _as_html(scene: Scene, written: Written) -> str:
    """The end of the prompt, then the written text; each token says how likely it was."""
    accent = palette(scene.mode).accent
    before = text_of(scene.lm, written.after[-40:])
    texts = pieces(scene.lm, [step.id for step in written.steps])
    titles = [words.drawn(show_id(scene.lm, step.id), step.probability) for step in written.steps]
    spans = (
        f'<span data-id="{step.id}" title="{escape(title)}">{escape(text)}</span>'
        for step, title, text in zip(written.steps, titles, texts, strict=True)
    )
    return (
        '<p data-testid="written" style="white-space: pre-wrap; font-size: 1.1rem; margin: 0">'
        f"{'… ' if len(written.after) > 40 else ''}{escape(before)}"
        f'<b style="color: {accent}">{"".join(spans)}</b></p>'
    )


def pieces(lm: LanguageModel, ids: Sequence[int]) -> list[str]:
    """The text that each token adds; a character of several tokens comes with the last of them."""
    texts, waiting = [], b""
    for i in ids:
        waiting += named_bytes(lm.tokenizer, i)
        try:
            texts.append(waiting.decode())
            waiting = b""
        except UnicodeDecodeError as error:
            unfinished = error.reason == "unexpected end of data" and len(waiting) - error.start < 4
            end = error.start if unfinished else len(waiting)
            texts.append(waiting[:end].decode("utf-8", "replace"))
            waiting = waiting[end:]
    return texts


def text_of(lm: LanguageModel, ids: Sequence[int]) -> str:
    """The text of these tokens; a character that lacks some of its bytes is left out."""
    return b"".join(named_bytes(lm.tokenizer, i) for i in ids).decode("utf-8", "ignore")


def _nameless(lm: LanguageModel, ids: Sequence[int]) -> str | None:
    """A sentence if one of these ids is a padded row of the model that the tokenizer has no token for."""
    unknown = next((i for i in ids if not is_named(lm, i)), None)
    if unknown is None:
        return None
    return nameless(show_id(lm, unknown))


def _keep(scene: Scene, written: Written) -> None:
    lm = scene.lm
    new = [step.id for step in written.steps]
    if lm.tokenizer.is_special_token(new[-1]) and lm.decode(new[-1:]) == END_OF_TEXT:
        new.pop()  # it ended the writing, and is no part of what was written
    refusal = _nameless(lm, new)
    if refusal:
        _say(refusal)
        return
    special = state.current().special or any(map(lm.tokenizer.is_special_token, new))
    state.change(text=text_of(lm, [*written.after, *new]), token=None, special=special)
    st.session_state[KEPT] = True
    _discard()


def _discard() -> None:
    st.session_state.pop(WRITTEN, None)
