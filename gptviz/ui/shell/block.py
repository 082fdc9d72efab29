"""The app's block, and its head, as number inputs; left empty, a page shows those that it has reason to."""

from collections.abc import Callable, Sequence

import streamlit as st

from gptviz import LanguageModel
from gptviz.analysis.head_roles import most_telling
from gptviz.engine.config import GPTConfig
from gptviz.engine.reduction import Reduction
from gptviz.engine.tokens import Token
from gptviz.ui import heads
from gptviz.ui.buttons import button
from gptviz.ui.runs import Keep
from gptviz.ui.shell import changes
from gptviz.ui.shell.params import Param
from gptviz.ui.shell.scene import Scene
from gptviz.ui.shell.state import BLOCK, HEAD, open_head


def opened_head(config: GPTConfig, usual: Callable[[], tuple[int, int]]) -> tuple[int, int]:
    """The block and head that somebody chose; each is the `usual` one as long as nobody did."""
    block = BLOCK.within(config.n_layers)
    head = HEAD.within(config.n_heads)
    if block is not None and head is not None:
        return block, head
    first = usual()
    return first[0] if block is None else block, first[1] if head is None else head


def telling_head(scene: Scene) -> tuple[int, int]:
    """The head whose role on this text is the rarest."""
    best = most_telling(heads.measured(scene.run).roles)
    return best.block, best.head


def block_and_head_inputs(
    config: GPTConfig,
    block: int,
    head: int,
    params: tuple[Param[int | None], Param[int | None]] = (BLOCK, HEAD),
    where: str = "",
) -> tuple[int, int]:
    """The chosen block and head, drawn side by side where the container has them so; empty they show these.

    `where` ends their labels (" on the right").
    """
    width = 170 if where else 110
    return (
        params[0].index(f"Block{where}", config.n_layers, block, str(block), width=width),
        params[1].index(f"Head{where}", config.n_heads, head, str(head), width=width),
    )


# ---- pages about one head among all ----


def head_needs(lm: LanguageModel, tokens: Sequence[Token]) -> tuple[Keep, tuple[Reduction, ...]]:
    """The sites and reductions that a page of heads needs.

    The sites of the chosen block; of every block what is said and drawn of its heads, reduced
    during the pass.
    """
    block = BLOCK.within(lm.config.n_layers)
    reduce: tuple[Reduction, ...] = (heads.SMALL, heads.scores_of(tokens))
    if changes.made(changes.found(lm, len(tokens))):
        reduce += (heads.rows_to_compare(lm.config, len(tokens)),)
    return head_sites(block), reduce


def head_sites(block: int | None) -> Keep:
    """The sites that are wanted at once for a block."""
    if block is None:
        return ("z",)
    return (*((site, block) for site in ("attn", "q", "k", "v")), "z")


def head_controls(scene: Scene) -> tuple[int, int]:
    """Draw block and head as two numbers, with buttons for the head before and after; the chosen two."""
    config = scene.lm.config
    usual = telling_head(scene)
    shown = opened_head(config, lambda: usual)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="attention_controls"):
        step = (*shown, config.n_layers, config.n_heads)
        button("‹", "head_before", _step, -1, *step, help="The head before")
        block_and_head_inputs(config, *usual)
        button("›", "head_after", _step, 1, *step, help="The head after")
    return shown


def _step(by: int, block: int, head: int, n_layers: int, n_heads: int) -> None:
    """To the next head, from a block's last to the next block's first, and round at the end."""
    open_head(*divmod((block * n_heads + head + by) % (n_layers * n_heads), n_heads))
