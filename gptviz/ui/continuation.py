"""Going on with the text: one token that a person picks or a seed draws, or twenty written in a row."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

import streamlit as st
import torch

from gptviz import LanguageModel
from gptviz.digits import fixed
from gptviz.figures.next_token import probability_text
from gptviz.figures.theme import palette
from gptviz.generate import Step, generate
from gptviz.sampling import Options, draw, seeded
from gptviz.ui import prompt, state
from gptviz.ui.page import Scene
from gptviz.ui.words import as_code, show_id

MANY = 20
KEPT = "next_kept"  # what was written has just gone into the prompt
PENDING = "next_pending"  # (seed, options) of a "Write on" that is to begin
SEED, DRAWN, WRITTEN = "seed", "next_drawn", "next_written"


@dataclass
class Written:
    """What was written on after some ids, kept in the session step by step: a stop loses nothing."""

    after: tuple[int, ...]
    model: str
    seed: int
    options: Options
    steps: list[Step] = field(default_factory=list)


def go_on_with(scene: Scene, token_id: int) -> None:
    """Callback: the text up to the selected token, and then this one."""
    refusal = prompt.append(scene.lm, scene.tokens[: scene.position + 1], token_id)
    if refusal:
        st.toast(refusal)


def controls(scene: Scene, probabilities: torch.Tensor, options: Options) -> None:
    """Seed, "Sample one" and "Write on", with what they gave. `probabilities` (V,) are those of the bars."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="next_go_on"):
        seed = int(
            st.number_input(
                "Seed",
                min_value=0,
                max_value=2**31,
                value=0,
                step=1,
                key=SEED,
                bind="query-params",
                persist_state="session",
                width=130,
                help="The same seed draws the same tokens from the same text and settings.",
            )
        )
        sampled = st.button(
            "Sample one",
            key="next_sample",
            on_click=_sample_one,
            args=(scene, probabilities),
            help="Draw one token from these probabilities, append it, and take the next seed.",
        )
        writing = st.button(
            f"Write on, {MANY} tokens",
            key="next_write",
            help="Draw token after token with these settings, each from a forward pass of its own.",
        )
    if sampled:
        st.rerun()
    drawn, for_text = st.session_state.get(DRAWN, ("", None))
    if for_text == scene.text:  # not any more, once the prompt is another
        st.markdown(drawn)
    if writing:
        st.session_state[PENDING] = (seed, options)
        st.rerun()
    _show_written(scene)


def write_on(scene: Scene) -> None:
    """Write, if that was asked for. Call it outside every fragment: a click within one interrupts nothing."""
    if PENDING in st.session_state:
        seed, options = st.session_state.pop(PENDING)
        _write(scene, seed, options)
        st.rerun()


def _sample_one(scene: Scene, probabilities: torch.Tensor) -> None:
    seed = int(st.session_state[SEED])
    chosen = draw(probabilities, seeded(seed))
    go_on_with(scene, chosen)
    had = probability_text(float(probabilities[chosen]))
    sentence = f"Seed {seed} drew {as_code(show_id(scene.lm, chosen))}, which had probability {had}."
    st.session_state[DRAWN] = (sentence, state.current_or_default().text)
    st.session_state[SEED] = (seed + 1) % 2**31


def _write(scene: Scene, seed: int, options: Options) -> None:
    """Write step by step. Any click interrupts it between two steps: what is written stays in the session."""
    ids = [token.id for token in scene.tokens[: scene.position + 1]]
    written = Written(tuple(ids), scene.key, seed, options)
    st.session_state[WRITTEN] = written
    st.button("Stop", key="next_stop", type="primary")
    progress = st.progress(0.0)
    text = st.empty()
    settings = (options.temperature, options.top_k, options.top_p)
    for step in generate(scene.lm, ids, MANY, *settings, seed=seed):
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
            st.button("Put it into the prompt", key="next_keep", on_click=_keep, args=(scene.lm, written))
            st.button("Discard", key="next_discard", on_click=_discard)
            st.caption(_how(written))


def _as_html(scene: Scene, written: Written) -> str:
    """The end of the prompt, then the written text; each token says how likely it was."""
    accent = palette(scene.mode).accent
    before = text_of(scene.lm, written.after[-40:])
    spans = (
        f'<span data-id="{step.id}" title="{escape(_step_sentence(scene.lm, step))}">{escape(piece)}</span>'
        for step, piece in zip(written.steps, pieces(scene.lm, [s.id for s in written.steps]), strict=True)
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
        waiting += lm.tokenizer.decode_single_token_bytes(i)
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
    return lm.tokenizer.decode_bytes(list(ids)).decode("utf-8", "ignore")


def _step_sentence(lm: LanguageModel, step: Step) -> str:
    return f"`{show_id(lm, step.id)}` was drawn with probability {probability_text(step.probability)}"


def _how(written: Written) -> str:
    count = f"{len(written.steps)} tokens" if len(written.steps) > 1 else "1 token"
    filters = [f"temperature {fixed(written.options.temperature, 2)}"]
    filters += [f"top-k {written.options.top_k}"] if written.options.top_k else []
    filters += [f"top-p {written.options.top_p:g}"] if written.options.top_p else []
    return f"{count}, seed {written.seed}, {', '.join(filters)}"


def _keep(lm: LanguageModel, written: Written) -> None:
    new = [step.id for step in written.steps if not lm.tokenizer.is_special_token(step.id)]
    state.change(text=text_of(lm, [*written.after, *new]), token=None)
    st.session_state[KEPT] = True
    _discard()


def _discard() -> None:
    st.session_state.pop(WRITTEN, None)
