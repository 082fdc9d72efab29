"""The five switches trained: the same seeds, batches and choices for a GPT-2, a Llama, and one switch at a time.

from gptviz.training.live.side_by_side import compare, curves

curves("chapter", seeds=(123, 124, 125))  # a row for each variant, seed and step
compare("chapter", seeds=(123, 124, 125))  # a row for each variant

What is compared is a small model after a few hundred steps with one learning rate, the usual one for GPT-2. One seed
proves nothing: a difference that another seed turns round is no difference.
"""

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gptviz.engine.forward import threads
from gptviz.engine.index import one_of, whole
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.progress import Progress, ignore_progress
from gptviz.training.live.config import SWITCHES, LiveConfig
from gptviz.training.live.switched import (
    GPT2,
    LLAMA,
    SwitchedModel,
    Switches,
    cache_bytes,
    parameters,
)
from gptviz.training.live.tasks import VALIDATION_BATCHES, task_for
from gptviz.training.loop import TrainingRun

# Two quiet cores train all variants with three seeds in less than two minutes.
USUAL = {
    "chapter": LiveConfig(task="chapter", batch_size=16, steps=240),
    "repeats": LiveConfig(task="repeats", batch_size=16, steps=360),
}
SEEDS = (123, 124, 125)

# what a variant is called -> its switches: none, each alone, all
VARIANTS = {
    "GPT-2": GPT2,
    "RMSNorm": Switches(rms_norm=True),
    "RoPE": Switches(rope=True),
    "SwiGLU": Switches(swiglu=True),
    "grouped keys": Switches(grouped=True),
    "no biases": Switches(no_biases=True),
    "Llama: all five": LLAMA,
}
BASE = "GPT-2"
LEAST = 0.0005  # nats: what is less is 0.000 on the screen


@dataclass(frozen=True)
class Learnt:
    """The losses of one training, in nats per token, (n,) each: a point every `config.every` steps.

    `train` is the mean of the steps since the last point.
    """

    variant: str
    seed: int
    steps: NDArray[np.int64]
    train: NDArray[np.float64]
    validation: NDArray[np.float64]

    @property
    def final(self) -> float:
        """The validation loss after the last step."""
        return float(self.validation[-1])


class _Unsaved(TrainingRun):
    """A run that nobody resumes: it leaves nothing on the disk."""

    def save(self) -> None:
        """Save nothing."""


def usual(task: str, seed: int = SEEDS[0]) -> LiveConfig:
    """The choices of the comparison for a task, "chapter" or "repeats". Raises ValueError for another."""
    return replace(USUAL[one_of("the task", task, USUAL)], seed=seed)


def learn(variant: str, config: LiveConfig, progress: Progress = ignore_progress) -> Learnt:
    """Train one variant, a name of `VARIANTS`, by the loop and the batches of every watched run.

    All variants see the same batches of a seed in the same order; "GPT-2" is the watched run of this
    config, number by number. Raises ValueError for an unknown variant, for a config with something off, and
    where the loss is no number any more.
    """
    switches = VARIANTS[one_of("the variant", variant, VARIANTS)]
    _check_whole(config)
    task = task_for(config)
    make = partial(SwitchedModel, switches=switches)
    with threads(config.threads):
        run = _Unsaved.start(
            config.gpt_config(task.vocab_size), config.recipe(), Path(os.devnull), make=make
        )

        def watch(run: TrainingRun) -> bool:
            progress(run.step, config.steps)
            return True

        run.train(
            task.batches,
            task.validation,
            validate_every=config.every,
            validation_batches=VALIDATION_BATCHES,
            progress=False,
            watch=watch,
        )
    points = pd.DataFrame(run.curve)
    if not math.isfinite(points["validation"].iloc[-1]):
        raise ValueError(
            f"the loss of {variant} was no number any more after {config.steps:,} steps: a learning rate of "
            f"{config.learning_rate:g} is too high for it"
        )
    steps, train, validation = (points[name].to_numpy() for name in ("step", "train", "validation"))
    return Learnt(variant, config.seed, steps, train, validation)


def _check_whole(config: LiveConfig) -> None:
    """Raise ValueError for a config whose model is no whole GPTModel."""
    plain = LiveConfig()
    for name in (*SWITCHES, "activation", "muted", "dropout"):
        value = getattr(config, name)
        if value != getattr(plain, name):
            raise ValueError(
                f"{name} is {value!r}; the five switches need a whole model: {getattr(plain, name)!r}"
            )


