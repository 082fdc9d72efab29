"""What runs in a worker: it maps the model's file, does the task, and says how far it is.

Workers are forked from a process that has imported this module and has done nothing else: a new one is there
at once, and shares the libraries' memory with the others.
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

# below the server, whose pages somebody waits for; a third of its share where cores are short
NICE = 5
MODELS = 2  # files that a worker keeps mapped: the bundled model's, and one more

# A worker needs nothing of the server's __main__, which is the script of whichever visitor's run came last:
# importing that, as multiprocessing does for pickles, would run a page.
multiprocessing.spawn._fixup_main_from_path = multiprocessing.spawn._fixup_main_from_name = (
    lambda _: None
)  # type: ignore[attr-defined]

_progress: Any = None  # (done, of) for every task that can be at work, shared with the server


def begin(progress: Any) -> None:
    """A worker's first lines."""
    global _progress
    _progress = progress
    if hasattr(os, "nice"):
        os.nice(NICE)
    threading.Thread(target=_end_with_the_server, daemon=True).start()


def do(task: Task, file: str, place: int, threads: int) -> Any:
    """`task`, with the model of this file; what it says of its progress goes to this place."""
    forward.threads_for_passes_only(threads)

    def progress(done: int, of: int) -> None:
        _progress[2 * place] = done
        _progress[2 * place + 1] = of

    return task.do(_model(file), progress)


@lru_cache(MODELS)
def _model(file: str) -> LanguageModel:
    """A file that the server wrote: its weights stay in the system's memory, once for all workers."""
    return torch.load(file, mmap=True, weights_only=False)


def _end_with_the_server() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
