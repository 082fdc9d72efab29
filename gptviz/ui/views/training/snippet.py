"""The training page in Python: a run from beginning to end, its curves, and what its heads then look at."""

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from gptviz.training.live import LiveConfig, begin, train


def train_one(changes: dict[str, Any] | None = None, text: str | None = None) -> np.ndarray:
    """Train with the usual choices and these changes; the last snapshot's attention, (P, L, H, T, T)."""
    folder = Path(tempfile.mkdtemp(prefix="gptviz-run-"))
    run = begin(folder / "run", LiveConfig.from_dict(changes or {}), text)
    task = run.task
    print(f"a blind guess {task.ln_v:.4f}, the bigram {task.bigram:.4f}, the floor {task.floor}")

    train(run.folder)
    for point in run.measures:
        induction, block, head = point.best_induction
        previous, *where = point.best_previous
        print(
            f"step {point.step:5}  validation {point.validation:.4f}  "
            f"induction {induction:.4f} ({block}.{head})  previous token {previous:.4f} "
            f"({where[0]}.{where[1]})"
        )
    return run.attention(run.kept.steps()[-1])  # P probes, L blocks, H heads, T tokens
