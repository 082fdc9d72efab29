"""LiveRun: a folder in which a watched run is planned, trained and kept; here is how it is read.

    plan.json       the choices, and what it goes on from (a fork)
    text.txt        the text, where it is somebody's own
    checkpoint.pt, curve.json       as every run of gptviz.training has them
    status.json     how far it is, and how it ended
    measures.json   what was measured at each point of the curve
    snapshots/      for some of those points the weights (with the optimizer's state) and the attention
    wish            "pause" or "stop", from outside; read after every step

Every file appears whole or not at all, so that readers never wait. `news` and `receive` keep a copy of the
folder elsewhere up to date; `model_files` gives the model of a snapshot away.
"""

import io
import json
import pickle
import zipfile
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from gptviz.engine.language_model import LanguageModel
from gptviz.files.atomic_file import write_atomically, write_text
from gptviz.models.checkpoints.folder import BOOK_WEIGHTS, CONFIG, META
from gptviz.training.live.config import Heads, LiveConfig
from gptviz.training.live.parts import make_model
from gptviz.training.live.snapshots import Snapshot, Snapshots
from gptviz.training.live.tasks import Task, task_for

PLAN = "plan.json"
TEXT = "text.txt"
STATUS = "status.json"
MEASURES = "measures.json"
WISH = "wish"
CURVE = ("step", "tokens", "train", "validation", "seconds")
ENDED = ("paused", "stopped", "done", "failed")


@dataclass(frozen=True)
class Status:
    """How far a run is. `said` is a sentence where it failed. `seconds` are those of its training alone."""

    state: str  # "new", "training", or one of ENDED
    step: int
    steps: int
    seconds: float
    tokens_per_second: float
    said: str | None = None


@dataclass(frozen=True)
class Origin:
    """The origin of a fork: the step that it goes on from, and the heads that it switched off then."""

    step: int
    muted: Heads

    def __post_init__(self) -> None:  # of JSON they are lists
        object.__setattr__(self, "muted", tuple((block, head) for block, head in self.muted))


class LiveRun:
    """The folder of a run, whether it is being trained now or is over. `begin` makes one.

    `origin` says where it was forked; None for a run that began at the beginning.
    """

    def __init__(self, folder: Path):
        self.folder = folder
        plan = self._read(PLAN)
        if plan is None:
            raise ValueError(f"{folder} has no {PLAN}: no training run was begun there")
        self.config = LiveConfig.from_dict(plan["config"])
        if plan["origin"] is None:
            self.origin = None
        else:
            self.origin = Origin(**plan["origin"])

    @cached_property
    def task(self) -> Task:
        return task_for(self.config, self.text)

    @property
    def text(self) -> str | None:
        """The text that the run learns, if a visitor gave one: as it was typed, with its line ends."""
        return self._text(TEXT)

    @property
    def status(self) -> Status:
        """The status that the worker wrote last."""
        values = self._read(STATUS)
        if values is None:
            return Status("new", 0, self.config.steps, 0.0, 0.0)
        return Status(**values)

    @property
    def curve(self) -> pd.DataFrame:
        """A row every `config.every` steps: step, tokens, train, validation (nats a token), seconds."""
        return pd.DataFrame(self._read("curve.json") or [], columns=list(CURVE))

    @property
    def measures(self) -> list[Snapshot]:
        """The measurements at each point of the curve, and before the first step."""
        return [Snapshot.from_dict(values) for values in self._read(MEASURES) or []]

    @property
    def snapshots(self) -> list[Snapshot]:
        """Those of `measures` whose weights and attention are kept."""
        kept_steps = set(self.kept.steps())
        return [measured for measured in self.measures if measured.step in kept_steps]

    @property
    def kept(self) -> Snapshots:
        return Snapshots(self.folder / "snapshots")

    @property
    def nbytes(self) -> int:
        """The size of the folder in bytes."""
        return sum(_size(path) for path in self.folder.rglob("*"))

    def attention(self, step: int) -> NDArray[np.float32]:
        """Every head's attention on the probes at a snapshot, (P, L, H, T, T)."""
        return self.kept.attention(step)

    def lm(self, step: int) -> LanguageModel:
        """The model of a snapshot. ValueError where a GPTModel's file could not say what it computes."""
        if self.config.why_not_elsewhere is not None:
            raise ValueError(self.config.why_not_elsewhere)
        return self.own_lm(step)

    def own_lm(self, step: int) -> LanguageModel:
        """The model of a snapshot of any run, to generate and to be measured: modules may be missing."""
        config = self.config.gpt_config(self.task.vocab_size)
        model = make_model(self.config, config)
        model.load_state_dict(self.kept.state(step)["model"])
        return LanguageModel(model.eval(), self.task.tokenizer, config, self.name(step))

    def name(self, step: int) -> str:
        return f"{self.config.task}-step-{step}"

    def _text(self, name: str) -> str | None:
        """The text of a file; None where it is not there yet, or the run was removed."""
        try:
            return (self.folder / name).read_bytes().decode()
        except FileNotFoundError:
            return None

    def _read(self, name: str) -> Any:
        """The content of a JSON file; None as `_text`."""
        text = self._text(name)
        if text is None:
            return None
        return json.loads(text)

    # what the worker and the queue write

    def use_threads(self, threads: int) -> None:
        """Set torch's threads for the run; one that has begun, or is a fork, keeps its own number."""
        if self.origin is None and not self.measures and threads != self.config.threads:
            self.config = replace(self.config, threads=threads)
            self._write(PLAN, _plan(self.config, None))

    def write_status(self, status: Status) -> None:
        self._write(STATUS, asdict(status))

    def write_measures(self, measures: list[Snapshot]) -> None:
        self._write(MEASURES, [asdict(measured) for measured in measures])

    def _write(self, name: str, values: object) -> None:
        write_text(self.folder / name, json.dumps(values, ensure_ascii=False))

    @property
    def wish(self) -> str | None:
        """The pending request to the run that trains: "pause", "stop" or none."""
        return self._text(WISH)

    def ask(self, wish: str | None) -> None:
        """Ask the run to pause or to stop after its present step; None takes the request back."""
        if wish is None:
            (self.folder / WISH).unlink(missing_ok=True)
        else:
            write_text(self.folder / WISH, wish)


