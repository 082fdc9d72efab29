"""Going on with the text: one token that a person picks or a seed draws; many are written on Generate."""

from dataclasses import replace

import streamlit as st

from gptviz.engine.sampling import Sampling, distribution, draw
from gptviz.ui.shell import prompt, state
from gptviz.ui.shell.navigation import page_target
from gptviz.ui.shell.sampling import SEED, SEEDS, WRITTEN, seed_input, written
from gptviz.ui.shell.scene import Scene
from gptviz.ui.views.next_token import words
from gptviz.ui.views.surprises import logits_at
from gptviz.ui.words import show_id

MANY = 20
SAID = "next_said"  # a sentence, and the text it is about


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
    """Seed, "Sample one" and "Write on", with what the one gave."""
    row = st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="next_go_on")
    seed = seed_input(row, "The same seed draws the same tokens from the same text and settings.")
    sampled = row.button(
        "Sample one",
        key="next_sample",
        on_click=_sample_one,
        args=(scene, replace(sampling, seed=seed)),
        help="Draw one token from these probabilities, append it, and take the next seed.",
    )
    writing = row.button(
        f"Write on, {MANY} tokens",
        key="next_write",
        on_click=_write_on,
        args=(scene, seed),
        help="On the page Generate: token after token with these settings, each from its own forward pass.",
    )
    if sampled:
        st.rerun()
    sentence, about = st.session_state.get(SAID, ("", None))
    if sentence and about == scene.text:
        st.markdown(sentence)
    if writing:
        st.switch_page(page_target("generate"), query_params=state.link())


def _write_on(scene: Scene, seed: int) -> None:
    SEED.set(seed)  # as it stands here, also where nobody chose it
    WRITTEN.set(written(MANY, scene.run.ids[: scene.position + 1]))


def _sample_one(scene: Scene, sampling: Sampling) -> None:
    chances = distribution(logits_at(scene.run, scene.position), sampling)
    chosen = draw(chances, sampling.points(1)[0])
    refusal, number = _go_on(scene, chosen), sampling.seed or 0
    _say(f"{words.drew(number, show_id(scene.lm, chosen), float(chances.probabilities[chosen]))} {refusal}")
    SEED.set((number + 1) % SEEDS)
