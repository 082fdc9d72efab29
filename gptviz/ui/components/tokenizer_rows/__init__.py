"""The same text cut by several tokenizers, one row each with its count.

Colours alternate by position, so that one sees where a token ends.
"""

from collections.abc import Sequence
from typing import Any

from gptviz.tokenizer.simple import UNK, Cut
from gptviz.ui.components.kernel import COLOURS, Component, shared_characters
from gptviz.ui.components.saved import Saved

# More would only make the page heavy: the count beside them is of all.
SHOWN = 200

_component = Component("tokenizer_rows")


def tokenizer_rows(cuts: Sequence[Cut], saved: Saved | None = None) -> None:
    """Draw the rows; tokens whose text is lost have a dashed outline."""
    data = {"rows": [_row(cut) for cut in cuts], "colours": COLOURS}
    _component("tokenizer_rows", data, saved=saved)


def _row(cut: Cut) -> dict[str, Any]:
    description = f"{cut.vocabulary:,} in its vocabulary"
    if cut.unknown:
        description += f"; {cut.unknown:,} unknown"
    of_words = cut.tokenizer == "words"
    tokens_and_ids = list(zip(cut.tokens, cut.ids, strict=True))[:SHOWN]
    return {
        "tokenizer": cut.tokenizer,
        "about": description,
        "count": len(cut.ids),
        "unknown": cut.unknown,
        "tokens": tokens_and_ids,
        "groups": shared_characters(cut.raws[:SHOWN]),
        "lost": [
            i
            for i, (token, id) in enumerate(tokens_and_ids)
            if id is None or (of_words and token == UNK)
        ],
    }
