"""What the trained model can do: copy, write on, and be loaded quickly.

Copying is measured on random tokens that are followed by themselves: nothing but looking back can
predict the second half (Olsson et al., In-context Learning and Induction Heads, 2022).
"""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gptviz.analysis.head_formulas import induction_score, previous_token_score
from gptviz.engine.generate import generate
from gptviz.engine.language_model import LanguageModel
from gptviz.loading import load
from gptviz.training.held_out import model_nats

PERIODS = (50, 100)
SEEDS = tuple(range(8))


def repeated_tokens(lm: LanguageModel, period: int, seed: int) -> list[int]:
    """`period` ids drawn evenly from the ordinary tokens, followed by themselves: 2 * period ids."""
    ordinary = lm.config.vocab_size - len(lm.tokenizer.special_tokens_set)  # special ids are the last ones
    passage = np.random.default_rng((seed, period)).integers(0, ordinary, period).tolist()
    return passage + passage


@dataclass(frozen=True)
class HeadScore:
    """A head's mean attention, from 0 to 1, on repeated random tokens. Blocks and heads count from 0."""

    block: int
    head: int
    induction: float  # from a second occurrence to the token after the first
    previous_token: float  # from each token to the one before it


@dataclass(frozen=True)
class CopyingLoss:
    """Nats a token on repeated random tokens.

    The second half's first token cannot be foreseen and is counted; the first half's is not predicted.
    """

    period: int
    first_half: float
    second_half: float

    def to_dict(self) -> dict[str, float]:
        return asdict(self) | {"ratio": self.second_half / self.first_half}


def head_scores(
    lm: LanguageModel, periods: Sequence[int] = PERIODS, seeds: Sequence[int] = SEEDS
) -> list[HeadScore]:
    """Every head, block by block: means over the periods and the seeds."""
    induction, previous = [], []
    for period in periods:
        for seed in seeds:
            trace = lm.trace(repeated_tokens(lm, period, seed), keep=["attn"])
            attn = torch.stack([trace["attn", block] for block in range(lm.config.n_layers)])  # (L, H, T, T)
            induction.append(induction_score(attn, period))
            previous.append(previous_token_score(attn))
    mean_induction, mean_previous = (
        torch.stack(scores).mean(0) for scores in (induction, previous)
    )  # (L, H)
    return [
        HeadScore(block, head, mean_induction[block, head].item(), mean_previous[block, head].item())
        for block in range(lm.config.n_layers)
        for head in range(lm.config.n_heads)
    ]


def copying_losses(
    lm: LanguageModel, periods: Sequence[int] = PERIODS, seeds: Sequence[int] = SEEDS
) -> list[CopyingLoss]:
    """The loss on the first and on the second half, for each period, means over the seeds."""
    lm.check_plain("the loss on repeated tokens")
    return [_copying_loss(lm, period, seeds) for period in periods]


def _copying_loss(lm: LanguageModel, period: int, seeds: Sequence[int]) -> CopyingLoss:
    nats = np.stack(
        [
            model_nats(lm.model, np.array(repeated_tokens(lm, period, s)), lm.config.context_length)
            for s in seeds
        ]
    )  # (seeds, 2 * period - 1): the very first token is not predicted
    return CopyingLoss(period, float(nats[:, : period - 1].mean()), float(nats[:, period - 1 :].mean()))


def samples(
    lm: LanguageModel,
    prompt: str = "Once upon a time",
    tokens: int = 60,
    temperature: float = 0.8,
    seeds: Sequence[int] = (1, 2, 3),
) -> list[dict[str, Any]]:
    """The prompt continued, once a seed; the first seeds there are, not the best of many."""
    found = []
    for seed in seeds:
        *_, last = generate(lm, prompt, tokens, temperature=temperature, seed=seed)
        found.append(
            {
                "prompt": prompt,
                "seed": seed,
                "temperature": temperature,
                "tokens": tokens,
                "text": last.text_so_far,
            }
        )
    return found


def footprint(folder: Path) -> dict[str, Any]:
    """Bytes on disk, parameters, and seconds to load: the median of three, in a process that has torch."""
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        lm = load(folder)
        seconds.append(time.perf_counter() - began)
    return {
        "bytes": sum(path.stat().st_size for path in folder.iterdir() if path.is_file()),
        "parameters": sum(parameter.numel() for parameter in lm.model.parameters()),  # a tied one once
        "load_seconds": sorted(seconds)[1],
    }
