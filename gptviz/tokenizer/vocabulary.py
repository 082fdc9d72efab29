"""Vocabulary: what a tiktoken.Encoding is made of, fitted to the size of a model.

tiktoken's encodings must be total: a byte that no token covers makes it panic. And every id that a
model can predict must have bytes, or its probability could not be shown. `encoding` fills both gaps.
"""

import json
from base64 import b64decode, b64encode
from dataclasses import dataclass, field
from pathlib import Path

import tiktoken

from gptviz.tokenizer import GPT2_PATTERN, get_encoding, nameless, well_formed

# Models are padded to rounder numbers of tokens than their tokenizer has (50,304 for 50,257);
# a larger gap means that the two do not belong together.
MOST_UNUSED = 1024
GPT2_SIZE = 50257

CHARACTERS = r"(?s:.)"  # every character is a piece

# More than any tokenizer known has. tiktoken makes one regex of all special tokens: 5 million characters of
# them take it 19 seconds and 2 GB.
MOST_TOKENS, LONGEST_TOKEN, SPECIAL_CHARACTERS = 2**19, 1024, 2**17


@dataclass(frozen=True)
class Vocabulary:
    """A regex that cuts text into pieces, every token's bytes with its id, and the special tokens.

    As in tiktoken, the lower id of two possible merges is merged first. Raises ValueError for more or longer
    tokens than can be worked with, and for one of no bytes, which tiktoken would find for ever.
    """

    pattern: str
    ranks: dict[bytes, int]
    special: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        count = len(self.ranks) + len(self.special)
        if count > MOST_TOKENS:
            raise ValueError(f"the vocabulary has {count:,} tokens; at most {MOST_TOKENS:,} work")
        for tokens in (self.ranks, self.special):
            if not all(tokens):
                raise ValueError("a token is the empty text, which stands everywhere in every text")
            longest = max(map(len, tokens), default=0)
            if longest > LONGEST_TOKEN:
                raise ValueError(f"a token is {longest:,} long; at most {LONGEST_TOKEN:,} work")
        if sum(map(len, self.special)) > SPECIAL_CHARACTERS:
            raise ValueError(f"the special tokens have more than {SPECIAL_CHARACTERS:,} characters together")

    @property
    def size(self) -> int:
        """One more than the highest id."""
        return max([*self.ranks.values(), *self.special.values()]) + 1


def of_encoding(encoding: tiktoken.Encoding) -> Vocabulary:
    """The vocabulary of an encoding (by its private attributes, as tiktoken's own README extends one)."""
    return Vocabulary(encoding._pat_str, encoding._mergeable_ranks, encoding._special_tokens)


def is_gpt2(vocabulary: Vocabulary) -> bool:
    """Return whether it is GPT-2's own; GPT-2's is only looked up for one of its size."""
    return vocabulary.size == GPT2_SIZE and vocabulary == of_encoding(get_encoding("gpt2"))


def fitted(vocabulary: Vocabulary, name: str, vocab_size: int) -> tiktoken.Encoding:
    """An encoding for a model that has `vocab_size` tokens.

    Ids of the model that the vocabulary does not use become special tokens `<id 50257>`. Bytes
    that no token covers get ids from `vocab_size` on, which the model refuses by saying so. Raises
    ValueError for a vocabulary that is larger than the model, or far smaller.
    """
    if vocabulary.size > vocab_size or vocab_size - vocabulary.size > MOST_UNUSED:
        raise ValueError(
            f"the tokenizer has {vocabulary.size:,} tokens, the model {vocab_size:,}: "
            "they do not belong together"
        )
    if vocab_size == vocabulary.size and is_gpt2(vocabulary):
        return get_encoding("gpt2")
    used = {*vocabulary.ranks.values(), *vocabulary.special.values()}
    broken = [token for token in vocabulary.special if well_formed(token) != token]
    if broken:
        raise ValueError(f"the special token {broken[0]!r} has half of a surrogate pair: no text can hold it")
    special = {nameless(id): id for id in range(vocab_size) if id not in used} | vocabulary.special
    uncovered = (byte for value in range(256) if (byte := bytes([value])) not in vocabulary.ranks)
    ranks = vocabulary.ranks | {byte: id for id, byte in enumerate(uncovered, start=vocab_size)}
    return tiktoken.Encoding(name, pat_str=vocabulary.pattern, mergeable_ranks=ranks, special_tokens=special)


def of_characters(characters: dict[str, int]) -> Vocabulary:
    """One token a character, as nanoGPT's character models have; pieces are single characters.

    Raises ValueError for a table whose ids are not 0, 1, 2, ... or whose keys are not characters.
    """
    if not characters or sorted(characters.values()) != list(range(len(characters))):
        raise ValueError(f"the {len(characters)} characters must have the ids 0, 1, 2, ..., each once")
    for character in characters:
        if len(character) != 1 or 0xD800 <= ord(character) <= 0xDFFF:
            raise ValueError(f"{character!r} is not one character")
    return Vocabulary(CHARACTERS, {character.encode(): id for character, id in characters.items()})


def save_vocabulary(vocabulary: Vocabulary, path: Path) -> None:
    """Write it as JSON: whether it is of characters, its tokens in base64 with their ids, special ones."""
    ranks = {b64encode(token).decode(): id for token, id in vocabulary.ranks.items()}
    saved = {"characters": vocabulary.pattern == CHARACTERS, "ranks": ranks, "special": vocabulary.special}
    path.write_text(json.dumps(saved), encoding="utf-8")


def read_vocabulary(path: Path) -> Vocabulary:
    """Return what `save_vocabulary` wrote.

    Raises ValueError for anything else, at a cost of the file's size.
    """
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
        ranks = {b64decode(token, validate=True): id for token, id in saved["ranks"].items()}
        special = dict(saved["special"])
        pattern = CHARACTERS if saved["characters"] else GPT2_PATTERN
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path} is no vocabulary: {type(error).__name__}") from None
    ids = [*ranks.values(), *special.values()]
    if not ids or any(type(id) is not int or id < 0 for id in ids) or len(set(ids)) < len(ids):
        raise ValueError(f"{path}: the ids must be whole numbers from 0 on, each once")
    return Vocabulary(pattern, ranks, special)
