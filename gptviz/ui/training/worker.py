"""The process that trains one run, as the server sees it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import gptviz

LOG = "worker.log"
NICE = 5  # below the server, whose pages somebody waits for; a third of its share where cores are short
# How often torch's threads look for each other before they sleep. With GNU OpenMP's own number two of them
# burn what a busy machine leaves them: beside three busy processes on two cores, 60 small steps took over
# four minutes, and take 5 s like this.
SPIN = 1000


class Worker:
    """A process on a leash: it holds the other end of a pipe, and ends when that is closed."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path):
        self._process, self._log = process, log
        self._ended_with = ""

    @property
    def running(self) -> bool:
        return self._process.returncode is None

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait(self) -> None:
        """Until it is gone; and let go of the leash."""
        self._process.wait()
        if self._process.stdin is not None:
            self._process.stdin.close()

    def kill(self) -> None:
        self._process.kill()

    @property
    def how_it_ended(self) -> str:
        """By which signal, or with which last words."""
        code = self._process.returncode
        if code is not None and code < 0:
            return f"signal {-code}, {signal.Signals(-code).name}"
        try:
            lines = self._log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
        except FileNotFoundError:
            lines = []
        return f"exit status {code}" + (f": {lines[-1]}" if lines else "")


def launch(folder: Path, threads: int) -> Worker:
    """A worker for the run that was begun in a folder, from where it is.

    `threads` as its plan says: torch's libraries make theirs before the plan is read.
    """
    command = [
        *(sys.executable, "-m", "gptviz.training", "live", "--work", str(folder)),
        *("--nice", str(NICE), "--leash"),
    ]
    package = str(Path(gptviz.__file__).parents[1])
    path = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
    as_many = {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads), "GOMP_SPINCOUNT": str(SPIN)}
    log = folder / LOG
    with log.open("wb") as said:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=said,
            env=os.environ | {"PYTHONPATH": path} | as_many,
        )
    return Worker(process, log)
