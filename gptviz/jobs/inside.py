"""What runs in a worker process: `begin` once, then `do` for each task.

A worker maps the file of a task's model, does the task, and writes how far it is into memory that it shares
with the server. `gptviz.jobs.local.Processes` is the server's side: it starts workers and reads their progress.

Workers are forked by multiprocessing's fork server, a process that has imported this module and has done
nothing else. So a new worker has torch at once, and all workers share the libraries' memory.
"""

import multiprocessing
import multiprocessing.spawn
import os
import threading
from functools import lru_cache
from multiprocessing.connection import wait
from typing import Any

import torch

from gptviz import LanguageModel
from gptviz.engine import forward
from gptviz.jobs.task import Task

# Added to a worker's niceness, so that the server, whose pages somebody waits for, goes first. With 5 a worker
# gets about a third of the server's share of a core that both want (Linux).
NICE = 5
# The most models that a worker keeps open, each mapped from its file: the bundled one, and one more.
MOST_MODELS = 2


def _leave_main_alone(_: str) -> None:
    """Do nothing, in place of importing the server's `__main__`."""


# A fork server's worker, too, goes through the preparation of multiprocessing.spawn. That imports the server's
# `__main__`, so that pickles find what is defined there. Under Streamlit it is the script of whichever visitor
# ran last, and importing it would run a page. No task needs it: a task's function stands in a module.
multiprocessing.spawn._fixup_main_from_path = _leave_main_alone  # type: ignore[attr-defined]
multiprocessing.spawn._fixup_main_from_name = _leave_main_alone  # type: ignore[attr-defined]

# The progress of all workers' tasks, an array that the server shares with them: done, of, done, of, ... with a
# pair for each task that can be at work. The server sets a pair to 0, 1 before its task begins.
_progress: Any = None


def begin(progress: Any) -> None:
    """Prepare this worker; pebble calls it in each one before its first task.

    `progress` is the shared array of pairs, see `_progress`.
    """
    global _progress
    _progress = progress
    if hasattr(os, "nice"):
        os.nice(NICE)
    threading.Thread(target=_end_with_the_server, daemon=True).start()


def do(task: Task, file: str, place: int, threads: int) -> Any:
    """Do `task` with the model that is pickled in `file`, and return its result.

    Its progress goes into pair number `place` of the shared array. `threads` is the number of torch's threads
    in a pass.
    """
    # for each task anew, since it changes: a task that is alone has all cores, any other one of them
    forward.threads_for_passes_only(threads)

    def progress(done: int, of: int) -> None:
        _progress[2 * place] = done
        _progress[2 * place + 1] = of

    return task.do(_model(file), progress)


@lru_cache(MOST_MODELS)
def _model(file: str) -> LanguageModel:
    """Load a model from its file, mapped: the weights are in memory once for all workers.

    `weights_only=False` builds any object, and so could run code of whoever wrote the file. That is the server
    itself (`Files.ready` in `gptviz.jobs.local`), never a visitor.
    """
    return torch.load(file, mmap=True, weights_only=False)


def _end_with_the_server() -> None:
    """Wait until the server has ended, then end this worker in the middle of whatever it does."""
    # the server, which asked for this worker; the fork server is its parent only to the system (os.getppid)
    server = multiprocessing.parent_process()
    if server is not None:
        wait([server.sentinel])
        os._exit(1)