def begin(
    folder: Path, config: LiveConfig, text: str | None = None, origin: Origin | None = None
) -> LiveRun:
    """Plan a run in a folder; nothing is trained yet.

    Raises ValueError where there is a run already, and for a text that will not do.
    """
    if (folder / PLAN).exists():
        raise ValueError(f"{folder} has a training run already; give another folder")
    task_for(config, text)
    folder.mkdir(parents=True, exist_ok=True)
    if config.task == "own":
        (folder / TEXT).write_bytes((text or "").encode())
    write_text(folder / PLAN, json.dumps(_plan(config, origin)))
    return LiveRun(folder)


def fork(
    run: LiveRun, step: int, folder: Path, mute: Heads = (), steps: int | None = None
) -> LiveRun:
    """A new run that goes on from a snapshot, to `steps`, with these (block, head) off beside those before.

    It has the optimizer's state of that step and sees the same batches as the run it comes from: where
    nothing is muted it is that run again. Raises ValueError for a step of which there is no snapshot.
    """
    state = run.kept.state(step)
    if steps is None:
        last = run.config.steps
    else:
        last = steps
    if last <= step:
        raise ValueError(
            f"the snapshot is of step {step}; to go on from there, steps must be more than that"
        )
    config = replace(run.config, steps=last, muted=(*run.config.muted, *mute))
    new = begin(folder, config, run.text, Origin(step, tuple(mute)))
    new.write_measures([measured for measured in run.measures if measured.step < step])
    write_atomically(folder / "checkpoint.pt", lambda path: torch.save(state, path))
    return new


def _plan(config: LiveConfig, origin: Origin | None) -> dict[str, Any]:
    return {"config": asdict(config), "origin": None if origin is None else asdict(origin)}


def _size(path: Path) -> int:
    try:
        if path.is_file():
            return path.stat().st_size
        return 0
    except FileNotFoundError:  # it was a partial one, or its run is being removed
        return 0


# ---- the folder as it is elsewhere, while it is being written: what has changed, and how that is put in ----

Stamps = dict[str, tuple[int, int]]  # a file's time and size when it was last sent
Files = dict[str, bytes | None]  # their path in the folder; None for one that has gone


def news(folder: Path, seen: Stamps) -> Files:
    """The files that changed since `seen`, which is brought up to date."""
    changed: Files = {name: None for name in seen if not (folder / name).exists()}
    for name in changed:
        del seen[name]
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        with suppress(FileNotFoundError):  # it has just gone
            if not path.is_file() or path.suffix == ".partial" or name == WISH:
                continue
            stamp = path.stat().st_mtime_ns, path.stat().st_size
            if seen.get(name) != stamp:
                seen[name] = stamp
                changed[name] = path.read_bytes()
    return changed


def receive(folder: Path, files: Files) -> None:
    """Put files into a folder; the status last, since its readers then look for the others."""
    for name in sorted(files, key=lambda name: name == STATUS):
        content = files[name]
        if content is None:
            (folder / name).unlink(missing_ok=True)
        else:
            write_atomically(folder / name, partial(Path.write_bytes, data=content))


# ---- a trained model as files: the book's `model.pth`, and what one needs to read it again ----


def model_files(run: LiveRun, step: int) -> dict[str, bytes]:
    """Name -> content, for `gptviz.load` of a folder with them, or the file picker with all three.

    `model.pth` is what the book has one save, `torch.save(model.state_dict(), "model.pth")`; `config.json`
    has the book's config; `meta.pkl` is nanoGPT's table of the characters. Raises ValueError for a model that
    these files cannot describe, and for a step of which there is no snapshot.
    """
    lm = run.lm(step)
    weights = io.BytesIO()
    torch.save(lm.model.state_dict(), weights)
    characters = run.task.characters
    table = {
        "vocab_size": len(characters),
        "itos": dict(enumerate(characters)),
        "stoi": {character: id for id, character in enumerate(characters)},
    }
    return {
        BOOK_WEIGHTS: weights.getvalue(),
        CONFIG: (json.dumps(lm.config.to_dict(), indent=2) + "\n").encode(),
        META: pickle.dumps(table, protocol=4),
    }


def archive(files: dict[str, bytes]) -> bytes:
    """The files as a zip."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as zip_file:
        for name, content in files.items():
            zip_file.writestr(name, content)
    return packed.getvalue()
