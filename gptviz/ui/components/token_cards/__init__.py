"""The prompt's tokens as cards with position, text, id and bytes, a line under each piece: a component."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import streamlit as st

from gptviz.figures.theme import Mode, position_color
from gptviz.tokenizer import show_token
from gptviz.tokenizer.steps import Piece
from gptviz.trace import Token
from gptviz.ui.components.kernel import saving_component

_component = saving_component("token_cards")


def token_cards(
    pieces: Sequence[Piece],
    tokens: Sequence[Token],
    selected: int,
    mode: Mode,
    on_select: Callable[[int], Any],
    key: str = "token_cards",
) -> None:
    """Draw the cards of `tokens`; `on_select(position)` runs before the rerun that a click causes."""

    def clicked() -> None:
        position = st.session_state[key].position
        if isinstance(position, int) and 0 <= position < len(tokens):
            on_select(position)

    _component(
        key=key,
        data={"pieces": list(_cards(pieces, tokens, mode)), "selected": selected, "mode": mode},
        on_position_change=clicked,
    )


def _cards(pieces: Sequence[Piece], tokens: Sequence[Token], mode: Mode) -> Iterator[dict[str, Any]]:
    at = 0
    for piece in pieces:
        own = tokens[at : at + len(piece.ids)]  # the last piece may go on beyond the model's context
        at += len(piece.ids)
        shown = show_token(piece.raw)
        yield {
            "shown": shown,
            "special": piece.special,
            "title": f"`{shown}`, a special token" if piece.special else f"The regex cut the piece `{shown}`",
            "tokens": [
                {
                    "position": token.position,
                    "id": token.id,
                    "shown": show_token(token.raw),
                    "hex": token.raw.hex(" "),
                    "color": position_color(token.position, mode),
                    "title": f"`{show_token(token.raw)}` (position {token.position}) is token {token.id}, "
                    f"{len(token.raw)} byte{'s' * (len(token.raw) != 1)}: {token.raw.hex(' ')}",
                }
                for token in own
            ],
        }
