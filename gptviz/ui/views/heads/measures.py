"""What the finder can draw the heads by, and its two boxes."""

from dataclasses import dataclass

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from gptviz.analysis.head_scores import SHARES
from gptviz.ui.shell.params import Param, if_there
from gptviz.ui.views.heads import Measured
from gptviz.ui.views.heads.words import MEASURED

HERE = "here_"  # before the name of what is measured on this text
NAMES = tuple(HERE + name for name in (*SHARES, "spread", "write"))

ACROSS = Param("across", str, HERE + "previous", if_there)
UP = Param("up", str, HERE + "first", if_there)
PARAMS = (ACROSS, UP)


@dataclass(frozen=True)
class Axis:
    """A measure of every head, (L, H), and what the axis says. NaN where a head has no such number."""

    title: str
    values: NDArray[np.float64]


def boxes() -> tuple[str, str]:
    """Draw the two boxes; the names of the measures across and up."""
    for param in PARAMS:
        param.within(NAMES)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="heads_measures"):
        across, up = (
            param.widget(st.selectbox, label, options=NAMES, format_func=title, width=238)
            for param, label in ((ACROSS, "Across"), (UP, "Up"))
        )
    return across, up


def title(name: str) -> str:
    """What a measure is called, in a list to choose from and at an axis."""
    return f"{MEASURED[name.removeprefix(HERE)]}, on this text"


def axis(name: str, here: Measured) -> Axis:
    """A measure's numbers."""
    return Axis(title(name), of_text(name.removeprefix(HERE), here))


def of_text(name: str, here: Measured) -> NDArray[np.float64]:
    """(L, H): a share, the spread or the write of every head on this text; NaN: the text cannot show it."""
    if name == "write":
        return here.writes.numpy().astype(float)
    if name == "spread":
        return np.array([[role.spread for role in row] for row in here.roles], dtype=float)
    return np.array([[role.shares.get(name) for role in row] for row in here.roles], dtype=float)
