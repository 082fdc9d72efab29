"""Readers of files that begin at once: forked by a process that has imported torch, which takes seconds."""

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from gptviz.jobs import inside
from gptviz.jobs.worker import NICE, Worker
from gptviz.models import convert

FORKS = "forkserver" in multiprocessing.get_all_start_methods()


class Forked:
    """What a Worker asks of `subprocess.Popen`."""

    stdin = None

    def __init__(self, command: Sequence[str], log: Path):
        context = multiprocessing.get_context("forkserver")
        # a process has one fork server: the queue's workers come from it, too
        context.set_forkserver_preload([inside.__name__, convert.__name__])
        self._process = context.Process(target=read, args=(command, log))
        self._process.start()
        self.pid = self._process.pid

    @property
    def returncode(self) -> int | None:
        return self._process.exitcode

    def wait(self, seconds: float | None = None) -> None:
        self._process.join(seconds)
        if self._process.exitcode is None:
            raise subprocess.TimeoutExpired("gptviz.models.convert", seconds or 0)


def read(command: Sequence[str], log: Path) -> None:
    """In the process: the same command, in a group of its own."""
    os.setsid()
    with log.open("wb") as said:
        os.dup2(said.fileno(), sys.stderr.fileno())
    sys.argv = [*command, "--nice", str(NICE)]
    convert.main()


def start(command: Sequence[str], log: Path, threads: int) -> Worker:
    """As `gptviz.jobs.worker.start`, without its leash and its number of threads."""
    return Worker(Forked(command, log), log)  # type: ignore[arg-type]
