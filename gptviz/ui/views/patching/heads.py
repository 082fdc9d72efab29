"""One head's output, queries, keys, values or pattern at a time: which head, and what of it."""

import numpy as np
import pandas as pd
import streamlit as st

from gptviz.analysis.patches import Patch
from gptviz.analysis.patching import Ends
from gptviz.figures import patching as figures
from gptviz.ui.components.cell_clicks import cell_clicks
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Scene
from gptviz.ui.views.patching import choice, derived, words
from gptviz.ui.views.patching.choice import WAY, Other
from gptviz.ui.views.patching.derived import Pair
from gptviz.ui.views.patching.passes import LEAST, patched
from gptviz.ui.views.patching.words import HEAD_SITES
from gptviz.ui.views.sideways import sideways

NEXT = 3  # heads that are named after the strongest
GROUPS = {"z": "output", "q": "query", "k": "key", "v": "value", "attn": "accent"}  # their colours


def draw(scene: Scene, other: Other, pair: Pair, ends: Ends) -> pd.DataFrame | None:
    """The map and what it says; gives its table, None where it waits for a click."""
    st.subheader("Which head, and what of it", anchor=False)
    prose(words.HEADS, "head", "query", "key", "value")
    config = scene.lm.config
    table = patched(scene, pair, ends, tuple(HEAD_SITES), "patching_heads")
    if table is None:
        return None
    grids = np.stack([derived.grid(table[table["site"] == site], config.n_layers) for site in HEAD_SITES])
    cells = [
        (block, figures.column_of(group, head, config.n_heads))
        for group, site in enumerate(HEAD_SITES)
        for block, head in derived.cells_of(pair.patches, site)
    ]
    prose(words.head_sentence(*_strongest(table)))
    sideways("patching_head_map", 760)
    scene.chart(
        figures.head_map(
            grids, {HEAD_SITES[site]: color for site, color in GROUPS.items()}, "The", cells, scene.mode
        ),
        key="patching_head_map",
        alt=f"Each head's output, queries, keys, values and pattern patched ({WAY.value})",
        which=(WAY.value, "heads"),
    )

    def pick(block: int, column: int) -> None:
        found = figures.group_and_head(column, config.n_heads)
        if found is not None:
            site = list(HEAD_SITES)[found[0]]
            choice.toggle(Patch(site, block, head=found[1]).edit(other.ids), other)

    columns = figures.column_of(len(HEAD_SITES) - 1, config.n_heads - 1, config.n_heads) + 1
    cell_clicks("patching_head_map", config.n_layers, columns, pick, scene.mode)
    return table


Heads = list[tuple[int, int, float]]  # block, head, effect


def _strongest(table: pd.DataFrame) -> tuple[str, int, int, float, dict[str, float], Heads]:
    """Of all heads' outputs the one that moves most, what its other parts do, and those that come next."""
    outputs = table[table["site"] == "z"]
    best = outputs.loc[outputs["effect"].abs().idxmax()]
    block, head = int(best["block"]), int(best["head"])
    same = table[(table["block"] == block) & (table["head"] == head)]
    parts = dict(zip(same["site"], same["effect"], strict=True))
    order = outputs["effect"].abs().sort_values(ascending=False, kind="stable").index[1 : 1 + NEXT]
    after = [(int(row.block), int(row.head), float(row.effect)) for row in outputs.loc[order].itertuples()]
    return (
        WAY.value,
        block,
        head,
        float(best["effect"]),
        parts,
        [one for one in after if abs(one[2]) >= LEAST],
    )
