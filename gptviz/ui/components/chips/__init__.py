"""The prompt's tokens as a strip of chips.

A click, or Enter on a focused chip, selects its token; arrow keys walk along the strip. The strip wraps,
scrolls to the selection when it is higher than a few lines, and says how many chips are out of sight.

A chip's colour means something: with `weights` it is the attention that the token gets, with `shares` what
it gave, blue below zero and orange above, with `coloured` it is the position's own, for pages that show
the same token a second time; else all chips are alike.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from gptviz.engine.tokens import Token
from gptviz.tokenizer import show_token
from gptviz.ui.components.kernel import Component, On, among, shared_characters

_component = Component("chips")

Role = Literal["query", "key", "value", "output"]


def chips(
    tokens: Sequence[Token],
    selected: int,
    on_select: On,
    *,
    key: str = "chips",
    highlight: Mapping[int, str] | None = None,
    weights: Sequence[float | None] | None = None,
    shares: Sequence[float] | None = None,
    most: float = 0.0,
    following: Mapping[str, Any] | None = None,
    on_append: On | None = None,
    coloured: bool = False,
) -> None:
    """Draw the strip; `on_select(position)` runs before the rerun that a click causes.

    `highlight` underlines positions by their `Role`. `weights` are numbers from 0 to 1, one a token, and
    None for what the causal mask hides. `shares` are signed numbers, of the first tokens as many as there
    are: what each gave; later ones are masked, as is a NaN. The full colour is that of the largest, or of
    `most` where all are smaller. `following` is a token shown after the last
    one, not part of the text: {"shown", "id", "probability"}; `on_append(id)` runs when it is clicked.
    ValueError if there are not as many weights as tokens.
    """
    if weights is not None and len(weights) != len(tokens):
        raise ValueError(
            f"there are {len(weights)} weights for {len(tokens)} tokens; give one for each"
        )
    data = {
        "tokens": [{"id": token.id, "shown": show_token(token.raw)} for token in tokens],
        "groups": shared_characters([token.raw for token in tokens]),
        "highlight": {str(position): role for position, role in (highlight or {}).items()},
        "weights": None if weights is None else list(weights),
        "shares": None if shares is None else _drawn(shares, len(tokens), most),
        "next": None if following is None else dict(following),
    }
    data |= {"selected": selected, "coloured": coloured, "appends": on_append is not None}
    append = among(() if following is None else (following["id"],)), on_append
    _component(key, data, {"position": (among(range(len(tokens))), on_select), "append": append})


def _drawn(shares: Sequence[float], count: int, most: float) -> list[dict[str, float] | None]:
    """Each share, and its ratio to the largest (or to `most`), from -1 to 1; None for a masked token."""
    sizes = [abs(share) for share in shares if math.isfinite(share)]
    limit = max([most, *sizes]) or 1.0
    visible = [
        {"share": value, "at": value / limit} if math.isfinite(value) else None
        for value in shares[:count]
    ]
    return [*visible, *[None] * (count - len(visible))]
