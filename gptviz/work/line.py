"""The line of a server's works: who is next, what is done once for all who ask, what is remembered.

A visitor's works follow each other, and visitors come in the order in which they began to ask: one finishes
before the next begins. Who has worked for `TURN` seconds goes to the end of the line, and a work that lasts
longer than that gives its place to another, beside which it goes on.
"""

import logging
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar, cast

from gptviz import LanguageModel
from gptviz.engine.sizes import nbytes_of
from gptviz.work.task import Backend, Running, Task

R = TypeVar("R")

TURN = 10.0  # seconds of work that a visitor has before it is another's turn
PAUSE = 1.0  # seconds without a work after which a visitor comes anew
GONE = 100.0  # seconds without a look: a tab in the background still looks once a minute
TICK = 0.5
TRIES = 2  # a worker that dies takes a work with it once; a work that kills two is given up
MOST_IDLE = 100  # works that are remembered though they gave nothing
# the settings of what may wait
WAITING = "GPTVIZ_WORKS_WAITING"
OF_ONE = "GPTVIZ_WORKS_OF_ONE"


class NotDone(RuntimeError):
    """A work that the server could not do now; later it may. The text says why, and what to do."""


class Work(Generic[R]):
    """A task in the line. `state`: "waiting", "working", "done", "stopped" or "failed" (`error` says why).

    `result` is None until it is done. Whoever shows it asks again while it is `active`, and says by `look`
    that he waits. It can be stopped, and started again: it begins anew.
    """

    def __init__(self, task: Task, model: Any, line: "Line"):
        self.task = task
        self.model = model
        self._line = line
        self.state = "stopped"
        self.tries = 0
        self.result: R | None = None
        self.nbytes = 0  # of the result
        self.problem: BaseException | None = None
        self.running: Running | None = None
        self.began = self.asked = 0.0
        self.who = ""  # who asked first: whose turn it takes
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
    def value(self) -> R:
        """The result. Raises what the task raised, NotDone, and ValueError where it was stopped."""
        if self.state != "done":
            raise self.problem or ValueError("this work was stopped: press Run again")
        return cast(R, self.result)

    @property
    def progress(self) -> tuple[int, int]:
        """So much is done, of so much."""
        return (0, 1) if self.running is None else self.running.progress()

    @property
    def place(self) -> int:
        """1 for who is next, 0 for who does not wait."""
        with self._line.changed:
            line = self._line.in_order()
            return line.index(self) + 1 if self in line else 0

    @property
    def seconds_left(self) -> float | None:
        """About how long it still takes, at the pace so far or as others took; None if not known."""
        with self._line.changed:
            if self.state == "working":
                done, of = self.progress
                passed = self._line.now() - self.began
                return passed * (of - done) / done if done else None
            return self._line.seconds_until(self) if self.state == "waiting" else None

    def start(self, who: str) -> None:
        """Queue it for a visitor, unless it is done, works or waits."""
        self._line.start(self, who)

    def look(self, who: str, seconds: float = GONE) -> None:
        """`who` waits for it, and will look again within so many seconds."""
        with self._line.changed:
            self.looked[who] = self._line.now() + seconds

    def leave(self, who: str) -> None:
        """`who` no longer waits for it: it is stopped, unless somebody else does."""
        with self._line.changed:
            self.look(who, 0.0)
            if all(until <= self._line.now() for until in self.looked.values()):
                self.stop()

    def stop(self) -> None:
        """End it; what it has found so far is thrown away."""
        self._line.stop(self)

    def join(self, seconds: float) -> bool:
        """Wait until it is no longer active, at most so long: whether it is not."""
        with self._line.changed:
            return self._line.changed.wait_for(lambda: not self.active, seconds)


