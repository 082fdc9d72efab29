"""A text as a caller gives it, a string or token ids, becomes a list of ids that the model has."""

from collections.abc import Iterable, Sequence

from gptviz.engine.index import of_kind
from gptviz.engine.loaded import Loaded
from gptviz.engine.tokens import IDS, token_ids

Text = str | Sequence[int]  # or its ids


def ids_of(lm: Loaded, text: str | Iterable[int], special_tokens: bool = False) -> list[int]:
    """The token ids, as plain ints; a (T,) tensor or array of whole numbers is taken, too.

    Raises ValueError for what is neither text nor ids, and for an id or a character that the model does not
    have. An empty text gives an empty list.
    """
    of_kind("lm", lm, Loaded, "give a model: gptviz.load(...), or gptviz.wrap(...) of your own")
    if isinstance(text, str):
        ids = lm.encode(text, special_tokens)
    else:
        ids = token_ids(text, "text", f"give a text, or {IDS}")
    outside = [i for i in ids if not 0 <= i < lm.config.vocab_size]
    # a character model knows only the characters it was shown
    if outside and isinstance(text, str):
        missing = next((c for c in text if set(lm.encode(c, begin=False)) & set(outside)), "?")
        raise ValueError(
            f"{missing!r} in the text is none of {lm.name}'s {lm.config.vocab_size:,} tokens"
        )
    if outside:
        raise ValueError(
            f"token id {outside[0]} given; {lm.name} has ids 0 to {lm.config.vocab_size - 1}"
        )
    return ids
