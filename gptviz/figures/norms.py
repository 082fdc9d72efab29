"""Inside one LayerNorm: the numbers of one token on one axis, as they come in and after each step."""

from operator import attrgetter
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gptviz.analysis.norms import Steps, Vector, histogram, variance_parts
from gptviz.both import Both
from gptviz.digits import significant

STOPS = ("before", "centred", "normalised", "after")  # arrays of analysis.norms.Steps
WITHOUT_MEAN = ("before", "normalised", "after")  # of an RMSNorm
NEARLY_ONE = 0.95  # a variance of less after the division is not called one
SAME_AXIS = 12.0  # of two spreads, the wider one is at most so much wider where both have one axis
ROOM = 0.04  # of the axis, left free at each end
# of the largest number: a mean this small is 0, and 2 × 10⁻¹⁷ would read as a discovery
ROUNDING = 1e-9
HARDLY = 0.03  # of a standard deviation: nobody sees numbers move by less

Row = dict[str, Any]
Ends = tuple[float, float]


def norm_stops(steps: Both[Steps], dimension: int) -> list[Row]:
    """What is to be drawn at each of the `STOPS`, as a row; `components.spread` draws them.

    Of an RMSNorm it is one stop less: nothing slides to a mean of 0.

    Each of the D numbers is a brick: `bins` says in which column it lies, `slots` how many lie below it. Column
    i begins at `low` + i * `width`. The chosen dimension lies lowest. `axis` are the ends of what is in
    sight, `ghost` the unchanged model's columns and moments, None where it has the same numbers.
    """
    if steps.now.has_mean:
        stops: tuple[str, ...] = STOPS
        names, sentences = _words(steps.now)
        moments = _moments
    else:
        stops = WITHOUT_MEAN
        names, sentences = _words_without_mean(steps.now)
        moments = _squares
    moved = any(steps.map(attrgetter(stop)).moved for stop in stops)
    rows = []
    columns = []
    for stop, name, says in zip(stops, names, sentences, strict=True):
        values = steps.map(attrgetter(stop))
        old = values.was if moved else None
        counts, edges = histogram(values.now, also=old)
        bins, slots = bricks(values.now, edges, dimension)
        row = {
            "name": name,
            "says": says,
            "values": values.now,
            "bins": bins,
            "slots": slots,
            "low": float(edges[0]),
            "width": float(edges[1] - edges[0]),
            "tallest": int(counts.max()),
            "told": moments(values.now),
            "mark": f"dimension {dimension}: {significant(float(values.now[dimension]), 4)}",
            "ghost": None,
        }
        if old is not None:
            old_counts, _ = histogram(old, also=values.now)
            row["tallest"] = max(row["tallest"], int(old_counts.max()))
            told = ", ".join(moments(old))
            row["ghost"] = {
                "counts": old_counts,
                "mark": float(old[dimension]),
                "told": f"unchanged: {told}",
            }
        rows.append(row)
        columns.append((float(edges[0]), float(edges[-1])))
    for row, ends in zip(rows, axes(columns, len(stops) - 2), strict=True):
        row["axis"] = ends
    return rows


