"""What strangers bring is read by a process of its own: it may end that one, and nothing else.

Their files, repositories and paths never come into the server: it loads what
`gptviz.models.convert` made of them, after a look at the sizes. Reading is a job of a queue of its own: one
file of each visitor's at a time, and so many in all.
"""

import json
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit import runtime

from gptviz.digits import gigabytes
from gptviz.engine.config import WIDEST, divisors
from gptviz.engine.language_model import LanguageModel
from gptviz.jobs import Job, Queue, Task
from gptviz.jobs.local import DaemonThreads
from gptviz.jobs.worker import Worker, start
from gptviz.models.checkpoints import CheckpointError, HeadsMissing, SurplusTokens, TokenizerMissing
from gptviz.models.checkpoints.folder import CONFIG, VOCABULARY, WEIGHTS
from gptviz.models.checkpoints.looks import bytes_of
from gptviz.models.convert import ASSUMED, GROWTH, LONGEST_SENTENCE, SAID, Limits
from gptviz.ui.models.budget import budget, session
from gptviz.ui.settings import cache_bytes, count
from gptviz.ui.waiting import SOON, said_of

CPU = "GPTVIZ_READ_CPU_SECONDS"
SECONDS = "GPTVIZ_READ_SECONDS"
MEMORY = "GPTVIZ_READ_MEMORY_MB"
AT_ONCE = "GPTVIZ_READS_AT_ONCE"
DEFAULTS = {CPU: 3, SECONDS: 60, MEMORY: 2048, AT_ONCE: 2}
# times the seconds: GPT-2 XL, 6.2 GB in float32, took 25 s of the 78 that this gives
MORE_A_GIGABYTE = 4

# with those that are being read, 16 files of all visitors and 3 of one
MOST_WAITING = 14
MOST_OF_ONE = 2
TICK = 0.1  # seconds between two looks at whether it is over, or its visitor has left
LOOK = 0.25  # seconds between two looks of a script that waits

# bytes of what a converted model may have
LARGEST = {SAID: 2**16, CONFIG: 2**16, VOCABULARY: 2**25}
LONGEST_HEADER = 2**23  # of the weights' file


class NotRead(CheckpointError):
    """It was not read, for a reason that is not the file's: the next time it may be."""


@st.cache_resource(max_entries=1, show_spinner=False)
def queue() -> Queue:
    """The process's queue of files to be read. Of a visitor's files it reads one at a time."""
    return reading_queue(count(AT_ONCE, DEFAULTS[AT_ONCE]))


def reading_queue(at_once: int) -> Queue:
    """A queue that has `at_once` jobs done at a time, and one of each visitor's.

    A job is done in a thread, which waits for a process. What it has read lies in the cache of models, so
    nothing is remembered here.
    """
    return Queue(
        DaemonThreads(at_once),
        max_bytes=0,
        most_waiting=MOST_WAITING,
        most_of_one=MOST_OF_ONE,
        full=full,
        excludes=lambda job: job.who,
        gives_way=False,
        remembers=False,
    )


def full(waiting: int, own: int) -> str:
    """The sentence for a visitor whose file may not wait, since so many do."""
    return f"{waiting} files are waiting to be read, {own} of them yours, and no more can wait; try again in a minute"


def read_in_turn(task: Task, visitor: str, check: Callable[[], None]) -> LanguageModel:
    """The model that a task reads, when it is done: a script waits for it, and says its place meanwhile.

    `check()` is called as long as it waits, and raises NotRead to give up. Raises NotRead where the task
    could not be done now, and what the task raises: ValueError, or OSError.
    """
    job: Job[LanguageModel] = queue().get(task, None, visitor)
    place = st.empty()
    while job.active:
        job.look(visitor, SOON)
        try:
            check()
        except NotRead:
            job.leave(visitor)
            raise
        job.join(LOOK)
        # a click interrupts the script here; the job goes on if the next run asks for it again
        if job.state == "waiting":
            place.caption(said_of(job, ""))
        else:
            place.empty()
        # by another tab of this browser, or since nobody looked for so long
        if job.state == "stopped":
            job.start(visitor)
    place.empty()
    if isinstance(job.problem, (ValueError, OSError)) or job.problem is None:
        return job.value
    raise NotRead(f"{job.error}")


def check_here() -> None:
    """Raise NotRead when the visitor whose script this is has left."""
    here = session()
    if here is not None and runtime.exists() and not runtime.get_instance().is_active_session(here):
        raise NotRead("nobody is waiting for it any more")


