"""The passes behind the maps: once for a pair of runs and a scale, with progress and a way to stop."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from gptviz.analysis.activation_patching import Ends, patching
from gptviz.analysis.alignment import differing
from gptviz.analysis.patches import HEAD_SITES
from gptviz.engine.progress import Progress
from gptviz.ui import runs
from gptviz.ui.shell.params import Param
from gptviz.ui.shell.scene import Scene
from gptviz.ui.views.both import both
from gptviz.ui.views.patching import derived, words
from gptviz.ui.views.patching.choice import WAY
from gptviz.ui.views.patching.derived import Pair
from gptviz.ui.views.patching.words import DENOISING, LOGITS
from gptviz.ui.views.slow import is_asked_for, watched

LEAST = 0.02  # of an effect that a sentence speaks of: a share, or logits
GO = Param("patch_go", bool, False)  # for what takes so long that it waits for a click


@dataclass(frozen=True)
class Patched:
    """`patching`'s table, and its effects as an array: (S, L, T) or (S, L, H), a map a site."""

    table: pd.DataFrame
    effects: NDArray[np.float64]

    def in_logits(self, ends: Ends) -> "Patched":
        """The same as changes of the two logits' difference, instead of shares of the ends' distance."""
        change = self.table["effect"] * ends.distance
        table = self.table.drop(columns=["metric", "effect"]).assign(change=change)
        return Patched(table, self.effects * ends.distance)

    def with_unchanged(self, unchanged: "Patched | None") -> pd.DataFrame:
        """The table, with the unchanged model's numbers beside its own where they are known."""
        numbers = [name for name in self.table if name in ("logit", "metric", "effect", "change")]
        return both(self.table, None if unchanged is None else unchanged.table, numbers)


def told(scene: Scene, pair: Pair, ends: Ends) -> str:
    """How effects are told: as shares, by the way of patching; `LOGITS` where a model's ends lie close."""
    found = (ends, ends_beside(scene, pair, ends))
    close = any(one is not None and one.is_scale and not one.tells_shares for one in found)
    return LOGITS if close else WAY.value


def patched(
    scene: Scene, pair: Pair, ends: Ends, sites: tuple[str, ...], key: str, told: str
) -> Patched | None:
    """`patching` of these sites for the selected position; None where it waits for a click."""
    lm, position, way = runs.model(pair.own), scene.position, WAY.value
    passes = _count(scene, pair, sites)
    slow = is_asked_for(
        lm, position + 1, passes if pair.own.edits else passes // 2
    )  # half starts half way up
    if slow and not GO.value:
        st.markdown(words.offer(passes))
        st.button("Patch every place", key=f"{key}_go", type="primary", on_click=GO.set, args=(True,))
        return None
    clean, corrupt = pair.clean_and_corrupt(way == DENOISING)

    def work(progress: Progress) -> Patched:
        both = (clean.ids, corrupt.ids)
        table = patching(lm, *both, (ends.token, ends.against), sites, way, position, progress)
        return Patched(table, table["effect"].to_numpy(float).reshape(len(sites), lm.config.n_layers, -1))

    name = (f"{__name__}.patched", pair.source, position, ends, way, sites)
    stop = (lambda: GO.set(False)) if slow else None
    found = watched(name, pair.own, work, words.patching, f"{key}_stop", stop)
    return found.in_logits(ends) if told == LOGITS else found


def beside(
    scene: Scene, pair: Pair, ends: Ends, sites: tuple[str, ...], key: str, told: str
) -> Patched | None:
    """The same in the model without its changes, None where there are none or no scale."""
    scale = ends_beside(scene, pair, ends)
    if scale is None or not scale.is_scale:
        return None
    return patched(scene, pair.plain, scale, sites, f"{key}_unchanged", told)


def ends_beside(scene: Scene, pair: Pair, ends: Ends) -> Ends | None:
    """The scale of the same two words in the model without its changes; None where there are none."""
    if not pair.own.edits:
        return None
    clean, corrupt = pair.plain.clean_and_corrupt(WAY.value == DENOISING)
    return derived.ends(clean, corrupt, scene.position, ends.token, ends.against)


def _count(scene: Scene, pair: Pair, sites: tuple[str, ...]) -> int:
    """How many patches change anything, about."""
    config, n = scene.lm.config, scene.position + 1
    different = differing(pair.own.ids[:n], pair.source[:n])
    places = config.n_heads if sites[0] in HEAD_SITES else n - (different[0] if different else n)
    return len(sites) * config.n_layers * places
