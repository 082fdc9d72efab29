"""What the Generate page's panels work out once for a run."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gptviz import Run, Trace
from gptviz.analysis import looked
from gptviz.analysis import repetition as repeats
from gptviz.analysis.logit_attribution import read_at
from gptviz.analysis.repetition import followed
from gptviz.analysis.surgery import Operation, Surgery, surgery
from gptviz.engine.reduction import Reduction
from gptviz.engine.sampling import Sampling
from gptviz.ui import heads, runs
from gptviz.ui.runs import per_run
from gptviz.ui.views.generate.derived import PART, steps_of

# ---- what it looked at ----


@per_run
def last_rows(run: Run) -> NDArray[np.float32]:
    """(L, H, T): where every head looks from the last token that the model read."""
    found: NDArray[np.float32] = looked.last_rows(_trace(run, read_at(len(run) - 1))).numpy()
    return found


@per_run
def weights_on(run: Run, position: int) -> NDArray[np.float32]:
    """(L, H, T): what every head gives to a position, from every token."""
    trace = _trace(run, looked.towards(position))
    found: NDArray[np.float32] = looked.to_position(trace, position).numpy()
    return found


def _trace(run: Run, reduction: Reduction) -> Trace:
    """All attention where that is little, so that another head or token is there at a click."""
    whole = heads.fit_whole(runs.model(run).config, len(run))
    return runs.get(run, ("attn",) if whole else (), () if whole else (reduction,))


# ---- surgery ----


@per_run
def operated(run: Run, operation: Operation) -> Surgery:
    """Raises ValueError, a sentence, for a change of the model that a cache cannot have."""
    return surgery(runs.model(run), run.ids, operation)


# ---- loops ----


def written_on(run: Run, sampling: Sampling, count: int) -> Iterator[tuple[int, ...]]:
    """What is written after a text, as it grows, up to `count` tokens: each part is kept."""
    for length in range(PART, count + PART, PART):
        found = steps_of(run, sampling, (), min(length, count), "")
        yield tuple(step.id for step in found.steps)
        if found.ended:
            return


@dataclass(frozen=True)
class Induction:
    """The head that looks most at what followed, and all that do so clearly, the clearest first.

    `silent` are heads whose output a change has set to zero: they make nothing go round, and are left out.
    """

    block: int
    head: int
    share: float
    clear: tuple[tuple[int, int], ...]
    silent: tuple[tuple[int, int], ...] = ()

    def muted(self, most: int) -> tuple[tuple[int, int], ...]:
        """The heads to try it out without."""
        return self.clear[:most] or ((self.block, self.head),)

    @property
    def apart(self) -> tuple[tuple[int, int], ...]:
        """Those that are no fair comparison: the clear ones, and those that say nothing."""
        return self.clear + self.silent


@per_run
def induction(run: Run) -> Induction | None:
    """None where no token of the text stands in it twice, so that nothing followed."""
    silent = _silent(run)
    roles = [role for row in heads.measured(run).roles for role in row]
    heard = [role for role in roles if (role.block, role.head) not in silent] or roles
    asked = [(share, role) for role in heard if (share := role.shares.get("induction")) is not None]
    if not asked:
        return None
    share, best = max(asked, key=lambda pair: pair[0])
    clear = sorted((pair for pair in asked if pair[1].kind == "induction"), key=lambda pair: -pair[0])
    places = tuple((role.block, role.head) for _, role in clear)
    return Induction(best.block, best.head, share, places, tuple(sorted(silent)))


def _silent(run: Run) -> set[tuple[int, int]]:
    """The heads whose output is zero everywhere, by an edit."""
    config = runs.model(run).config
    whole = [e for e in run.edits if (e.site, e.value, e.positions) == ("z", "zero", None)]
    return {
        (block, head)
        for edit in whole
        for block in edit.blocks(config.n_layers)
        for head in (range(config.n_heads) if edit.heads is None else edit.heads)
    }


@per_run
def followed_by(run: Run, block: int, head: int) -> NDArray[np.float32]:
    """(T,): what a head gave to the tokens that followed earlier copies; NaN where there are none."""
    reduction = followed(runs.model(run).tokens(run.ids))
    found: NDArray[np.float32] = runs.get(run, (), (reduction,)).reduced(reduction.name)[block][head].numpy()
    return found


@per_run
def without_heads(run: Run, muted: tuple[tuple[int, int], ...]) -> NDArray[np.float64]:
    return repeats.without_heads(runs.model(run), run.ids, muted)
