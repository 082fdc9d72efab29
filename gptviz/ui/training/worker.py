"""The process that trains one run, as the server sees it."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import gptviz

LOG = "worker.log"
NICE = 10  # below the server, whose pages somebody waits for
THREADS = 1  # two add the same numbers in another order: the same seed would not give the same curve


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


def launch(folder: Path) -> Worker:
    """A worker for the run that was begun in a folder, from where it is."""
    command = [
        *(sys.executable, "-m", "gptviz.training", "live", "--work", str(folder)),
        *("--threads", str(THREADS), "--nice", str(NICE), "--leash"),
    ]
    package = str(Path(gptviz.__file__).parents[1])
    path = os.pathsep.join([package, *filter(None, [os.environ.get("PYTHONPATH")])])
    threads = {"OMP_NUM_THREADS": str(THREADS), "MKL_NUM_THREADS": str(THREADS)}
    log = folder / LOG
    with log.open("wb") as said:
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=said,
            env=os.environ | {"PYTHONPATH": path} | threads,
        )
    return Worker(process, log)
