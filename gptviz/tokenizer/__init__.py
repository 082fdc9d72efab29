"""Text to ids and back: encodings by name, and in the other modules how they came about."""

from gptviz.tokenizer.added import begins_of, nameless, needs_the_switch, typed_specials, words_of
from gptviz.tokenizer.encodings import (
    END_OF_TEXT,
    ENDS_OF_TEXT,
    GPT2_PATTERN,
    check_well_formed,
    encode,
    encoding_from_ranks,
    encoding_names,
    get_encoding,
    has_token,
    named_bytes,
    show_token,
    token_bytes,
    token_text,
    well_formed,
)

__all__ = [
    "ENDS_OF_TEXT",
    "END_OF_TEXT",
    "GPT2_PATTERN",
    "begins_of",
    "check_well_formed",
    "encode",
    "encoding_from_ranks",
    "encoding_names",
    "get_encoding",
    "has_token",
    "named_bytes",
    "nameless",
    "needs_the_switch",
    "show_token",
    "token_bytes",
    "token_text",
    "typed_specials",
    "well_formed",
    "words_of",
]
