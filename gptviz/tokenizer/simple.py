"""Two tokenizers that are learnt in a second and explained in a minute, to compare BPE with.

Words: `gptviz.book.SimpleTokenizerV2` (chapter 2), with the special tokens of the notes on it: [BOS],
[EOS], [PAD] and [UNK]. Characters: the tokenizer of Karpathy's "Let's build GPT", which knows the characters
of one text and no other. Both are fitted on a text: the vocabulary is what occurs in it, sorted.
`Cut` is a text as one of several tokenizers cuts it.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

BOS = "[BOS]"
EOS = "[EOS]"
PAD = "[PAD]"
UNK = "[UNK]"
SPECIAL = (BOS, EOS, PAD, UNK)

# The book's: punctuation and double dashes stand alone, blanks only separate.
_SEPARATORS = re.compile(r"""([,.:;?_!"()']|--|\s)""")
_BLANK_BEFORE_PUNCTUATION = re.compile(r"""\s+([,.:;?!"()'])""")


def split_words(text: str) -> list[str]:
    """The words and punctuation marks of a text, without its blanks.

    >>> split_words("Hello, world!")
    ['Hello', ',', 'world', '!']
    """
    return [word for item in _SEPARATORS.split(text) if (word := item.strip())]


class WordTokenizer:
    """A token is a word or a punctuation mark; a word that the fitted text lacks becomes `[UNK]`.

    Ids are places in `vocabulary`: the words sorted, then [BOS], [EOS], [PAD], [UNK]. Blanks are
    lost: `decode` puts one space between words and none before punctuation.
    """

    def __init__(self, words: Iterable[str]) -> None:
        self.vocabulary = (*sorted(set(words) - set(SPECIAL)), *SPECIAL)
        self._ids = {word: id for id, word in enumerate(self.vocabulary)}

    @classmethod
    def fit(cls, text: str) -> "WordTokenizer":
        """The tokenizer that knows the words of this text."""
        return cls(split_words(text))

    def encode(
        self, text: str, special_tokens: bool = False, bos: bool = False, eos: bool = False
    ) -> list[int]:
        """Ids of the words. `[EOS]` as typed is an unknown word, unless `special_tokens` is True.

        `bos` and `eos` put [BOS] before and [EOS] after the text's own ids.
        """
        words = split_words(text)
        known = [word for word in words if special_tokens or word not in SPECIAL]
        ids = {word: self._ids[word] for word in known if word in self._ids}
        start = [self._ids[BOS]] * bos
        end = [self._ids[EOS]] * eos
        return start + [ids.get(word, self._ids[UNK]) for word in words] + end

    def decode(self, ids: Sequence[int]) -> str:
        """The words with single spaces. Raises ValueError for an id outside the vocabulary."""
        return _BLANK_BEFORE_PUNCTUATION.sub(r"\1", " ".join(_look_up(self.vocabulary, ids)))

    def pad(self, batch: Sequence[Sequence[int]]) -> list[list[int]]:
        """Rows of equal length, the shorter ones filled up with [PAD] at their end."""
        longest = max((len(ids) for ids in batch), default=0)
        return [[*ids, *[self._ids[PAD]] * (longest - len(ids))] for ids in batch]


class CharacterTokenizer:
    """A token is a character (a Unicode code point); one that the fitted text lacks has no id.

    >>> CharacterTokenizer("hello world").encode("hello")
    [3, 2, 4, 4, 5]
    """

    def __init__(self, characters: Iterable[str]) -> None:
        self.vocabulary = tuple(sorted(set(characters)))
        self._ids = {character: id for id, character in enumerate(self.vocabulary)}

    def known(self, character: str) -> bool:
        return character in self._ids

    def encode(self, text: str) -> list[int]:
        """Ids of the characters. Raises ValueError at one that is not in the vocabulary."""
        for place, character in enumerate(text):
            if character not in self._ids:
                raise ValueError(
                    f"The character {character!r} (place {place}) is not among the {len(self.vocabulary)} "
                    "that this tokenizer was fitted on; a character tokenizer has no id for it."
                )
        return [self._ids[character] for character in text]

    def decode(self, ids: Sequence[int]) -> str:
        """The text again, exactly. Raises ValueError for an id outside the vocabulary."""
        return "".join(_look_up(self.vocabulary, ids))


@dataclass(frozen=True)
class Cut:
    """A text as one tokenizer cuts it: the tokens as shown, and their ids (None: it has no id for that)."""

    tokenizer: str
    vocabulary: int
    tokens: tuple[str, ...]
    ids: tuple[int | None, ...]
    unknown: int  # tokens whose text is lost: [UNK], or no id at all
    raws: tuple[bytes, ...] = ()  # the tokens' bytes, where they may be parts of characters


def _look_up(vocabulary: Sequence[str], ids: Sequence[int]) -> list[str]:
    for id in ids:
        if not 0 <= id < len(vocabulary):
            raise ValueError(
                f"There is no token {id}; this tokenizer's ids are 0 to {len(vocabulary) - 1}."
            )
    return [vocabulary[id] for id in ids]
