"""Added tokens: names that are looked up in a text before anything of it is cut or merged.

Special ones, as `<|endoftext|>`, are text unless special tokens are asked for. Words are always tokens, as
in Hugging Face's files an added token whose "special" is false.
"""

import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from typing import Any
from weakref import WeakKeyDictionary

import tiktoken


class WiderEncoding(tiktoken.Encoding):
    """An encoding that does what Hugging Face's do to a text beside cutting and merging it.

    Some of its `special_tokens` are `words`, which are tokens in every text. `late` ones are looked for in what
    the others have left, as Hugging Face's "normalized" tokens are. With `nfc` that is composed first: an
    e and its accent become one character. `begins` are the ids that a model is given before every text.
    """

    def __init__(
        self,
        *args: Any,
        words: Iterable[str] = (),
        late: Iterable[str] = (),
        nfc: bool = False,
        begins: Iterable[int] = (),
        **how: Any,
    ):
        super().__init__(*args, **how)
        self.words = frozenset(words)
        self.late = frozenset(late)
        self.nfc = nfc
        self.begins = tuple(begins)

    def __getstate__(self) -> object:
        state = super().__getstate__()
        if isinstance(state, dict):
            own = {"words": self.words, "late": self.late, "nfc": self.nfc, "begins": self.begins}
            return {**state, **own}
        return state


def words_of(encoding: tiktoken.Encoding) -> frozenset[str]:
    """The added tokens that are tokens in every text."""
    if isinstance(encoding, WiderEncoding):
        return encoding.words
    return frozenset()


def late_of(encoding: tiktoken.Encoding) -> frozenset[str]:
    """The added tokens that are looked for after the others, in the text between those."""
    if isinstance(encoding, WiderEncoding):
        return encoding.late
    return frozenset()


def composes(encoding: tiktoken.Encoding) -> bool:
    """Whether a text is composed before it is cut (`nfc`)."""
    return isinstance(encoding, WiderEncoding) and encoding.nfc


def begins_of(encoding: tiktoken.Encoding) -> tuple[int, ...]:
    """The ids that the model is given before every text, as Llama 3's `<|begin_of_text|>`."""
    if isinstance(encoding, WiderEncoding):
        return encoding.begins
    return ()


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
    """(start, part, whether it is an added token) for the whole text; `start` is a place in it as it is read.

    As in Hugging Face's tokenizers, the leftmost is found first, and of several there the longest; the text
    of one that is not wanted here hides what stands inside of it. What stands between two is composed by
    itself, where the tokenizer does that, before the `late` ones are looked for.
    """
    wanted = words_of(encoding)
    if special_tokens:
        wanted = frozenset(typed_specials(encoding))
    finders = _finders(encoding)
    parts = _found(finders.early, [(text, False)], wanted)
    if composes(encoding):
        parts = [(part if is_token else composed(part), is_token) for part, is_token in parts]
    parts = _found(finders.late, parts, wanted)
    starts = accumulate((len(part) for part, _ in parts), initial=0)
    return [(start, part, is_token) for start, (part, is_token) in zip(starts, parts, strict=False)]


def composed(text: str) -> str:
    """The text in Unicode's form NFC, as the `tokenizers` library makes it.

    That knows the Unicode of 2017: a mark that is younger stands between two texts.
    """
    parts = YOUNGER.split(text)
    return "".join(unicodedata.normalize("NFC", part) for part in parts)


# the marks, and a vowel of two, that came after Unicode 10; in a group, so that `split` keeps them
YOUNGER = re.compile(
    "([\u07fd\u0897-\u089f\u08ca-\u08d3\u09fe\u0c3c\u0d3b\u0d3c\u0eba\u1715\u1abf-\u1ace\u1df6-\u1dfa\ua82c"
    "\U00010d24-\U00010d27\U00010eab\U00010eac\U00010f46-\U00010f50\U00010f82-\U00010f85\U00011070"
    "\U0001133b\U0001145e\U00011839\U0001183a\U00011930\U00011935\U00011938\U0001193d\U0001193e\U00011943"
    "\U000119e0\U00011a34\U00011a47\U00011a99\U00011d42\U00011d44\U00011d45\U00011d97\U00016ff0\U00016ff1"
    "\U0001e130-\U0001e136\U0001e2ae\U0001e2ec-\U0001e2ef"
    # of Unicode 15 and 16, which newer versions of Python know
    "\u0897\U000105c0-\U000105ff\U00010d40-\U00010d8f\U00010ec2-\U00010eff\U00011380-\U000113ff"
    "\U00011f00-\U00011f5f\U00016100-\U0001613f\U00016d40-\U00016d7f\U0001e08f\U0001e4d0-\U0001e4ff"
    "\U0001e5d0-\U0001e5ff])"
)


def _found(
    finder: "_Finder | None", parts: list[tuple[str, bool]], wanted: Collection[str]
) -> list[tuple[str, bool]]:
    """The parts, with those that are no tokens cut at the wanted names of a finder."""
    if finder is None or not wanted:
        return parts
    cut: list[tuple[str, bool]] = []
    for part, is_token in parts:
        if is_token:
            cut.append((part, True))
        else:
            cut += finder.cut(part, wanted)
    return cut


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

    def cut(self, text: str, wanted: Collection[str]) -> Iterator[tuple[str, bool]]:
        """Yield the parts of a text and whether each is a wanted name, those that are empty left out."""
        position = 0
        for first, last in self.find(text):
            if text[first:last] not in wanted:
                continue
            if position < first:
                yield text[position:first], False
            yield text[first:last], True
            position = last
        if position < len(text):
            yield text[position:], False


@dataclass(frozen=True)
class _Finders:
    """For the names that are looked for first, and for the late ones; None where there are none."""

    early: _Finder | None
    late: _Finder | None


_known: WeakKeyDictionary[tiktoken.Encoding, _Finders] = WeakKeyDictionary()


def _finders(encoding: tiktoken.Encoding) -> _Finders:
    finders = _known.get(encoding)
    if finders is None:
        names = typed_specials(encoding)
        late = names & late_of(encoding)
        finders = _Finders(_finder(names - late), _finder(late))
        _known[encoding] = finders
    return finders


def _finder(names: set[str]) -> _Finder | None:
    if not names:
        return None
    lengths: dict[str, set[int]] = {}
    for name in names:
        lengths.setdefault(name[0], set()).add(len(name))
    first = re.compile(f"[{''.join(map(re.escape, lengths))}]")
    ordered = {character: sorted(sizes, reverse=True) for character, sizes in lengths.items()}
    return _Finder(frozenset(names), first, ordered)
