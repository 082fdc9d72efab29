"""The snapshots of a run: weights and attention of some of its steps, bounded in bytes."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gptviz.whole import write_text, write_whole

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
        """A sentence, once snapshots had to go."""
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
        self, step: int, state: dict[str, Any], attn: NDArray[np.float32], period: int, max_bytes: int
    ) -> None:
        """Write one down; where they are too many, let every second one go. `period`: steps between two."""
        self.folder.mkdir(exist_ok=True)
        before = self.steps()
        write_whole(self._path(step, "pt"), lambda path: torch.save(state, path))
        write_whole(self._path(step, "npy"), lambda path: _save_array(path, attn))  # now it is there
        self._drop([old for old in before if old % self.every and old != step])  # no longer the newest
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
        return json.loads(path.read_text()) if path.is_file() else {}

    def _path(self, step: int, suffix: str) -> Path:
        return self.folder / f"{step:06}.{suffix}"

    def _missing(self, step: int) -> ValueError:
        there = ", ".join(map(str, self.steps())) or "none"
        return ValueError(f"there is no snapshot of step {step}; there are {there}")


def _save_array(path: Path, values: NDArray[np.float32]) -> None:
    with path.open("wb") as file:  # np.save would add a suffix to the name
        np.save(file, values)
