"""A queue of jobs: which one is next, what is done once for all who ask, what is remembered.

The server has three queues: of maps and searches (`gptviz.ui.jobs`), of files to be read
(`gptviz.ui.models.apart`) and of trainings (`gptviz.ui.training`). They differ in their backend and limits.

A visitor's jobs follow each other, and visitors come in the order in which they began to ask: one finishes
before the next begins. A visitor whose jobs have taken a `time_slice` goes to the end of the queue. A job
that lasts longer than that may give its slot to another, beside which it goes on.
"""

import logging
import threading
import time
from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, Generic, TypeVar, cast

from gptviz import LanguageModel
from gptviz.engine.sizes import nbytes_of
from gptviz.jobs.task import Backend, Execution, Task

R = TypeVar("R")

TIME_SLICE = 10.0  # seconds of work after which a visitor goes to the end of the queue
PAUSE = 1.0  # seconds without a job after which a visitor comes anew
GONE = 100.0  # seconds without a look: a tab in the background still looks once a minute
TICK = 0.5
TRIES = 2  # a worker that dies takes a job with it once; a job that kills two is given up
MOST_IDLE = 100  # jobs that are remembered though they gave nothing
# the settings of what may wait
WAITING = "GPTVIZ_WORKS_WAITING"
OF_ONE = "GPTVIZ_WORKS_OF_ONE"


def full(waiting: int, own: int) -> str:
    """The sentence for a visitor who may not add a job: so many wait, `own` of them the visitor's."""
    return (
        f"{waiting} works of this server's visitors wait already, {own} of them yours, and no more may. "
        f"Try again in a few minutes; whoever runs it can raise {WAITING} and {OF_ONE}"
    )


def itself(job: "Job[Any]") -> Hashable:
    """A job excludes no other job."""
    return job


class NotDone(RuntimeError):
    """A job that the server could not do now; later it may. The text says why, and what to do."""


class Job(Generic[R]):
    """A task in the queue. `state`: "waiting", "working", "done", "stopped" or "failed" (`error` says why).

    `result` is None until it is done. Whoever shows it asks again while it is `active`, and says by `look`
    that somebody waits. It can be stopped, and started again: it begins anew.
    """

    def __init__(self, task: Task, model: Any, queue: "Queue"):
        self.task = task
        self.model = model
        self._queue = queue
        self.state = "stopped"
        self.never_begins = False  # since its backend could not make its model ready
        self.tries = 0
        self.result: R | None = None
        self.nbytes = 0  # of the result
        self.problem: BaseException | None = None
        self.execution: Execution | None = None
        self.began = self.asked = 0.0
        self.who = ""  # the visitor who asked first, whose place in the queue it takes
        self.looked: dict[str, float] = {}  # who waits for it, and until when without another look

    @property
    def active(self) -> bool:
        """Whether it is still waiting or working, so that its state will change by itself."""
        return self.state in ("waiting", "working")

    @property
    def error(self) -> str | None:
        """Why it failed, as a sentence that begins in lower case and has no full stop."""
        if self.problem is None:
            return None
        if isinstance(self.problem, (NotDone, ValueError)):
            return f"{self.problem}"
        if isinstance(self.problem, MemoryError):
            return "it needs more memory than this server has left. Try a shorter text, or try again later"
        return f"an error in the program ended it ({type(self.problem).__name__}: {self.problem})"

    @property
    def refused(self) -> bool:
        """Whether the task itself said by a ValueError that it cannot be done: it would say so again."""
        return self.state == "failed" and isinstance(self.problem, ValueError)

    @property
    def turned_away(self) -> bool:
        """Whether it failed since too many jobs waited, so that it has never begun."""
        return self.state == "failed" and self.tries == 0

    @property
    def value(self) -> R:
        """The result. Raises what the task raised, NotDone, and ValueError where it was stopped."""
        if self.state != "done":
            raise self.problem or ValueError("this work was stopped: press Run again")
        return cast(R, self.result)

    @property
    def progress(self) -> tuple[int, int]:
        """So much is done, of so much."""
        return (0, 1) if self.execution is None else self.execution.progress()

    @property
    def place(self) -> int:
        """1 for who is next, 0 for who does not wait."""
        with self._queue.changed:
            in_order = self._queue.in_order()
            return in_order.index(self) + 1 if self in in_order else 0

    @property
    def seconds_left(self) -> float | None:
        """About how long it still takes, at the pace so far or as others took; None if not known."""
        with self._queue.changed:
            if self.state == "working":
                done, of = self.progress
                passed = self._queue.now() - self.began
                return passed * (of - done) / done if done else None
            return self._queue.seconds_until(self) if self.state == "waiting" else None

    def start(self, who: str) -> None:
        """Queue it for a visitor, unless it is done, waits or is worked on."""
        self._queue.start(self, who)

    def look(self, who: str, seconds: float = GONE) -> None:
        """`who` waits for it, and will look again within so many seconds."""
        with self._queue.changed:
            self.looked[who] = self._queue.now() + seconds

    def leave(self, who: str) -> None:
        """`who` no longer waits for it: it is stopped, unless somebody else does."""
        with self._queue.changed:
            self.look(who, 0.0)
            if all(until <= self._queue.now() for until in self.looked.values()):
                self.stop()

    def stop(self) -> None:
        """End it; what it has found so far is thrown away."""
        self._queue.stop(self)

    def join(self, seconds: float) -> bool:
        """Wait until it is no longer active, at most so many seconds. False if it still is."""
        with self._queue.changed:
            return self._queue.changed.wait_for(lambda: not self.active, seconds)


