"""Small tables as HTML: they wrap where the screen is narrow, and show any text as it is.

A table that can be sorted, or has more rows than a screen, is Streamlit's `st.dataframe`.
"""

import html
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from gptviz.both import Both, alike
from gptviz.figures.marks import UNCHANGED

STYLE = f"<style>\n{Path(__file__).with_suffix('.css').read_text('utf-8')}</style>"


@dataclass(frozen=True)
class Cell:
    """A text and its class ("label", "code", ...); `color` is that of a mark before it, `indent` in em.

    `marked` goes on with the text on a coloured ground, `rest` goes on after that.
    """

    text: str
    kind: str = ""
    color: str | None = None
    indent: float = 0
    marked: str = ""
    rest: str = ""


@dataclass(frozen=True)
class Row:
    """A line of a table; `kind` is its class."""

    cells: Sequence[Cell | str]
    kind: str = "line"


def table(name: str, head: Sequence[str], rows: Sequence[Row], kind: str = "") -> str:
    """A table as HTML, found in tests by its `name`.

    A column whose head begins with # is one of numbers: they stand to the right, digit under digit.
    """
    kinds = ["number" if title.startswith("#") else "" for title in head]
    titles = "".join(
        f'<th class="{kind}">{html.escape(title.removeprefix("#"))}</th>'
        for title, kind in zip(head, kinds, strict=True)
    )
    body = "".join(
        f'<tr class="{row.kind}">{"".join(map(_cell, row.cells, kinds))}</tr>' for row in rows
    )
    return (
        f'<div class="gv-table {kind}" data-testid="{html.escape(name)}" tabindex="0" role="region" '
        f'aria-label="{html.escape(name)}"><table><thead><tr>{titles}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _cell(cell: Cell | str, kind: str) -> str:
    if isinstance(cell, str):
        cell = Cell(cell, kind)
    mark = ""
    if cell.color:
        mark = f'<i style="background:{html.escape(cell.color)}"></i>'
    style = ""
    if cell.indent:
        style = f' style="padding-left:{cell.indent:.1f}em"'
    text = html.escape(cell.text)
    if cell.marked:
        text += f"<mark>{html.escape(cell.marked)}</mark>{html.escape(cell.rest)}"
    return f'<td class="{cell.kind}"{style}>{mark}{text}</td>'


def joined(tables: Both[pd.DataFrame]) -> pd.DataFrame:
    """One table of both: each column that a change moved stands beside the unchanged model's.

    Row by row: both must have as many, in one order.
    """
    if tables.was is None:
        return tables.now
    if len(tables.now) != len(tables.was):
        raise ValueError(f"{len(tables.now)} rows and {len(tables.was)} cannot stand side by side")
    columns = []
    for name, column in tables.now.items():
        unchanged = tables.was.get(name, column).set_axis(column.index)
        if not (column.equals(unchanged) or alike(column.to_numpy(), unchanged.to_numpy())):
            columns.append(unchanged.rename(f"{UNCHANGED} {name}"))
        columns.append(column)
    if columns:
        return pd.concat(columns, axis=1)
    return tables.now
