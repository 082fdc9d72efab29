"""The backends on one machine: processes that are forked when needed, and killed to stop them; or a thread.

Pebble's pool, because it alone ends a task that runs without touching the others (loky and
concurrent.futures lose the whole pool with one process), and says when a process died.
"""

import errno
import multiprocessing
import os
import threading
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import torch
from pebble import ProcessExpired, ProcessPool

from gptviz import LanguageModel
from gptviz.engine import forward
from gptviz.jobs import inside
from gptviz.jobs.task import Execution, Task
from gptviz.jobs.worker import in_daemon_thread

# How often OpenMP's threads look for each other before they sleep: with GNU's own number they burn what a
# busy machine leaves them.
SPIN = "1000"
LONGEST_REST = 1.0  # seconds
LONGEST_FOLDER = 80  # characters of a folder for sockets: a socket's whole path may have 107
FORKS = "forkserver" in multiprocessing.get_all_start_methods()  # everywhere but on Windows


class Files(ABC):
    """Work that is done elsewhere: models go there as files in `folder()`.

    A model on a GPU stays where it is: its tasks are done by a `Thread` of this process.
    """

    def __init__(self, folder: Callable[[], Path]):
        self._folder = folder
        self._here = Thread()
        self._files: dict[str, Path] = {}
        self._saving = threading.Lock()

    def ready(self, model: str, lm: LanguageModel) -> "Path | LanguageModel":
        if lm.model.tok_emb.weight.is_cuda:
            return lm
        with self._saving:
            if model not in self._files:
                file = self._folder() / f"{uuid.uuid4().hex}.pt"
                try:
                    with forward.alone():  # no pass has its hooks and kernels on it meanwhile
                        torch.save(LanguageModel(lm.model, lm.tokenizer, lm.config, lm.name), file)
                except (
                    OSError,
                    RuntimeError,
                ) as problem:  # torch's own error, where a disk is full
                    file.unlink(missing_ok=True)
                    raise OSError(
                        errno.ENOSPC, "the model's file cannot be written: is the disk full?"
                    ) from problem
                self._files[model] = file
            return self._files[model]

    def start(self, task: Task, model: "Path | LanguageModel", alone: bool) -> Execution:
        if isinstance(model, LanguageModel):
            return self._here.start(task, model, alone)
        return self.begin(task, model, alone)

    @abstractmethod
    def begin(self, task: Task, file: Path, alone: bool) -> Execution:
        """The same as `start`, for a model in a file."""

    def forget(self, model: str) -> None:
        with self._saving:
            file = self._files.pop(model, None)
        if file is not None:
            file.unlink(missing_ok=True)  # who has it mapped keeps it until done

    def close(self) -> None:
        self._here.close()


class Processes(Files):
    """`slots` processes, which map a model's file: once for all of them."""

    gone: tuple[type[BaseException], ...] = (ProcessExpired, BrokenProcessPool)

    def __init__(self, slots: int, folder: Callable[[], Path]):
        super().__init__(folder)
        self.slots = slots
        _sockets_in(folder)
        os.environ.setdefault("GOMP_SPINCOUNT", SPIN)  # of the processes; here it was read long ago
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([inside.__name__])
        self._progress = context.RawArray("q", 4 * slots)
        self._free = list(range(2 * slots))
        self._made = partial(
            ProcessPool,
            2 * slots,
            context=context,
            initializer=inside.begin,
            initargs=(self._progress,),
        )
        self._making = threading.RLock()
        self._pool = self._made()
        self._closed = False
        self._given: list[Future[Any]] = []  # what the pool has to do
        self.stands()  # the first process imports torch, in some seconds: before somebody asks

    def begin(self, task: Task, file: Path, alone: bool) -> Execution:
        return _InProcess(self, task, file, (os.cpu_count() or 1) if alone else 1)

    def schedule(self, *given: Any) -> "Future[Any]":
        """`inside.do` of these, in a process of the pool."""
        with self._making:
            self.stands()
            future: Future[Any] = self._pool.schedule(inside.do, args=given)
            self._given = [*(other for other in self._given if not other.done()), future]
        return future

    def stands(self) -> bool:
        """Until it is closed: a pool that ended, as one does when an idle process is killed, is made anew."""
        with self._making:
            if not (self._pool.active or self._closed):
                # in a thread: it may be the ended pool's own that asks here for a task to be tried again
                threading.Thread(target=_end, args=(self._pool, self._given), daemon=True).start()
                self._pool = self._made()
                self._given = []
            return bool(self._pool.active)

    def close(self) -> None:
        super().close()
        with self._making:
            self._closed = True
        self._pool.stop()
        self._pool.join()


