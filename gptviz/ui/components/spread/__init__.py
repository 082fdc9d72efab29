"""One token's numbers as bricks on one axis, which a norm slides, squeezes, and gives their own scale.

Stop by stop, or as a film that plays once by itself: a brick goes from where it lies at one stop to where it
lies at the next, and what is written is always that of a stop. Nothing is sent back: all stops are in the
browser. The picture can be saved as it stands.
"""

from collections.abc import Mapping
from typing import Any

from gptviz.ui.components.kernel import Component, Rows, packed
from gptviz.ui.components.saved import Saved

_component = Component("spread")


def draw_spread(
    key: str,
    stops: Rows,
    dimension: int,
    alt: str,
    *,
    centred: bool = True,
    saved: Saved | None = None,
) -> None:
    """Draw the stops of `figures.norms.norm_stops`; `dimension` has the orange brick, `alt` says what is seen.

    `centred` is a LayerNorm's, whose band lies around the mean; that of an RMSNorm lies around 0.
    """
    data = {"stops": [_sent(stop) for stop in stops], "dimension": dimension, "alt": alt}
    if not centred:
        data["centred"] = False
    _component(key, data, saved=saved)


def _sent(stop: Mapping[str, Any]) -> dict[str, Any]:
    """A stop as the browser gets it: a number for each dimension as bytes, the ghost's columns as a list."""
    sent = dict(stop)
    sent["values"] = {"base64": packed(stop["values"])}
    for name in ("bins", "slots"):
        sent[name] = packed(stop[name], "<u2")
    if stop["ghost"] is not None:
        sent["ghost"] = stop["ghost"] | {"counts": stop["ghost"]["counts"].tolist()}
    return sent
