"""What is measured of a model at a snapshot: every head's attention on the probes, its scores, a sample.

Shapes in comments: P probes, L blocks, H heads, T tokens.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gptviz.analysis.head_formulas import induction_score, previous_token_score
from gptviz.engine import forward
from gptviz.engine.generate import generate
from gptviz.engine.language_model import LanguageModel
from gptviz.model import GPTModel
from gptviz.training.live.tasks import Probe, Task

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
    off: tuple[tuple[int, int], ...] = ()

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "Snapshot":
        pairs = {
            name: tuple(tuple(row) for row in values.get(name, ()))
            for name in ("induction", "previous_token", "off")
        }
        return cls(**{**values, **pairs})

    @property
    def best_induction(self) -> tuple[float, int, int]:
        """(score, block, head) of the head that is most of an induction head."""
        return self._best(self.induction)

    @property
    def best_previous(self) -> tuple[float, int, int]:
        """(score, block, head) of the head that looks most at the previous token."""
        return self._best(self.previous_token)

    def _best(self, scores: Scores) -> tuple[float, int, int]:
        every = ((score, b, h) for b, row in enumerate(scores) for h, score in enumerate(row))
        return max((one for one in every if one[1:] not in self.off), default=(0.0, 0, 0))


def attention(model: GPTModel, probes: tuple[Probe, ...]) -> torch.Tensor:
    """Every head's attention on every probe, all in one pass: (P, L, H, T, T). Needs probes of one length."""
    kept: list[torch.Tensor] = []
    hooks = [
        forward.Hook(f"trf_blocks.{block}.att.dropout", "input", lambda weights: kept.append(weights))
        for block in range(len(model.trf_blocks))
    ]
    forward.hidden(model, torch.tensor([probe.ids for probe in probes]), hooks)  # (P, T)
    return torch.stack(kept, dim=1).float()  # L times (P, H, T, T) -> (P, L, H, T, T)


def head_scores(attn: torch.Tensor, probes: tuple[Probe, ...]) -> tuple[torch.Tensor, torch.Tensor]:
    """(induction, previous token) of every head, (L, H) each: means over the probes that repeat."""
    repeated = [(attn[i], probe.period) for i, probe in enumerate(probes) if probe.period is not None]
    induction = torch.stack([induction_score(weights, period) for weights, period in repeated])
    previous = torch.stack([previous_token_score(weights) for weights, _ in repeated])
    return induction.mean(dim=0), previous.mean(dim=0)


def sample(lm: LanguageModel, task: Task) -> str:
    """Return the text that follows the prompt: greedily where there is one right answer, else by chance."""
    temperature = 0.0 if task.floor is not None else 1.0
    *_, last = generate(lm, task.prompt, SAMPLE_TOKENS, temperature=temperature, seed=SAMPLE_SEED)
    return last.text_so_far[len(task.prompt) :]


def snapshot(
    lm: LanguageModel,
    task: Task,
    step: int,
    train: float | None,
    validation: float,
    off: tuple[tuple[int, int], ...] = (),
) -> tuple[Snapshot, NDArray[np.float32]]:
    """A snapshot and the attention that it was measured on, (P, L, H, T, T)."""
    attn = attention(lm.model, task.probes)
    induction, previous = (
        tuple(tuple(round(score, 4) for score in row) for row in scores.tolist())
        for scores in head_scores(attn, task.probes)
    )
    return Snapshot(step, train, validation, induction, previous, sample(lm, task), off), attn.numpy()
