"""What a run has written down so far, as the page draws it: read anew each time, and kept nowhere."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from gptviz.analysis.birth import Birth, birth
from gptviz.figures.training import Curves, Level
from gptviz.training.live import LiveConfig, Snapshot, Status
from gptviz.training.live.run import TEXT
from gptviz.ui.training import Training
from gptviz.ui.views.training.presets import named


@dataclass(frozen=True)
class Watched:
    """A run at one moment. `kept` are the steps of which there are snapshots, in order."""

    number: str
    name: str
    state: str
    said: str | None
    config: LiveConfig
    status: Status
    measures: tuple[Snapshot, ...]
    kept: tuple[int, ...]
    vocabulary: int
    text: str | None  # of a run on one's own

    @property
    def curves(self) -> Curves:
        """Its losses, and its heads' scores: 0 from where a head is off."""
        shape = (len(self.measures), self.config.n_layers, self.config.n_heads)
        induction = np.array([m.induction for m in self.measures]).reshape(shape)
        previous = np.array([m.previous_token for m in self.measures]).reshape(shape)
        for i, measured in enumerate(self.measures):
            for head in measured.off:
                induction[(i, *head)] = previous[(i, *head)] = 0
        return Curves(
            self.name,
            np.array([m.step for m in self.measures], dtype=np.int64),
            np.array([np.nan if m.train is None else m.train for m in self.measures]),
            np.array([m.validation for m in self.measures]),
            induction,
            previous,
        )

    @property
    def birth(self) -> Birth | None:
        curves = self.curves
        return birth(curves.induction, curves.previous)

    def at(self, step: int) -> Snapshot:
        """The measures at a step. ValueError where there are none."""
        for measured in self.measures:
            if measured.step == step:
                return measured
        raise ValueError(f"nothing was measured at step {step}")

    def nearest(self, step: int | None) -> int | None:
        """The kept step next to one, the newest if none is given; None while there is none."""
        if not self.kept:
            return None
        return self.kept[-1] if step is None else min(self.kept, key=lambda kept: abs(kept - step))

    def table(self) -> pd.DataFrame:
        """A row a point: its losses, and its best heads."""
        rows = []
        for m in self.measures:
            (induction, b, h), (previous, pb, ph) = m.best_induction, m.best_previous
            rows.append(
                {
                    "step": m.step,
                    "training": m.train,
                    "validation": m.validation,
                    "induction": induction,
                    "induction head": f"{b}.{h}",
                    "previous token": previous,
                    "previous-token head": f"{pb}.{ph}",
                    "sample": m.sample,
                }
            )
        return pd.DataFrame(rows)

    def heads(self) -> pd.DataFrame:
        """A row a point and head."""
        return pd.DataFrame(
            [
                {
                    "step": m.step,
                    "block": block,
                    "head": head,
                    "induction": m.induction[block][head],
                    "previous token": m.previous_token[block][head],
                    "off": (block, head) in m.off,
                }
                for m in self.measures
                for block in range(self.config.n_layers)
                for head in range(self.config.n_heads)
            ],
            columns=["step", "block", "head", "induction", "previous token", "off"],
        )


def watched(training: Training) -> Watched:
    """What there is of it now."""
    run = training.run
    measures = tuple(run.measures)
    own = run.folder / TEXT
    known = {m.step for m in measures}  # a snapshot may be there a moment before its measures
    return Watched(
        training.number,
        f"{training.label}: {named(training.config)}",
        training.state,
        training.said,
        training.config,
        run.status,
        measures,
        tuple(step for step in run.kept.steps() if step in known),
        run.task.vocab_size,
        own.read_text("utf-8") if own.is_file() else None,
    )


def levels(training: Training) -> list[Level]:
    """The losses that mean something for the run's task."""
    task = training.run.task
    found = [Level("a blind guess, ln V", task.ln_v), Level("bigram", task.bigram)]
    return found if task.floor is None else [*found, Level("what cannot be foreseen", task.floor)]


def levels_table(training: Training) -> pd.DataFrame:
    """The same as a table."""
    return pd.DataFrame([{"loss of": level.name, "nats a token": level.nats} for level in levels(training)])
