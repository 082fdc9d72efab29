"""One head's output, queries, keys, values or pattern at a time: which head, and what of it."""

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from gptviz.analysis.activation_patching import Ends
from gptviz.analysis.patches import Patch
from gptviz.figures import patching as figures
from gptviz.ui.components.cell_clicks import cell_clicks
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Scene
from gptviz.ui.views.patching import choice, derived, words
from gptviz.ui.views.patching.choice import WAY, Other
from gptviz.ui.views.patching.derived import Pair
from gptviz.ui.views.patching.passes import LEAST, beside, patched
from gptviz.ui.views.patching.words import HEAD_SITES
from gptviz.ui.views.sideways import sideways

_OUTPUT = list(HEAD_SITES).index("z")
NEXT = 3  # heads that are named after the strongest
GROUPS = {"z": "output", "q": "query", "k": "key", "v": "value", "attn": "accent"}  # their colours


def draw(scene: Scene, other: Other, pair: Pair, ends: Ends, told: str) -> pd.DataFrame | None:
    """The map and what it says; gives the table, None where it waits for a click."""
    st.subheader("Which head, and what of it", anchor=False)
    prose(words.HEADS, "head", "query", "key", "value")
    config = scene.lm.config
    found = patched(scene, pair, ends, tuple(HEAD_SITES), "patching_heads", told)
    if found is None:
        return None
    cells = [
        (block, figures.column_of(group, head, config.n_heads))
        for group, site in enumerate(HEAD_SITES)
        for block, head in derived.cells_of(pair.patches, site)
    ]
    old = beside(scene, pair, ends, tuple(HEAD_SITES), "patching_heads", told)
    strongest = _strongest(found.effects)
    then = (
        ""
        if old is None
        else words.then(told, words.OUTPUT, float(old.effects[_OUTPUT, strongest[0], strongest[1]]))
    )
    prose(f"{words.head_sentence(told, *strongest)}{then}")
    sideways("patching_head_map", 760)
    scene.chart(
        figures.head_map(
            found.effects,
            {HEAD_SITES[site]: color for site, color in GROUPS.items()},
            "The",
            cells,
            scene.mode,
            None if old is None else old.effects,
            words.unit(told),
        ),
        key="patching_head_map",
        alt=f"Each head's output, queries, keys, values and pattern patched ({WAY.value})",
        which=(WAY.value, "heads"),
    )

    def pick(block: int, column: int) -> None:
        part = figures.group_and_head(column, config.n_heads)
        if part is not None:
            site = list(HEAD_SITES)[part[0]]
            choice.toggle(Patch(site, block, head=part[1]).edit(other.ids), other)

    columns = figures.column_of(len(HEAD_SITES) - 1, config.n_heads - 1, config.n_heads) + 1
    cell_clicks("patching_head_map", config.n_layers, columns, pick, scene.mode)
    return found.with_unchanged(old)


Heads = list[tuple[int, int, float]]  # block, head, effect


def _strongest(effects: NDArray[np.float64]) -> tuple[int, int, float, dict[str, float], Heads]:
    """Of all heads' outputs the one that moves most, what its other parts do, and those that come next.

    `effects` are those of `HEAD_SITES`, (5, L, H).
    """
    outputs = effects[_OUTPUT]
    order = np.argsort(-np.abs(outputs).ravel(), kind="stable")[: 1 + NEXT]
    (block, head), *others = [divmod(int(i), outputs.shape[1]) for i in order]
    parts = dict(zip(HEAD_SITES, effects[:, block, head].tolist(), strict=True))
    after = [(b, h, float(outputs[b, h])) for b, h in others if abs(outputs[b, h]) >= LEAST]
    return block, head, float(outputs[block, head]), parts, after
