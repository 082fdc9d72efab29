"""The buttons of the player, and the settings with which it writes."""

import time
from dataclasses import replace

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gptviz.engine.sampling import Sampling
from gptviz.ui.shell.scene import Scene
from gptviz.ui.views import sampling as settings_of
from gptviz.ui.views.generate import derived, keeping, play, words
from gptviz.ui.views.generate.tree import LONGEST, Tree
from gptviz.ui.views.generate.written import Written
from gptviz.ui.views.placed import moved, placed

SLIDER = "generate_step"
SEED = 1  # until another is chosen
PATIENCE = 0.4  # seconds without a bar


def settings(scene: Scene) -> Sampling:
    """Temperature, filters, seed, and where to stop."""
    row = st.container(key="generate_settings", horizontal=True, vertical_alignment="bottom", gap="small")
    sampling = settings_of.sampling_controls(row, scene.lm.config.vocab_size)
    seed = settings_of.seed_input(
        row, "Which random numbers draw the tokens: the same seed, the same text.", unset=SEED
    )
    play.STOP.widget(
        row.text_input,
        "Stop at",
        placeholder="nothing",
        width=130,
        max_chars=60,
        help="Nothing more is written once these characters stand in what was written.",
    )
    return replace(sampling, seed=seed)


def catch_up(scene: Scene, sampling: Sampling, tree: Tree, place: DeltaGenerator) -> None:
    """Write what a link asks for, part by part: with a bar where it takes long, and a click ends it."""
    base, began = play.base(scene), time.monotonic()
    put = tuple(sorted(tree.put(tree.branch).items()))
    bar = None
    for length in range(derived.PART, tree.length, derived.PART):
        before = tuple((at, token) for at, token in put if at < length)
        if derived.steps_of(base, sampling, before, length, play.STOP.value).ended:
            break
        if time.monotonic() - began > PATIENCE:
            bar = bar or place.empty()
            bar.progress(length / tree.length, words.progress(length, tree.length))
    if bar is not None:
        bar.empty()


def buttons(scene: Scene, sampling: Sampling, written: Written, ended: bool, plays: bool) -> None:
    """Play or pause, back, one step, the slider over all steps, and what can be done with the text."""
    count, more = len(written.steps), play.can_go_on(written, ended)
    with st.container(key="generate_player", horizontal=True, vertical_alignment="center", gap="small"):
        st.button(
            "Back",
            key="generate_back",
            icon=":material/skip_previous:",
            on_click=play.go_to,
            args=(scene, written.chosen - 1),
            disabled=written.chosen == 0,
        )
        if plays:
            st.button(
                "Pause",
                key="generate_pause",
                icon=":material/pause:",
                type="primary",
                on_click=play.pause,
            )
        else:
            st.button(
                "Play",
                key="generate_play",
                icon=":material/play_arrow:",
                type="primary",
                on_click=play.play,
                args=(scene, sampling),
                disabled=not count and not more,
                help="Token after token, each from a forward pass of its own. From the end: once more.",
            )
        st.button(
            "One step",
            key="generate_forward",
            icon=":material/skip_next:",
            on_click=play.forward,
            args=(scene, sampling),
            disabled=not more,
        )
        _slider(scene, written, not ended and count < LONGEST, plays)
        play.SPEED.within(tuple(play.SPEEDS))
        play.SPEED.widget(
            st.selectbox, "Speed", options=tuple(play.SPEEDS), width=165, label_visibility="collapsed"
        )
        keeping.buttons(scene, written, disabled=not count or plays)


def _slider(scene: Scene, written: Written, open_end: bool, plays: bool) -> None:
    """Over the steps; its last place is the token that is not written yet."""
    last, place = len(written.steps) - (not open_end), written.chosen + 1
    key = placed(SLIDER, place)
    st.slider(
        "Token",
        min_value=1,
        max_value=max(last, 1) + 1,
        value=place,
        key=key,
        on_change=moved,
        args=(SLIDER, key, lambda place: play.go_to(scene, int(place) - 1)),
        disabled=not last or plays,
        width=220,
        label_visibility="collapsed",
        help="Which of the written tokens is looked at; the last place is the one to come.",
    )
