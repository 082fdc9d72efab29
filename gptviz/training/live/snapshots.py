"""The snapshots of a run: what is measured of the model at a step, and what is kept of some steps.

Measured are every head's attention on the probes, its scores, and a sample; kept are weights and attention,
bounded in bytes.

Shapes in comments: P probes, L blocks, H heads, T tokens.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gptviz.analysis.head_formulas import induction_score, previous_token_score
from gptviz.engine import forward
from gptviz.engine.generate import generate
from gptviz.engine.kinds import Model
from gptviz.engine.language_model import LanguageModel
from gptviz.files.atomic_file import write_atomically, write_text
from gptviz.training.live.config import Heads
from gptviz.training.live.tasks import Probe, Task

# ---- what is measured ----

SAMPLE_TOKENS = 40
SAMPLE_SEED = 1

Scores = tuple[tuple[float, ...], ...]  # [block][head]


@dataclass(frozen=True)
class Snapshot:
    """A run at one step. Scores are from 0 to 1, means over the probes that repeat; losses in nats a token.

    `train` is the mean loss of the steps since the snapshot before, None before the first step. `sample` is
    what the model writes after the task's prompt. The heads that are `off` have scores, but write nothing:
    none of them is ever the best.
    """

    step: int
    train: float | None
    validation: float
    induction: Scores
    previous_token: Scores
    sample: str
    off: Heads = ()

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Snapshot":
        lists = ("induction", "previous_token", "off")  # of JSON
        return cls(**values | {name: tuple(map(tuple, values.get(name, ()))) for name in lists})

    @property
    def best_induction(self) -> tuple[float, int, int]:
        """(score, block, head) of the head that is most of an induction head."""
        return self._best(self.induction)

    @property
    def best_previous(self) -> tuple[float, int, int]:
        """(score, block, head) of the head that looks most at the previous token."""
        return self._best(self.previous_token)

    def _best(self, scores: Scores) -> tuple[float, int, int]:
        scored = ((score, b, h) for b, row in enumerate(scores) for h, score in enumerate(row))
        return max((entry for entry in scored if entry[1:] not in self.off), default=(0.0, 0, 0))


def attention(model: Model, probes: tuple[Probe, ...]) -> torch.Tensor:
    """Every head's attention on every probe, all in one pass: (P, L, H, T, T). Needs probes of one length."""
    caught: list[torch.Tensor] = []
    hooks = [
        forward.Hook(
            f"trf_blocks.{block}.att.dropout", "input", lambda weights: caught.append(weights)
        )
        for block in range(len(model.trf_blocks))
    ]
    forward.hidden(model, torch.tensor([probe.ids for probe in probes]), hooks)  # (P, T)
    return torch.stack(caught, dim=1).float()  # L times (P, H, T, T) -> (P, L, H, T, T)


def head_scores(attn: torch.Tensor, probes: tuple[Probe, ...]) -> tuple[torch.Tensor, torch.Tensor]:
    """(induction, previous token) of every head, (L, H) each: means over the probes that repeat."""
    repeated = [
        (attn[i], probe.period) for i, probe in enumerate(probes) if probe.period is not None
    ]
    # (probes that repeat, L, H) each
    induction = torch.stack([induction_score(weights, period) for weights, period in repeated])
    previous = torch.stack([previous_token_score(weights) for weights, _ in repeated])
    return induction.mean(dim=0), previous.mean(dim=0)


def sample(lm: LanguageModel, task: Task) -> str:
    """The text that follows the prompt: drawn greedily where there is one right answer, else by chance."""
    temperature = 1.0
    if task.floor is not None:
        temperature = 0.0
    *_, last = generate(lm, task.prompt, SAMPLE_TOKENS, temperature=temperature, seed=SAMPLE_SEED)
    return last.text_so_far[len(task.prompt) :]