@contextmanager
def converted(
    path: Path,
    check: Callable[[], object],
    dtype: str,
    n_heads: int | None = None,
    tokenizer: Path | str | None = None,
    *,
    activation: str | None = None,
    named: bool = False,
    drop_surplus: bool = False,
) -> Iterator[Path]:
    """A folder with the checkpoint at `path` as `gptviz.models.convert.convert` writes it; gone afterwards.

    `check()` is called as long as it is read, and raises to give up. Raises CheckpointError.
    """
    if not path.exists():
        raise CheckpointError(f"there is no file or folder {path}")
    limits = limits_for(bytes_of(path))
    out = Path(tempfile.mkdtemp(prefix="read-", dir=budget().root.path))
    numbers = (limits.cpu_seconds, limits.memory_bytes, limits.seconds, limits.file_bytes)
    command = ["gptviz.models.convert", "--dtype", dtype, "--limits", *map(str, numbers)]
    if n_heads is not None:
        command += ["--n-heads", str(n_heads)]
    if activation is not None:
        command += ["--activation", activation]
    if tokenizer is not None:
        command.append(f"--tokenizer={tokenizer}")
    if named:
        command.append("--named")
    if drop_surplus:
        command.append("--drop-surplus")
    try:
        worker = start([*command, str(path), str(out)], out / "worker.log", 1)
        try:
            _wait(worker, limits, check)
        finally:
            worker.kill()
            worker.wait()
        _check(out, limits)
        yield out
    except ValueError as error:  # about the folder, which nobody has heard of
        error.args = (str(error).replace(f"{out}/", "").replace(str(out), str(path)),)
        raise
    finally:
        shutil.rmtree(out, ignore_errors=True)


def activation_is_assumed(folder: Path) -> bool:
    """Whether the GELU of a converted model stands in none of the files that it was made of."""
    return bool(_read(folder / SAID, LARGEST[SAID])[ASSUMED])


def limits_for(nbytes: int) -> Limits:
    """The limits of reading `nbytes` of files: the server's settings, more for large files.

    Files that torch wrote before 1.6 are in memory whole, others are mapped up to twice.
    """
    times = 1 + MORE_A_GIGABYTE * nbytes / 1e9
    return Limits(
        cpu_seconds=round(count(CPU, DEFAULTS[CPU]) * times),
        memory_bytes=cache_bytes(MEMORY, DEFAULTS[MEMORY]) + 3 * nbytes,
        seconds=round(count(SECONDS, DEFAULTS[SECONDS]) * times),
        file_bytes=GROWTH * nbytes + LARGEST[VOCABULARY],
    )


def _wait(worker: Worker, limits: Limits, check: Callable[[], object]) -> None:
    """Until it is gone. Raises CheckpointError where a limit ended it."""
    end = time.monotonic() + limits.seconds
    while not worker.wait(TICK):
        check()
        if time.monotonic() > end:
            raise _ended(f"took more than {limits.seconds} seconds", SECONDS)
    # Windows has no such signals
    ended_by = None if worker.ended_by is None else worker.ended_by.name
    if ended_by == "SIGALRM":
        raise _ended(f"took more than {limits.seconds} seconds", SECONDS)
    if ended_by == "SIGXCPU":
        much = f"took more than {limits.cpu_seconds} seconds of processor time; files of this size need less"
        raise _ended(f"{much}. It is damaged, or was made to be read for ever", CPU)
    if ended_by is not None:
        needs = (
            f"the file is damaged, or needs more than {gigabytes(limits.memory_bytes)} of memory"
        )
        raise _ended(f"was stopped ({worker.how_it_ended}): {needs}", MEMORY)


def _ended(why: str, setting: str) -> CheckpointError:
    return CheckpointError(f"reading it {why}; whoever runs this server can raise {setting}")


def _check_said(said: Any) -> None:
    """Raise the error that the process wrote down, if it did. Only its kind, text and width are looked at."""
    if said in ({"message": "", ASSUMED: True}, {"message": "", ASSUMED: False}):
        return
    message = said.get("message")
    width = said.get("emb_dim", 0)
    if not isinstance(message, str) or type(width) is not int:
        message = "it cannot be read"
        width = 0
    message = message[:LONGEST_SENTENCE]
    if said.get("error") == HeadsMissing.__name__ and 0 < width <= WIDEST:
        raise HeadsMissing(message, divisors(width), width)
    kinds = {kind.__name__: kind for kind in (TokenizerMissing, SurplusTokens)}
    raise kinds.get(str(said.get("error")), CheckpointError)(message)


def _read(path: Path, most: int) -> dict[str, Any]:
    """A small JSON object of the other process. Raises CheckpointError for anything else."""
    _check_size(path, most)
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise CheckpointError("reading it gave no answer")
    return found


def _check_size(path: Path, most: int) -> None:
    try:
        found = path.lstat()  # not where a link leads
    except FileNotFoundError:
        raise CheckpointError(f"reading it gave no {path.name}") from None
    if not stat.S_ISREG(found.st_mode) or found.st_size > most:
        raise CheckpointError(
            f"reading it gave a {path.name} of {found.st_size:,} bytes; at most {most:,} are allowed"
        )


def _check(folder: Path, limits: Limits) -> None:
    """Check that what is loaded now is as small as it should be,
    even if a file has got the other process to cheat.
    """
    _check_said(_read(folder / SAID, LARGEST[SAID]))
    _check_size(folder / CONFIG, LARGEST[CONFIG])
    if (folder / VOCABULARY).exists():
        _check_size(folder / VOCABULARY, LARGEST[VOCABULARY])
    _check_size(folder / WEIGHTS, limits.file_bytes)
    with (folder / WEIGHTS).open("rb") as file:
        header = int.from_bytes(file.read(8), "little")
    if header > LONGEST_HEADER:
        raise CheckpointError(
            f"reading it gave a header of {header:,} bytes; at most {LONGEST_HEADER:,} are allowed"
        )
