"""Token: one of a text, as a reader sees it and as it is."""

from collections.abc import Iterable
from dataclasses import dataclass

import tiktoken

from gptviz.tokenizer import named_bytes


@dataclass(frozen=True)
class Token:
    """A token of the prompt. `raw` is its bytes; `text` is them decoded, with U+FFFD where that fails."""

    position: int
    id: int
    text: str
    raw: bytes


def tokens_of(tokenizer: tiktoken.Encoding, ids: Iterable[int], first: int = 0) -> list[Token]:
    """The tokens with their positions, from `first` on, text and bytes; `<id N>` if an id has none."""
    raws = [named_bytes(tokenizer, i) for i in ids]
    return [
        Token(p, i, raw.decode("utf-8", "replace"), raw)
        for p, (i, raw) in enumerate(zip(ids, raws, strict=True), first)
    ]
