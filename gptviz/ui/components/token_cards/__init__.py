"""The prompt's tokens as cards with position, text, id and bytes, a line under each piece.

A card has its position's colour: the merges below name their tokens by the same one.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from gptviz.engine.tokens import Token
from gptviz.tokenizer import show_token
from gptviz.tokenizer.steps import Piece
from gptviz.ui.components.kernel import COLOURS, Component, On, among, shared_characters
from gptviz.ui.components.saved import Saved

_component = Component("token_cards")


def token_cards(
    pieces: Sequence[Piece],
    tokens: Sequence[Token],
    selected: int,
    on_select: On,
    saved: Saved | None = None,
) -> None:
    """Draw the cards of `tokens`; `on_select(position)` runs before the rerun that a click causes."""
    data = {"pieces": list(_cards(pieces, tokens)), "selected": selected, "colours": COLOURS}
    _component("token_cards", data, {"position": (among(range(len(tokens))), on_select)}, saved)


def _cards(pieces: Sequence[Piece], tokens: Sequence[Token]) -> Iterator[dict[str, Any]]:
    start = 0
    for piece in pieces:
        piece_tokens = tokens[
            start : start + len(piece.ids)
        ]  # the last piece may go on beyond the model's context
        start += len(piece.ids)
        if not piece_tokens:
            return
        shown = show_token(piece.raw)
        yield {
            "shown": shown,
            "special": piece.special,
            "title": f"“{shown}”, {piece.kind}"
            if piece.special
            else f"The regex cut the piece “{shown}”",
            "groups": shared_characters([token.raw for token in piece_tokens]),
            "tokens": [_card(token) for token in piece_tokens],
        }


def _card(token: Token) -> dict[str, Any]:
    shown = show_token(token.raw)
    hex = token.raw.hex(" ")
    if len(token.raw) == 1:
        size = "1 byte"
    else:
        size = f"{len(token.raw)} bytes"
    return {
        "position": token.position,
        "id": token.id,
        "shown": shown,
        "hex": hex,
        "title": f"“{shown}” (position {token.position}) is token {token.id}, {size}: {hex}",
    }
