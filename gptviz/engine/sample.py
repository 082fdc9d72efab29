"""The sample: some pages of five books that the bundled model was never trained on.

Whatever is measured over many texts, such as the mean of a site, is measured on them.
`assets/text/held_out.txt` holds the beginnings of Ethan Frome (1911), Persuasion (1818), The Hound of the
Baskervilles (1902), The Time Machine (1895) and The Wind in the Willows (1908), all in the public domain in
the United States. They are of the books that `gptviz.training` holds out, its tokenizer included.
`held_out_more.txt` has the pages after each of them; both together are 40 kB, for measurements that need
more.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "assets" / "text"
FILE = FOLDER / "held_out.txt"
MORE = FOLDER / "held_out_more.txt"

# the number of tokens that are read in one pass, or the model's context if that is shorter
WINDOW = 256
MOST_WINDOWS = 24  # the largest number of windows; a model with a tiny context would have many more


@dataclass(frozen=True)
class Passage:
    """Some pages of one book."""

    title: str
    author: str
    year: int
    text: str


@dataclass(frozen=True)
class Window:
    """A piece of a passage that a model reads in one pass, as token ids."""

    title: str
    ids: tuple[int, ...]


@cache
def passages() -> tuple[Passage, ...]:
    """The beginnings of the five books."""
    return passages_in(FILE)


@cache
def long_passages() -> tuple[Passage, ...]:
    """The five passages, each with the pages after it."""
    return tuple(
        replace(passage, text=f"{passage.text}\n\n{following.text}")
        for passage, following in zip(passages(), passages_in(MORE), strict=True)
    )


def passages_in(file: Path) -> tuple[Passage, ...]:
    """The passages in a file, `FILE` or `MORE`, in which each begins with a line "== title (author, year)"."""
    parts = re.split(
        r"^== (.*) \((.*), (\d{4})\)\n\n", file.read_text("utf-8"), flags=re.MULTILINE
    )[1:]
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
    """Cut the sample into windows of at most `WINDOW` tokens; return them and the sample's number of tokens.

    `context` is the model's context length; windows are no longer than that. `of` are the passages; None is
    `passages()`. Windows of a single token are left out, since no token in them follows another, and so are
    those after the first `most`.
    """
    size = min(WINDOW, context)
    all_windows = []
    tokens = 0
    for passage in passages() if of is None else of:
        ids = tuple(encode(passage.text))
        tokens += len(ids)
        all_windows += [Window(passage.title, ids[i : i + size]) for i in range(0, len(ids), size)]
    return [window for window in all_windows if len(window.ids) > 1][:most], tokens
