"""Added tokens: names that are looked up in a text before anything of it is cut or merged.

Special ones, as `<|endoftext|>`, are text unless special tokens are asked for. Words are always tokens, as
in Hugging Face's files an added token whose "special" is false.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import tiktoken


class EncodingWithWords(tiktoken.Encoding):
    """An encoding some of whose `special_tokens` are words, which are tokens in every text.

    `late` ones are looked for in what the others have left, as Hugging Face's "normalized" tokens are.
    """

    def __init__(self, *args: Any, words: Iterable[str], late: Iterable[str], **how: Any):
        super().__init__(*args, **how)
        self.words = frozenset(words)
        self.late = frozenset(late)

    def __getstate__(self) -> object:
        state = super().__getstate__()
        if isinstance(state, dict):
            return {**state, "words": self.words, "late": self.late}
        return state


def words_of(encoding: tiktoken.Encoding) -> frozenset[str]:
    """The added tokens that are tokens in every text."""
    if isinstance(encoding, EncodingWithWords):
        return encoding.words
    return frozenset()


def late_of(encoding: tiktoken.Encoding) -> frozenset[str]:
    """The added tokens that are looked for after the others, in the text between those."""
    if isinstance(encoding, EncodingWithWords):
        return encoding.late
    return frozenset()


def nameless(id: int) -> str:
    """The text for an id that the tokenizer has no token for: `<id 50300>`, everywhere.

    A model's matrices may be padded with such rows (nanoGPT's have 50,304 for GPT-2's 50,257), and
    now and then one of them is drawn.
    """
    return f"<id {id}>"


def typed_specials(encoding: tiktoken.Encoding) -> set[str]:
    """The added tokens that a text can hold: `nameless` ids stand for nothing that could be typed."""
    return {name for name, id in encoding._special_tokens.items() if name != nameless(id)}


def needs_the_switch(encoding: tiktoken.Encoding, id: int) -> bool:
    """Whether this token can be typed only while special tokens are read: it is one, and no word."""
    if not encoding.is_special_token(id):
        return False
    return encoding.decode_single_token_bytes(id).decode() not in words_of(encoding)


def split(
    encoding: tiktoken.Encoding, text: str, special_tokens: bool
) -> list[tuple[int, str, bool]]:
    """(start, part, whether it is an added token) for the whole text.

    As in Hugging Face's tokenizers, the leftmost is found first, and of several there the longest; the text
    of one that is not wanted here hides what stands inside of it.
    """
    words = words_of(encoding)
    parts = [(0, text, False)]
    if not special_tokens and not words:
        return parts
    for finder in _finders(encoding):
        cut: list[tuple[int, str, bool]] = []
        for start, part, is_token in parts:
            if is_token:
                cut.append((start, part, True))
            else:
                cut += finder.cut(part, start, None if special_tokens else words)
        parts = cut
    return parts


@dataclass(frozen=True)
class _Finder:
    """Finds the longest of some names at each place of a text; how many there are costs no time."""

    names: frozenset[str]
    first: re.Pattern[str]  # a character that one of them begins with
    lengths: dict[str, list[int]]  # of the names that begin with this character, the longest first

    def find(self, text: str) -> Iterator[tuple[int, int]]:
        position = 0
        while (match := self.first.search(text, position)) is not None:
            start = match.start()
            position = start + 1
            for length in self.lengths[match[0]]:
                if text[start : start + length] in self.names:
                    position = start + length
                    yield start, position
                    break

    def cut(
        self, text: str, start: int, wanted: Collection[str] | None
    ) -> Iterator[tuple[int, str, bool]]:
        """Yield the parts of a text that begins at `start` of a longer one, those that are empty left out."""
        position = 0
        for first, last in self.find(text):
            if wanted is not None and text[first:last] not in wanted:
                continue
            if position < first:
                yield start + position, text[position:first], False
            yield start + first, text[first:last], True
            position = last
        if position < len(text):
            yield start + position, text[position:], False


_known: WeakKeyDictionary[tiktoken.Encoding, list[_Finder]] = WeakKeyDictionary()


def _finders(encoding: tiktoken.Encoding) -> list[_Finder]:
    """A finder for the names that are looked for first, and one for the late ones, if there are any."""
    finders = _known.get(encoding)
    if finders is None:
        names = typed_specials(encoding)
        late = names & late_of(encoding)
        finders = [_finder(group) for group in (names - late, late) if group]
        _known[encoding] = finders
    return finders


def _finder(names: set[str]) -> _Finder:
    lengths: dict[str, set[int]] = {}
    for name in names:
        lengths.setdefault(name[0], set()).add(len(name))
    first = re.compile(f"[{''.join(map(re.escape, lengths))}]")
    ordered = {character: sorted(sizes, reverse=True) for character, sizes in lengths.items()}
    return _Finder(frozenset(names), first, ordered)
