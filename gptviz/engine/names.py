"""Names of a model's tokens: each id as the screen shows it, and whether a text can contain it."""

from gptviz.engine.loaded import Loaded
from gptviz.tokenizer import has_token, named_bytes, show_token, token_bytes


def show_id(lm: Loaded, token_id: int) -> str:
    """A token of the vocabulary as the screen shows it.

    A model's matrix may be padded with rows that its tokenizer has no token for: they go by their number.
    """
    raw = named_bytes(lm.tokenizer, token_id)
    if is_named(lm, token_id):
        return show_token(raw)
    return raw.decode()


def is_named(lm: Loaded, token_id: int) -> bool:
    """Whether the tokenizer has a token of this id at all."""
    return has_token(lm.tokenizer, token_id)


def is_whole(lm: Loaded, token_id: int) -> bool:
    """Whether a text can end in this token: one of the tokenizer's, and no piece of a character."""
    try:
        token_bytes(lm.tokenizer, token_id).decode()
    except ValueError:  # a UnicodeDecodeError is one
        return False
    return is_named(lm, token_id)


def is_piece(lm: Loaded, token_id: int) -> bool:
    """Whether a token is some bytes that are no whole characters, shown as such: `\\xe4`."""
    return is_named(lm, token_id) and not is_whole(lm, token_id)
