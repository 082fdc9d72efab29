"""A process of its own for one job: it trains one run, or reads one file that somebody brought.

`start` begins one, on a leash; `InWorker` is the execution of a job that such a process does.
"""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import gptviz

# below the server, whose pages somebody waits for; a third of its share where cores are short
NICE = 5
# How often torch's threads look for each other before they sleep. With GNU OpenMP's own number two of them
# burn what a busy machine leaves them: beside three busy processes on two cores, 60 small steps took over
# four minutes, and take 5 s like this.
SPIN = 1000

R = TypeVar("R")


class Worker:
    """A process on a leash: it holds the other end of a pipe, and ends when that is closed."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path):
        self._process = process
        self._log = log

    @property
    def running(self) -> bool:
        return self._process.returncode is None

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def ended_by(self) -> signal.Signals | None:
        """The signal that ended the process; None while it runs, or if it exited by itself."""
        code = self._process.returncode
        return None if code is None or code >= 0 else signal.Signals(-code)

    def wait(self, seconds: float | None = None) -> bool:
        """Until it is gone, or so many seconds; whether it is. Then let go of the leash."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        if self._process.stdin is not None:
            self._process.stdin.close()
        return True

    def kill(self) -> None:
        """End it, and what it may have started."""
        if hasattr(os, "killpg"):
            # nobody is left (macOS says the latter)
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        else:
            self._process.kill()

    @property
    def how_it_ended(self) -> str:
        """By which signal, or with which last words."""
        if self.ended_by is not None:
            return f"signal {self.ended_by.value}, {self.ended_by.name}"
        try:
            lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        except FileNotFoundError:
            lines = []
        return f"exit status {self._process.returncode}" + (f": {lines[-1]}" if lines else "")


def in_daemon_thread(function: Callable[..., R], *args: Any) -> "Future[R]":
    """`function(*args)` in a thread of its own, which Python does not wait for when it ends."""
    future: Future[R] = Future()
    future.set_running_or_notify_cancel()  # from now on nobody can cancel it

    def settle() -> None:
        try:
            future.set_result(function(*args))
        except BaseException as problem:  # whatever it was, who waits is told
            future.set_exception(problem)

    threading.Thread(target=settle, daemon=True).start()
    return future


class InWorker:
    """A job that a worker is at. A thread waits for the worker's end, however it ends.

    `ended()` is called then, and its result is the job's; `how_far()` says how much is done, of how much.
    """

    def __init__(
        self, worker: Worker, ended: Callable[[], object], how_far: Callable[[], tuple[int, int]]
    ):
        self.worker = worker
        self._ended = ended
        self._how_far = how_far
        self.future: Future[object] = in_daemon_thread(self._wait)

    def _wait(self) -> object:
        self.worker.wait()
        return self._ended()

    def progress(self) -> tuple[int, int]:
        return self._how_far()

    def cancel(self) -> None:
        if not self.future.done():
            self.worker.kill()


def start(command: Sequence[str], log: Path, threads: int) -> Worker:
    """Start `python -m` a command of ours that takes --nice and --leash; `log` takes what it says.

    `threads`: torch's libraries make theirs before the command is read.
    """
    package = str(Path(gptviz.__file__).parents[1])
    path = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
    as_many = {
        "OMP_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        "GOMP_SPINCOUNT": str(SPIN),
    }
    with log.open("wb") as said:
        process = subprocess.Popen(
            [sys.executable, "-m", *command, "--nice", str(NICE), "--leash"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=said,
            env=os.environ | {"PYTHONPATH": path} | as_many,
            start_new_session=True,  # a group of its own, which is ended as a whole
        )
    return Worker(process, log)