def snapshot(
    lm: LanguageModel,
    task: Task,
    step: int,
    train: float | None,
    validation: float,
    off: Heads = (),
) -> tuple[Snapshot, NDArray[np.float32]]:
    """A snapshot and the attention that it was measured on, (P, L, H, T, T)."""
    attn = attention(lm.model, task.probes)
    induction, previous = (
        tuple(tuple(round(score, 4) for score in row) for row in scores.tolist())
        for scores in head_scores(attn, task.probes)
    )
    return Snapshot(
        step, train, validation, induction, previous, sample(lm, task), off
    ), attn.numpy()


# ---- what is kept ----

MAX_BYTES = 64 * 2**20  # of one run: 31 snapshots of the usual model are 60 MB

_RULE = "rule.json"


class Snapshots:
    """A folder of them. The state is the training run's own checkpoint, so that one can go on from each."""

    def __init__(self, folder: Path):
        self.folder = folder

    def steps(self) -> list[int]:
        """The steps of which there is one, in order."""
        return sorted(int(path.stem) for path in self.folder.glob("*.npy"))

    @property
    def nbytes(self) -> int:
        return sum(path.stat().st_size for path in self.folder.glob("*.*"))

    @property
    def every(self) -> int:
        """Only steps that this divides are kept, beside the newest."""
        return int(self._rule().get("every", 1))

    @property
    def thinned(self) -> str | None:
        """A sentence, once snapshots were removed to stay within the limit of bytes; else None."""
        rule = self._rule()
        if not rule:
            return None
        return (
            f"To stay within {rule['max_bytes'] / 1e6:.0f} MB, of the snapshots only those of every "
            f"{rule['every']}th step are kept, and the newest"
        )

    def attention(self, step: int) -> NDArray[np.float32]:
        """(P, L, H, T, T). Raises ValueError for a step of which there is no snapshot."""
        try:
            return np.load(self._path(step, "npy"))
        except FileNotFoundError:
            raise self._missing(step) from None

    def state(self, step: int) -> dict[str, Any]:
        """The training run at that step, as `loop.TrainingRun.state` gives it. Raises ValueError."""
        try:
            return torch.load(self._path(step, "pt"), map_location="cpu", weights_only=True)
        except FileNotFoundError:
            raise self._missing(step) from None

    def keep(
        self,
        step: int,
        state: dict[str, Any],
        attn: NDArray[np.float32],
        period: int,
        max_bytes: int,
    ) -> None:
        """Write a snapshot; where there are too many, drop every second. `period`: steps between two."""
        self.folder.mkdir(exist_ok=True)
        before = self.steps()
        write_atomically(self._path(step, "pt"), lambda path: torch.save(state, path))
        # now it is there
        write_atomically(self._path(step, "npy"), lambda path: _save_array(path, attn))
        # no longer the newest
        self._drop([old for old in before if old % self.every and old != step])
        while self.nbytes > max_bytes and len(self.steps()) > 2:
            rule = {"every": 2 * max(self.every, period), "max_bytes": max_bytes}
            write_text(self.folder / _RULE, json.dumps(rule))
            self._drop([old for old in self.steps() if old % self.every and old != step])

    def _drop(self, steps: list[int]) -> None:
        for step in steps:
            for suffix in ("npy", "pt"):
                self._path(step, suffix).unlink(missing_ok=True)

    def _rule(self) -> dict[str, int]:
        path = self.folder / _RULE
        if path.is_file():
            return json.loads(path.read_text())
        return {}

    def _path(self, step: int, suffix: str) -> Path:
        return self.folder / f"{step:06}.{suffix}"

    def _missing(self, step: int) -> ValueError:
        steps = ", ".join(map(str, self.steps())) or "none"
        return ValueError(f"there is no snapshot of step {step}; there are {steps}")


def _save_array(path: Path, values: NDArray[np.float32]) -> None:
    with path.open("wb") as file:  # np.save would add a suffix to the name
        np.save(file, values)