class Queue:
    """The jobs of a server: those that wait, those that are worked on, and the last results.

    At most `max_bytes` of results are kept, the ones that were not asked for the longest go first. At most
    `most_waiting` wait, and `most_of_one` of a visitor's: one more fails at once, with the sentence that
    `full(waiting, own)` gives, and is forgotten.

    `time_slice`: seconds of work after which a visitor goes to the end of the queue; 0: after every job.
    `excludes`: no two jobs for which it gives the same are worked on at a time. `gives_way`: a long job gives
    its slot to another, and goes on. `remembers`: whoever asks again for a task that is done, or has failed,
    gets the job that there is; else a job is forgotten when it ends.
    """

    def __init__(
        self,
        backend: Backend,
        max_bytes: int,
        most_waiting: int = 300,
        most_of_one: int = 100,
        now: Callable[[], float] = time.monotonic,
        full: Callable[[int, int], str] = full,
        excludes: "Callable[[Job[Any]], Hashable]" = itself,
        time_slice: float = TIME_SLICE,
        gives_way: bool = True,
        remembers: bool = True,
    ):
        self.backend = backend
        self.max_bytes = max_bytes
        self.now = now
        self.most_waiting = most_waiting
        self.most_of_one = most_of_one
        self._full = full
        self._excludes = excludes
        self._time_slice = time_slice
        self._gives_way = gives_way
        self._remembers = remembers
        self._jobs: dict[Task, Job[Any]] = {}  # the least recently asked for first
        self._waiting: list[Job[Any]] = []
        self._working: list[Job[Any]] = []
        # came, worked for, last asked or served
        self._visitors: dict[str, tuple[float, float, float]] = {}
        self._took: dict[Callable[..., Any], float] = {}  # seconds, the later weighing more
        self.changed = threading.Condition()  # held by whoever looks at jobs, or changes one
        self._ticking = False

    def get(self, task: Task, lm: LanguageModel | None, who: str, known: Any = None) -> Job[Any]:
        """The job of this task with its model: the one that there is, or a new one, which is started.

        One that was stopped stays so, and one that failed: `start` it. With a result that is `known` it is
        done at once.
        """
        model = None
        if lm is not None and self.find(task) is None and known is None:
            try:
                model = self.backend.ready(task.model, lm)
            except (OSError, ValueError) as problem:
                return self._not_begun(task, problem)
        with self.changed:
            job = self._jobs.pop(task, None)
            new = job is None
            if job is None:
                job = Job(task, model, self)
            if known is not None and not job.active:
                job.result = known
                job.nbytes = nbytes_of(known)
                job.state = "done"
            self._jobs[task] = job  # asked for just now
            idle = [
                key for key, other in self._jobs.items() if other.state in ("failed", "stopped")
            ]
            for key in idle[:-MOST_IDLE]:
                del self._jobs[key]
            if new and known is None:
                self.start(job, who)
        return job

    def _not_begun(self, task: Task, problem: Exception) -> Job[Any]:
        """A job that failed before it stood in the queue. It is not kept: whoever asks again gets another."""
        job: Job[Any] = Job(task, None, self)
        job.never_begins = True
        job.state = "failed"
        job.problem = _could_not_begin(problem)
        return job

    def find(self, task: Task) -> Job[Any] | None:
        """The job of this task, if there is one; nothing is started."""
        with self.changed:
            return self._jobs.get(task)

    def start(self, job: Job[Any], who: str) -> None:
        with self.changed:
            if job.active or job.state == "done" or job.never_begins:
                return
            own = sum(other.who == who for other in self._waiting)
            if len(self._waiting) >= self.most_waiting or own >= self.most_of_one:
                job.state = "failed"
                job.problem = NotDone(self._full(len(self._waiting), own))
                self._jobs.pop(job.task, None)  # whoever asks again gets another one
                return
            job.tries = 0
            job.who = who
            job.asked = self.now()
            came, worked, last = self._visitors.get(who, (0.0, 0.0, -PAUSE))
            if self.now() - last > PAUSE and not self._has_some(who):
                came = self.now()
                worked = 0.0
            self._visitors[who] = came, worked, self.now()
            job.looked[who] = max(job.looked.get(who, 0.0), self.now() + GONE)
            self._enqueue(job)

    def _has_some(self, who: str) -> bool:
        return any(job.who == who for job in [*self._waiting, *self._working])

    def _enqueue(self, job: Job[Any]) -> None:
        job.state = "waiting"
        job.problem = None
        job.execution = None
        self._waiting.append(job)
        self._fill()
        if not self._ticking:
            self._ticking = True
            threading.Thread(target=self._tick, name="gptviz queue", daemon=True).start()

    # ---- which job is next ----

    def _order(self, job: Job[Any]) -> tuple[float, ...]:
        """Sort key: fewest running jobs of this visitor, earliest visitor, earliest job."""
        own = sum(other.who == job.who for other in self._working)
        return own, self._visitors[job.who][0], job.asked

    def _free_slots(self) -> int:
        """The number of jobs that may be started now."""
        slots = self.backend.slots
        if self._gives_way:
            long = sum(self.now() - job.began > self._time_slice for job in self._working)
            slots += min(long, slots)
        return slots - len(self._working)

    def _next(self) -> Job[Any] | None:
        """The waiting job that is next, of those that may be worked on beside the others; or None."""
        busy = {self._excludes(job) for job in self._working}
        ready = [job for job in self._waiting if self._excludes(job) not in busy]
        return min(ready, key=self._order, default=None)

    def _fill(self) -> None:
        """Start what there is room for."""
        while self._free_slots() > 0:
            job = self._next()
            if job is None:
                return
            self._waiting.remove(job)
            alone = not self._waiting and not self._working
            job.state = "working"
            job.began = self.now()
            job.tries = job.tries + 1
            self._working.append(job)
            try:
                job.execution = execution = self.backend.start(job.task, job.model, alone)
            except Exception as problem:  # who waits for it is told, and the queue goes on
                job.problem = _could_not_begin(problem)
                job.state = "failed"
                self._leave_slot(job)
                self._forget_ended(job)
                continue
            execution.future.add_done_callback(partial(self._ended, job, execution))

    def _ended(self, job: Job[Any], execution: Execution, _: object) -> None:
        """A backend's thread: it is done, dead, or was stopped."""
        with self.changed:
            if job.execution is not execution or job.state != "working":
                return  # it was stopped meanwhile
            try:
                job.result = execution.future.result()
                job.nbytes = nbytes_of(job.result)
                job.state = "done"
            except self.backend.gone as problem:
                if job.tries < TRIES:
                    self._leave_slot(job)
                    self._enqueue(job)
                    return
                said = f"the process that worked on it was ended from outside, twice ({problem}): try again"
                job.problem = NotDone(said)
                job.state = "failed"
            except BaseException as problem:  # whatever it was, who waits is told
                job.problem = problem
                job.state = "failed"
                if not job.refused:
                    logging.getLogger(__name__).error("a job failed", exc_info=problem)
            took = self.now() - job.began
            self._took[job.task.function] = (self._took.get(job.task.function, took) + took) / 2
            self._leave_slot(job)
            self._forget_ended(job)
            self._bound()
            self._fill()
            self.changed.notify_all()

    def _forget_ended(self, job: Job[Any]) -> None:
        """Where nothing is remembered, let go of a job that has ended: who waits for it holds it."""
        if not self._remembers and self._jobs.get(job.task) is job:
            del self._jobs[job.task]

    def _leave_slot(self, job: Job[Any]) -> None:
        self._working.remove(job)
        came, worked, _ = self._visitors[job.who]
        worked += self.now() - job.began
        if worked > self._time_slice:  # to the end of the queue
            came = self.now()
            worked = 0.0
        self._visitors[job.who] = came, worked, self.now()

    def _tick(self) -> None:
        """While something is active: what nobody waits for any more ends, and long jobs give way."""
        while True:
            with self.changed:
                for job in [*self._waiting, *self._working]:
                    if all(until < self.now() for until in job.looked.values()):
                        self.stop(job)
                self._fill()
                here = {job.who for job in [*self._waiting, *self._working]}
                known = self._visitors.items()
                self._visitors = {k: v for k, v in known if k in here or self.now() - v[2] <= PAUSE}
                if not here:
                    self._ticking = False
                    return
                self.changed.wait(TICK)

    # ---- who asks ----

    def in_order(self) -> list[Job[Any]]:
        """The waiting jobs, the next first."""
        return sorted(self._waiting, key=self._order)

    def seconds_until(self, job: Job[Any]) -> float | None:
        """About how long a job that waits still takes; None where something before it was never done yet."""
        in_order = self.in_order()
        before = in_order[: in_order.index(job) + 1]
        if not all(other.task.function in self._took for other in before):
            return None
        left = sum(other.seconds_left or 0.0 for other in self._working)
        return (
            left + sum(self._took[other.task.function] for other in before)
        ) / self.backend.slots

    def stop(self, job: Job[Any]) -> None:
        with self.changed:
            if job in self._waiting:
                self._waiting.remove(job)
            elif job in self._working:
                self._leave_slot(job)
            else:
                return
            job.state = "stopped"
            self._forget_ended(job)
            if job.execution is not None:
                job.execution.cancel()
            self._fill()
            self.changed.notify_all()

    def forget(self, model: str) -> None:
        """Stop and drop the jobs of a model that is gone."""
        self.backend.forget(model)
        with self.changed:
            for task in [task for task in self._jobs if task.model == model]:
                self.stop(self._jobs.pop(task))

    def snapshot(self) -> dict[str, int]:
        """The load of this queue, in numbers for whoever watches the server."""
        with self.changed:
            oldest = max((self.now() - job.asked for job in self._waiting), default=0.0)
            return {
                "waiting": len(self._waiting),
                "working": len(self._working),
                "slots": self.backend.slots,
                "longest_wait_seconds": round(oldest),
                "result_bytes": sum(job.nbytes for job in self._jobs.values()),
            }

    def close(self) -> None:
        """Stop everything, and let the workers go."""
        with self.changed:
            for job in [*self._waiting, *self._working]:
                self.stop(job)
            self._jobs.clear()
        self.backend.close()

    def _bound(self) -> None:
        held = sum(job.nbytes for job in self._jobs.values())
        for task in [task for task, job in self._jobs.items() if job.state == "done"]:
            if held <= self.max_bytes:
                return
            held -= self._jobs.pop(task).nbytes


def _could_not_begin(problem: Exception) -> NotDone:
    """The sentence for a job that its backend could not begin: a full disk, or a cluster that is gone.

    A backend that has its own sentence raises NotDone.
    """
    if isinstance(problem, NotDone):
        return problem
    why = problem.strerror if isinstance(problem, OSError) and problem.strerror else f"{problem}"
    return NotDone(f"the server could not begin this work ({why}). Try again in a few minutes")
