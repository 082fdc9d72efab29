"""The grid of the logit lens as a component: rows are depths, columns tokens, each cell a token on top.

A window shows as many columns as can be read, and a small map of the whole says where it is; pointing at a
cell lists its ten most probable tokens. A column is a position: two equal tokens are two columns.
Columns that nobody has read yet are grey and say so. Numbers are sent as typed arrays (base64), the tokens
that they name once each.
"""

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from gptviz.figures.theme import Mode, Scale, palette
from gptviz.ui.components.kernel import among, component, record
from gptviz.ui.components.saved import Saved, stem

_component = component("lens", pick=record("row", "position", row=among("rows"), position=among("positions")))


@dataclass(frozen=True)
class Legend:
    """What the colours say: `title` above the strip of `scale`, and the words at its ends."""

    title: str
    low: str
    high: str
    scale: Scale


@dataclass(frozen=True)
class Number:
    """One more number of a cell, (R, K): what it is called, and how it is written."""

    label: str
    values: np.ndarray
    form: Literal["bits", "rank"]


@dataclass(frozen=True)
class LensCells:
    """R rows of K columns that have been read, k tokens each.

    `known` are the K columns' positions as [start, stop) pairs in their order; `shown` has every token that
    `ids` and `ghosts` name as the screen shows it; `color` runs from 0 to 1, the ends of the legend's scale.
    """

    known: Sequence[tuple[int, int]]
    ids: np.ndarray  # (R, K, k)
    probabilities: np.ndarray  # (R, K, k)
    color: np.ndarray  # (R, K)
    numbers: Sequence[Number]
    shown: Mapping[int, str]
    pieces: Sequence[int] = ()  # of those, the ids that are no whole characters
    ghosts: tuple[np.ndarray, np.ndarray] | None = None  # (R, K) each: ids on top unchanged, probabilities


def encoded(cells: LensCells) -> dict[str, Any]:
    """The cells as the browser gets them; to be kept, so that a rerun does not make them again."""
    wide = bool(cells.ids.size) and int(cells.ids.max()) >= 2**16
    return {
        "known": [list(part) for part in cells.known],
        "each": cells.ids.shape[-1],
        "wide": wide,
        "ids": _base64(cells.ids, "<u4" if wide else "<u2"),
        "probabilities": _base64(cells.probabilities, "<f4"),
        "color": _base64(cells.color, "<f4"),
        "numbers": [
            {"label": number.label, "form": number.form, "values": _base64(number.values, "<f4")}
            for number in cells.numbers
        ],
        "shown": {str(i): text for i, text in cells.shown.items()},
        "pieces": list(cells.pieces),
        "ghosts": None
        if cells.ghosts is None
        else {"ids": _base64(cells.ghosts[0], "<u4"), "probabilities": _base64(cells.ghosts[1], "<f4")},
    }


def lens_grid(
    cells: dict[str, Any],
    rows: Sequence[tuple[str, str]],
    tokens: Sequence[str],
    selected: tuple[int, int],
    legend: Legend,
    mode: Mode,
    on_pick: Callable[[int | None, int | None], Any],
    *,
    key: str = "lens",
    saved: Saved | None = None,
) -> None:
    """Draw `encoded` cells; `on_pick(row, position)` runs before the rerun that a click causes.

    A click on a cell gives both, one on a row's or a column's label only that, and None for the other.
    `rows` are the depths' names, (short, in a sentence); `tokens` all tokens of the text, as shown.
    """
    _component(
        key,
        {
            "cells": cells,
            "rows": [list(names) for names in rows],
            "tokens": list(tokens),
            "row": selected[0],
            "position": selected[1],
            "legend": vars(legend),
        },
        mode=mode,
        saved=saved or Saved(stem("logit-lens")),
        limits={"rows": range(len(rows)), "positions": range(len(tokens))},
        on={"pick": lambda cell: on_pick(cell.get("row"), cell.get("position"))},
    )


def _base64(values: np.ndarray, kind: str) -> str:
    return base64.b64encode(np.ascontiguousarray(values, dtype=kind).tobytes()).decode()


def example(mode: Mode, sent: Callable[[str, Any], Any]) -> None:
    """Five tokens in three rows, two of them equal; 225 tokens in thirteen rows, some columns not read.

    The five have what the unchanged model says, another token in the last row.
    """
    words = ["·the", "·cat", "·sat", "·antidisestablishmentarianism", "⏎", "·`", "\\xe4", "·mat", "the", "."]
    for name, count, depth, known in (
        ("lens_example", 5, 3, [(0, 5)]),
        ("lens_long", 225, 13, [(0, 64), (128, 225)]),
    ):
        columns = sum(stop - start for start, stop in known)
        row, column = np.arange(depth)[:, None, None], np.arange(columns)[None, :, None]
        ids = (row * 3 + column * 2 + np.arange(3)) % len(words)
        probabilities = np.array([0.6, 0.25, 0.05]) * (1 + row) / depth + 0 * column
        color = probabilities[..., 0]
        legend = Legend("probability of the token in the cell", "0", "1", palette(mode).attention)
        cells = LensCells(
            known=known,
            ids=ids,
            probabilities=probabilities,
            color=color,
            numbers=[
                Number("entropy", 3 - 2 * color, "bits"),
                Number("rank of ·cat", 1 + ids[..., 1], "rank"),
            ],
            shown=dict(enumerate(words)),
            ghosts=(ids[..., 0] * (row[..., 0] < 2), color) if depth == 3 else None,
        )
        rows = [(f"row {i}", f"row {i} of {depth}") for i in range(depth)]
        tokens = [words[i % 3] for i in range(count)]

        def pick(row: int | None, position: int | None) -> None:
            sent("pick", [row, position])

        lens_grid(encoded(cells), rows, tokens, (1, 3), legend, mode, pick, key=name)
