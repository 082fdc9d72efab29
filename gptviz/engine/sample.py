"""The sample: some pages of five books that the bundled model was never trained on, to look things up in.

`assets/text/held_out.txt` holds the beginnings of Ethan Frome (1911), Persuasion (1818), The Hound of the
Baskervilles (1902), The Time Machine (1895) and The Wind in the Willows (1908), all in the public domain in
the United States. They are of the books that `gptviz.training` holds out, its tokenizer included.
`held_out_more.txt` goes on where each of them ends: 40 kB together, for what is said of a model in general.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "assets" / "text"
FILE = FOLDER / "held_out.txt"
MORE = FOLDER / "held_out_more.txt"

WINDOW = 256  # tokens that a model reads at once, if its context has them
MOST_WINDOWS = 24  # of a model with a tiny context no more than so many are read


@dataclass(frozen=True)
class Passage:
    title: str
    author: str
    year: int
    text: str


@dataclass(frozen=True)
class Window:
    """Tokens of a passage that are read in one pass."""

    title: str
    ids: tuple[int, ...]


@cache
def passages() -> tuple[Passage, ...]:
    """The beginnings of the five books."""
    return _read(FILE)


@cache
def long_passages() -> tuple[Passage, ...]:
    """The five passages, each with the pages after it."""
    return tuple(
        replace(passage, text=f"{passage.text}\n\n{following.text}")
        for passage, following in zip(passages(), _read(MORE), strict=True)
    )


def _read(file: Path) -> tuple[Passage, ...]:
    parts = re.split(r"^== (.*) \((.*), (\d{4})\)\n\n", file.read_text("utf-8"), flags=re.MULTILINE)[1:]
    return tuple(
        Passage(title, author, int(year), text.strip())
        for title, author, year, text in zip(*(parts[i::4] for i in range(4)), strict=True)
    )


def windows(
    encode: Callable[[str], Sequence[int]],
    context: int,
    of: Sequence[Passage] | None = None,
    most: int = MOST_WINDOWS,
) -> tuple[list[Window], int]:
    """The sample in windows of at most `WINDOW` tokens (or the context), and how many tokens it has in all.

    `of` are the passages, `passages()` if not given. A window of a single token is left out, since nothing
    stands before it; so is what is beyond `most`.
    """
    size = min(WINDOW, context)
    all_windows = []
    tokens = 0
    for passage in passages() if of is None else of:
        ids = tuple(encode(passage.text))
        tokens += len(ids)
        all_windows += [Window(passage.title, ids[i : i + size]) for i in range(0, len(ids), size)]
    return [window for window in all_windows if len(window.ids) > 1][:most], tokens
