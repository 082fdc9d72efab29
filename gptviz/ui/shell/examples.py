"""Prompts that are worth a look with a bundled model, each with what there is to see."""

from dataclasses import dataclass
from functools import partial

import streamlit as st

from gptviz.models.loading import BUNDLED, DEFAULT_MODEL
from gptviz.ui.buttons import button
from gptviz.ui.shell import state


@dataclass(frozen=True)
class Example:
    """A prompt; `look` is what there is to see, with the model that it is for."""

    text: str
    look: str


COPIED = Example(
    state.UNSAID_TEXT,
    "All of it was said before: the model looks back for what came after *red*.",
)

OF_THE_BOOKS = {
    "A copied passage": COPIED,
    "A name comes back": Example(
        "Mr. Zorblax lived by the sea. One day Mr. Zorblax saw a ship. Mr.",
        "No book has this name, so the model can only copy it: its first piece comes next.",
    ),
    "A quotation closes": Example(
        '"Where are you going?" said the boy. "Where are you going',
        "The question mark and the quotation marks come together, as one token.",
    ),
    "He and she": Example(
        "The king loved his daughter, but she did not love",
        "Put *he* in the place of *she*: the answer turns from *him* to *her*.",
    ),
    "Counting": Example(
        "Chapter I. Chapter II. Chapter III. Chapter",
        "The model does not count on: after *III* it begins again with *I*.",
    ),
    "Once upon a time": Example(
        "Once upon a time there was a",
        "Many words are possible here, and no word has as much as 5 %.",
    ),
}

OF_THE_WORLD = {
    "An animal": Example(
        state.DEFAULT_TEXT,
        "*Calf* is not in the text: the model has it from its training. Put *dog* in the place of *cow*, and run it.",
    ),
    "A fact": Example(
        "My friend lives in Europe. The capital of England is",
        "*London* is not in the text: the model has it from its training. Put *France* in the place of *England*.",
    ),
    "An opposite": Example(
        "In winter it is cold and in summer it is",
        "*Hot* is not in the text, and leads. *Cold*, the second guess, is in it.",
    ),
    "A name moves": Example(
        "When Mary and Peter went to the garden, Mary gave the flowers to",
        "Mary gives, and Peter gets. Now let Peter give: does the answer follow?",
    ),
    "She or he": Example(
        "The girl could not come to the party because",
        "Put *boy* in the place of *girl*: the answer turns from *she* to *he*.",
    ),
    "The next day": Example(
        "The days are called Monday, Tuesday, Wednesday,",
        "*Thursday* is not in the text, and leads. All seven days are among the ten first guesses.",
    ),
    "A quotation closes": Example(
        'The boy asked, "Where is my hat',
        "The question mark and the quotation marks come together, as one token.",
    ),
    "A copied passage": COPIED,
}


def examples() -> dict[str, Example]:
    """The prompts that are worth a look with the model in use."""
    if state.model().name == DEFAULT_MODEL:
        return OF_THE_WORLD
    return OF_THE_BOOKS


def example_row(*labels: str, says: bool = True) -> str | None:
    """Draw these examples (all, if none is named, or the model in use has its own) as buttons.

    What there is to see is said at each, and below where one is shown: of the bundled models, as they are.
    Where the row stands above a picture that is not to move, `says` is False: the page says what is returned.
    """
    offered = examples()
    if labels and offered is OF_THE_BOOKS:
        here = labels
    else:
        here = tuple(offered)
    is_changed = bool(state.EDITS.value) and not state.EDITS_OFF.value
    is_known = state.model().name in BUNDLED and not is_changed
    shown = None
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key="gv_examples"):
        st.caption("Try:", width="content")
        for number, (label, example) in enumerate(offered.items()):
            if label not in here:
                continue
            is_shown = example.text == state.TEXT.value
            if is_shown:
                shown = example
            take = partial(state.change, text=example.text, token=None)
            look = example.look if is_known else None
            button(label, f"example_{number}", take, primary=is_shown, help=look)
    if shown is None or not is_known:
        return None
    if says:
        st.caption(shown.look)
    return shown.look
