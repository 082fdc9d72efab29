"""The sentences that the parts of a still chart show when pointed at: chart.js finds the nearest."""

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gptviz.figures.still.values import (
    FIELD,
    Axis,
    Written,
    array,
    each,
    filled,
    formatted,
    plain,
    values,
)

Box = tuple[float, float, float, float]

MET = 3.0  # pixels of a cell that a pointer can meet


class Hover:
    """Boxes [x, y, width, height, sentence], points [x, y, sentence], and maps."""

    def __init__(self) -> None:
        self.boxes: list[list[Any]] = []
        self.points: list[list[Any]] = []
        self.maps: list[dict[str, Any]] = []

    def data(self) -> dict[str, Any]:
        """As the browser gets it."""
        return {"boxes": self.boxes, "points": self.points, "maps": self.maps}

    def box(self, box: Box, said: str) -> None:
        if said:
            self.boxes.append([*(round(side, 1) for side in box), said])

    def point(self, x: float, y: float, said: str) -> None:
        if said:
            self.points.append([round(x, 1), round(y, 1), said])

    def sentences(self, trace: Written, count: int) -> list[str]:
        """The sentence of each point or bar of a trace; "" for one without a hover."""
        if trace.get("hoverinfo") == "skip":
            return [""] * count
        if "hovertemplate" not in trace:
            return [plain(text or "") for text in each(trace.get("hovertext"), count, "")]
        templates = each(trace["hovertemplate"], count)
        columns: dict[str, list[Any]] = {"fullData.name": [trace.get("name", "")] * count}
        for name in ("x", "y", "text", "hovertext"):
            columns[name] = each(trace.get(name), count, "")
        if "customdata" in trace:
            columns["customdata"] = array(trace["customdata"]).tolist()
        else:
            columns["customdata"] = [None] * count
        fields = [{name: column[i] for name, column in columns.items()} for i in range(count)]
        return [
            filled(template, mark_fields)
            for template, mark_fields in zip(templates, fields, strict=True)
        ]

    def cells(self, trace: Written, x: Axis, y: Axis, box: Box, z: NDArray[np.float64]) -> None:
        """A map: what its cells say, as one sentence with gaps, and the texts that stand in them.

        Of cells that are drawn smaller than a pointer can meet (`MET` pixels) some say what they are: every
        second, every third. A sentence names its cell.
        """
        template = trace.get("hovertemplate")
        if template is None or trace.get("hoverinfo") == "skip":
            return
        columns = _met(z.shape[1], box[2])
        rows = _met(z.shape[0], box[3])
        names = {
            "x": _names(trace, x, "x", columns, z.shape[1]),
            "y": _names(trace, y, "y", rows, z.shape[0]),
        }
        text = re.sub(r"<extra>.*?</extra>", "", template)
        pieces: list[Any] = []
        start = 0
        for match in FIELD.finditer(text):
            pieces.append(plain(text[start : match.start()]))
            pieces.append(_field(trace, names, z, rows, columns, match))
            start = match.end()
        pieces.append(plain(text[start:]))
        silent = []
        if trace.get("hoverongaps") is False:
            silent = np.flatnonzero(~np.isfinite(z[np.ix_(rows, columns)])).tolist()
        self.maps.append(
            {
                "box": [round(side, 1) for side in box],
                "rows": len(rows),
                "columns": len(columns),
                "leftwards": bool(x.pixel(1) < x.pixel(0)),
                "upwards": bool(y.pixel(1) < y.pixel(0)),
                "says": pieces,
                "silent": silent,
            }
        )


def _met(count: int, pixels: float) -> NDArray[np.int64]:
    """The rows or columns of a map that a pointer can meet: all, or the middle one of each few thin ones."""
    together = max(1, round(MET * count / max(pixels, 1.0)))
    starts = np.arange(0, count, together)
    return np.minimum(starts + together // 2, count - 1)


def _names(trace: Written, axis: Axis, xy: str, met: NDArray[np.int64], count: int) -> list[str]:
    """The names of a map's columns or rows in the sentence of a cell."""
    if trace.get(xy) is not None:
        names = values(trace[xy])
    else:
        names = list(range(count))
    ticks: dict[float, str] = {}
    if axis.written.get("ticktext") is not None and not axis.categories:
        ticks = dict(axis.ticks())
    alias = axis.written.get("labelalias", {})
    chosen = [names[index] for index in met.tolist()]
    return [plain(ticks.get(axis.place(name), alias.get(str(name), name))) for name in chosen]


def _field(
    trace: Written,
    names: dict[str, list[str]],
    z: NDArray[np.float64],
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    match: re.Match[str],
) -> Any:
    """The content of a gap of the sentence: a text, or {"row": texts}, {"column": texts}, {"cell": texts}."""
    name = match[1]
    index = match[2]
    form = match[3]
    if name == "x":
        return {"column": names["x"]}
    if name == "y":
        return {"row": names["y"]}
    if name == "meta":
        return plain(trace.get("meta", ""))
    if name == "fullData.name":
        return plain(trace.get("name", ""))
    if name == "z":
        numbers: Any = z
    else:
        numbers = array(trace[name])
    if index is not None:
        numbers = numbers[..., int(index)]
    texts = [
        [_said(value, form) for value in row] for row in numbers[np.ix_(rows, columns)].tolist()
    ]
    if all(row == texts[0] for row in texts):
        return {"column": texts[0]}
    if all(len(set(row)) == 1 for row in texts):
        return {"row": [row[0] for row in texts]}
    return {"cell": texts}


def _said(value: Any, form: str | None) -> str:
    if value is None:
        return ""
    if form:
        return formatted(value, form)
    return plain(value)
