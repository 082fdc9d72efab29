"""What the page "Circuit" works out once for a run, a prediction and a circuit."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from gptviz import Run
from gptviz.analysis.circuit_passes import Head, Passes
from gptviz.analysis.circuit_search import Circuit, Score, in_order, random_order, without_each
from gptviz.analysis.circuit_search import score as score_of
from gptviz.analysis.circuit_search import search as search_for
from gptviz.engine.progress import Progress
from gptviz.ui import runs
from gptviz.ui.runs import per_run
from gptviz.ui.views.circuit import words
from gptviz.ui.views.slow import watched

T = TypeVar("T")
Heads = tuple[Head, ...]


@dataclass(frozen=True)
class Asked:
    """Which prediction, and what becomes of the parts that are not in."""

    position: int
    token: int
    against: int | None
    others: str
    feed_forwards: bool

    def passes(self, run: Run) -> Passes:
        """Made where they are used: they hold on to the model."""
        target = self.token if self.against is None else (self.token, self.against)
        return Passes(runs.model(run), run.ids, target, self.others, self.feed_forwards, self.position)


@per_run
def values(run: Run, asked: Asked, heads: Heads) -> tuple[float, float, float]:
    """F of the whole model, of the circuit, and of nobody."""
    passes = asked.passes(run)
    circuit, empty = passes.of([heads, ()]).tolist()
    return passes.whole, circuit, empty


@per_run
def random(run: Run, asked: Asked) -> list[float]:
    """F of the first n heads of a random order, for n from 0 to all."""
    passes = asked.passes(run)
    found: list[float] = in_order(passes, random_order(passes.lm))["value"].tolist()
    return found


def search(run: Run, asked: Asked, way: str, stop: Callable[[], Any]) -> Circuit:
    """A greedy search, with a bar and a button where it is not known."""
    return _watched(
        ("search", asked, way),
        run,
        stop,
        lambda progress: search_for(asked.passes(run), way, progress=progress),
    )


def brings(
    run: Run, asked: Asked, heads: Heads, stop: Callable[[], Any], key: str = ""
) -> NDArray[np.float64]:
    """What each head brings, (L, H): F of the circuit with it, less F without it.

    `key` tells one bar with its button from another on the same page.
    """

    def work(progress: Progress) -> NDArray[np.float64]:
        passes = asked.passes(run)
        own = float(passes.of([heads])[0])
        sign = np.array(
            [
                [1.0 if (b, h) in heads else -1.0 for h in range(passes.lm.config.n_heads)]
                for b in range(passes.lm.config.n_layers)
            ]
        )
        result: NDArray[np.float64] = sign * (own - without_each(passes, heads, progress))
        return result

    return _watched(("brings", asked, heads), run, stop, work, key)


def score(run: Run, asked: Asked, heads: Heads, stop: Callable[[], Any]) -> Score:
    """Faithfulness and completeness."""
    return _watched(
        ("score", asked, heads),
        run,
        stop,
        lambda progress: score_of(asked.passes(run), heads, progress=progress),
    )


def _watched(
    name: tuple[Any, ...], run: Run, stop: Callable[[], Any], work: Callable[[Progress], T], key: str = ""
) -> T:
    return watched((__name__, *name), run, work, words.searching, f"circuit_stop_{name[0]}{key}", stop)
