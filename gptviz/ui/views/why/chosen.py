"""What the page explains, and which head is opened: all that its panels need beside the Scene."""

from collections.abc import Sequence
from dataclasses import dataclass

from gptviz.analysis.shares import FEED_FORWARD
from gptviz.engine.config import GPTConfig
from gptviz.ui.shell.change_menu import Part
from gptviz.ui.shell.params import Param, if_there
from gptviz.ui.shell.state import BLOCK, HEAD, open_head
from gptviz.ui.shell.target import Target

PART = Param("why_part", str, "head", if_there)  # of the block, that the page offers to change
PARTS = ("head", "attention", "feed-forward")


@dataclass(frozen=True)
class Chosen:
    """The target, and the opened head: the app's block and head, or the one with the largest share."""

    target: Target
    block: int
    head: int
    n_heads: int

    @property
    def said(self) -> str:
        """What is explained, for a picture's title."""
        target = self.target
        other = "the mean of all" if target.against_shown is None else f"that of {target.against_shown}"
        return f"the logit of {target.shown} minus {other}"

    def open(self, block: int, column: int, columns: Sequence[str] = ()) -> None:
        """Callback: open a head; a column of the grid after the heads' is no head, but a part of its block.

        What was clicked last is what the page offers to change.
        """
        if column < self.n_heads:
            open_head(block, column)
            PART.set(None)
        elif column < len(columns):
            BLOCK.set(block)
            PART.set("feed-forward" if columns[column] == FEED_FORWARD else "attention")


def parts_of(block: int, head: int) -> list[Part]:
    """What the page offers to change: the opened head and its block's parts, what was clicked last first."""
    PART.within(PARTS)
    found = [Part("head", block, head), Part("attention", block), Part("feed-forward", block)]
    return sorted(found, key=lambda part: part.kind != PART.value)


def choose(config: GPTConfig, target: Target, strongest: tuple[int, int]) -> Chosen:
    """`strongest` is the head that is opened as long as nobody has chosen block and head."""
    block, head = BLOCK.within(config.n_layers), HEAD.within(config.n_heads)
    if block is None and head is None:
        block, head = strongest
    elif block is None:
        block = strongest[0]
    elif head is None:
        head = strongest[1]
    assert block is not None and head is not None
    return Chosen(target, block, head, config.n_heads)
