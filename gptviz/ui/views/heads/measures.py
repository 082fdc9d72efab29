"""What the finder can draw the heads by, and its two boxes: in general, and on this text."""

from dataclasses import dataclass

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from gptviz.analysis.head_formulas import SHARES
from gptviz.analysis.head_general import General
from gptviz.analysis.head_measures import MEASURES
from gptviz.ui.heads import Measured
from gptviz.ui.shell import state
from gptviz.ui.shell.params import Param, if_there

HERE = "here_"  # before the name of what is measured on this text
ON_THIS_TEXT = (*SHARES, "spread", "write")
NAMES = (*MEASURES, *(HERE + name for name in ON_THIS_TEXT))

ACROSS = Param("across", str, "previous", if_there)
UP = Param("up", str, "induction", if_there)
PARAMS = (ACROSS, UP)


def measure_title(name: str) -> str:
    """What a measure is called, of this text where it begins with here_."""
    if not name.startswith(HERE):
        return MEASURES[name].title
    plain = name.removeprefix(HERE)
    title = "tokens looked at" if plain == "spread" else MEASURES[plain].title.partition(":")[0]
    return f"{title}: this text"


@dataclass(frozen=True)
class Axis:
    """A measure of every head, (L, H), and what the axis says. NaN where a head has no such number."""

    title: str
    values: NDArray[np.float64]


def boxes() -> tuple[str, str]:
    """Draw the two boxes; the names of the measures across and up."""
    for param in PARAMS:
        param.within(NAMES)
    width = 340 if state.PRESENT.value else 238  # type is larger there
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="heads_measures"):
        across, up = (
            param.widget(st.selectbox, label, options=NAMES, format_func=measure_title, width=width)
            for param, label in ((ACROSS, "Across"), (UP, "Up"))
        )
    return across, up


def axis(name: str, general: General | None, here: Measured) -> Axis:
    """A measure's numbers; of this text as long as what was asked for is not known."""
    if not name.startswith(HERE):
        if general is not None:
            column = general.table[name].to_numpy(dtype=float)
            return Axis(measure_title(name), column.reshape(here.writes.shape))  # (L * H,) -> (L, H)
        name = HERE + meanwhile(name, here)
    return Axis(measure_title(name), of_text(name.removeprefix(HERE), here))


def meanwhile(name: str, here: Measured) -> str:
    """Which measure of this text is drawn as long as a general one is not known."""
    plain = name.removesuffix("_random").removesuffix("_sample")
    same = plain if plain in ON_THIS_TEXT else "spread"
    return same if np.isfinite(of_text(same, here)).any() else "first"


def of_text(name: str, here: Measured) -> NDArray[np.float64]:
    """(L, H): a share, the spread or the write of every head on this text; NaN: the text cannot show it."""
    if name == "write":
        return here.writes.numpy().astype(float)
    if name == "spread":
        return np.array([[role.spread for role in row] for row in here.roles], dtype=float)
    return np.array([[role.shares.get(name) for role in row] for row in here.roles], dtype=float)
