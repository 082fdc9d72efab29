"""A whole run in a line of Python."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from gptviz.training.live.config import LiveConfig
from gptviz.training.live.run import begin
from gptviz.training.live.work import train


def train_one(changes: dict[str, Any] | None = None, text: str | None = None) -> np.ndarray:
    """Train with the usual choices and these changes; return the last snapshot's attention, (P, L, H, T, T).

    P probes, L blocks, H heads, T tokens. `text` is what a run of the task "own" learns.
    """
    run = begin(Path(tempfile.mkdtemp()) / "run", LiveConfig.from_dict(changes or {}), text)
    print(f"a blind guess {run.task.ln_v:.4f}, the bigram {run.task.bigram:.4f}, the floor {run.task.floor}")
    train(run.folder)
    for point in run.measures:  # each score is (score, block, head)
        scores = f"induction {point.best_induction}, previous token {point.best_previous}"
        print(f"step {point.step:5}  validation {point.validation:.4f}  {scores}")
    return run.attention(run.kept.steps()[-1])
