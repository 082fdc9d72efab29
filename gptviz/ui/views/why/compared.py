"""The same logit in the unchanged model: what is said of the two, and what the maps show of them."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gptviz import Run
from gptviz.analysis import shares as numbers
from gptviz.both import alike
from gptviz.figures.ghosts import UNCHANGED
from gptviz.ui.shell.same import why_same
from gptviz.ui.shell.scene import Scene
from gptviz.ui.shell.shown import DIFFERENCE
from gptviz.ui.shell.target import top
from gptviz.ui.views.why import derived, words
from gptviz.ui.views.why.chosen import Chosen
from gptviz.ui.views.why.derived import Shares, Sources
from gptviz.ui.views.why.words import Moved

NAMED = 2  # of the shares that changed most


def shares_in(run: Run, scene: Scene, chosen: Chosen) -> Shares:
    return derived.shares(run, scene.position, chosen.target.token, chosen.target.against)


def sources_in(run: Run, scene: Scene, chosen: Chosen) -> Sources:
    return derived.sources(run, scene.position, chosen.target.token, chosen.target.against)


def what_changed(scene: Scene, other: Run, chosen: Chosen, found: Shares) -> str:
    """What the app's changes did to the logit; or why they did nothing to it."""
    target, old = chosen.target, shares_in(other, scene, chosen)
    moved = _moved(found, old)
    if not moved and alike(np.array(found.logit), np.array(old.logit)):
        what = words.word(target.shown, target.against_shown, scene.label)
        return why_same(scene, what, [("final", None)], scene.position)
    first, now = (top(run, scene.position)[0] for run in (other, scene.run))
    return words.what_changed(
        target.shown,
        target.against_shown,
        old.logit,
        found.logit,
        moved[:NAMED],
        first.shown if first.id != now.id else None,
    )


def _moved(found: Shares, old: Shares) -> list[Moved]:
    """The shares that are others in the two runs, the largest change first."""
    new, before = ({group.label: group.contribution for group in one.groups} for one in (found, old))
    both = [Moved(name, before.get(name, 0.0), new.get(name, 0.0)) for name in dict.fromkeys([*new, *before])]
    differ = [one for one in both if not alike(np.array(one.after), np.array(one.before))]
    return sorted(differ, key=lambda one: -abs(one.after - one.before))


def has_moved(scene: Scene, chosen: Chosen, found: Shares) -> bool:
    """Whether the app's changes changed any part of the logit."""
    return scene.other is not None and bool(_moved(found, shares_in(scene.other, scene, chosen)))


def ghosts(scene: Scene, chosen: Chosen, found: Shares) -> NDArray[np.float64] | None:
    """The unchanged shares of the waterfall's rows."""
    if scene.other is None:
        return None
    return numbers.beside(found.steps, shares_in(scene.other, scene, chosen).table)


@dataclass(frozen=True)
class Map:
    """What a map shows: its numbers, what its caption and a hover say of them."""

    values: NDArray[np.float64]
    caption: str
    says: str


def grid(scene: Scene, chosen: Chosen, found: Shares, shown: str) -> Map:
    """The shares of all parts, (L, C), of the run, of the unchanged model, or by how much they differ."""
    if scene.other is None or shown not in (DIFFERENCE, UNCHANGED):
        return Map(found.grid, words.GRID, "its share is")
    old = shares_in(scene.other, scene, chosen)
    if shown == UNCHANGED:
        return Map(old.grid, words.GRID, "unchanged, its share is")
    return Map(found.grid - old.grid, words.GRID_CHANGES, "its share has changed by")


def source_map(scene: Scene, chosen: Chosen, sources: Sources, shown: str) -> Map:
    """What each token gave through the heads of the block, (H, T), likewise."""
    given = sources.given[chosen.block]
    if scene.other is None or shown not in (DIFFERENCE, UNCHANGED):
        return Map(given, words.SOURCES, "gives")
    old = sources_in(scene.other, scene, chosen).given[chosen.block]
    if shown == UNCHANGED:
        return Map(old, words.SOURCES, "unchanged, gives")
    return Map(given - old, words.SOURCES_CHANGES, "has changed by")
