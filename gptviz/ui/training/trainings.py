"""The training runs of all visitors: which of them there are, in whose name, and what is trained for several.

Who asks for what another has asked for shares that run: it is trained once. Who pauses or stops it goes on
with a copy of their own.

Training is a job of a queue (`gptviz.jobs`): so many at a time, the others wait. It is done by a process of
its own, `python -m gptviz.training live`, on a leash: it ends when this server does, however that ends.
"""

import os
import shutil
import threading
import uuid
import weakref
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from math import inf
from pathlib import Path

from gptviz import LanguageModel
from gptviz.digits import gigabytes
from gptviz.files.owned_folder import TRAININGS, OwnedFolder
from gptviz.jobs import Job, NotDone, Queue, Task
from gptviz.jobs.task import RAY
from gptviz.jobs.worker import InWorker, Worker, start
from gptviz.training.live import LiveConfig, LiveRun, begin, fork, train
from gptviz.training.live.config import Heads
from gptviz.training.live.run import news, receive
from gptviz.training.live.snapshots import MAX_BYTES

MOST_OF_ONE = 8  # runs that a visitor may have at a time, those that are over included
WAITING = "GPTVIZ_TRAININGS_WAITING"  # the setting for `most_waiting`
ACTIVE = ("waiting", "starting", "training")

LOG = "worker.log"


def launch(folder: Path, threads: int) -> Worker:
    """A worker for the run that was begun in a folder, from where it is; `threads` as its plan says.

    With a Ray cluster (GPTVIZ_RAY) it trains there, and the worker keeps the folder here as it is there.
    """
    command = ["gptviz.training", "live"]
    address = os.environ.get(RAY)
    if address:
        command = ["gptviz.jobs.ray", "--address", address]
    return start([*command, "--work", str(folder)], folder / LOG, threads)


def full(waiting: int, own: int) -> str:
    """The sentence for a visitor whose training may not wait, since so many do."""
    return (
        f"{waiting} trainings of this server's visitors wait already, which is all that may: "
        f"try again in a few minutes. Whoever runs it can raise {WAITING}"
    )


@dataclass(eq=False)
class Shared:
    """What is trained in a folder, for one visitor or for several: its run, and its last job in the queue."""

    run: LiveRun
    job: Job[object] | None = None
    # the last one: its worker may still be leaving when the next job waits
    execution: InWorker | None = None

    @property
    def place(self) -> int | None:
        """Its place in the queue: 1 for the next to start; None when it does not wait."""
        if self.job is None:
            return None
        return self.job.place or None

    @property
    def trouble(self) -> str | None:
        """A sentence, where its last job could not even start."""
        if self.job is None or self.job.state != "failed":
            return None
        return self.job.error

    @property
    def worker(self) -> Worker | None:
        """The last process that trained it."""
        if self.execution is None:
            return None
        return self.execution.worker

    @property
    def is_worked_on(self) -> bool:
        """Whether its worker runs."""
        return self.worker is not None and self.worker.running


class Training:
    """A visitor's run: what lies in its folder, and where it stands in the queue."""

    def __init__(self, trainings: "Trainings", owner: str, number: str, label: str, shared: Shared):
        self.owner = owner
        self.number = number
        self.label = label
        self.shared_run = shared
        self.opened: dict[int, str] = {}  # step -> the upload that it was opened as
        self.parent: str | None = None  # the number of the run that it was forked from
        self._trainings = trainings

    @property
    def run(self) -> LiveRun:
        return self.shared_run.run

    @property
    def config(self) -> LiveConfig:
        return self.run.config

    @property
    def shared(self) -> int:
        """The number of other runs that are this same training: it is done once for all of them."""
        return self._trainings.sharing(self.shared_run) - 1

    @property
    def place(self) -> int | None:
        """Its place in the queue: 1 for the next to start; None when it does not wait."""
        return self.shared_run.place

    @property
    def state(self) -> str:
        """waiting, starting, training, paused, stopped, done, failed or killed."""
        if self.place is not None:
            return "waiting"
        if self.shared_run.trouble is not None:
            return "failed"
        said = self.run.status.state
        if self.shared_run.is_worked_on:
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
            return self.shared_run.trouble or status.said
        how = ""
        if self.shared_run.worker is not None:
            how = f" ({self.shared_run.worker.how_it_ended})"
        return (
            f"The training was ended from outside{how} after step {status.step:,} of {status.steps:,}. "
            "What it had measured until then is still here, and it can go on from its last snapshot"
        )

    def pause(self) -> None:
        """Save and end the worker: the next one begins. Nothing where it neither trains nor waits.

        This, `stop` and `resume` raise ValueError, a sentence, where the disk or the queue is full.
        """
        self._trainings.halt(self, "pause")

    def stop(self) -> None:
        """The same, for good: it is over, with what it has."""
        self._trainings.halt(self, "stop")

    def resume(self) -> None:
        """Queue it again. It goes on where it was, and sees what it would have seen without the pause."""
        if self.state in ("paused", "stopped", "killed"):
            self._trainings.enter(self.shared_run, self.owner)


