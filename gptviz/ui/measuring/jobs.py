"""Work in the background, one piece of it at a time for the whole server, behind the visitors' own passes.

A job consists of short passes. After each it waits as long as the pass took: whoever asks for a page
meanwhile has the model for himself. Sessions that ask for the same job get the same one, and it belongs to
all who wait for it: one who leaves ends it for himself, and it goes on as long as another looks at it.
"""

import threading
import time
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

from gptviz.engine.progress import Progress
from gptviz.engine.sizes import nbytes_of

R = TypeVar("R")

LONGEST_REST = 1.0  # seconds
WAITING = "GPTVIZ_MEASUREMENTS_WAITING"  # the setting for `most_waiting`
MOST_IDLE = 100  # jobs that are remembered though they gave nothing
GONE = 100.0  # seconds without a look: a tab in the background still looks once a minute


class Stopped(Exception):
    """Somebody pressed Stop: what a job's progress raises in it."""


class Job(Generic[R]):
    """One piece of work. `state`: "waiting", "working", "done", "stopped" or "failed" (`error` says why).

    `done` of `of` pieces are behind it. `result` is None until it is done. Whoever shows a job asks again
    while it is `active`, and says by `look` that he waits. It can be stopped, and started again: it begins
    anew.
    """

    def __init__(self, key: Hashable, work: Callable[[Progress], R], queue: "Jobs"):
        self.key, self._work, self._queue = key, work, queue
        self.state, self.done, self.of = "stopped", 0, 1
        self._began = 0.0
        self.result: R | None = None
        self.error: str | None = None
        self._go = threading.Event()  # cleared to stop it
        self._looked: dict[str, float] = {}  # who waits for it: when he looked last

    @property
    def active(self) -> bool:
        """Whether it will change by itself."""
        return self.state in ("waiting", "working")

    @property
    def seconds_left(self) -> float | None:
        """About how long it still takes, at the pace so far; None while that cannot be told."""
        if self.state != "working" or not self.done:
            return None
        return (self._queue.now() - self._began) * (self.of - self.done) / self.done

    def start(self) -> None:
        """Queue it, unless it is done, works or waits."""
        self._queue.start(self)

    def look(self, who: str) -> None:
        """`who` waits for it, and has just looked how far it is."""
        self._queue.look(self, who)

    def leave(self, who: str) -> None:
        """`who` no longer waits for it: it is stopped, unless somebody else does."""
        self._queue.leave(self, who)

    def stop(self) -> None:
        """End it after the pass that runs, if one does; what it has found so far is thrown away."""
        self._queue.stop(self)

    def join(self, seconds: float) -> bool:
        """Wait until it is no longer active, at most so long: whether it is not. For tests and scripts."""
        return self._queue.join(self, seconds)


class Jobs:
    """The process's jobs: those that wait, in the order in which they were asked for, and the last results.

    At most `max_bytes` of results are kept, the ones that were not asked for the longest go first. At most
    `most_waiting` wait: one more fails at once, with a sentence, and is forgotten.
    """

    def __init__(
        self,
        max_bytes: int,
        rest: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.monotonic,
        most_waiting: int = 32,
    ):
        self.max_bytes, self.most_waiting = max_bytes, most_waiting
        self._rest, self.now = rest, now
        self._jobs: dict[Hashable, Job[Any]] = {}  # the least recently asked for first
        self._waiting: list[Job[Any]] = []
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def get(self, key: Hashable, work: Callable[[Progress], R], known: R | None = None) -> Job[R]:
        """The job of this name: the one that there is, or a new one, which is started.

        One that was stopped stays so, and one that failed: `start` it. With a result that is `known` it is
        done at once.
        """
        with self._changed:
            job = self._jobs.pop(key, None)
            new = job is None
            if job is None:
                job = Job(key, work, self)
            if known is not None:
                job.result, job.state = known, "done"
            self._jobs[key] = job  # asked for just now
            idle = [name for name, other in self._jobs.items() if other.state in ("failed", "stopped")]
            for name in idle[:-MOST_IDLE]:  # each holds its model
                del self._jobs[name]
        if new and known is None:
            self.start(job)
        return job

    def find(self, key: Hashable) -> Job[Any] | None:
        """The job of this name, if there is one; nothing is started."""
        with self._changed:
            return self._jobs.get(key)

    def start(self, job: Job[Any]) -> None:
        with self._changed:
            if job.state in ("waiting", "done"):
                return
            job._go.set()
            if job.state == "working":  # it was told to stop, and has not yet: it goes on, or `_do` queues it
                return
            if len(self._waiting) >= self.most_waiting:
                job.state = "failed"
                job.error = (
                    f"{len(self._waiting)} measurements of this server's visitors wait already, and no more "
                    f"may. Try again in a few minutes; whoever runs it can raise {WAITING}"
                )
                self._jobs.pop(job.key, None)  # whoever asks again gets another one
                return
            self._queue(job)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="gptviz measuring", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def _queue(self, job: Job[Any]) -> None:
        job.state, job.done, job.error = "waiting", 0, None
        self._waiting.append(job)

    def look(self, job: Job[Any], who: str) -> None:
        with self._changed:
            job._looked[who] = self.now()

    def leave(self, job: Job[Any], who: str) -> None:
        with self._changed:  # which may be entered again from within
            job._looked.pop(who, None)
            if not any(self.now() - at < GONE for at in job._looked.values()):
                self.stop(job)

    def stop(self, job: Job[Any]) -> None:
        with self._changed:
            job._go.clear()
            if job in self._waiting:
                self._waiting.remove(job)
                job.state = "stopped"
            self._changed.notify_all()

    def forget(self, wanted: Callable[[Hashable], bool]) -> None:
        """Stop and drop the jobs whose name is so: of a model that is gone."""
        with self._changed:
            gone = [job for key, job in self._jobs.items() if wanted(key)]
            for job in gone:
                del self._jobs[job.key]
        for job in gone:
            self.stop(job)

    def close(self, seconds: float = 10.0) -> None:
        """Stop everything, and wait for the thread: it must not be within a pass when Python ends."""
        self.forget(lambda _: True)
        thread = self._thread
        if thread is not None:
            thread.join(seconds)

    def join(self, job: Job[Any], seconds: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: not job.active, seconds)

    def _run(self) -> None:
        """The thread: one job after the other; it ends when there is none, and its last model can go."""
        while True:
            with self._changed:
                if not self._waiting:
                    self._thread = None
                    return
                job = self._waiting.pop(0)
                job.state = "working"
            self._do(job)

    def _do(self, job: Job[Any]) -> None:
        began = time.monotonic()
        job._began = self.now()

        def progress(done: int, of: int) -> None:
            nonlocal began
            if not job._go.is_set():
                raise Stopped
            job.done, job.of = done, of
            self._rest(min(LONGEST_REST, time.monotonic() - began))  # the visitors' turn
            began = time.monotonic()

        result, state, error = None, "stopped", None
        try:
            result = job._work(progress)
            state = "done"
        except Stopped:
            state = "stopped"
        except Exception as problem:  # whatever it was, who waits is told
            state, error = "failed", f"{problem}" or type(problem).__name__
        with self._changed:
            job.result, job.error, job.state = result, error, state
            if state == "stopped" and job._go.is_set():  # somebody started it again meanwhile
                self._queue(job)
            self._bound()
            self._changed.notify_all()

    def _bound(self) -> None:
        sizes = {key: nbytes_of(job.result) for key, job in self._jobs.items() if job.state == "done"}
        for key in list(sizes):
            if sum(sizes.values()) <= self.max_bytes:
                return
            del self._jobs[key], sizes[key]
