"""All heads as a sheet of labels: rows are blocks, columns heads, a colour and a word for each role."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from gptviz.figures.figure import Figure
from gptviz.figures.marks import frame, line
from gptviz.figures.next_token import mixed
from gptviz.figures.theme import Mode, figure, palette

WRITTEN = 9  # heads across: with more, a cell has no room for a word
MARKS = {"holds": "✓", "not shown": "○", "not decided": "?"}
GROUND = 0.42  # of the role's colour in its cell: the word on it stays readable


@dataclass(frozen=True)
class Cell:
    """A head's role and its short label; what a hover says; how its trial ended; whether it is hidden.

    `verdict`: "holds", "withdrawn", "not shown", "not decided", or "" where it was not tried.
    """

    role: str
    label: str
    says: str
    verdict: str = ""
    hidden: bool = False  # this text cannot show it


def role_sheet(
    cells: Sequence[Sequence[Cell]], colors: Mapping[str, str], chosen: tuple[int, int], mode: Mode
) -> Figure:
    """(L, H) cells; `colors` has each role's, the chosen head is framed. A withdrawn label is struck out, any
    other that was tried has a mark.
    """
    theme = palette(mode)
    roles = list(colors)
    grounds = [mixed(theme.paper, color, GROUND) for color in colors.values()] + [theme.masked]
    codes = np.array([[len(roles) if c.hidden else roles.index(c.role) for c in row] for row in cells])
    rows, columns = codes.shape
    heat: dict[str, Any] = {
        "type": "heatmap",
        "z": codes.astype(np.int32),
        "zmin": -0.5,
        "zmax": len(grounds) - 0.5,
        "colorscale": _steps(grounds),
        "showscale": False,
        "xgap": 2,
        "ygap": 2,
        "customdata": [[escape(c.says, quote=False) for c in row] for row in cells],
        "hovertemplate": "%{customdata}<extra></extra>",
    }
    if columns <= WRITTEN:
        heat |= {
            "text": [[_word(c, theme.quiet) for c in row] for row in cells],
            "texttemplate": "%{text}",
            "textfont": {"size": 10, "color": theme.ink},  # as large as a phone has room for
        }
    plain = {"showgrid": False, "fixedrange": True, "ticks": ""}
    block, head = chosen
    layout = {
        "xaxis": plain
        | {"side": "top", "tickvals": np.arange(columns), "range": [-0.5, columns - 0.5]}
        | {"title": {"text": "head"}},
        "yaxis": plain
        | {
            "tickvals": np.arange(rows),
            "ticktext": [f"{b} " for b in range(rows)],
            "range": [rows - 0.5, -0.5],
        }
        | {"title": {"text": "block"}},
        "shapes": [frame((head - 0.5, head + 0.5), (block - 0.5, block + 0.5), line(theme.accent, 2.5))],
    }
    return figure([heat], layout, mode, height=64 + rows * (34 if rows <= 8 else 25), t=44, r=4)


def _steps(grounds: Sequence[str]) -> list[tuple[float, str]]:
    """A colour scale of so many plain colours."""
    n = len(grounds)
    return [(edge / n, color) for i, color in enumerate(grounds) for edge in (i, i + 1)]


def _word(cell: Cell, quiet: str) -> str:
    word = escape(cell.label, quote=False).replace(" ", "<br>")
    if cell.hidden:
        return f'<i style="color:{quiet}">{word}</i>'
    if cell.verdict == "withdrawn":
        return f"<s>{word}</s>"
    return f"{word} {MARKS[cell.verdict]}" if cell.verdict else word
