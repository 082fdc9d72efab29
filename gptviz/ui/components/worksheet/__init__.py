"""A calculation with matrices as a worksheet: every number in sight, those that are given may be changed.

Sheets stand side by side in lines, their rows on one height, with a sign between two that says what happens.
Pointing at a number says where it comes from, and marks the rows that it was worked out of. What is said is
said here, in Python; the browser colours cells and sends what was typed, as the text that it is.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from gptviz.ui.components.kernel import Check, Component, Event, among, parts, text
from gptviz.ui.components.saved import Saved

LONGEST = 60  # characters of what may be typed into a cell


_component = Component("worksheet")


@dataclass(frozen=True)
class Cell:
    """A number as it is shown, its colour (0 to 1 of the sheet's scale, or none), and its sentence.

    `text` None: the causal mask hides it. `typed` is what stands in the field while it is changed.
    """

    text: str | None
    share: float | None
    says: str
    typed: str = ""


@dataclass(frozen=True)
class Source:
    """Where a cell's number comes from: the row or the column of `sheet` that has the cell's own `index`."""

    sheet: str
    part: Literal["row", "column"]
    index: Literal["row", "column"]


@dataclass(frozen=True)
class Sheet:
    """One matrix. `rows` and `columns` are its labels, `cells` a list a row, `color` one of the palette.

    `edit` lets its numbers be typed, `words` its row labels; with `later` its place is kept, and its content
    comes in a later step. `tokens`: its rows are the tokens, and one of them is selected.
    """

    name: str
    title: str
    note: str
    rows: Sequence[str]
    columns: Sequence[str]
    cells: Sequence[Sequence[Cell]]
    scale: Literal["attention", "signed", ""] = ""
    color: str = ""
    sources: Sequence[Source] = ()
    edit: bool = False
    words: bool = False
    later: bool = False
    tokens: bool = True


@dataclass(frozen=True)
class Sign:
    """What happens between two sheets: a sign, and a word or two under it."""

    sign: str
    text: str = ""
    later: bool = False


@dataclass(frozen=True)
class Line:
    """Sheets and signs from left to right, under a heading where it has one."""

    items: Sequence[Sheet | Sign] = field(default_factory=list)
    heading: str = ""


def worksheet(
    name: str,
    lines: Sequence[Line],
    selected: int | None,
    rest: str,
    *,
    on_number: Callable[[str, int, int, str], Any] | None = None,
    on_word: Callable[[int, str], Any] | None = None,
    on_row: Callable[[int], Any] | None = None,
    saved: Saved | None = None,
) -> None:
    """Draw the lines; `rest` is said while nothing is pointed at.

    `on_number(sheet, row, column, text)`, `on_word(row, text)` and `on_row(row)` run before the rerun that a
    change causes. Nothing that was typed has been read as a number: that is for the caller.
    """
    sheets = [item for line in lines for item in line.items if isinstance(item, Sheet)]
    editable = [sheet for sheet in sheets if sheet.edit]
    widest = max((len(sheet.columns) for sheet in editable), default=0)

    def rows_of(group: Iterable[Sheet]) -> Check:
        return among(range(max((len(sheet.rows) for sheet in group), default=0)))

    drawn = [
        {"heading": line.heading, "items": [asdict(item) for item in line.items]} for line in lines
    ]
    data: dict[str, Any] = {"name": name, "lines": drawn, "selected": selected, "rest": rest}
    data |= {"longest": LONGEST, "picks": on_row is not None}
    name_of = among({sheet.name for sheet in editable})
    column = among(range(widest))
    events: dict[str, Event] = {
        "number": parts(
            on_number, sheet=name_of, row=rows_of(editable), column=column, text=text(LONGEST)
        ),
        "word": parts(
            on_word, row=rows_of(sheet for sheet in sheets if sheet.words), text=text(LONGEST)
        ),
        "row": (rows_of(sheet for sheet in sheets if sheet.tokens), on_row),
    }
    _component(f"worksheet_{name}", data, events, saved)
