"""Guess first: a page asks how probable the answer is without a part of the model, before it says so.

Off as long as nobody switches it on: for a teacher in front of a class, and for who likes to be asked.
"""

from functools import partial
from typing import Any

import streamlit as st

from gptviz.ui.buttons import button
from gptviz.ui.shell import state
from gptviz.ui.shell.bench import Question
from gptviz.ui.shell.navigation import page_file
from gptviz.ui.shell.params import Param
from gptviz.ui.shell.scene import Scene
from gptviz.ui.teach import cover
from gptviz.ui.words import as_code, percent

GUESS: Param[bool] = Param("guess_first", bool, False)
WHY = "Guess first: then you see what the model does."
PERCENT = "guess_percent"  # the slider's widget
_SAID = "gptviz_guessed"  # in the session: what was asked -> the guess in percent; None where it was shown


def switch() -> None:
    """Draw the switch, but inside a guide, which asks its own questions."""
    if state.GUIDE.value is None:
        told = "The page asks what becomes of the answer before it says so."
        GUESS.widget(st.toggle, "Guess first", help=told)


def is_open(scene: Scene, asked: Question, part: str, now: float, without: float) -> bool:
    """Ask for the probability of the answer without this part; True as long as nobody has guessed it.

    `part` names it in a sentence; `now` and `without` are the probability with it and without it. Once there
    is a guess it stands beside the truth.
    """
    if not GUESS.value or state.GUIDE.value is not None:
        return False
    said: dict[Any, int | None] = st.session_state.setdefault(_SAID, {})
    this = (scene.run, scene.position, asked.token, asked.baseline, part)
    answer = as_code(asked.shown)
    if this in said:
        if said[this] is not None:
            st.markdown(f"You guessed **{said[this]} %**. It is **{percent(without)}**.")
        return False

    def guessed(shows: bool) -> None:
        """Callback: keep the guess, or that there is none."""
        said[this] = None if shows else st.session_state[PERCENT]

    st.markdown(
        f"**Guess first.** The probability of {answer} is {percent(now)}. What is it without {part}?"
    )
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key="guess_first_row"
    ):
        how: Any = {"label_visibility": "collapsed", "format": "%d %%", "width": 420}
        st.slider("Your guess, in percent", 0, 100, 50, key=PERCENT, **how)
        button("That is my guess", "guess_first_say", partial(guessed, False), primary=True)
        button("Show me", "guess_first_show", partial(guessed, True), type="tertiary")
    return True


def cover_rest(page: str, *shows: str) -> None:
    """Cover what this page draws from here to its end, but for the pictures that it `shows`."""
    cover.begin(page_file(page), shows, (), "", why=WHY)