def learn_aside(
    lm: LanguageModel, variant: str, config: LiveConfig, progress: Progress = ignore_progress
) -> Learnt:
    """`learn` as a job of the server's queue, which gives every job a model; this one makes its own."""
    return learn(variant, config, progress)


def curves(
    task: str = "chapter",
    seeds: Sequence[int] = SEEDS,
    changes: dict[str, Any] | None = None,
    progress: Progress = ignore_progress,
) -> pd.DataFrame:
    """Train every variant with every seed: columns variant, seed, step, train, validation (nats per token).

    `changes` are choices of a LiveConfig that differ from the task's usual ones, such as {"steps": 100}. As it
    is, it takes two to four minutes on one core.
    """
    return table(every(task, seeds, changes, progress))


def compare(
    task: str = "chapter",
    seeds: Sequence[int] = SEEDS,
    changes: dict[str, Any] | None = None,
    progress: Progress = ignore_progress,
) -> pd.DataFrame:
    """A row for each variant, from the same trainings as `curves`: see `sizes` and `ends` for the columns."""
    learnt = every(task, seeds, changes, progress)
    return sizes(replace(usual(task), **(changes or {}))).merge(ends(learnt), on="variant")


def every(
    task: str,
    seeds: Sequence[int],
    changes: dict[str, Any] | None = None,
    progress: Progress = ignore_progress,
) -> list[Learnt]:
    """Train every variant with every seed, a seed after the other."""
    config = replace(usual(task), **(changes or {}))
    total = len(seeds) * len(VARIANTS)
    learnt: list[Learnt] = []
    for seed in seeds:
        for variant in VARIANTS:
            progress(len(learnt), total)
            learnt.append(learn(variant, replace(config, seed=seed)))
    return learnt


def table(learnt: Sequence[Learnt]) -> pd.DataFrame:
    """All points: variant, seed, step, train, validation."""
    points = [
        (one.variant, one.seed, step, train, validation)
        for one in learnt
        for step, train, validation in zip(one.steps, one.train, one.validation, strict=True)
    ]
    return pd.DataFrame(points, columns=["variant", "seed", "step", "train", "validation"])


@lru_cache(maxsize=8)
def sizes(config: LiveConfig) -> pd.DataFrame:
    """What each variant takes, without any training: columns variant, parameters, cache.

    `cache` are the bytes of the keys and values of `context_length` tokens, in float32.
    """
    gpt = config.gpt_config(task_for(config).vocab_size)
    rows = [
        (name, parameters(gpt, switches), cache_bytes(gpt, switches, gpt.context_length))
        for name, switches in VARIANTS.items()
    ]
    return pd.DataFrame(rows, columns=["variant", "parameters", "cache"])


def ends(learnt: Sequence[Learnt]) -> pd.DataFrame:
    """Where each variant ends, a row each: the validation loss after the last step, in nats per token.

    `loss` is the mean over the seeds, `low` and `high` are the lowest and the highest. `change` is the loss minus
    that of GPT-2 with the same seed, below 0 for a lower loss: its mean, `change_low` the lowest, `change_high`
    the highest.
    """
    finals = pd.DataFrame(
        [(one.variant, one.seed, one.final) for one in learnt], columns=["variant", "seed", "loss"]
    )
    grid = finals.pivot(index="seed", columns="variant", values="loss")
    rows = []
    for variant in dict.fromkeys(finals["variant"]):
        losses = grid[variant]
        change = losses - grid[BASE]
        rows.append(
            (
                variant,
                losses.mean(),
                losses.min(),
                losses.max(),
                change.mean(),
                change.min(),
                change.max(),
            )
        )
    columns = ["variant", "loss", "low", "high", "change", "change_low", "change_high"]
    return pd.DataFrame(rows, columns=columns)


def agrees(row: pd.Series) -> int:
    """The sign of the change that every seed shows in a row of `ends`: -1, 1, or 0 where they do not agree.

    A change of less than `LEAST` has no sign.
    """
    if row["change_high"] <= -LEAST:
        return -1
    if row["change_low"] >= LEAST:
        return 1
    return 0


def by_luck(seeds: int) -> float:
    """The probability that all seeds show one sign, if a switch makes each up or down as a coin does: 2 / 2^seeds.

    Raises ValueError for less than 1 seed.
    """
    return 2.0 ** (1 - whole("seeds", seeds, 1))
