"""Pairs of texts that show something with the bundled model: one token differs, and the answer with it."""

from dataclasses import dataclass

from gptviz.ui.shell.state import DEFAULT_TEXT


@dataclass(frozen=True)
class Pair:
    """A prompt and its other text; `watch` is what there is to see, with the bundled model."""

    label: str
    text: str
    other: str
    watch: str


PAIRS = (
    Pair(
        "A copied word",
        DEFAULT_TEXT,
        DEFAULT_TEXT.replace("mill", "barn"),
        "The word stays at its own place until the last block, whose attention hands it to the end.",
    ),
    Pair(
        "She and he",
        "The king loved his daughter, but she did not love",
        "The king loved his daughter, but he did not love",
        "Up to block 3 the answer stands at ·she | ·he; there one head, block 3 · head 7, hands it to ·love.",
    ),
    Pair(
        "His and her",
        "The man took off",
        "The woman took off",
        "A short one: the answer moves from the second token to the last on its way through the blocks.",
    ),
    Pair(
        "A word more",
        "The man took off",
        "The old woman took off",
        "One text has a token more: the page says which one to add, and where.",
    ),
)


def other_of(text: str) -> str | None:
    """The other text of a prompt that is one of a pair."""
    return next((pair.other for pair in PAIRS if pair.text == text), None)
