"""The app's block, and its head, as number inputs; left empty, a page shows those that it has reason to."""

from gptviz.engine.config import GPTConfig
from gptviz.ui.shell.state import BLOCK, HEAD
from gptviz.ui.views.index_input import index_input


def block_input(layers: int, default: int, empty: str, width: int) -> int:
    """The chosen block, or `default`, which `empty` describes ("the last")."""
    chosen = index_input(BLOCK, f"Block, 0 to {layers - 1}", layers, f"{default}, {empty}", width)
    return default if chosen is None else chosen


def block_and_head_inputs(config: GPTConfig, block: int, head: int) -> None:
    """Both, side by side where the container has them so; empty they show these."""
    for param, label, count, default in (
        (BLOCK, "Block", config.n_layers, block),
        (HEAD, "Head", config.n_heads, head),
    ):
        index_input(param, f"{label}, 0 to {count - 1}", count, str(default), 110)
