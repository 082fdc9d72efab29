"""The Feed-forward page's tables: the units that write most, a unit's column in tokens, what excites it."""

from collections.abc import Callable, Sequence

from gptviz.analysis.feed_forward import Moved, Units
from gptviz.digits import significant
from gptviz.figures.ghosts import CHANGED, UNCHANGED
from gptviz.ui.tables import Cell, Row, number, table

Show = Callable[[int], str]  # a token's id -> the token as the screen shows it

TOKENS = 3  # that each of the units that write most raises and lowers
BESIDE = 8  # tokens to each side of the one that excites a unit


def largest(
    found: Units,
    chosen: Sequence[int],
    read: Sequence[Moved],
    unit: int,
    show: Show,
    unchanged: Units | None = None,
) -> str:
    """The units that write most, with the tokens that each raises and lowers, as HTML.

    With `unchanged`, the same units in the model without its changes, there is a column of what they write.
    """
    rows = []
    for u, reading in zip(chosen, read, strict=True):
        cells: list[Cell | str] = [
            number(str(u)),
            number(significant(float(found.before[u]))),
            number(significant(float(found.after[u]))),
            number(significant(float(found.columns[u]))),
            *([] if unchanged is None else [number(significant(float(unchanged.writes[u])))]),
            number(significant(float(found.writes[u]))),
            " ".join(show(token) for token, _ in reading.raises[:TOKENS]),
            " ".join(show(token) for token, _ in reading.lowers[:TOKENS]),
        ]
        rows.append(Row(cells, "line chosen" if u == unit else "line"))
    writes = ["#writes"] if unchanged is None else [f"#writes, {UNCHANGED}", f"#writes, {CHANGED}"]
    heads = ["#unit", "#before", "#after", "#column", *writes, "raises", "lowers"]
    return table("largest units", heads, rows)


def reading(read: Moved, show: Show) -> str:
    """The tokens that a unit raises most, beside those that it lowers most, as HTML."""
    rows = [
        Row(
            [
                Cell(show(high[0]), "label"),
                number(_signed(high[1])),
                Cell(show(low[0]), "label"),
                number(_signed(low[1])),
            ]
        )
        for high, low in zip(read.raises, read.lowers, strict=True)
    ]
    return table("reading", ["raises", "#by", "lowers", "#by"], rows)


def excerpts(found: Sequence[tuple[float, Sequence[str], int, str]]) -> str:
    """Each (activation, tokens as shown, which of them, where they come from), as HTML."""
    rows = []
    for value, tokens, at, source in found:
        start, end = max(0, at - BESIDE), at + 1 + BESIDE
        before, after = "".join(tokens[start:at]), "".join(tokens[at + 1 : end])
        text = Cell(
            ("… " if start else "") + _plain(before),
            marked=_plain(tokens[at]),
            rest=_plain(after) + (" …" if end < len(tokens) else ""),
        )
        rows.append(Row([number(significant(value)), text, source]))
    return table("excerpts", ["#activation", "text", "from"], rows)


def _plain(shown: str) -> str:
    """Read as a text, a space is a space again."""
    return shown.replace("·", " ")


def _signed(value: float) -> str:
    return f"+{significant(value)}" if value > 0 else significant(value)
