"""What a run has written so far: read again each time, and cached nowhere."""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gptviz.analysis.birth import Birth, birth
from gptviz.training.live.config import LiveConfig
from gptviz.training.live.run import LiveRun, Status
from gptviz.training.live.snapshots import Snapshot


@dataclass(frozen=True)
class Curves:
    """One run: its steps (n,), losses in nats (n,) (NaN where there is none), scores (n, L, H) each."""

    name: str
    steps: NDArray[np.integer]
    train: NDArray[np.floating]
    validation: NDArray[np.floating]
    induction: NDArray[np.floating]
    previous: NDArray[np.floating]


@dataclass(frozen=True)
class Seen:
    """A run at one moment, called `name`. `kept` are the steps of which there are snapshots, in order."""

    name: str
    config: LiveConfig
    status: Status
    measures: tuple[Snapshot, ...]
    kept: tuple[int, ...]

    @property
    def curves(self) -> Curves:
        """Its losses, and its heads' scores: 0 from where a head is off."""
        shape = (len(self.measures), self.config.n_layers, self.config.n_heads)
        scores = [
            np.array([getattr(m, name) for m in self.measures]).reshape(shape)  # (n, L, H)
            for name in ("induction", "previous_token")
        ]
        for i, measured in enumerate(self.measures):
            for head in measured.off:
                for grid in scores:
                    grid[(i, *head)] = 0
        steps, train, validation = (
            np.array([getattr(m, name) for m in self.measures], dtype=kind)
            for name, kind in (("step", np.int64), ("train", float), ("validation", float))
        )
        return Curves(self.name, steps, train, validation, *scores)

    @property
    def birth(self) -> Birth | None:
        curves = self.curves
        return birth(curves.induction, curves.previous)

    def at(self, step: int) -> Snapshot:
        """The measures at a step. Raises ValueError if there are none."""
        for measured in self.measures:
            if measured.step == step:
                return measured
        raise ValueError(f"nothing was measured at step {step}")

    def nearest(self, step: int | None) -> int | None:
        """The kept step nearest to `step`, the newest if that is None; None while no step is kept."""
        if not self.kept:
            return None
        if step is None:
            return self.kept[-1]
        return min(self.kept, key=lambda kept_step: abs(kept_step - step))

    def table(self) -> pd.DataFrame:
        """A row per point: its losses, and its best heads (block.head)."""
        rows = []
        for m in self.measures:
            induction, b, h = m.best_induction
            previous, pb, ph = m.best_previous
            heads = (induction, f"{b}.{h}", previous, f"{pb}.{ph}")
            rows.append((m.step, m.train, m.validation, *heads, m.sample))
        return pd.DataFrame(
            rows,
            columns=["step", "training", "validation", "induction", "induction head", "previous token",
                     "previous-token head", "sample"],
        )  # fmt: skip

    def heads(self) -> pd.DataFrame:
        """A row per point and head."""
        rows = [
            (m.step, b, h, m.induction[b][h], m.previous_token[b][h], (b, h) in m.off)
            for m in self.measures
            for b in range(self.config.n_layers)
            for h in range(self.config.n_heads)
        ]
        return pd.DataFrame(
            rows, columns=["step", "block", "head", "induction", "previous token", "off"]
        )


def look(run: LiveRun, name: str) -> Seen:
    """Read the present state of a run."""
    measures = tuple(run.measures)
    known = {m.step for m in measures}  # a snapshot may be there a moment before its measures
    kept_steps = tuple(step for step in run.kept.steps() if step in known)
    return Seen(name, run.config, run.status, measures, kept_steps)
