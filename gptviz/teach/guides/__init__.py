"""Guides: text files that lead through the app step by step, and ask before they show.

`read` makes a `Guide` of a file's text; `shipped` names those that come with gptviz. The key of a question
is never in the file: it is one of the functions of `gptviz.teach.guides.keys`, asked of the live trace.
"""

import os
from pathlib import Path

from gptviz.teach.guides.guide import Guide, GuideError, Question, Step, read
from gptviz.text.suggest import did_you_mean

FOLDER = Path(__file__).parent / "texts"
SETTING = "GPTVIZ_GUIDES"  # a folder of a teacher's own

__all__ = ["Guide", "GuideError", "Question", "Step", "file_of", "files", "find", "read"]


def files() -> dict[str, Path]:
    """The guides there are, by name: those that ship, and a teacher's own, which may take a name over."""
    folders = [
        FOLDER,
        *(Path(own_folder) for own_folder in [os.environ.get(SETTING)] if own_folder),
    ]
    return {file.stem: file for folder in folders for file in sorted(folder.glob("*.md"))}


def find(name: str) -> Guide:
    """The guide of this name. Raises GuideError where there is none, or its file is none."""
    return read(file_of(name).read_text("utf-8", "replace"))


def file_of(name: str) -> Path:
    """The file of the guide of this name. Raises GuideError where there is none."""
    guides = files()
    if name not in guides:
        meant = did_you_mean(name, guides)
        raise GuideError(
            [(0, f"there is no guide {name[:60]!r}{meant}; there are {', '.join(guides)}")]
        )
    return guides[name]
