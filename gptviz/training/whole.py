"""Files that appear whole or not at all, so that somebody may read while they are written."""

import os
from collections.abc import Callable
from pathlib import Path


def write_whole(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` make the file under another name, and give it its own name only when it is whole."""
    partial = path.with_name(path.name + ".partial")
    write(partial)
    os.replace(partial, path)
