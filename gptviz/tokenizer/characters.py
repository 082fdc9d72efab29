"""Which tokens stand for one character together: its UTF-8 bytes may lie in several of them."""

from collections.abc import Iterator, Sequence
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
    return list(_groups(raws))


def _groups(raws: Sequence[bytes]) -> Iterator[Group]:
    start = 0
    while start < len(raws):
        raw, stop = b"", start
        while stop < len(raws):
            raw += raws[stop]
            stop += 1
            text, whole = _decoded(raw)
            if whole or text is None:  # complete, or broken whatever may follow
                break
        text, whole = _decoded(raw)
        if not whole:
            stop, text = start + 1, None
        yield Group(start, stop, text)
        start = stop


def _decoded(raw: bytes) -> tuple[str | None, bool]:
    """(text, True) if whole, ("", False) if more bytes may complete it, (None, False) if none can."""
    try:
        return raw.decode(), True
    except UnicodeDecodeError as error:
        open_end = error.reason == "unexpected end of data" and error.end == len(raw)
        return ("" if open_end else None), False
