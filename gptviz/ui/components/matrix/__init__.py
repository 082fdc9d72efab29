"""Matrices over tokens as a component: one large, or several small ones that point at each other.

Cells are drawn on a canvas from float32 numbers (base64, four bytes each; half of that where the
causal mask leaves only a triangle), so that 256 tokens stay quick and a hover tells the number itself.
Everything that is said is said here, in Python; the browser only fills in tokens and numbers.
"""

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import streamlit as st

from gptviz.figures.theme import Mode, palette
from gptviz.ui.components.kernel import saving_component

_component = saving_component("matrix")

Axis = Literal["query", "key", "dim"]


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
    label: str
    says: str
    says_masked: str = ""
    says_nothing: str = ""
    masked: bool = False
    divisor: float = 1.0
    digits: Literal["weight", "number"] = "number"
    title: str = ""
    note: str = ""
    color: str = ""  # a name of the palette: "query", "key", "value", "output"
    idle: str = ""


def matrix(
    name: str,
    panels: Sequence[Panel],
    arrays: Mapping[str, np.ndarray],
    tokens: Sequence[str],
    query: int,
    key_position: int | None,
    mode: Mode,
    on_pick: Callable[[int | None, int | None], Any],
    small: bool = False,
    largest: int = 520,
    first: int = 0,
) -> None:
    """Draw the panels; `on_pick(query, key)` runs before the rerun that a click causes.

    A click on a cell gives both positions, one on a token's label only the one that it names, and None
    for the other. `arrays` are the panels' matrices, (rows, columns) each, of the tokens from position
    `first` on; `tokens` are these tokens as the screen shows them. `largest` is the side in pixels.
    """
    colors = palette(mode)
    component_key = f"matrix_{name}"
    last = first + len(tokens) - 1

    def picked() -> None:
        value = st.session_state[component_key].pick
        query, key = _position(value, "query", first, last), _position(value, "key", first, last)
        if query is not None or key is not None:  # a late click may follow a shorter text
            on_pick(query, key)

    _component(
        key=component_key,
        data={
            "name": name,
            "panels": [_panel(panel, arrays[panel.array]) for panel in panels],
            "arrays": {
                array: encode(values, all(panel.masked for panel in panels if panel.array == array))
                for array, values in arrays.items()
            },
            "tokens": list(tokens),
            "first": first,
            "query": query,
            "key": key_position,
            "small": small,
            "largest": largest,
            "file": f"gptviz-{name}",
            "scales": {"attention": colors.attention, "signed": colors.signed},
            "colors": {
                color: getattr(colors, color)
                for color in (
                    *("ink", "paper", "panel", "quiet", "accent", "masked"),
                    *("query", "key", "value", "output"),
                )
            },
        },
        on_pick_change=picked,
    )


def encode(values: np.ndarray, triangle: bool) -> dict[str, Any]:
    """A matrix as base64 float32: all of it, or row by row what the causal mask leaves of a square one."""
    numbers = np.ascontiguousarray(values, dtype="<f4")
    if triangle:
        numbers = numbers[np.tril_indices(len(numbers))]
    return {
        "base64": base64.b64encode(numbers.tobytes()).decode(),
        "triangle": triangle,
        "columns": values.shape[1],
    }


def _panel(panel: Panel, values: np.ndarray) -> dict[str, Any]:
    return asdict(panel) | {"rows": values.shape[0], "columns": values.shape[1]}


def _position(value: Any, name: str, first: int, last: int) -> int | None:
    """A position out of what the browser sent, None for anything else."""
    position = value.get(name) if isinstance(value, dict) else None
    if isinstance(position, bool) or not isinstance(position, int) or not first <= position <= last:
        return None
    return position
