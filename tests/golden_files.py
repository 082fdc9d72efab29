"""Golden files: every sentence of a words module in one file a person can read, tests/golden/<name>.txt.

A test gives `check` its sentences for fixed small inputs. Where they are meant to change,
`GPTVIZ_WRITE_GOLDEN=1 python -m pytest tests/ui/views` writes the files anew, and the diff is what to read.
"""

import os
from collections.abc import Mapping
from pathlib import Path

FOLDER = Path(__file__).parent / "golden"
WRITE = "GPTVIZ_WRITE_GOLDEN"


def check(name: str, sentences: Mapping[str, str]) -> None:
    """The sentences, by what each of them is about, are those of tests/golden/<name>.txt, as a whole."""
    text = "\n\n".join(f"## {about}\n{sentence}" for about, sentence in sentences.items()) + "\n"
    file = FOLDER / f"{name}.txt"
    if os.environ.get(WRITE) == "1":
        FOLDER.mkdir(exist_ok=True)
        file.write_text(text, "utf-8")
    assert file.exists(), f"there is no {file.name} yet: run the test once with {WRITE}=1"
    assert text == file.read_text("utf-8"), (
        f"{file.name} says something else; if that is meant, write it with {WRITE}=1"
    )
