"""The training runs of all visitors: so many at a time, the others in the order in which they came.

Who asks for what another has asked for shares that run: it is trained once. Who pauses or stops it goes on
with a copy of his own.

A run trains in a process of its own, `python -m gptviz.training live`, on a leash: it ends when this server
does, however that ends. A thread waits for each of them, and starts the next.
"""

import os
import shutil
import threading
import uuid
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from gptviz.digits import gigabytes
from gptviz.files.owned_folder import TRAININGS, Root
from gptviz.training.live import LiveConfig, LiveRun, begin, fork
from gptviz.training.live.config import Heads
from gptviz.training.live.run import ENDED, news, receive
from gptviz.training.live.snapshots import MAX_BYTES
from gptviz.ui.worker import Worker, start
from gptviz.work.cluster import RAY

MOST_OF_ONE = 8  # runs that a visitor may have at a time, those that are over included
WAITING = "GPTVIZ_TRAININGS_WAITING"  # the setting for `most_waiting`
ACTIVE = ("waiting", "starting", "training")

LOG = "worker.log"


def launch(folder: Path, threads: int) -> Worker:
    """A worker for the run that was begun in a folder, from where it is; `threads` as its plan says.

    With a Ray cluster (GPTVIZ_RAY) it trains there, and the worker keeps the folder here as it is there.
    """
    address = os.environ.get(RAY)
    far = ["--ray", address] if address else []
    return start(["gptviz.training", "live", "--work", str(folder), *far], folder / LOG, threads)


@dataclass(eq=False)
class Job:
    """What is trained in a folder, for one visitor or for several."""

    run: LiveRun
    worker: Worker | None = None  # the last one
    trouble: str | None = None  # a sentence, where it could not even start


class Training:
    """A visitor's run: what lies in its folder, and where it stands in the queue."""

    def __init__(self, queue: "Queue", owner: str, number: str, label: str, job: Job):
        self.owner = owner
        self.number = number
        self.label = label
        self.job = job
        self.opened: dict[int, str] = {}  # step -> the upload that it was opened as
        self.parent: str | None = None  # the number of the run that it was forked from
        self._queue = queue

    @property
    def run(self) -> LiveRun:
        return self.job.run

    @property
    def config(self) -> LiveConfig:
        return self.run.config

    @property
    def shared(self) -> int:
        """The number of other runs that are this same training: it is done once for all of them."""
        return self._queue.sharing(self.job) - 1

    @property
    def place(self) -> int | None:
        """Whose turn it is: 1 for the next to start; None when it does not wait."""
        return self._queue.place_of(self.job)

    @property
    def state(self) -> str:
        """waiting, starting, training, paused, stopped, done, failed or killed."""
        if self.place is not None:
            return "waiting"
        if self.job.trouble is not None:
            return "failed"
        said = self.run.status.state
        if self.job.worker is not None and self.job.worker.running:
            return "starting" if said == "new" else said
        return "killed" if said in ("new", "training") else said

    @property
    def active(self) -> bool:
        """True while the run may change by itself: it waits, starts or trains."""
        return self.state in ACTIVE

    @property
    def said(self) -> str | None:
        """A sentence on why it is over, where it did not come to its end."""
        status = self.run.status
        if self.state != "killed":
            return self.job.trouble or status.said
        how = "" if self.job.worker is None else f" ({self.job.worker.how_it_ended})"
        return (
            f"The training was ended from outside{how} after step {status.step:,} of {status.steps:,}. "
            "What it had measured until then is still here, and it can go on from its last snapshot"
        )

    def pause(self) -> None:
        """Save and end the worker: its turn is the next one's. Nothing where it neither trains nor waits.

        This, `stop` and `resume` raise ValueError, a sentence, where the disk or the queue is full.
        """
        self._queue.halt(self, "pause")

    def stop(self) -> None:
        """The same, for good: it is over, with what it has."""
        self._queue.halt(self, "stop")

    def resume(self) -> None:
        """Queue it again. It goes on where it was, and sees what it would have seen without the pause."""
        if self.state in ("paused", "stopped", "killed"):
            self._queue.enter(self.job)


