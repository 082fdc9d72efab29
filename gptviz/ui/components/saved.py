"""What a saved picture says about itself, so that it can be read without the page that it was on."""

import re
from dataclasses import asdict, dataclass
from typing import Any

LONGEST = 90  # characters of a line; a prompt may be thousands
TITLE = 140  # of the first, which says what is drawn


@dataclass(frozen=True)
class Saved:
    """The name of a picture's file, and the words that stand above it in the file.

    `stem` is the file's name without its ending ("gptviz-attention-block5-head0"): see `stem()`. `title`
    is the first line, `lines` those below it: what is selected, the prompt, the model. An empty title with no
    lines gives the picture as it is on the screen.
    """

    stem: str
    title: str = ""
    lines: tuple[str, ...] = ()

    def data(self) -> dict[str, Any]:
        """As the browser gets it: {"stem": str, "title": str, "lines": [str, ...]}."""
        lines = [shortened(line) for line in self.lines]
        return asdict(self) | {"title": shortened(self.title, TITLE), "lines": lines}


def stem(*parts: object) -> str:
    """A name for a file: ("attention", "block5", "head0") -> "gptviz-attention-block5-head0".

    What a file name should not have becomes "-"; a part that is nothing else (a token "→") is left out.
    """
    words = (re.sub(r"[^A-Za-z0-9._]+", "-", str(part)).strip("-._") for part in parts)
    return "-".join(["gptviz", *(word for word in words if word)])


def shortened(line: str, longest: int = LONGEST) -> str:
    """A text on one line of at most `longest` characters, cut in its middle: both ends say which it is."""
    line = " ".join(line.split())
    if len(line) <= longest:
        return line
    half = (longest - 1) // 2
    return f"{line[:half].rstrip()} … {line[-(longest - half - 3) :].lstrip()}"