class Trainers:
    """The backend of the queue: a worker for every training, `slots` at a time.

    A run has one of torch's threads, or `alone` of them if nobody else's trains or waits when it begins. A
    worker that is killed is not replaced: the run's owner reads it, and decides.
    """

    gone: tuple[type[BaseException], ...] = ()

    def __init__(self, slots: int, launch: Callable[[Path, int], Worker], alone: int):
        self.slots = slots
        self._launch = launch
        self._alone = alone
        self._at_work: set[InWorker] = set()

    def ready(self, model: str, lm: LanguageModel) -> LanguageModel:
        return lm

    def start(self, task: Task, shared: Shared, alone: bool) -> InWorker:
        """Begin a worker for a run. Raises NotDone where the disk is full."""
        run = shared.run
        threads = 1
        if alone:
            threads = self._alone
        try:
            with _on_disk():
                run.write_status(replace(run.status, state="new", said=None))
                run.use_threads(threads)
                worker = self._launch(run.folder, run.config.threads)
        except ValueError as problem:
            raise NotDone(f"{problem}") from None
        execution = InWorker(worker, partial(_remove_partial, run.folder), partial(_how_far, run))
        shared.execution = execution
        self._at_work.add(execution)
        execution.future.add_done_callback(lambda _: self._at_work.discard(execution))
        return execution

    def forget(self, model: str) -> None:
        """Nothing: a run's folder goes with its run."""

    def stands(self) -> bool:
        return True

    def close(self) -> None:
        """Wait for the workers, which the queue has ended."""
        wait([execution.future for execution in list(self._at_work)])


