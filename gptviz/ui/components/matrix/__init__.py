"""Matrices over tokens as a component: one large, or several small ones that point at each other.

Cells are drawn on a canvas from float32 numbers (base64, four bytes each; half of that where the
causal mask leaves only a triangle), so that 1,024 tokens stay quick and a hover tells the number itself.
Where not all cells can be read at once a window shows some: it zooms, moves, and opens around the selected
cell. Everything that is said is said here, in Python; the browser only fills in tokens and numbers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

import numpy as np
import torch

from gptviz.both import Both
from gptviz.digits import weight
from gptviz.figures.marks import CHANGED, DIFFERENCE
from gptviz.ui.components.kernel import Component, among, packed, parts
from gptviz.ui.components.saved import Saved

_component = Component("matrix")

Axis = Literal["query", "key", "dim"]

ALONE = 4  # values of a sum that are added one by one
FELT = 0.01  # attention weight of one of these
ADDS_UP = 0.02  # of the largest number: more than a model in bfloat16 rounds away


@dataclass(frozen=True)
class Panel:
    """One matrix. What it shows is `array / divisor`, coloured from `low` to `high`.

    `says` is the sentence for a cell, with {query}, {key}, {dim}, {value} (and {product}, the value
    before the division) where the browser fills in; `says_masked` for what the causal mask hides, and
    `says_nothing` for NaN. `idle` stands below a small panel while nothing of it is pointed at.
    """

    name: str
    array: str
    row_axis: Axis
    column_axis: Axis
    scale: Literal["attention", "signed"]
    low: float
    high: float
    label: str = ""
    says: str = ""
    says_masked: str = ""
    says_nothing: str = ""
    masked: bool = False
    divisor: float = 1.0
    digits: Literal["weight", "number"] = "number"
    title: str = ""
    note: str = ""
    color: str = ""  # a name of the palette: "query", "key", "value", "output"
    idle: str = ""


ATTENDS = "{query} attends {value} to {key}"
MASKED = "{query} cannot see {key}, which comes later: the causal mask hides it."


def attention_panel(
    label: str = "Attention weights", says: str = ATTENDS, says_nothing: str = ""
) -> Panel:
    """A head's weights, of the array "weights": (T, T), a row a query."""
    panel = Panel(
        "weights", "weights", "query", "key", "attention", 0, 1, masked=True, digits="weight"
    )
    label = f"{label}: rows are queries, columns are keys"
    return replace(panel, label=label, says=says, says_masked=MASKED, says_nothing=says_nothing)


def pattern(
    weights: Both[torch.Tensor], shown: str, hide_first: bool = False
) -> tuple[np.ndarray, Panel]:
    """A head's weights (T, T) as they are drawn of both runs, or what the change did to them; their panel.

    `shown` is DIFFERENCE, CHANGED or UNCHANGED; with `hide_first` they are `without_first`.
    """
    hidden = "Attention to the first token is hidden, so there is nothing to show here."
    if shown != DIFFERENCE:
        says = ATTENDS
        if hide_first:
            says += ", rescaled without the first token"
        if shown == CHANGED:
            values = weights.now
        else:
            values = weights.all[0]
        return values.numpy(), attention_panel(says=says, says_nothing=hidden)
    moved = (weights.now - weights.all[0]).numpy()
    reach = float(np.nanmax(np.abs(moved), initial=0.0)) or 1.0
    says = "{query} to {key}: changed minus unchanged is {value}"
    panel = attention_panel("Changed minus unchanged attention", says, hidden)
    return moved, replace(panel, scale="signed", low=-reach, high=reach)


