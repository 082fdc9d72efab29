"""What becomes of what was written: into the prompt, or away."""

from collections.abc import Sequence

import streamlit as st

from gptviz import LanguageModel
from gptviz.engine.generate import end_of_text
from gptviz.tokenizer import named_bytes
from gptviz.ui.shell import address, state
from gptviz.ui.shell.scene import Scene
from gptviz.ui.views.generate import play
from gptviz.ui.views.generate.written import Written
from gptviz.ui.words import is_named, nameless, show_id


def buttons(scene: Scene, written: Written, disabled: bool) -> None:
    """Begin again, and Put it into the prompt."""
    st.button(
        "Begin again",
        key="generate_again",
        icon=":material/restart_alt:",
        type="tertiary",
        on_click=play.begin_again,
        args=(scene,),
        disabled=disabled,
        help="Take back all that was written, and every branch.",
    )
    st.button(
        "Put it into the prompt",
        key="generate_keep",
        type="tertiary",
        on_click=_keep,
        args=(scene, written),
        disabled=disabled,
        help="The text on the screen becomes the prompt, on all pages.",
    )


def _keep(scene: Scene, written: Written) -> None:
    lm, new = scene.lm, list(written.new)
    if new[-1] == end_of_text(scene.lm):
        new.pop()  # it ended the writing, and is no part of what was written
    unknown = next((i for i in new if not is_named(lm, i)), None)
    if unknown is not None:
        play.say(nameless(show_id(lm, unknown)), play.tree_of(scene))
        return
    special = state.current().special or any(map(lm.tokenizer.is_special_token, new))
    state.change(text=text_of(lm, [*written.prompt, *new]), token=None, special=special)
    play.begin_again(scene)
    address.ask_for_the_page()  # the prompt is outside the fragment that the player is


def text_of(lm: LanguageModel, ids: Sequence[int]) -> str:
    """The text of these tokens; a character that lacks some of its bytes is left out."""
    return b"".join(named_bytes(lm.tokenizer, i) for i in ids).decode("utf-8", "ignore")
