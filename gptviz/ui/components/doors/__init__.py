"""The Overview's row of small pictures, each a door to its page."""

from collections.abc import Mapping
from typing import Any

from gptviz.figures.theme import Mode
from gptviz.ui.components.kernel import Rows, among, component
from gptviz.ui.components.saved import Saved

_component = component("doors")


def draw_doors(
    cards: Rows, mode: Mode, *, around: Mapping[str, Any] | None = None, saved: Saved | None = None
) -> str | None:
    """Draw the cards; gives the page of the one whose click caused this run.

    A card has "page", "href", "title", "caption" (text and code in turn) and "picture": {"draw": "tokens"
    with "tokens" and "groups" (see `shared_characters`), "strips" (each may have an "unchanged" one), "heads"
    (see `figures.head_grid.mosaic`; "marks" are a changed model's), "svg" or "bars", ...}. `around` is a
    bracket over the cards from number "first" to number "last", with a "label".
    """
    on = {"page": (among({card["page"] for card in cards}), None)}
    return _component("doors", {"doors": list(cards), "around": around}, mode, on, saved).get("page")
