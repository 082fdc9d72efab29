"""`train`: the work of a watched run, in this process. The worker and the command line call nothing else.

`train_one` is a whole run in a line of Python. The loop is `gptviz.training.loop`'s; what is added is what
one watches: measures, snapshots, wishes.
"""

import errno
import math
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gptviz.engine.forward import threads
from gptviz.engine.language_model import LanguageModel
from gptviz.training.live.config import LiveConfig
from gptviz.training.live.parts import held_at_zero, make_model, set_noise
from gptviz.training.live.run import LiveRun, Status, begin
from gptviz.training.live.snapshots import MAX_BYTES, Snapshot, snapshot
from gptviz.training.live.tasks import VALIDATION_BATCHES
from gptviz.training.loop import TrainingRun, make_loss, validation_loss

STATUS_SECONDS = 0.4  # between two words on how far it is


class Diverged(ValueError):
    """The loss is no number any more."""


def train(
    folder: Path, stop_at: int | None = None, snapshots: bool = True, max_bytes: int = MAX_BYTES
) -> LiveRun:
    """Train the run that was begun in a folder, or go on with it, to its end or until it is asked to stop.

    `stop_at`: pause at this step. Without `snapshots` only the curve is written. Whatever ends it, the
    status says how; errors are raised after that.
    """
    worker = _Worker(LiveRun(folder), stop_at, snapshots, max_bytes)
    try:
        with threads(worker.live.config.threads):
            worker.work()
    except Exception as error:
        worker.say("failed", _why(error))
        raise
    return worker.live


def _why(error: Exception) -> str:
    """Why a training ended, as a sentence."""
    if isinstance(error, ValueError):
        return f"{error}"
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return "The training broke off, since the disk is full. What was saved before is kept: make room."
    return f"The training broke off: {type(error).__name__} {error}"


def train_one(changes: dict[str, Any] | None = None, text: str | None = None) -> np.ndarray:
    """Train with the usual choices and these changes; return the last snapshot's attention, (P, L, H, T, T).

    P probes, L blocks, H heads, T tokens. `text` is what a run of the task "own" learns.
    """
    run = begin(Path(tempfile.mkdtemp()) / "run", LiveConfig.from_dict(changes or {}), text)
    print(
        f"a blind guess {run.task.ln_v:.4f}, the bigram {run.task.bigram:.4f}, the floor {run.task.floor}"
    )
    train(run.folder)
    for point in run.measures:  # each score is (score, block, head)
        scores = f"induction {point.best_induction}, previous token {point.best_previous}"
        print(f"step {point.step:5}  validation {point.validation:.4f}  {scores}")
    return run.attention(run.kept.steps()[-1])


class _Worker:
    def __init__(self, live: LiveRun, stop_at: int | None, snapshots: bool, max_bytes: int):
        self.live = live
        self.task = live.task
        self.stop_at = stop_at
        self.snapshots = snapshots
        self.max_bytes = max_bytes
        config = live.config.gpt_config(self.task.vocab_size)
        self.noise = torch.Generator() if live.config.dropout else None
        make = partial(make_model, live.config, noise=self.noise)
        masks = held_at_zero(live.config, config)
        self.run = TrainingRun.start(
            config, live.config.recipe(), live.folder, make=make, held=masks
        )
        self._begin_step()
        self.lm = LanguageModel(self.run.model, self.task.tokenizer, config, "live")
        self.measures: list[Snapshot] = [m for m in live.measures if m.step <= self.run.step]
        self.began_at = self.run.step
        self.seconds_before = self.run.seconds
        self.said_at = 0.0
        self.wished: str | None = None

    def work(self) -> None:
        self.say("training")
        self._measure_where_it_begins()
        self.run.train(
            self.task.batches,
            self.task.validation,
            validate_every=self.live.config.every,
            validation_batches=VALIDATION_BATCHES,
            progress=False,
            watch=self._watch,
        )
        done = self.run.step >= self.live.config.steps
        asked = {"pause": "paused", "stop": "stopped"}.get(self.wished or "", "paused")
        self.say("done" if done else asked)

    def _measure_where_it_begins(self) -> None:
        """Measure before the first step, or where a fork goes on, or what a killed worker left out."""
        point = None
        if self.run.curve:
            point = self.run.curve[-1]
        measured = bool(self.measures) and self.measures[-1].step == self.run.step
        if measured or self.run.step != (0 if point is None else point["step"]):
            return  # it was paused: here, or between two points
        loss = make_loss(self.run.model, self.run.device, False, self.run.recipe.precision)
        self.run.model.eval()
        validation = validation_loss(
            loss,
            self.task.validation,
            self.run.recipe.batch_size,
            self.run.device,
            VALIDATION_BATCHES,
        )
        self._measure(None if point is None else point["train"], round(validation, 4))

    def _begin_step(self) -> None:
        if self.noise is not None:
            set_noise(self.noise, self.live.config.seed, self.run.step)

    def _watch(self, run: TrainingRun) -> bool:
        self._begin_step()  # the next one
        point = None
        if run.curve and run.curve[-1]["step"] == run.step:
            point = run.curve[-1]
        if point is None:
            loss = run.recent[-1]
        else:
            loss = point["train"] + point["validation"]
        if not math.isfinite(loss):
            raise Diverged(
                f"At step {run.step} the loss was no number any more: it grew beyond all bounds. A learning "
                f"rate of {self.live.config.learning_rate:g} is too high for this model"
            )
        if point is not None:
            self._measure(point["train"], point["validation"])
        stop = self.stop_at is not None and run.step >= self.stop_at
        if stop:
            self.wished = "pause"
        else:
            self.wished = self.live.wish
        if self.wished is not None:
            if point is None:
                run.save()
            return False
        if time.monotonic() - self.said_at > STATUS_SECONDS:
            self.say("training")
        return True

    def _measure(self, train: float | None, validation: float) -> None:
        if not self.snapshots:
            return
        off = self.live.config.off
        measured, attn = snapshot(self.lm, self.task, self.run.step, train, validation, off)
        self.measures.append(measured)
        self.live.kept.keep(
            self.run.step, self.run.state(), attn, self.live.config.every, self.max_bytes
        )
        self.live.write_measures(self.measures)

    def say(self, state: str, said: str | None = None) -> None:
        run = self.run
        tokens = (run.step - self.began_at) * run.recipe.batch_size * run.config.context_length
        seconds = run.seconds - self.seconds_before
        self.live.write_status(
            Status(
                state,
                run.step,
                run.recipe.steps,
                run.seconds,
                tokens / seconds if seconds else 0.0,
                said,
            )
        )
        self.said_at = time.monotonic()
