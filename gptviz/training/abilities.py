"""What the trained model can do: copy, write on, and be loaded quickly.

Copying is measured on random tokens that are followed by themselves: nothing but looking back can
predict the second half (Olsson et al., In-context Learning and Induction Heads, 2022).
"""

import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
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


def head_scores(
    lm: LanguageModel, periods: Sequence[int] = PERIODS, seeds: Sequence[int] = SEEDS
) -> pd.DataFrame:
    """Return every head's mean attention, from 0 to 1, on repeated random tokens: over periods and seeds.

    Columns: block, head, induction (from a second occurrence to the token after the first), previous_token.
    """
    heads = pd.MultiIndex.from_product(map(range, (lm.config.n_layers, lm.config.n_heads)))
    scores = []
    for period, seed in product(periods, seeds):
        trace = lm.trace(repeated_tokens(lm, period, seed), keep=["attn"])
        attn = torch.stack([trace["attn", block] for block in range(lm.config.n_layers)])  # (L, H, T, T)
        scores.append(torch.stack([induction_score(attn, period), previous_token_score(attn)]))
    means = torch.stack(scores).mean(0).flatten(1).T.double()  # (2, L, H) -> (L * H, 2)
    table = pd.DataFrame(means.numpy(), heads, ["induction", "previous_token"])
    return table.rename_axis(["block", "head"]).reset_index()


def copying_losses(
    lm: LanguageModel, periods: Sequence[int] = PERIODS, seeds: Sequence[int] = SEEDS
) -> pd.DataFrame:
    """Return nats per token on repeated random tokens, a row per period, means over the seeds.

    Columns: period, first_half, second_half, ratio (of the second to the first). The second half's first
    token cannot be foreseen and is counted; the first half's is not predicted. Raises ValueError for a model
    with edits.
    """
    if lm.edits:
        raise ValueError("copying_losses is of a model as it is, and this one has edits: give lm.plain")
    rows, context = [], lm.config.context_length
    for period in periods:
        texts = [np.array(repeated_tokens(lm, period, seed)) for seed in seeds]
        nats = np.stack([model_nats(lm.model, ids, context) for ids in texts])  # (seeds, 2 * period - 1)
        rows.append((period, nats[:, : period - 1].mean(), nats[:, period - 1 :].mean()))
    table = pd.DataFrame(rows, columns=["period", "first_half", "second_half"])
    return table.assign(ratio=table["second_half"] / table["first_half"])


def samples(
    lm: LanguageModel,
    prompt: str = "Once upon a time",
    tokens: int = 60,
    temperature: float = 0.8,
    seeds: Sequence[int] = (1, 2, 3),
) -> list[dict[str, Any]]:
    """Return the prompt continued, once a seed; the first seeds there are, not the best of many."""
    asked = {"prompt": prompt, "temperature": temperature, "tokens": tokens}
    made = {seed: [*generate(lm, prompt, tokens, temperature, seed=seed)][-1] for seed in seeds}
    return [asked | {"seed": seed, "text": last.text_so_far} for seed, last in made.items()]


def footprint(folder: Path) -> dict[str, Any]:
    """Return bytes on disk, parameters, and seconds to load: the median of three, with torch in memory."""
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
