"""Where one head of each side looks, and the difference between the places that both have read."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import streamlit as st

from gptviz import Run
from gptviz.engine.trace import Token
from gptviz.figures.token_axis import window
from gptviz.tokenizer import show_token
from gptviz.ui import runs
from gptviz.ui.components.matrix import MASKED, Panel, attention_panel, matrix
from gptviz.ui.shell.block import block_and_head_inputs
from gptviz.ui.shell.scene import Scene
from gptviz.ui.views.compare import derived, words
from gptviz.ui.views.compare.sides import MODEL, VS_BLOCK, VS_HEAD, Sides

LARGEST = 380  # pixels of a matrix's side
WINDOW = 256  # tokens of each that are drawn


def draw(scene: Scene, found: Sides, best: tuple[int, int]) -> None:
    """Three matrices: the left side's head, the right side's, and right less left."""
    st.subheader("One head on either side", anchor=False)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="compare_head"):
        block_and_head_inputs(scene.lm.config, *best)
        theirs = _other_head(found, best)
    left, right, between = st.columns(3, gap="small")
    with left:
        own = Side("left", found.run, found.names[0], found.tokens, found.at[0], best)
        _head(scene, own, lambda query: scene.select(query))
    with right:
        other = Side("right", found.other, found.names[1], found.other_tokens, found.at[1], theirs)
        _head(_theirs(scene, found), other, lambda query: scene.select(found.partner(query)))
    with between:
        st.markdown("**Right less left**, where both have read as far")
        _difference(scene, found, best, theirs)


def _theirs(scene: Scene, found: Sides) -> Scene:
    """The right side's scene: what its picture says of model, text, changes and selected token."""
    return replace(
        scene,
        key=found.other.model,
        plain_load=found.code,
        run=found.other,
        other=None,
        text=found.text,
        tokens=found.other_tokens,
        position=found.at[1],
    )


@dataclass(frozen=True)
class Side:
    """What one of the two matrices shows."""

    name: str
    run: Run
    called: str
    tokens: Sequence[Token]
    at: int
    head: tuple[int, int]


def _head(scene: Scene, side: Side, select: Callable[[int], None]) -> None:
    block, head = side.head
    st.markdown(f"**{words.one_head(block, head)}** · {words.escaped(side.called)}")
    seen = window(side.at, len(side.tokens), WINDOW)
    matrix(
        f"compare_{side.name}",
        [attention_panel()],
        {"weights": derived.weights(side.run, block, head)[seen, seen]},
        [show_token(token.raw) for token in side.tokens[seen]],
        side.at,
        None,
        scene.mode,
        lambda query, key: None if query is None else select(query),
        first=seen.start,
        largest=LARGEST,
        saved=scene.saved(
            "compare_attention",
            f"{words.one_head(block, head)}: {side.called}",
            side.name,
            f"block{block}",
            f"head{head}",
        ),
    )


def _other_head(found: Sides, best: tuple[int, int]) -> tuple[int, int]:
    """The right side's head: the same, or of another model any."""
    config = runs.model(found.other).config
    same = (min(best[0], config.n_layers - 1), min(best[1], config.n_heads - 1))
    if found.differs != MODEL:
        return same
    chosen = [
        param.index(f"{what} on the right, 0 to {count - 1}", count, f"{default}", 170)
        for param, what, count, default in (
            (VS_BLOCK, "Block", config.n_layers, same[0]),
            (VS_HEAD, "Head", config.n_heads, same[1]),
        )
    ]
    return (
        same[0] if chosen[0] is None else chosen[0],
        same[1] if chosen[1] is None else chosen[1],
    )


def _difference(scene: Scene, found: Sides, head: tuple[int, int], other: tuple[int, int]) -> None:
    values = derived.difference(found.run, found.other, found.pairs, (head, other))
    seen = window(found.chosen, len(values), WINDOW)
    limit = float(np.abs(values).max()) or 1.0
    panel = Panel(
        "difference", "difference", "query", "key", "signed", -limit, limit,
        label="Right less left: rows are queries, columns are keys", says=words.DIFFERENCE,
        says_masked=MASKED, masked=True, digits="number",
    )  # fmt: skip
    matrix(
        "compare_difference",
        [panel],
        {"difference": values[seen, seen]},
        [show_token(found.tokens[i].raw) for i in found.pairs.left[seen]],
        found.chosen,
        None,
        scene.mode,
        lambda query, key: None if query is None else scene.select(found.pairs.left[query]),
        first=seen.start,
        positions=found.pairs.left[seen],
        largest=LARGEST,
        saved=scene.saved("compare_attention", words.less(found.names, (head, other)), "difference"),
    )
