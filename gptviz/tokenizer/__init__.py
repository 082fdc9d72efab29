"""Text to ids and back: encodings by name, and in the other modules how they came about."""

from gptviz.tokenizer.encodings import (
    END_OF_TEXT,
    GPT2_PATTERN,
    encode,
    encoding_from_ranks,
    encoding_names,
    get_encoding,
    show_token,
    token_bytes,
    well_formed,
)

__all__ = [
    "END_OF_TEXT",
    "GPT2_PATTERN",
    "encode",
    "encoding_from_ranks",
    "encoding_names",
    "get_encoding",
    "show_token",
    "token_bytes",
    "well_formed",
]
