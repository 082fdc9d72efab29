"""A recorded training: one head that becomes an induction head, at every tenth step of the usual run.

`python -m gptviz.training record` trains the preset "An induction head is born" and writes the file that ships
with gptviz; the page shows it before anybody has trained anything. It is a run as any other: `train` made it,
and its measures are those of a `LiveRun`.

Shapes: n points, T tokens.
"""

import json
import tempfile
from dataclasses import asdict, dataclass, replace
from datetime import date
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gptviz.analysis.birth import Birth
from gptviz.files.atomic_file import write_text
from gptviz.training.live.config import PRESETS, LiveConfig
from gptviz.training.live.run import LiveRun, Status, begin
from gptviz.training.live.seen import Seen, look
from gptviz.training.live.snapshots import Snapshot
from gptviz.training.live.work import train

SHIPPED = Path(__file__).parents[2] / "assets" / "birth.json"
COMMAND = "python -m gptviz.training record"
EVERY = 10  # steps from one point to the next
PROBE = 1  # of the task's probes, the one that the page shows at first
PASSAGES = 2  # of that probe: the second is where there is something to copy
ALL_OF_THEM = 2**40  # bytes: no snapshot is left out


@dataclass(frozen=True)
class Recording:
    """A training as it went: its choices, what was measured, and one head's attention at each point.

    `weights` are percent, whole numbers: at each point a list of the rows of (T, T), row by row what the causal
    mask leaves. `text` has the T characters that they are between; a passage of `period` of them repeats.
    `blind` and `floor` are the losses of a uniform guess and of the best that there is, in nats a token.
    """

    command: str
    made_on: str
    torch: str
    config: LiveConfig
    text: str
    period: int
    block: int
    head: int
    blind: float
    floor: float
    measures: tuple[Snapshot, ...]
    weights: tuple[tuple[int, ...], ...]

    @property
    def seen(self) -> Seen:
        """The run as the page sees one that is over."""
        steps = tuple(measured.step for measured in self.measures)
        status = Status("done", steps[-1], self.config.steps, 0.0, 0.0)
        return Seen("the recorded run", self.config, status, self.measures, steps)

    @property
    def birth(self) -> Birth:
        """The birth that was recorded. Raises ValueError if there is none."""
        born = self.seen.birth
        if born is None:
            raise ValueError("no induction head appeared in this run: there is nothing to record")
        return born

    @property
    def scores(self) -> NDArray[np.floating]:
        """The head's induction score at each point, (n,)."""
        return self.seen.curves.induction[:, self.block, self.head]

    @property
    def losses(self) -> NDArray[np.floating]:
        """The validation loss at each point, (n,), in nats a token."""
        return self.seen.curves.validation


def recording_of(run: LiveRun) -> Recording:
    """The recording of a run all of whose snapshots are kept. Raises ValueError if no induction head appeared."""
    seen = look(run, "")
    steps = [measured.step for measured in seen.measures]
    if list(seen.kept) != steps:
        raise ValueError("some snapshots of this run were not kept: record it anew")
    probe = run.task.probes[PROBE]
    if probe.period is None or run.task.floor is None or seen.birth is None:
        raise ValueError("no induction head appeared in this run: there is nothing to record")
    head = seen.birth.head
    count = PASSAGES * probe.period  # T
    below = np.tril_indices(count)
    weights = []
    for step in steps:
        square = run.attention(step)[PROBE, head.block, head.head, :count, :count]  # (T, T)
        percent = np.rint(100 * square[below]).astype(int)  # (T (T + 1) / 2,)
        weights.append(tuple(percent.tolist()))
    return Recording(
        COMMAND,
        f"{date.today()}",
        torch.__version__,
        run.config,
        probe.text[:count],
        probe.period,
        head.block,
        head.head,
        round(run.task.ln_v, 4),
        round(run.task.floor, 4),
        seen.measures,
        tuple(weights),
    )


def planned() -> LiveConfig:
    """The choices of the run that is recorded: the first preset's, with a snapshot at every tenth step."""
    return replace(PRESETS["birth"].runs[0], every=EVERY)


def record(path: Path) -> Recording:
    """Train the run from its first step to its last, and write what was seen to `path`."""
    with tempfile.TemporaryDirectory() as folder:
        run = begin(Path(folder) / "run", planned())
        recording = recording_of(train(run.folder, max_bytes=ALL_OF_THEM))
    write_text(path, written(recording))
    return recording


def written(recording: Recording) -> str:
    """The recording as JSON, a point a line."""
    values = asdict(recording)
    long = ("measures", "weights")
    parts = [f'"{name}": {_dense(values[name])}' for name in values if name not in long]
    for name in long:
        rows = ",\n".join(_dense(row) for row in values[name])
        parts.append(f'"{name}": [\n{rows}\n]')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _dense(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def read(text: str) -> Recording:
    """The recording that was written. Raises ValueError, a sentence, for what cannot be one."""
    values: dict[str, Any] = json.loads(text)
    values["config"] = LiveConfig.from_dict(values["config"])
    values["measures"] = tuple(Snapshot.from_dict(measured) for measured in values["measures"])
    values["weights"] = tuple(map(tuple, values["weights"]))
    recording = Recording(**values)
    count = len(recording.text)
    cells = count * (count + 1) // 2
    steps = [measured.step for measured in recording.measures]
    if len(recording.weights) != len(steps) or any(len(row) != cells for row in recording.weights):
        raise ValueError(f"a recording of {count} tokens has {cells} weights at each of its points")
    if any(later <= earlier for earlier, later in pairwise(steps)):
        raise ValueError("the points of a recording must be in order of their steps")
    if not all(0 <= weight <= 100 for row in recording.weights for weight in row):
        raise ValueError("the weights of a recording are percent, from 0 to 100")
    return recording


@cache
def shipped() -> Recording:
    """The recording that gptviz brings along; nobody changes it."""
    return read(SHIPPED.read_text(encoding="utf-8"))
