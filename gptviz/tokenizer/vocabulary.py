"""Vocabulary: what a tiktoken.Encoding is made of, fitted to the size of a model.

tiktoken's encodings must be total: a byte that no token covers makes it panic. And every id that a
model can predict must have bytes, or its probability could not be shown. `encoding` fills both gaps.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from pathlib import Path

import tiktoken

from gptviz.tokenizer import get_encoding, nameless, well_formed, words_of
from gptviz.tokenizer.added import WiderEncoding, begins_of, composes, late_of
from gptviz.tokenizer.chat import NO_CHAT, Chat, chat_of
from gptviz.tokenizer.patterns import CHARACTERS, PATTERNS

# Models are padded to rounder numbers of tokens than their tokenizer has (50,304 for 50,257);
# a larger gap means that the two do not belong together.
MOST_UNUSED = 1024
GPT2_SIZE = 50257

KINDS = ("words", "late", "implied")  # of special tokens, as Vocabulary has them

# More than any tokenizer known has. tiktoken makes one regex of all special tokens: 5 million characters of
# them take it 19 seconds and 2 GB.
MOST_TOKENS = 2**19
LONGEST_TOKEN = 1024
SPECIAL_CHARACTERS = 2**17

MOST_NAMED = 5  # tokens in a sentence


class Surplus(ValueError):
    """The tokenizer has added tokens that the model has no row for."""


@dataclass(frozen=True)
class Vocabulary:
    """A regex that cuts text into pieces, every token's bytes with its id, and the special tokens.

    As in tiktoken, the lower id of two possible merges is merged first. `words` are the special tokens that
    are tokens in every text, `late` those that are looked for after the others; `nfc` and `begins` are what is
    done to a text first: see `WiderEncoding`. `implied` are the special tokens that no file names: a model that
    has no row for them has none of them. `chat` is what came for chats, and changes no id. Raises
    ValueError for more or longer tokens than can be worked with, and for one of no bytes, which tiktoken
    would find for ever.
    """

    pattern: str
    ranks: dict[bytes, int]
    special: dict[str, int] = field(default_factory=dict)
    words: frozenset[str] = frozenset()
    late: frozenset[str] = frozenset()
    implied: frozenset[str] = frozenset()
    nfc: bool = False
    begins: tuple[int, ...] = ()
    chat: Chat = field(default=NO_CHAT, compare=False)

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
            raise ValueError(
                f"the special tokens have more than {SPECIAL_CHARACTERS:,} characters together"
            )

    @property
    def size(self) -> int:
        """One more than the highest id."""
        return max([*self.ranks.values(), *self.special.values()]) + 1

    @property
    def has_each_id_once(self) -> bool:
        """Whether every id is of one token; a special token may be one of the others, too."""
        own_ids = [
            id
            for name, id in self.special.items()
            if self.ranks.get(name.encode("utf-8", "replace")) != id
        ]
        ids = [*self.ranks.values(), *own_ids]
        return len(set(ids)) == len(ids)

    def without(self, names: Collection[str]) -> "Vocabulary":
        """The same vocabulary without these special tokens."""
        special = {name: id for name, id in self.special.items() if name not in names}
        kinds = {kind: getattr(self, kind) - set(names) for kind in KINDS}
        begins = tuple(id for id in self.begins if id in special.values())
        return replace(self, special=special, begins=begins, **kinds)


def of_encoding(encoding: tiktoken.Encoding) -> Vocabulary:
    """The vocabulary of an encoding (by its private attributes, as tiktoken's own README extends one)."""
    ranks = encoding._mergeable_ranks
    special = encoding._special_tokens
    return Vocabulary(
        encoding._pat_str,
        ranks,
        special,
        words_of(encoding),
        late_of(encoding),
        nfc=composes(encoding),
        begins=begins_of(encoding),
    )


def is_gpt2(vocabulary: Vocabulary) -> bool:
    """Whether it is GPT-2's own; GPT-2's is only looked up for one of its size."""
    return vocabulary.size == GPT2_SIZE and vocabulary == of_encoding(get_encoding("gpt2"))


def fitted(vocabulary: Vocabulary, name: str, vocab_size: int) -> tiktoken.Encoding:
    """An encoding for a model that has `vocab_size` tokens.

    Ids of the model that the vocabulary does not use become special tokens `<id 50257>`. Bytes
    that no token covers get ids from `vocab_size` on, which the model refuses by saying so. Raises
    ValueError for a vocabulary that is larger than the model, or far smaller; see `without_surplus`, too.
    """
    vocabulary = without_surplus(vocabulary, vocab_size)
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
        raise ValueError(
            f"the special token {broken[0]!r} has half of a surrogate pair: no text can hold it"
        )
    special = {nameless(id): id for id in range(vocab_size) if id not in used} | vocabulary.special
    uncovered = (byte for value in range(256) if (byte := bytes([value])) not in vocabulary.ranks)
    ranks = vocabulary.ranks | {byte: id for id, byte in enumerate(uncovered, start=vocab_size)}
    beside = {name: getattr(vocabulary, name) for name in ("words", "late", "nfc", "begins")}
    if not any(beside.values()):
        return tiktoken.Encoding(
            name, pat_str=vocabulary.pattern, mergeable_ranks=ranks, special_tokens=special
        )
    return WiderEncoding(
        name, pat_str=vocabulary.pattern, mergeable_ranks=ranks, special_tokens=special, **beside
    )


def without_surplus(
    vocabulary: Vocabulary, vocab_size: int, drop_surplus: bool = False
) -> Vocabulary:
    """Leave out the added tokens that a model of this size has no row for.

    Raises Surplus for those that a file names, unless `drop_surplus` is True.
    """
    surplus = {name: id for name, id in vocabulary.special.items() if id >= vocab_size}
    if not surplus or max(vocabulary.ranks.values(), default=0) >= vocab_size:
        return vocabulary  # of more than added tokens too many, it is another model's
    brought = sorted(surplus.keys() - vocabulary.implied, key=surplus.__getitem__)
    if brought and not drop_surplus:
        shown = ", ".join(f"{name[:40]!r} ({surplus[name]})" for name in brought[:MOST_NAMED])
        and_more = ""
        if len(brought) > MOST_NAMED:
            and_more = f" and {len(brought) - MOST_NAMED:,} more"
        raise Surplus(
            f"the tokenizer has added tokens that the model has no row for: {shown}{and_more}. The model's "
            f"ids end at {vocab_size - 1:,}, as they do where the embedding was not resized for added tokens"
        )
    return vocabulary.without(surplus)


def of_characters(characters: dict[str, int]) -> Vocabulary:
    """One token a character, as nanoGPT's character models have; pieces are single characters.

    Raises ValueError for a table whose ids are not 0, 1, 2, ... or whose keys are not characters.
    """
    if not characters or sorted(characters.values()) != list(range(len(characters))):
        raise ValueError(
            f"the {len(characters)} characters must have the ids 0, 1, 2, ..., each once"
        )
    for character in characters:
        if len(character) != 1 or 0xD800 <= ord(character) <= 0xDFFF:
            raise ValueError(f"{character!r} is not one character")
    return Vocabulary(CHARACTERS, {character.encode(): id for character, id in characters.items()})


def save_vocabulary(vocabulary: Vocabulary, path: Path) -> None:
    """Write as JSON the name of its pattern, tokens in base64 with their ids, special ones, and the rest.

    Raises ValueError for a pattern without a name: no file is trusted with a regex of its own.
    """
    names = [name for name, pattern in PATTERNS.items() if pattern == vocabulary.pattern]
    if not names:
        raise ValueError(f"the pattern {vocabulary.pattern!r} has no name; there are {[*PATTERNS]}")
    ranks = {b64encode(token).decode(): id for token, id in vocabulary.ranks.items()}
    saved = {
        "pattern": names[0],
        "ranks": ranks,
        "special": vocabulary.special,
        "nfc": vocabulary.nfc,
        "begins": vocabulary.begins,
        "chat": vocabulary.chat.to_dict(),
    }
    saved |= {kind: sorted(getattr(vocabulary, kind)) for kind in KINDS}
    path.write_text(json.dumps(saved), encoding="utf-8")


def read_vocabulary(path: Path) -> Vocabulary:
    """Read what `save_vocabulary` wrote.

    Raises ValueError for anything else, at a cost of the file's size.
    """
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
        ranks = {b64decode(token, validate=True): id for token, id in saved["ranks"].items()}
        special = dict(saved["special"])
        pattern = PATTERNS[saved["pattern"]]
        words, late, implied = (frozenset(saved.get(kind, ())) for kind in KINDS)
        nfc = saved["nfc"] is True
        begins = tuple(saved["begins"])
        said = saved.get("chat", {})
        not_read = str(said.get("not_read", ""))[:LONGEST_TOKEN]
        chat = chat_of(said.get("templates"), said.get("tokens", {}), not_read)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path} is no vocabulary: {type(error).__name__}") from None
    ids = [*ranks.values(), *special.values()]
    if not ids or any(type(id) is not int or id < 0 for id in ids):
        raise ValueError(f"{path}: the ids must be whole numbers from 0 on, each once")
    if any(not kind <= special.keys() for kind in (words, late, implied)):
        raise ValueError(f"{path}: a kind of special tokens has others than there are")
    if any(id not in special.values() for id in begins):
        raise ValueError(f"{path}: a text begins with {begins}, and not all are special tokens")
    vocabulary = Vocabulary(pattern, ranks, special, words, late, implied, nfc, begins, chat)
    if not vocabulary.has_each_id_once:
        raise ValueError(f"{path}: the ids must be whole numbers from 0 on, each once")
    return vocabulary
