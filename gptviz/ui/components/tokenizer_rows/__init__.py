"""The same text cut by several tokenizers, one row each with its count: a component."""

from collections.abc import Sequence
from typing import Any

from gptviz.figures.theme import Mode, palette
from gptviz.tokenizer.cut import Cut
from gptviz.tokenizer.simple import UNK
from gptviz.ui.components.kernel import saving_component

# More would only make the page heavy: the count beside them is of all.
SHOWN = 200

_component = saving_component("tokenizer_rows")


def tokenizer_rows(cuts: Sequence[Cut], mode: Mode, key: str = "tokenizer_rows") -> None:
    """Draw the rows; tokens whose text is lost have a dashed outline."""
    colors = palette(mode)
    data = {"rows": [_row(cut) for cut in cuts], "colors": list(colors.positions), "key": colors.key}
    _component(key=key, data=data)


def _row(cut: Cut) -> dict[str, Any]:
    about = f"{cut.vocabulary:,} in its vocabulary"
    if cut.unknown:
        about += f"; {cut.unknown:,} unknown"
    shown = list(zip(cut.tokens, cut.ids, strict=True))[:SHOWN]
    return {
        "tokenizer": cut.tokenizer,
        "about": about,
        "count": len(cut.ids),
        "unknown": cut.unknown,
        "tokens": shown,
        "lost": [
            i
            for i, (token, id) in enumerate(shown)
            if id is None or (cut.tokenizer == "words" and token == UNK)
        ],
    }
