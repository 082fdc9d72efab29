"""The app's block and head as number inputs; left empty, a page shows those that it has a reason for."""

from collections.abc import Callable

import streamlit as st

from gptviz.analysis.head_roles import most_telling
from gptviz.engine.architecture import architecture_of
from gptviz.engine.kinds import Config
from gptviz.engine.reduction import Reduction
from gptviz.engine.sites import HasConfig, Key, scored
from gptviz.ui import heads
from gptviz.ui.buttons import button
from gptviz.ui.runs import Keep
from gptviz.ui.shell.params import Param
from gptviz.ui.shell.scene import Prompt, Scene
from gptviz.ui.shell.state import BLOCK, HEAD, open_head

COUNTED = "Blocks, heads and positions are counted from 0: head 0 is a block's first."


def opened_head(config: Config, usual: Callable[[], tuple[int, int]]) -> tuple[int, int]:
    """The chosen block and head; each is the `usual` one if none is chosen."""
    block = BLOCK.within(config.n_layers)
    head = HEAD.within(config.n_heads)
    if block is not None and head is not None:
        return block, head
    usual_head = usual()
    return usual_head[0] if block is None else block, usual_head[1] if head is None else head


def telling_head(scene: Scene) -> tuple[int, int]:
    """The head whose role on this text is the rarest."""
    best = most_telling(heads.measured(scene.run).roles)
    return best.block, best.head


def block_and_head_inputs(
    config: Config,
    block: int,
    head: int,
    params: tuple[Param[int | None], Param[int | None]] = (BLOCK, HEAD),
    where: str = "",
) -> tuple[int, int]:
    """Draw block and head as number inputs; return the chosen ones, or for an empty input this one.

    `where` ends their labels (" on the right").
    """
    width = 170 if where else 110
    return (
        params[0].index(f"Block{where}", config.n_layers, block, str(block), width=width),
        params[1].index(f"Head{where}", config.n_heads, head, str(head), width=width, help=COUNTED),
    )


# ---- pages about one head among all ----


def head_reductions(prompt: Prompt) -> tuple[Reduction, ...]:
    """What is said and drawn of every head, reduced during the pass."""
    count = len(prompt.tokens)
    reduce: tuple[Reduction, ...] = (heads.SMALL, heads.scores_of(prompt.tokens))
    if prompt.run.edits:
        reduce += (heads.rows_to_compare(prompt.lm.config, count),)
    return reduce


def head_sites(block: int | None) -> Keep:
    """The sites that a page of heads wants at once: of the chosen block, and what every head gives."""
    if block is None:
        return ("z",)

    def compared(lm: HasConfig) -> list[Key]:
        return [(site, block) for site in scored(lm)]

    return (("attn", block), compared, ("v", block), "z")


def shared_by(config: Config, head: int) -> str:
    """Which heads share a head's keys and values, as a sentence; "" where each has its own."""
    size = config.n_heads // config.n_kv_groups
    if size == 1:
        return ""
    group = head // size
    first = group * size
    to = "and" if size == 2 else "to"
    return (
        f"Head {head} is in **group {group}**: heads {first} {to} {first + size - 1} share its keys and "
        "values."
    )


def turned(config: Config) -> str:
    """What becomes of queries and keys before they are compared, as a sentence; "" for nothing."""
    if architecture_of(config).scores == ("q", "k"):
        return ""
    normalised = "normalised, then " if config.to_dict()["qk_norm"] else ""
    return f"Queries and keys are {normalised}turned by their positions (RoPE) before they are compared."


def head_controls(scene: Scene) -> tuple[int, int]:
    """Draw block and head as two numbers, with buttons for the head before and after; return the two."""
    config = scene.lm.config
    usual = telling_head(scene)
    opened = opened_head(config, lambda: usual)
    with st.container(
        horizontal=True, vertical_alignment="bottom", gap="small", key="attention_controls"
    ):
        step = (*opened, config.n_layers, config.n_heads)
        button("‹", "head_before", _step, -1, *step, help="The head before")
        block_and_head_inputs(config, *usual)
        button("›", "head_after", _step, 1, *step, help="The head after")
    return opened


def _step(offset: int, block: int, head: int, n_layers: int, n_heads: int) -> None:
    """Open the next head: after a block's last the next block's first, and after the last head the first."""
    open_head(*divmod((block * n_heads + head + offset) % (n_layers * n_heads), n_heads))
