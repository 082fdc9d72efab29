"""One palette for everything that is drawn, in the browser's light and dark.

Colour means the same everywhere: query blue, key red, value green, output purple; attention runs
from paper to purple; signed values run blue - paper - orange, centred on zero; what the causal mask
hides is flat grey. Every figure of the package is made by `figure`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from gptviz.figures.figure import Figure

Mode = Literal["light", "dark"]
Scale = list[tuple[float, str]]  # a Plotly colour scale


@dataclass(frozen=True)
class Palette:
    paper: str
    panel: str
    ink: str
    quiet: str  # secondary text, axis lines
    grid: str
    accent: str
    query: str
    key: str
    value: str
    output: str
    positive: str
    negative: str
    masked: str
    ghost: str  # what the unchanged model gives, where it stands beside the changed one (see marks.py)
    attention: Scale
    signed: Scale
    positions: tuple[str, ...]  # a chip's colour by its position, in turn
    heads: tuple[str, ...]  # a head's colour where lines of several are in one picture; 4.5 to 1 on paper


PALETTES: dict[Mode, Palette] = {
    "light": Palette(
        paper="#fbfaf7",
        panel="#f1eee7",
        ink="#23202b",
        quiet="#6d6878",
        grid="#e4e0d8",
        accent="#5b35a5",
        query="#2563c9",
        key="#c23b36",
        value="#1f7f4c",
        output="#6a3fb5",
        positive="#d9690f",
        negative="#1f5fbf",
        masked="#d8d5ce",
        ghost="#88838f",
        attention=[(0.0, "#fbfaf7"), (0.15, "#e6dcf4"), (0.4, "#b99ede"), (0.7, "#7a4db8"), (1.0, "#3b1470")],
        signed=[(0.0, "#164a9c"), (0.25, "#8db3e6"), (0.5, "#fbfaf7"), (0.75, "#f4b072"), (1.0, "#c2570a")],
        positions=(
            *("#e6dcf4", "#d3e5f7", "#d5eddc", "#fae7c8", "#f9d9d6"),
            *("#dfe3f6", "#d0ecea", "#ecebc8", "#f6dcec", "#e4e0d8"),
        ),
        heads=(
            *("#2563c9", "#c2570a", "#1f7f4c", "#b0307a", "#6a3fb5", "#856800"),
            *("#0f7684", "#c23b36", "#4a5568", "#7a4a21", "#3d7400", "#8b3fa8"),
        ),
    ),
    "dark": Palette(
        paper="#16151b",
        panel="#23212b",
        ink="#ece9f1",
        quiet="#a39eb0",
        grid="#34323d",
        accent="#b79cff",
        query="#7fb0ff",
        key="#ff8e87",
        value="#6fd39b",
        output="#bfa3ff",
        positive="#ffb066",
        negative="#7fb0ff",
        masked="#3a3843",
        ghost="#8b8697",
        attention=[(0.0, "#16151b"), (0.15, "#33264f"), (0.4, "#6643ac"), (0.7, "#a482ee"), (1.0, "#f3ecff")],
        signed=[(0.0, "#8dbaff"), (0.25, "#2f568f"), (0.5, "#16151b"), (0.75, "#8a5018"), (1.0, "#ffb366")],
        positions=(
            *("#43346b", "#26466b", "#28503a", "#5e4a22", "#63332f"),
            *("#343d6b", "#215250", "#505024", "#5c3350", "#45424f"),
        ),
        heads=(
            *("#7fb0ff", "#ffb066", "#6fd39b", "#ff8fc4", "#bfa3ff", "#e6c84f"),
            *("#5fd0dd", "#ff8e87", "#b8c0cc", "#d9a679", "#a5d65c", "#dd9bf5"),
        ),
    ),
}


def palette(mode: Mode) -> Palette:
    return PALETTES[mode]


FONT = "Source Sans, sans-serif"
LABEL = 14  # pixels of what is written at an axis; HOVER of the sentence over a point
HOVER = 15
MARGIN = {"l": 8, "r": 8, "t": 28, "b": 8}


@cache
def _constant(mode: Mode) -> dict[str, Any]:
    """What all figures of a mode share. Read only: it is in every one of them.

    Paper and font stand in the layout itself, since Streamlit puts its own where a layout has none; what
    every axis and every note has is a template.
    """
    colors = PALETTES[mode]
    axis = {
        "title": {"font": {"size": LABEL}},
        "automargin": True,
        "zeroline": False,
        "gridcolor": colors.grid,
        "linecolor": colors.grid,
    }
    return {
        "template": {"layout": {"xaxis": axis, "yaxis": axis, "annotationdefaults": {"showarrow": False}}},
        "paper_bgcolor": colors.paper,
        "plot_bgcolor": colors.paper,
        "font": {"family": FONT, "size": LABEL, "color": colors.ink},
        "hoverlabel": {
            "bgcolor": colors.panel,
            "bordercolor": colors.grid,
            "font": {"family": FONT, "color": colors.ink, "size": HOVER},
        },
        "showlegend": False,
        "dragmode": False,  # a drag scrolls the page: nothing here needs a zoom that cannot be undone
    }


def figure(
    traces: Sequence[Mapping[str, Any]],
    layout: Mapping[str, Any],
    mode: Mode,
    height: float,
    **margin: float,
) -> Figure:
    """The house's figure: paper, ink, one font, no decoration.

    Traces and layout are written out in full: a trace has its "type", a title is {"text": ...}. `margin` is
    l, r, t or b where it is not `MARGIN`.
    """
    shared = _constant(mode) | {"height": height, "margin": MARGIN | margin}
    return Figure({"data": list(traces), "layout": shared | dict(layout)})