class Trainings:
    """The runs of this server. `at_once` train at a time; together they keep at most `max_bytes` on disk.

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
        self.max_bytes = max_bytes
        self.queue = Queue(
            Trainers(at_once, launch, alone),
            max_bytes=0,
            most_waiting=most_waiting,
            most_of_one=most_waiting,
            full=full,
            excludes=lambda job: job.model,  # never two workers in one folder
            # whoever has had a training goes to the end: one visitor's eight hold up nobody
            time_slice=0.0,
            gives_way=False,
            remembers=False,
        )
        self._root = OwnedFolder(TRAININGS)
        self._all: dict[str, Training] = {}
        self._lock = threading.RLock()
        self.close = weakref.finalize(self, _end, self._root, self.queue)

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
            same = self._same(config, text)
            if same is not None:
                return self._add(owner, lambda: same)
        return self._add(
            owner, lambda: self._begun(owner, lambda folder: begin(folder, config, text))
        )

    def _same(self, config: LiveConfig, text: str | None) -> Shared | None:
        """What is trained already with these choices, from the beginning and without a pause; or None."""
        learnt = None
        if config.task == "own":
            learnt = text
        for training in list(self._all.values()):
            run = training.run
            fresh = training.state in (*ACTIVE, "done") and run.origin is None
            if fresh and run.config == config and run.text == learnt:
                return training.shared_run
        return None

    def fork(
        self, training: Training, step: int, mute: Heads = (), steps: int | None = None
    ) -> Training:
        """A run that goes on from another's snapshot. Raises ValueError, a sentence."""
        owner = training.owner

        def forked(folder: Path) -> LiveRun:
            return fork(training.run, step, folder, mute, steps)

        made = self._add(owner, lambda: self._begun(owner, forked))
        made.parent = training.number
        return made

    def _add(self, owner: str, make: Callable[[], Shared]) -> Training:
        """A run of a visitor's, if there is room for it; `make` gives what is trained."""
        with self._lock:
            self._check_room(owner)
            number = uuid.uuid4().hex[:12]
            label = f"run {1 + max((int(t.label.split()[1]) for t in self.of(owner)), default=0)}"
            self._all[number] = Training(self, owner, number, label, make())
        return self._all[number]

    def _begun(self, owner: str, make: Callable[[Path], LiveRun]) -> Shared:
        """A new run at the end of the queue."""
        folder = None
        try:
            with _on_disk():
                folder = self._root.path / uuid.uuid4().hex[:12]
                shared = Shared(make(folder))
            self.enter(shared, owner)
            if shared.trouble is not None:
                raise ValueError(shared.trouble)
        except BaseException:
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)
            raise
        return shared

    def _check_room(self, owner: str) -> None:
        if len(self.of(owner)) >= MOST_OF_ONE:
            raise ValueError(
                f"you have {MOST_OF_ONE} runs, which is all one visitor may have; remove one first"
            )
        active = {training.shared_run: training.active for training in self._all.values()}
        kept = sum(max(shared.run.nbytes, MAX_BYTES if active[shared] else 0) for shared in active)
        if kept + MAX_BYTES > self.max_bytes:
            raise ValueError(
                f"this server keeps at most {gigabytes(self.max_bytes)} of training runs and has no room "
                "for another: remove one of yours, or wait until somebody leaves"
            )

    def remove(self, training: Training) -> None:
        """End it, and delete its folder, unless another shares it."""
        shared = training.shared_run
        with self._lock:
            if self._all.pop(training.number, None) is None or self.sharing(shared):
                return
        if shared.job is not None:
            shared.job.stop()
        if shared.execution is None:
            _delete(shared.run.folder)
            return
        shared.execution.cancel()  # its worker may be leaving while its next job waits
        shared.execution.future.add_done_callback(lambda _: _delete(shared.run.folder))

    def clear(self, owner: str) -> None:
        """Remove all runs of a visitor who has left."""
        for training in self.of(owner):
            self.remove(training)

    def states(self) -> Counter[str]:
        """The number of runs in each state, of all visitors."""
        return Counter(training.state for training in list(self._all.values()))

    def sharing(self, shared: Shared) -> int:
        """The number of visitors' runs that are this one."""
        return sum(training.shared_run is shared for training in list(self._all.values()))

    # ---- in and out of the queue ----

    def enter(self, shared: Shared, owner: str) -> None:
        """To the end of the queue, in a visitor's name; its last worker may still be leaving.

        Raises ValueError, a sentence, where the queue or the disk is full.
        """
        job: Job[object] = Job(Task(train, str(shared.run.folder)), shared, self.queue)
        # it is trained until somebody stops it, whether or not they look at it
        job.look(owner, inf)
        with self._lock:
            with _on_disk():
                shared.run.ask(None)
            job.start(owner)
            if job.turned_away:
                raise ValueError(job.error)
            shared.job = job

    def halt(self, training: Training, wish: str) -> None:
        """Have a run paused or stopped: by its worker after the step that it is at, or at once if it waits.

        Who shares a run that goes on has a copy of it, as it is now, and others go on.
        """
        with self._lock, _on_disk():
            state = training.state
            job = training.shared_run.job
            over = state == "paused" and wish == "stop"
            if training.shared and training.active:
                folder = self._root.path / uuid.uuid4().hex[:12]
                receive(folder, news(training.run.folder, {}))
                training.shared_run = Shared(LiveRun(folder))
                over = True
            elif state == "waiting" and job is not None:
                job.stop()
                over = True
            elif training.shared_run.is_worked_on and not over:
                training.run.ask(wish)
                return
            if over:
                ended = {"pause": "paused", "stop": "stopped"}[wish]
                training.run.write_status(replace(training.run.status, state=ended))


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


def _how_far(run: LiveRun) -> tuple[int, int]:
    """The steps that a run has made, of all its steps."""
    status = run.status
    return status.step, status.steps


def _remove_partial(folder: Path) -> None:
    """Remove what a killed worker was writing; os.walk, since the folder may be removed meanwhile."""
    for where, _, files in os.walk(folder):
        for name in files:
            if name.endswith(".partial"):
                Path(where, name).unlink(missing_ok=True)


def _delete(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)


def _end(root: OwnedFolder, queue: Queue) -> None:
    queue.close()
    root.clear()
