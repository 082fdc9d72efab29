"""What the picture shows at a place, of a run: worked out once for all who look at it."""

from typing import Any

from gptviz import Run
from gptviz.analysis import machine
from gptviz.analysis.places import Place, resolve
from gptviz.analysis.reads import Sites, sites_of
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.reduction import Reduction
from gptviz.ui import runs
from gptviz.ui.runs import per_run


def needs(lm: LanguageModel, at: str, position: int) -> tuple[Sites, tuple[Reduction, ...]]:
    """The sites that a place reads; of the stream as a whole the lengths are enough, made on the way."""
    if not at:
        return machine.reading(lm), machine.LENGTHS
    return (*sites_of(resolve, lm, at, position), *sites_of(machine.level, lm, at)), ()


@per_run
def place(run: Run, at: str, position: int) -> Place:
    """The place that an address means on this run's text."""
    lm = runs.model(run)
    return resolve(lm, runs.get(run, sites_of(resolve, lm, at, position)), at, position)


@per_run
def level(run: Run, at: str, position: int, shown: Any) -> machine.Level:
    """The numbers at a place."""
    lm = runs.model(run)
    return machine.level(lm, runs.get(run, *needs(lm, at, position)), at, position, shown)
