"""A text as a caller gives it, a string or token ids, becomes a list of ids that the model has."""

from collections.abc import Iterable, Sequence

import numpy as np
import torch

from gptviz.engine.index import whole_number
from gptviz.engine.loaded import Loaded

Text = str | Sequence[int]  # or its ids
HOW = "give a text, or a list of token ids such as lm.encode(text)"


def ids_of(lm: Loaded, text: str | Iterable[int], special_tokens: bool = False) -> list[int]:
    """The token ids, as plain ints; a (T,) tensor or array of whole numbers is taken, too.

    Raises ValueError for what is neither text nor ids, and for an id or a character that the model does not
    have. An empty text is none of its business.
    """
    ids = lm.encode(text, special_tokens) if isinstance(text, str) else token_ids(text)
    outside = [i for i in ids if not 0 <= i < lm.config.vocab_size]
    if outside and isinstance(text, str):  # a character model knows only the characters it was shown
        missing = next((c for c in text if set(lm.encode(c)) & set(outside)), "?")
        raise ValueError(f"{missing!r} in the text is none of {lm.name}'s {lm.config.vocab_size:,} tokens")
    if outside:
        raise ValueError(f"token id {outside[0]} given; {lm.name} has ids 0 to {lm.config.vocab_size - 1}")
    return ids


def token_ids(given: object) -> list[int]:
    """Whole numbers as plain ints, whether a model has them or not. Raises ValueError for anything else."""
    if isinstance(given, torch.Tensor | np.ndarray):
        if given.ndim != 1:
            raise ValueError(f"ids of shape {tuple(given.shape)} given; they must be one text's, (T,)")
        given = given.tolist()
    if isinstance(given, str | bytes | bytearray) or not isinstance(given, Iterable):
        raise ValueError(f"{given!r} given; {HOW}")
    ids = []
    for one in given:
        if (found := whole_number(one)) is None:
            raise ValueError(f"among the ids is {one!r}, which is no whole number; {HOW}")
        ids.append(found)
    return ids
