"""Token: a token of a text, with its bytes and the text that a reader sees."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import tiktoken
import torch

from gptviz.engine.index import listed, whole_number
from gptviz.tokenizer import named_bytes, show_token, token_text

IDS = "a list of token ids, such as lm.encode(text)"


@dataclass(frozen=True)
class Token:
    """A token of the prompt. `raw` is its bytes.

    `text` is them decoded, with `\\x` and two digits for each byte that is no whole character.
    """

    position: int
    id: int
    text: str
    raw: bytes

    @property
    def shown(self) -> str:
        """The token's name in tables and on the screen: see `show_token`."""
        return show_token(self.raw)


def tokens_of(tokenizer: tiktoken.Encoding, ids: Iterable[int], first: int = 0) -> list[Token]:
    """The tokens with their positions, from `first` on, text and bytes; `<id N>` if an id has none."""
    raws = [named_bytes(tokenizer, i) for i in ids]
    return [
        Token(p, i, token_text(raw), raw)
        for p, (i, raw) in enumerate(zip(ids, raws, strict=True), first)
    ]


def token_ids(given: object, what: str = "ids", do: str = f"give {IDS}") -> list[int]:
    """Whole numbers as plain ints, whether a model has them or not. Raises ValueError for anything else,
    which names `what` was given and says what to `do`.
    """
    if isinstance(given, torch.Tensor | np.ndarray):
        if given.ndim != 1:
            raise ValueError(
                f"ids of shape {tuple(given.shape)} given; they must be one text's, (T,)"
            )
        given = given.tolist()
    ids = []
    for item in listed(what, given, do):
        if (number := whole_number(item)) is None:
            raise ValueError(f"among the ids is {item!r}, which is no whole number; {do}")
        ids.append(number)
    return ids
