"""Attention between two lines of the text, as a component: the tokens that look, and those they look at.

The weights of a block's heads are sent as float32 (base64, the triangle that the causal mask leaves), and
the browser draws the lines that are asked for: of which heads, of which tokens, until how much of each row.
What it says is filled into words that stand here.
"""

import base64
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gptviz.figures.theme import Mode
from gptviz.ui.components.kernel import among, component, record
from gptviz.ui.components.saved import Saved, stem

_component = component(
    "arcs",
    pick=record("query", "key", query=among("positions"), key=among("positions")),
    head=among("heads"),
    mass=among("masses"),
)

MASSES = (50, 70, 80, 90, 95, 99, 100)  # percent of each row that is drawn
HEIGHT = 500  # pixels that a text has before it scrolls

WORDS = {
    "query": "looks",
    "key": "is looked at",
    "heads": "Click to switch a head on or off; double-click (or shift) for one alone, once more for all.",
    "mass": "lines until",
    "several": "several",
    "several_help": "Each click adds a token: what they give and get is summed. The same with ctrl or shift.",
    "rest": "A line is one weight, from the token that looks (left) to the one it looks at (right). "
    "Point at a token; a click holds it, Escape lets go.",
    "mean": "Mean of heads",
    "looks": "looks at",
    "look": "together look at",
    "looked_at": "it is looked at by",
    "looked_at_together": "they are looked at by",
}


def arcs(
    name: str,
    weights: np.ndarray,
    tokens: Sequence[str],
    query: int,
    key_position: int | None,
    block: int,
    heads: Sequence[int],
    head: int,
    mass: int,
    mode: Mode,
    on_pick: Callable[[int | None, int | None], Any],
    on_head: Callable[[int], Any],
    on_mass: Callable[[int], Any],
    first: int = 0,
    saved: Saved | None = None,
) -> None:
    """Draw the lines of `weights` (H, T, T): attention of the tokens from position `first` on.

    `heads` are the heads' numbers, `head` the place among them of the one that is drawn at first; `mass`, one
    of `MASSES`, is the part of each row in percent that is drawn. NaN is not drawn. `on_pick(query, key)`
    runs with the position that was clicked on the left or on the right and None for the other, `on_head` with
    the number of a head that somebody wants alone.
    """
    n = len(tokens)
    rows, columns = np.tril_indices(n)
    triangles = np.ascontiguousarray(weights[:, rows, columns], dtype="<f4")  # (H, T (T + 1) / 2)
    _component(
        f"arcs_{name}",
        {
            "name": name,
            "weights": base64.b64encode(triangles.tobytes()).decode(),
            "tokens": list(tokens),
            "first": first,
            "query": query,
            "key": key_position,
            "block": block,
            "heads": list(heads),
            "head": head,
            "mass": mass,
            "masses": list(MASSES),
            "height": HEIGHT,
            "words": WORDS,
        },
        mode=mode,
        saved=saved or Saved(stem(name)),
        limits={"positions": range(first, first + n), "heads": set(heads), "masses": set(MASSES)},
        on={"pick": lambda at: on_pick(at.get("query"), at.get("key")), "head": on_head, "mass": on_mass},
    )


def example(mode: Mode, sent: Callable[[str, Any], Any]) -> None:
    """Three heads of eight tokens, and one of 256."""

    def causal(n_tokens: int, n_heads: int) -> np.ndarray:
        position = np.arange(n_tokens)
        scores = np.cos(0.7 * position[:, None] - 1.3 * position[None]) * 4
        weights = np.stack([np.tril(np.exp(scores * (1 + h))) for h in range(n_heads)])
        return np.asarray(weights / weights.sum(axis=-1, keepdims=True), dtype=np.float32)  # (H, T, T)

    def pick(query: int | None, key: int | None) -> None:
        sent("pick", [query, key])

    def draw(name: str, tokens: list[str], n_heads: int, query: int) -> None:
        weights = causal(len(tokens), n_heads)
        arcs(
            name, weights, tokens, query, None, 0, range(n_heads), 0, 90, mode, pick,
            lambda head: sent("head", head), lambda mass: sent("mass", mass),
        )  # fmt: skip

    draw("example", ["The", "·gypsy", "·cat", "⏎", "·`", "·extraordinarily", "·my", "·it"], 3, 7)
    draw("example_long", [f"·word{i}" for i in range(256)], 1, 200)
