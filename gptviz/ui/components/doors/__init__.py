"""The Overview's row of small pictures, each a door to its page."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gptviz.figures.theme import Mode
from gptviz.ui.components.kernel import among, component
from gptviz.ui.components.saved import Saved, stem

_component = component("doors", page=among("pages"))


def draw_doors(
    cards: Sequence[Mapping[str, Any]],
    mode: Mode,
    *,
    key: str = "doors",
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
        key,
        {"doors": list(cards), "around": around},
        mode=mode,
        saved=saved or Saved(stem("overview")),
        limits={"pages": {card["page"] for card in cards}},
    )
    return sent.get("page")


def example(mode: Mode, sent: Callable[[str, Any], Any]) -> None:
    """Three doors, two of them in a bracket: tokens with a character in pieces, a picture, bars."""
    svg = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><path d="M0 9L9 0" stroke="gray"/></svg>'
    shown = [("The", 0), ("·gypsy", 1), ("\\xc3", 2), ("\\xa9", 3)]
    tokens = [{"shown": t, "position": i, "id": 100 + i, "chosen": i == 1} for t, i in shown]
    bars = [("·had", 0.4), ("·gypsy", 0.1)]
    cards = [
        {
            "page": "tokens",
            "picture": {"draw": "tokens", "tokens": tokens, "groups": [(2, 4, "é")]},
            "caption": ["Four tokens: ", "·gypsy", " is 101."],
        },
        {
            "page": "layernorm",
            "picture": {"draw": "svg", "svg": svg, "alt": "a line"},
            "caption": ["A line."],
        },
        {
            "page": "next_token",
            "picture": {
                "draw": "bars",
                "bars": [
                    {"shown": t, "id": i, "probability": p, "percent": f"{p:.0%}", "title": t}
                    for i, (t, p) in enumerate(bars)
                ],
            },
            "caption": ["Two bars."],
        },
    ]
    opened = draw_doors(
        [card | {"title": card["page"], "href": "#"} for card in cards],
        mode,
        key="doors_example",
        around={"first": 1, "last": 2, "label": "two of them"},
    )
    if opened is not None:
        sent("page", opened)