def adding_up(
    weights: np.ndarray, values: np.ndarray, output: np.ndarray, query: int, tokens: Sequence[str]
) -> dict[str, Any] | None:
    """The beats in which a query's output adds up: its largest weights one by one, then all others.

    `weights` are (T, T), `values` and `output` (T, d) of a head, from position 0 on. They are the arrays of the
    panels "weights", "v" and "z". None where they do not add up: a change put another output there.
    """
    row = weights[query, : query + 1]
    reach = float(np.abs(output[query]).max())
    if not row.any() or not np.allclose(
        row @ values[: query + 1], output[query], atol=ADDS_UP * reach
    ):
        return None
    order = np.argsort(-np.abs(row), kind="stable")
    alone = [int(key) for key in order[:ALONE] if abs(row[key]) >= FELT]
    beats: list[dict[str, Any]] = []
    for key in alone:
        of_key = f"{weight(float(row[key]))} × the value of "
        says = [of_key, tokens[key], f" (position {key})"]
        beats.append({"keys": [key], "says": says})
    others = sorted(set(range(query + 1)) - set(alone))
    if row[others].any():
        together = weight(float(row[others].sum()))
        said = f"The other {len(others)} values, with weights that add up to {together}"
        if len(others) == 1:
            said = f"The one other value, with a weight of {together}"
        beats.append({"keys": others, "says": [said]})
    for beat in beats[1:]:
        first, *rest = beat["says"]
        beat["says"] = [f"+ {first[:1].lower()}{first[1:]}", *rest]
    return {"weights": "weights", "values": "v", "output": "z", "beats": beats}


def matrix(
    name: str,
    panels: Sequence[Panel],
    arrays: Mapping[str, np.ndarray | tuple[str, str]],
    tokens: Sequence[str],
    query: int,
    key_position: int | None,
    on_pick: Callable[[int | None, int | None], Any],
    small: bool = False,
    largest: int = 520,
    first: int = 0,
    positions: Sequence[int] | None = None,
    saved: Saved | None = None,
    adds: dict[str, Any] | None = None,
) -> None:
    """Draw the panels; `on_pick(query, key)` runs before the rerun that a click causes.

    A click on a cell gives both positions, one on a token's label only the one that it names, and None
    for the other. `arrays` are the panels' matrices, (rows, columns) each, of the tokens from position
    `first` on; ("q", "k") instead of a matrix stands for every row of "q" times every row of "k", which the
    browser works out. `tokens` are these tokens as the screen shows them. `largest` is the side in pixels
    where a rem has 16 of them; where it has more, the height of the window is the limit. `positions` are the
    tokens' own where they do not follow each other: only what is said of them. With `adds`, what `adding_up`
    gives, a button shows how the output's row adds up; it plays once when a reader comes to it.
    """
    full = {panel.array for panel in panels if not panel.masked}
    triangles = {panel.array for panel in panels} - full
    sent = {
        name: {"of": values} if isinstance(values, tuple) else encode(values, name in triangles)
        for name, values in arrays.items()
    }

    def shape(array: str) -> dict[str, int]:
        values = arrays[array]
        sides = (
            [len(arrays[factor]) for factor in values]
            if isinstance(values, tuple)
            else values.shape
        )
        return dict(zip(("rows", "columns"), sides, strict=True))

    position = among(range(first, first + len(tokens)))
    drawn = [asdict(panel) | shape(panel.array) for panel in panels]
    data = {"name": name, "panels": drawn, "arrays": sent, "tokens": list(tokens), "first": first}
    data |= {"positions": None if positions is None else list(positions)}
    data |= {"query": query, "key": key_position, "small": small, "largest": largest}
    data["adds"] = adds
    events = {"pick": parts(on_pick, "query", "key", query=position, key=position)}
    _component(f"matrix_{name}", data, events, saved)


def encode(values: np.ndarray, triangle: bool) -> dict[str, Any]:
    """A matrix as base64 float32: all of it, or row by row what the causal mask leaves of a square one."""
    if triangle:
        numbers = values[np.tril_indices(len(values))]  # (T (T + 1) / 2,)
    else:
        numbers = values
    return {"base64": packed(numbers), "triangle": triangle, "columns": values.shape[1]}