def _sockets_in(folder: Callable[[], Path]) -> None:
    """Have multiprocessing put its sockets here, in a folder that the next server removes.

    By itself it makes a folder pymp-* of its own, which nobody removes after a kill.
    """
    with suppress(OSError):  # a full disk: then it makes its own, or says so when it begins
        made = f"{folder()}"
        if len(made) < LONGEST_FOLDER:
            multiprocessing.current_process()._config["tempdir"] = made  # type: ignore[attr-defined]


def _end(pool: ProcessPool, given: "list[Future[Any]]") -> None:
    """Tell all who wait for a pool that ended: pebble forgets what is given to it in that moment."""
    pool.join()
    for future in given:
        if not future.done():
            future.set_exception(BrokenProcessPool("the processes were ended from outside"))


class _InProcess:
    def __init__(self, processes: Processes, task: Task, file: Path, threads: int):
        self._processes = processes
        self._shared = processes._progress
        self._place = processes._free.pop()
        self._shared[2 * self._place : 2 * self._place + 2] = 0, 1
        self.future = processes.schedule(task, str(file), self._place, threads)
        self.future.add_done_callback(lambda _: processes._free.append(self._place))

    def progress(self) -> tuple[int, int]:
        self._processes.stands()  # who waits looks here, and is told if not
        done, of = self._shared[2 * self._place : 2 * self._place + 2]
        return done, of

    def cancel(self) -> None:
        self.future.cancel()  # which kills the process


class Stopped(Exception):
    """What a task's progress raises in a thread that is to end it."""


class Thread:
    """One task at a time, in a thread of this process, behind the visitors' own passes.

    After each step it waits as long as the step took: whoever asks for a page meanwhile has the model alone.
    """

    slots = 1
    gone: tuple[type[BaseException], ...] = ()

    def __init__(self, rest: Callable[[float], None] = time.sleep):
        self.executor = ThreadPoolExecutor(1, "gptviz job")
        self.rest = rest

    def ready(self, model: str, lm: LanguageModel) -> LanguageModel:
        return lm.plain

    def start(self, task: Task, model: LanguageModel, alone: bool) -> Execution:
        return _InThread(task, model, self.rest, self.executor.submit)

    def forget(self, model: str) -> None:
        """Nothing: nobody but its jobs holds it."""

    def stands(self) -> bool:
        return True

    def close(self) -> None:
        self.executor.shutdown(cancel_futures=True)  # it must not be within a pass when Python ends


class DaemonThreads:
    """`slots` tasks at a time that wait for a process of their own, in threads that end with Python.

    Each calls its progress several times a second: if it was stopped, that raises, and it ends its process.
    """

    gone: tuple[type[BaseException], ...] = ()

    def __init__(self, slots: int):
        self.slots = slots

    def ready(self, model: str, lm: LanguageModel) -> LanguageModel:
        return lm

    def start(self, task: Task, model: LanguageModel | None, alone: bool) -> Execution:
        return _InThread(task, model, lambda _: None, in_daemon_thread)

    def forget(self, model: str) -> None:
        """Nothing: no model is kept here."""

    def stands(self) -> bool:
        return True

    def close(self) -> None:
        """Nothing: who was stopped ends soon, and all end with Python."""


class _InThread:
    def __init__(
        self,
        task: Task,
        lm: LanguageModel | None,
        rest: Callable[[float], None],
        submit: "Callable[..., Future[Any]]",
    ):
        self._done = (0, 1)
        self._stop = False
        self._began = time.monotonic()
        self._rest = rest
        self.future = submit(self._do, task, lm)

    def _do(self, task: Task, lm: LanguageModel | None) -> Any:
        self._began = time.monotonic()
        self._step(*self._done)
        return task.do(lm, self._step)

    def _step(self, done: int, of: int) -> None:
        if self._stop:
            raise Stopped
        self._done = done, of
        self._rest(min(LONGEST_REST, time.monotonic() - self._began))  # the visitors' own passes
        self._began = time.monotonic()

    def progress(self) -> tuple[int, int]:
        return self._done

    def cancel(self) -> None:
        self._stop = True
        self.future.cancel()  # if it has not begun
