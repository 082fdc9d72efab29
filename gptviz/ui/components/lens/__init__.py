"""The grid of the logit lens as a component: rows are depths, columns tokens, each cell a token on top.

A window shows as many columns as can be read, and a small map of the whole says where it is; pointing at a
cell lists its ten most probable tokens. A column is a position: two equal tokens are two columns.
Columns that have not been read yet are grey and say so. Numbers are sent as typed arrays (base64), the tokens
that they name once each.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gptviz.figures.theme import Scale
from gptviz.ui.components.kernel import Component, among, packed, parts
from gptviz.ui.components.saved import Saved

_component = Component("lens")


@dataclass(frozen=True)
class Legend:
    """What the colours say: `title` above the strip of `scale`, and the words at its ends."""

    title: str
    low: str
    high: str
    scale: Scale


def encoded(
    known: Sequence[tuple[int, int]],
    ids: np.ndarray,
    probabilities: np.ndarray,
    color: np.ndarray,
    numbers: Mapping[str, np.ndarray],
    shown: Mapping[int, str],
    pieces: Sequence[int] = (),
    ghosts: tuple[np.ndarray, np.ndarray] | None = None,
) -> dict[str, Any]:
    """R rows of K columns that have been read as the browser gets them; to be kept, not made at each rerun.

    `known` are the K columns' positions as [start, stop) pairs in their order. `ids` and `probabilities` are
    the k first tokens, (R, K, k); `ghosts` the token on top unchanged and its probability, (R, K) each.
    `shown` has every token that is named as the screen shows it, `pieces` those that are no whole characters.
    `color`, (R, K), runs from 0 to 1, the ends of the legend's scale; `numbers`, (R, K), are bits, or whole
    ones ranks.
    """
    wide = bool(ids.size) and int(ids.max()) >= 2**16
    return {
        "known": list(known),
        "each": ids.shape[-1],
        "wide": wide,
        "ids": packed(ids, "<u4" if wide else "<u2"),
        "probabilities": packed(probabilities),
        "color": packed(color),
        "numbers": [
            {
                "label": label,
                "values": packed(values),
                "form": "bits" if values.dtype.kind == "f" else "rank",
            }
            for label, values in numbers.items()
        ],
        "shown": {str(i): text for i, text in shown.items()},
        "pieces": list(pieces),
        "ghosts": ghosts and {"ids": packed(ghosts[0], "<u4"), "probabilities": packed(ghosts[1])},
    }


def lens_grid(
    cells: dict[str, Any],
    rows: Sequence[tuple[str, str]],
    tokens: Sequence[str],
    selected: tuple[int, int],
    legend: Legend,
    on_pick: Callable[[int | None, int | None], Any],
    *,
    key: str = "lens",
    saved: Saved | None = None,
) -> None:
    """Draw `encoded` cells; `on_pick(row, position)` runs before the rerun that a click causes.

    A click on a cell gives both, one on a row's or a column's label only that, and None for the other.
    `rows` are the depths' names, (short, in a sentence); `tokens` all tokens of the text, as shown.
    """
    row = among(range(len(rows)))
    position = among(range(len(tokens)))
    data: dict[str, Any] = {"cells": cells, "rows": list(rows), "tokens": list(tokens)}
    data |= {"legend": vars(legend), "row": selected[0], "position": selected[1]}
    events = {"pick": parts(on_pick, "row", "position", row=row, position=position)}
    _component(key, data, events, saved)
