"""The Overview's row of small pictures, each a door to its page."""

from collections.abc import Mapping, Sequence
from typing import Any

from gptviz.figures.theme import Mode
from gptviz.ui.components.kernel import among, component
from gptviz.ui.components.saved import Saved

_component = component("doors", page=among("pages"))


def draw_doors(
    cards: Sequence[Mapping[str, Any]],
    mode: Mode,
    *,
    around: Mapping[str, Any] | None = None,
    saved: Saved | None = None,
) -> str | None:
    """Draw the cards; gives the page of the one whose click caused this run.

    A card has "page", "href", "title", "caption" (text and code in turn) and "picture": {"draw": "tokens"
    with "tokens" and "groups" (see `shared_characters`), "strips" (each may have an "unchanged" one), "heads"
    (see `figures.head_grid.mosaic`; "marks" are a changed model's), "svg" or "bars", ...}. `around` is a
    bracket over the cards from number "first" to number "last", with a "label".
    """
    sent = _component(
        "doors",
        {"doors": list(cards), "around": around},
        mode=mode,
        saved=saved,
        limits={"pages": {card["page"] for card in cards}},
    )
    return sent.get("page")
