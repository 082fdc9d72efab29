"""What the parts of a still chart say when they are pointed at: chart.js finds the nearest."""

import re
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gptviz.figures.still.values import FIELD, Axis, Written, array, each, filled, formatted, plain, values

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
        """What each of a trace's points or bars says; "" for one that says nothing."""
        if trace.get("hoverinfo") == "skip":
            return [""] * count
        if "hovertemplate" not in trace:
            return [plain(text or "") for text in each(trace.get("hovertext"), count, "")]
        templates = each(trace["hovertemplate"], count)
        told: dict[str, list[Any]] = {"fullData.name": [trace.get("name", "")] * count}
        for name in ("x", "y", "text", "hovertext"):
            told[name] = each(trace.get(name), count, "")
        if "customdata" in trace:
            told["customdata"] = array(trace["customdata"]).tolist()
        else:
            told["customdata"] = [None] * count
        fields = [{name: of[i] for name, of in told.items()} for i in range(count)]
        return [filled(template, one) for template, one in zip(templates, fields, strict=True)]

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
        for found in FIELD.finditer(text):
            pieces.append(plain(text[start : found.start()]))
            pieces.append(_field(trace, names, z, rows, columns, found))
            start = found.end()
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
    """The rows or columns of a map that a pointer can meet: all, or the middle ones of so many together."""
    together = max(1, round(MET * count / max(pixels, 1.0)))
    starts = np.arange(0, count, together)
    return np.minimum(starts + together // 2, count - 1)


def _names(trace: Written, axis: Axis, xy: str, met: NDArray[np.int64], count: int) -> list[str]:
    """What a map's columns or rows are called in a sentence."""
    if trace.get(xy) is not None:
        given = values(trace[xy])
    else:
        given = list(range(count))
    ticks: dict[float, str] = {}
    if axis.written.get("ticktext") is not None and not axis.categories:
        ticks = dict(axis.ticks())
    alias = axis.written.get("labelalias", {})
    chosen = [given[at] for at in met.tolist()]
    return [plain(ticks.get(axis.place(one), alias.get(str(one), one))) for one in chosen]


def _field(
    trace: Written,
    names: dict[str, list[str]],
    z: NDArray[np.float64],
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    found: re.Match[str],
) -> Any:
    """What stands in a gap of the sentence: a text, or {"row": texts}, {"column": texts}, {"cell": texts}."""
    name = found[1]
    index = found[2]
    form = found[3]
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
    texts = [[_said(value, form) for value in row] for row in numbers[np.ix_(rows, columns)].tolist()]
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
