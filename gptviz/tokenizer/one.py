"""One token of a vocabulary, however it is named."""

import operator
from collections.abc import Callable
from typing import SupportsIndex

import tiktoken

from gptviz.tokenizer.encodings import encode, show_token, token_bytes

OneToken = SupportsIndex | str  # its id, or its text
# what a logit is compared with, if not with another token's: see `gptviz.analysis.against`
MEAN = "mean"
Against = OneToken | None


def one_token(
    encoding: tiktoken.Encoding, vocab_size: int, token: OneToken, what: str = "token"
) -> int:
    """The id of a token given by its id, or by its text as it stands in a prompt (" mill", with the space).

    Raises ValueError for an id outside the vocabulary, for text that is not exactly one token (and says if
    it is with a space before it), and for what is neither; `what` names the argument there.
    """
    if isinstance(token, str):
        return _of_text(encoding, vocab_size, token, what)
    try:
        if isinstance(token, bool):
            token_id = None
        else:
            token_id = operator.index(token)
    except TypeError:  # of a number with a fraction, and of a tensor of many
        token_id = None
    if token_id is None:
        raise ValueError(f"{what} is {token!r}; give a token's id, or its text")
    if not 0 <= token_id < vocab_size:
        raise ValueError(f"{what} is {token_id}; the ids go from 0 to {vocab_size - 1}")
    return token_id


def both_ids(
    id_of: Callable[[OneToken, str], int], token: OneToken, against: Against = MEAN
) -> tuple[int, int | None]:
    """Both tokens as ids, by `id_of(token, what)`; None for the mean. Raises ValueError for no token."""
    if against is None or (isinstance(against, str) and against == MEAN):
        return id_of(token, "token"), None
    return id_of(token, "token"), id_of(against, "against")


def _of_text(encoding: tiktoken.Encoding, vocab_size: int, text: str, what: str) -> int:
    ids = encode(encoding, text)
    if not ids:
        raise ValueError(f"{what} is the empty text; give a token's id, or its text")
    if len(ids) != 1 or ids[0] >= vocab_size:
        pieces = ", ".join(show_token(token_bytes(encoding, i)) for i in ids[:8])
        spaced = f" {text.strip()}"
        hint = ""
        if spaced != text and len(encode(encoding, spaced)) == 1:
            hint = f"; {spaced!r} is one"
        raise ValueError(
            f"{what} is {text!r}, not one token of this model but {len(ids)}: {pieces}{hint}"
        )
    return ids[0]
