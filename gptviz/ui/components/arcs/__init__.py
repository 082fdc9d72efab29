"""Attention between two lines of the text, as a component: the tokens that look, and those they look at.

The weights of a block's heads are sent as float32 (base64, the triangle that the causal mask leaves), and
the browser draws the chosen lines: of which heads, of which tokens, up to which part of each row. It fills
what it says into the words of `WORDS`.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gptviz.ui.components.kernel import Component, Event, On, among, packed, parts
from gptviz.ui.components.saved import Saved

_component = Component("arcs")

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
    on_pick: Callable[[int | None, int | None], Any],
    on_head: On,
    on_mass: On,
    first: int = 0,
    saved: Saved | None = None,
) -> None:
    """Draw the lines of `weights` (H, T, T): attention of the tokens from position `first` on.

    `heads` are the heads' numbers, `head` the place among them of the one that is drawn at first; `mass`, one
    of `MASSES`, is the part of each row in percent that is drawn. NaN is not drawn. `on_pick(query, key)`
    runs with the position that was clicked on the left or on the right and None for the other, `on_head` with
    the number of a head that is to be drawn alone.
    """
    rows, columns = np.tril_indices(len(tokens))
    position = among(range(first, first + len(tokens)))
    lines = packed(weights[:, rows, columns])  # (H, T (T + 1) / 2)
    data = {"name": name, "weights": lines, "tokens": list(tokens), "first": first}
    data |= {
        "query": query,
        "key": key_position,
        "block": block,
        "heads": list(heads),
        "head": head,
    }
    data |= {"mass": mass, "masses": list(MASSES), "height": HEIGHT, "words": WORDS}
    events: dict[str, Event] = {
        "pick": parts(on_pick, "query", "key", query=position, key=position),
        "head": (among(set(heads)), on_head),
        "mass": (among(set(MASSES)), on_mass),
    }
    _component(f"arcs_{name}", data, events, saved)