def bricks(
    values: Vector, edges: Vector, dimension: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The column of each value, and how many lie below it in that column: (D,) each.

    Those of a column lie in the order of their dimensions; the chosen dimension is the lowest of its column.
    """
    last = len(edges) - 2
    bins = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, last)
    order = np.argsort(np.arange(len(values)) != dimension, kind="stable")
    slots = np.empty(len(values), dtype=np.int64)
    slots[order] = pd.Series(bins[order]).groupby(bins[order]).cumcount().to_numpy()
    return bins.astype(np.int64), slots


def axes(columns: list[Ends], divided: int = 2) -> list[Ends]:
    """What is in sight of the axis at each stop: all columns, 0, and after the division -1 to 1 as well.

    `columns` are the ends of all columns together, at each stop; from the stop `divided` on they are divided.

    All stops have one axis where each of them can be seen on it. Else the first ones have a wider or a
    narrower one than the last two, and one sees how it is zoomed.
    """
    given = _around([*columns[:divided], (0.0, 0.0)])
    taken = _around([*columns[divided:], (-1.0, 1.0)])
    lengths = sorted(high - low for low, high in (given, taken))
    if lengths[1] <= SAME_AXIS * lengths[0]:
        given = taken = _around([given, taken])
    behind = len(columns) - divided
    return [_with_room(ends) for ends in [given] * divided + [taken] * behind]


def _around(parts: list[Ends]) -> Ends:
    return min(low for low, _ in parts), max(high for _, high in parts)


def _with_room(ends: Ends) -> Ends:
    room = ROOM * (ends[1] - ends[0])
    return ends[0] - room, ends[1] + room


def _moments(values: Vector) -> list[str]:
    """Mean and standard deviation, in words."""
    return _told(values, {"mean": values.mean(), "standard deviation": values.std()})


def _squares(values: Vector) -> list[str]:
    """Root mean square and mean, in words."""
    root = np.sqrt(np.square(values).mean())
    return _told(values, {"root mean square": root, "mean": values.mean()})


def _told(values: Vector, moments: dict[str, np.float64]) -> list[str]:
    """These numbers of the values, in words; one that is 0 but for rounding is 0."""
    largest = float(np.abs(values).max())
    words = []
    for name, value in moments.items():
        shown = significant(float(value))
        if abs(value) <= ROUNDING * largest:
            shown = "0"
        words.append(f"{name} {shown}")
    return words


def _words(steps: Steps) -> tuple[list[str], list[str]]:
    """What each stop is called, and what it says."""
    size = len(steps.before)
    parts = variance_parts(steps)
    mean = _moments(steps.before)[0].removeprefix("mean ")
    divisor = f"√(variance + eps) = {significant(steps.deviation)}"
    moved = f"Subtract the mean, {mean}: all {size} numbers move together, until their mean is 0."
    if abs(steps.mean) < HARDLY * steps.deviation:
        moved += " It is so small here that the picture hardly moves."
    if mean == "0":
        moved = "Subtract the mean. It is 0 already: nothing moves."
    how = "squeezed"
    if steps.deviation < 1:
        how = "stretched"
    reached = significant(float(np.sqrt(parts.normalised)))
    if reached == "1.00":
        reached = "1"
    divided = f"They are {how} until their standard deviation is {reached}."
    if parts.normalised < NEARLY_ONE:
        divided = (
            "They differ too little for a standard deviation of 1: eps keeps the divisor above 0."
        )
    last = "Scale"
    learned = "Each number times its scale, as training chose it."
    nothing = "Every scale is 1: nothing moves."
    if steps.has_shift:
        last = "Scale and shift"
        learned = "Each number times its scale, plus its shift, as training chose them."
        nothing = "Every scale is 1 and every shift is 0: nothing moves."
    mean_after, deviation_after = _moments(steps.after)
    if mean_after != "mean 0":
        mean_after += " (no longer 0)"
    ending = f"Now: {mean_after}, {deviation_after}."
    if np.all(steps.scale == 1) and np.all(steps.shift == 0):
        learned = nothing
        ending = f"Still: {', '.join(_moments(steps.after))}."
    names = ["In", "Minus the mean", "Divided by √variance", last]
    sentences = [
        f"The {size} numbers of the token, as they come in.",
        moved,
        f"Divide by {divisor}. {divided}",
        f"{learned} {ending}",
    ]
    return names, sentences


def _words_without_mean(steps: Steps) -> tuple[list[str], list[str]]:
    """The `_words` of an RMSNorm, which has no shift."""
    size = len(steps.before)
    parts = variance_parts(steps)
    how = "squeezed"
    if steps.deviation < 1:
        how = "stretched"
    reached = significant(float(np.sqrt(parts.normalised)))
    if reached == "1.00":
        reached = "1"
    divided = f"They are {how} around 0 until their root mean square is {reached}."
    if parts.normalised < NEARLY_ONE:
        divided = "They are too small for a root mean square of 1: eps keeps the divisor above 0."
    learned = "Each number times its scale, as training chose it. Now"
    if np.all(steps.scale == 1):
        learned = "Every scale is 1: nothing moves. Still"
    names = ["In", "Divided by √mean square", "Scale"]
    sentences = [
        f"The {size} numbers of the token, as they come in.",
        f"Divide by √(mean square + eps) = {significant(steps.deviation)}. {divided} No mean is subtracted.",
        f"{learned}: {', '.join(_squares(steps.after))}.",
    ]
    return names, sentences