class Queue:
    """The runs of this server. `at_once` train at a time; together they keep at most `max_bytes` on disk.

    A run has one of torch's threads, or `alone` of them if nobody else's trains or waits when it begins.

    At most `most_waiting` wait; whoever comes then is refused.

    `close()`, or the end of the program, ends all workers and deletes all folders.
    """

    def __init__(
        self,
        at_once: int,
        max_bytes: int,
        launch: Callable[[Path, int], Worker] = launch,
        alone: int = 1,
        most_waiting: int = 100,
    ):
        self.at_once = at_once
        self.max_bytes = max_bytes
        self.alone = alone
        self.most_waiting = most_waiting
        self._launch = launch
        self._root = Root(TRAININGS)
        self._all: dict[str, Training] = {}
        self._waiting: list[Job] = []
        self._running: dict[Job, Worker] = {}
        self._lock = threading.RLock()
        self.close = weakref.finalize(self, _end, self._root, self._waiting, self._running, self._lock)

    # ---- what a visitor has ----

    def of(self, owner: str) -> tuple[Training, ...]:
        """A visitor's runs, the oldest first."""
        return tuple(training for training in list(self._all.values()) if training.owner == owner)

    def find(self, owner: str, number: str) -> Training | None:
        """A run of this visitor; None for everybody else's."""
        return next((training for training in self.of(owner) if training.number == number), None)

    def start(self, owner: str, config: LiveConfig, text: str | None = None) -> Training:
        """A new run at the end of the queue, or another's share of one. Raises ValueError, a sentence."""
        with self._lock:
            for other in list(self._all.values()):
                run = other.run
                fresh = other.state in (*ACTIVE, "done") and other.run.origin is None
                if fresh and run.config == config and run.text == (text if config.task == "own" else None):
                    return self._add(owner, other.job)
        return self._add(owner, lambda folder: begin(folder, config, text))

    def fork(self, training: Training, step: int, mute: Heads = (), steps: int | None = None) -> Training:
        """A run that goes on from another's snapshot. Raises ValueError, a sentence."""
        forked = self._add(training.owner, lambda folder: fork(training.run, step, folder, mute, steps))
        forked.parent = training.number
        return forked

    def _add(self, owner: str, make: "Callable[[Path], LiveRun] | Job") -> Training:
        with self._lock:
            self._check_room(owner)
            number = uuid.uuid4().hex[:12]
            label = f"run {1 + max((int(t.label.split()[1]) for t in self.of(owner)), default=0)}"
            job = make if isinstance(make, Job) else self._begun(make)
            self._all[number] = Training(self, owner, number, label, job)
        return self._all[number]

    def _begun(self, make: Callable[[Path], LiveRun]) -> Job:
        """A new job at the end of the queue."""
        folder = None
        try:
            with _on_disk():
                folder = self._root.path / uuid.uuid4().hex[:12]
                job = Job(make(folder))
            self.enter(job)
            if job.trouble is not None:
                raise ValueError(job.trouble)
        except BaseException:
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)
            raise
        return job

    def _check_room(self, owner: str) -> None:
        if len(self.of(owner)) >= MOST_OF_ONE:
            raise ValueError(
                f"you have {MOST_OF_ONE} runs, which is all one visitor may have; remove one first"
            )
        active = {t.job: t.active for t in self._all.values()}
        kept = sum(max(job.run.nbytes, MAX_BYTES if active[job] else 0) for job in active)
        if kept + MAX_BYTES > self.max_bytes:
            raise ValueError(
                f"this server keeps at most {gigabytes(self.max_bytes)} of training runs and has no room "
                "for another: remove one of yours, or wait until somebody leaves"
            )

    def remove(self, training: Training) -> None:
        """End it, and delete its folder, unless another shares it."""
        job = training.job
        with self._lock:
            if self._all.pop(training.number, None) is None or self.sharing(job):
                return
            if job in self._waiting:
                self._waiting.remove(job)
            worker = self._running.get(job)
        if worker is not None:
            worker.kill()  # and who waits for it deletes the folder
        else:
            shutil.rmtree(job.run.folder, ignore_errors=True)

    def clear(self, owner: str) -> None:
        """Remove all runs of a visitor who has left."""
        for training in self.of(owner):
            self.remove(training)

    def states(self) -> Counter[str]:
        """The number of runs in each state, of all visitors."""
        return Counter(training.state for training in list(self._all.values()))

    # ---- whose turn it is ----

    def sharing(self, job: Job) -> int:
        """The number of visitors' runs that share this job."""
        return sum(training.job is job for training in list(self._all.values()))

    def place_of(self, job: Job) -> int | None:
        with self._lock:
            return self._waiting.index(job) + 1 if job in self._waiting else None

    def enter(self, job: Job) -> None:
        """To the end of the queue, unless it is in it or trains; its last worker may still be leaving."""
        with self._lock:
            trains = job in self._running and job.run.status.state not in ENDED
            if job in self._waiting or trains:
                return
            if len(self._waiting) >= self.most_waiting:
                raise ValueError(
                    f"{len(self._waiting)} trainings of this server's visitors wait already, which is all "
                    f"that may: try again in a few minutes. Whoever runs it can raise {WAITING}"
                )
            with _on_disk():
                job.run.ask(None)
            job.trouble = None
            self._waiting.append(job)
            self._start_next()

    def halt(self, training: Training, wish: str) -> None:
        with self._lock, _on_disk():
            state = training.state
            shared = training.shared
            if shared and training.active:
                folder = self._root.path / uuid.uuid4().hex[:12]
                receive(folder, news(training.run.folder, {}))
                training.job = Job(LiveRun(folder))
            elif training.job in self._running:
                training.run.ask(wish)
                return
            elif state == "waiting":
                self._waiting.remove(training.job)
            if shared or state == "waiting" or (state == "paused" and wish == "stop"):
                ended = {"pause": "paused", "stop": "stopped"}[wish]
                training.run.write_status(replace(training.run.status, state=ended))

    def _start_next(self) -> None:
        ready = [job for job in self._waiting if job not in self._running]
        for job in ready[: max(0, self.at_once - len(self._running))]:
            self._waiting.remove(job)
            try:
                with _on_disk():
                    job.run.write_status(replace(job.run.status, state="new", said=None))
                    job.run.use_threads(1 if self._running or self._waiting else self.alone)
                    job.worker = self._running[job] = self._launch(job.run.folder, job.run.config.threads)
            except ValueError as error:
                job.trouble = str(error)
                continue
            threading.Thread(target=self._wait, args=(job, job.worker), daemon=True).start()

    def _wait(self, job: Job, worker: Worker) -> None:
        """Until the worker is gone, one way or another; then it is the next one's turn."""
        worker.wait()
        folder = job.run.folder
        with self._lock:
            self._running.pop(job, None)
            removed = not self.sharing(job)
            self._start_next()
        if removed:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            # what a killed worker was writing; os.walk, since the folder may be removed meanwhile
            for where, _, files in os.walk(folder):
                for name in files:
                    if name.endswith(".partial"):
                        Path(where, name).unlink(missing_ok=True)


@contextmanager
def _on_disk() -> Iterator[None]:
    """Turn an OSError inside the block into a ValueError that says what to do."""
    try:
        yield
    except OSError as problem:
        raise ValueError(
            f"the server's disk did not take it: {problem.strerror}. Remove a run that you need no more, or "
            "tell whoever runs the server"
        ) from None


def _end(root: Root, waiting: list[Job], running: dict[Job, Worker], lock: "threading.RLock") -> None:
    with lock:
        waiting.clear()
        ending = list(running.values())
        for worker in ending:
            worker.kill()
    for worker in ending:
        worker.wait()
    root.clear()
