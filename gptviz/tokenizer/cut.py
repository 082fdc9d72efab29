"""A text as one of several tokenizers cuts it."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Cut:
    """A text as one tokenizer cuts it: the tokens as shown, and their ids (None: it has no id for that)."""

    tokenizer: str
    vocabulary: int
    tokens: tuple[str, ...]
    ids: tuple[int | None, ...]
    unknown: int  # tokens whose text is lost: [UNK], or no id at all
    raws: tuple[bytes, ...] = ()  # the tokens' bytes, where they may be parts of characters