class Line:
    """A server's works: those that wait, those that are worked on, and the last results.

    At most `max_bytes` of results are kept, the ones that were not asked for the longest go first. At most
    `most_waiting` wait, and `most_of_one` of a visitor's: one more fails at once, with a sentence, and is
    forgotten.
    """

    def __init__(
        self,
        backend: Backend,
        max_bytes: int,
        most_waiting: int = 300,
        most_of_one: int = 100,
        now: Callable[[], float] = time.monotonic,
    ):
        self.backend = backend
        self.max_bytes = max_bytes
        self.now = now
        self.most_waiting = most_waiting
        self.most_of_one = most_of_one
        self._works: dict[Task, Work[Any]] = {}  # the least recently asked for first
        self._waiting: list[Work[Any]] = []
        self._working: list[Work[Any]] = []
        self._turns: dict[str, tuple[float, float, float]] = {}  # who: came, worked for, last asked or served
        self._took: dict[Callable[..., Any], float] = {}  # seconds, the later weighing more
        self.changed = threading.Condition()  # held by whoever looks at works, or changes one
        self._ticking = False

    def get(self, task: Task, lm: LanguageModel, who: str, known: Any = None) -> Work[Any]:
        """The work of this task with its model: the one that there is, or a new one, which is started.

        One that was stopped stays so, and one that failed: `start` it. With a result that is `known` it is
        done at once.
        """
        model = None
        if self.find(task) is None and known is None:
            try:
                model = self.backend.ready(task.model, lm)
            except (OSError, ValueError) as problem:
                return self._not_begun(task, problem)
        with self.changed:
            work = self._works.pop(task, None)
            new = work is None
            if work is None:
                work = Work(task, model, self)
            if known is not None and not work.active:
                work.result = known
                work.nbytes = nbytes_of(known)
                work.state = "done"
            self._works[task] = work  # asked for just now
            idle = [key for key, other in self._works.items() if other.state in ("failed", "stopped")]
            for key in idle[:-MOST_IDLE]:
                del self._works[key]
            if new and known is None:
                self.start(work, who)
        return work

    def _not_begun(self, task: Task, problem: Exception) -> Work[Any]:
        """A work that failed before it stood in the line. It is not kept: whoever asks again gets another."""
        work: Work[Any] = Work(task, None, self)
        work.state = "failed"
        work.problem = _could_not_begin(problem)
        return work

    def find(self, task: Task) -> Work[Any] | None:
        """The work of this task, if there is one; nothing is started."""
        with self.changed:
            return self._works.get(task)

    def start(self, work: Work[Any], who: str) -> None:
        with self.changed:
            if work.active or work.state == "done" or work.model is None:
                return
            own = sum(other.who == who for other in self._waiting)
            if len(self._waiting) >= self.most_waiting or own >= self.most_of_one:
                work.state = "failed"
                work.problem = NotDone(
                    f"{len(self._waiting)} works of this server's visitors wait already, {own} of them "
                    "yours, and no more may. Try again in a few minutes; whoever runs it can raise "
                    f"{WAITING} and {OF_ONE}"
                )
                self._works.pop(work.task, None)  # whoever asks again gets another one
                return
            work.tries = 0
            work.who = who
            work.asked = self.now()
            came, worked, last = self._turns.get(who, (0.0, 0.0, -PAUSE))
            if self.now() - last > PAUSE and not self._has_some(who):
                came = self.now()
                worked = 0.0
            self._turns[who] = came, worked, self.now()
            work.looked[who] = max(work.looked.get(who, 0.0), self.now() + GONE)
            self._queue(work)

    def _has_some(self, who: str) -> bool:
        return any(work.who == who for work in [*self._waiting, *self._working])

    def _queue(self, work: Work[Any]) -> None:
        work.state = "waiting"
        work.problem = None
        work.running = None
        self._waiting.append(work)
        self._fill()
        if not self._ticking:
            self._ticking = True
            threading.Thread(target=self._tick, name="gptviz line", daemon=True).start()

    # ---- whose turn it is ----

    def _order(self, work: Work[Any]) -> tuple[float, ...]:
        """Sort key: fewest running jobs of this visitor, earliest visitor, earliest job."""
        own = sum(other.who == work.who for other in self._working)
        return own, self._turns[work.who][0], work.asked

    def _fill(self) -> None:
        """Start what there is room for."""
        while self._waiting:
            long = sum(self.now() - work.began > TURN for work in self._working)
            room = self.backend.slots + min(long, self.backend.slots)
            if len(self._working) >= room:
                return
            work = min(self._waiting, key=self._order)
            self._waiting.remove(work)
            alone = not self._waiting and not self._working
            work.state = "working"
            work.began = self.now()
            work.tries = work.tries + 1
            self._working.append(work)
            try:
                work.running = running = self.backend.start(work.task, work.model, alone)
            except Exception as problem:  # who waits for it is told, and the line goes on
                work.problem = _could_not_begin(problem)
                work.state = "failed"
                self._leave_slot(work)
                continue
            running.future.add_done_callback(partial(self._ended, work, running))

    def _ended(self, work: Work[Any], running: Running, _: object) -> None:
        """A backend's thread: it is done, dead, or was stopped."""
        with self.changed:
            if work.running is not running or work.state != "working":
                return  # it was stopped meanwhile
            try:
                work.result = running.future.result()
                work.nbytes = nbytes_of(work.result)
                work.state = "done"
            except self.backend.gone as problem:
                if work.tries < TRIES:
                    self._leave_slot(work)
                    self._queue(work)
                    return
                said = f"the process that worked on it was ended from outside, twice ({problem}): try again"
                work.problem = NotDone(said)
                work.state = "failed"
            except BaseException as problem:  # whatever it was, who waits is told
                work.problem = problem
                work.state = "failed"
                if not work.refused:
                    logging.getLogger(__name__).error("a work failed", exc_info=problem)
            took = self.now() - work.began
            self._took[work.task.function] = (self._took.get(work.task.function, took) + took) / 2
            self._leave_slot(work)
            self._bound()
            self._fill()
            self.changed.notify_all()

    def _leave_slot(self, work: Work[Any]) -> None:
        self._working.remove(work)
        came, worked, _ = self._turns[work.who]
        worked += self.now() - work.began
        if worked > TURN:  # to the end of the line
            came = self.now()
            worked = 0.0
        self._turns[work.who] = came, worked, self.now()

    def _tick(self) -> None:
        """While something is active: what nobody waits for any more ends, and long works give way."""
        while True:
            with self.changed:
                for work in [*self._waiting, *self._working]:
                    if all(until < self.now() for until in work.looked.values()):
                        self.stop(work)
                self._fill()
                here = {work.who for work in [*self._waiting, *self._working]}
                turns = self._turns.items()
                self._turns = {k: t for k, t in turns if k in here or self.now() - t[2] <= PAUSE}
                if not here:
                    self._ticking = False
                    return
                self.changed.wait(TICK)

    # ---- who asks ----

    def in_order(self) -> list[Work[Any]]:
        """The waiting jobs, the next first."""
        return sorted(self._waiting, key=self._order)

    def seconds_until(self, work: Work[Any]) -> float | None:
        """About how long a work that waits still takes; None where something before it was never done yet."""
        line = self.in_order()
        line = line[: line.index(work) + 1]
        if not all(other.task.function in self._took for other in line):
            return None
        left = sum(other.seconds_left or 0.0 for other in self._working)
        return (left + sum(self._took[other.task.function] for other in line)) / self.backend.slots

    def stop(self, work: Work[Any]) -> None:
        with self.changed:
            if work in self._waiting:
                self._waiting.remove(work)
            elif work in self._working:
                self._leave_slot(work)
            else:
                return
            work.state = "stopped"
            running = work.running
            if running is not None:
                running.cancel()
            self._fill()
            self.changed.notify_all()

    def forget(self, model: str) -> None:
        """Stop and drop the works of a model that is gone."""
        self.backend.forget(model)
        with self.changed:
            for task in [task for task in self._works if task.model == model]:
                self.stop(self._works.pop(task))

    def snapshot(self) -> dict[str, int]:
        """The load of this queue, in numbers for whoever watches the server."""
        with self.changed:
            oldest = max((self.now() - work.asked for work in self._waiting), default=0.0)
            return {
                "waiting": len(self._waiting),
                "working": len(self._working),
                "slots": self.backend.slots,
                "longest_wait_seconds": round(oldest),
                "result_bytes": sum(work.nbytes for work in self._works.values()),
            }

    def close(self) -> None:
        """Stop everything, and let the workers go."""
        with self.changed:
            for work in [*self._waiting, *self._working]:
                self.stop(work)
            self._works.clear()
        self.backend.close()

    def _bound(self) -> None:
        held = sum(work.nbytes for work in self._works.values())
        for task in [task for task, work in self._works.items() if work.state == "done"]:
            if held <= self.max_bytes:
                return
            held -= self._works.pop(task).nbytes


def _could_not_begin(problem: Exception) -> NotDone:
    """The sentence for a work that its backend could not begin: a full disk, or a cluster that is gone."""
    why = problem.strerror if isinstance(problem, OSError) and problem.strerror else f"{problem}"
    return NotDone(f"the server could not begin this work ({why}). Try again in a few minutes")
