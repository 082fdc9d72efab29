"""Which tokens stand for one character together: its UTF-8 bytes may lie in several of them."""

from codecs import getincrementaldecoder
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass


@dataclass(frozen=True)
class Group:
    """Neighbouring tokens, from `start` to before `stop`, whose bytes together are whole characters.

    `text` is what they are together. A token that is whole by itself is a group of one. Where bytes are no
    UTF-8 at all, `text` is None, and every token is a group of its own.
    """

    start: int
    stop: int
    text: str | None

    @property
    def positions(self) -> range:
        return range(self.start, self.stop)


def character_groups(raws: Sequence[bytes]) -> list[Group]:
    """The tokens of a text, whose bytes are `raws`, as groups in their order; every token is in exactly one.

    A group is as small as whole characters allow: neighbours are together only where a character spans
    the border between them.
    """
    groups: list[Group] = []
    while (start := groups[-1].stop if groups else 0) < len(raws):
        group = Group(start, start + 1, None)
        text = ""
        decoder = getincrementaldecoder("utf-8")()
        with suppress(UnicodeDecodeError):  # broken, whatever may follow
            for stop in range(start + 1, len(raws) + 1):
                text += decoder.decode(raws[stop - 1])
                if decoder.getstate() == (b"", 0):  # no character is open
                    group = Group(start, stop, text)
                    break
        groups.append(group)
    return groups
