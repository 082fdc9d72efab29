"""Which lens reads the residual stream: the logit lens, or the Jacobian lens where one was fitted."""

from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

from gptviz import LanguageModel
from gptviz.analysis import jacobian_lens, lens
from gptviz.analysis.lens import Cells, Depths, Followed
from gptviz.analysis.lens_trial import JACOBIAN, LOGIT
from gptviz.ui.models.choice import PATH, UPLOAD
from gptviz.ui.shell import state
from gptviz.ui.shell.params import Param, if_there
from gptviz.ui.words import as_code

LENS = Param("read_by", str, LOGIT, if_there)


@dataclass(frozen=True)
class Lens:
    """A lens as the page draws it: its numbers, the function whose lines it shows, and its sentences.

    `{norm}` in them stands for what the model's norms are called.
    """

    name: str
    depths: Callable[..., Depths]
    cells: Callable[..., Cells]
    followed_cells: Callable[..., Followed]
    logits: Callable[..., object]
    how: str
    warning: str


LENSES = {
    LOGIT: Lens(
        "Logit lens",
        lens.depths,
        lens.cells,
        lens.followed_cells,
        lens.logit_lens,
        "we take the residual stream there and put it through the final {norm} and the output head",
        "The model never reads itself like this. Its final norm and head were trained for the last depth "
        "only, so an odd token in an early row may say more about the lens than about the model.",
    ),
    JACOBIAN: Lens(
        "Jacobian lens",
        jacobian_lens.depths,
        jacobian_lens.cells,
        jacobian_lens.followed_cells,
        jacobian_lens.jacobian_lens,
        "we take the residual stream there, carry it to the last depth by what the later blocks do to a small "
        "change, as a mean over other texts, and put that through the final {norm} and the output head",
        "One matrix a depth stands for all that the later blocks do, whatever the text. It cannot know what "
        "they find in this one, so an early row says what mostly follows, not what the model knows.",
    ),
}


def chosen(lm: LanguageModel) -> str:
    """The lens of the address, LOGIT or JACOBIAN: one that there is for these weights."""
    return LENS.within([LOGIT, JACOBIAN] if is_fitted(lm) else [LOGIT])


def is_fitted(lm: LanguageModel) -> bool:
    """Whether there is a Jacobian lens for these weights."""
    return jacobian_lens.known(lm) is not None


def choose(lm: LanguageModel) -> None:
    """Draw the choice, where there is one."""
    if is_fitted(lm):
        about = (
            "The Jacobian lens is fitted to this model: it carries the stream to the last depth before it "
            "reads it. Below, both are put on trial."
        )
        LENS.choose("Lens", {key: one.name for key, one in LENSES.items()}, help=about)


def warning(lens: str, is_changed: bool) -> str:
    """What a lens, LOGIT or JACOBIAN, cannot tell; `is_changed` is a model that does not run as it is."""
    text = LENSES[lens].warning
    if lens == JACOBIAN and is_changed:
        text += " Its matrices are the unchanged model's: they do not know your change."
    return text


def say_how_to_fit(lm: LanguageModel) -> None:
    """Say that a model has no Jacobian lens; and by which command it gets one, if it can be loaded by its name."""
    if is_fitted(lm):
        return
    text = "No Jacobian lens was fitted to these weights."
    name = state.model().name
    if not name.startswith((UPLOAD, PATH)):
        command = as_code(f"python -m gptviz lens {name}")
        text += (
            f" Whoever runs this server can fit one: {command}. It stands here when the page is opened "
            "again."
        )
    st.caption(text)
