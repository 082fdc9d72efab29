"""The server's queue of maps, measurements and searches, and what scripts ask of it."""

import atexit
import os
from collections.abc import Callable
from concurrent.futures import Future, wait
from functools import partial
from typing import Any, TypeVar

import streamlit as st

from gptviz import Run
from gptviz.files.owned_folder import WORKS, OwnedFolder
from gptviz.jobs import Job, Queue, Task
from gptviz.jobs.local import FORKS, Processes, Thread
from gptviz.jobs.queue import OF_ONE, WAITING
from gptviz.jobs.task import RAY, Backend
from gptviz.ui import runs
from gptviz.ui.models.budget import session
from gptviz.ui.models.cache import model_cache
from gptviz.ui.settings import cache_bytes, count, number

R = TypeVar("R")

WORKERS = "GPTVIZ_WORKERS"
SETTING = "GPTVIZ_MEASURED_CACHE_MB"
DEFAULT_MEGABYTES = 64
_ROOT = OwnedFolder(WORKS)  # the models' files, which workers map
LOOK = 0.5  # seconds between two looks at a text that the cluster reads
MOST_WAITING = 300  # a class of thirty with ten each
MOST_OF_ONE = 100  # all labels of mini's heads on trial


_no_server = False


def without_server() -> None:
    """Have jobs done by this process: a notebook's, in which a page's script is run."""
    global _no_server
    _no_server = True


@st.cache_resource(max_entries=1, show_spinner=False)
def queue() -> Queue:
    """The process's queue of maps and searches; MB of results in the environment variable GPTVIZ_MEASURED_CACHE_MB."""
    most_waiting = count(WAITING, MOST_WAITING)
    most_of_one = count(OF_ONE, MOST_OF_ONE)
    made = Queue(_backend(), cache_bytes(SETTING, DEFAULT_MEGABYTES), most_waiting, most_of_one)
    atexit.register(_ROOT.clear)
    atexit.register(made.close)
    model_cache().when_dropped(made.forget)
    return made


def _backend() -> Backend:
    """The Ray cluster of GPTVIZ_RAY; else GPTVIZ_WORKERS processes, one for each core if it is not set; with
    0 a thread of this process. Where no server is, a thread that waits for nobody.
    """
    if _no_server:
        return Thread(lambda _: None)
    address = os.environ.get(RAY)
    if address:
        return _cluster(address)
    every_core = 1
    if FORKS:
        every_core = os.cpu_count() or 1
    workers = number(WORKERS, every_core, 0, "a whole number of processes, such as")
    if workers:
        return Processes(workers, lambda: _ROOT.path)
    return Thread()


def _cluster(address: str) -> Backend:
    """The Ray cluster at this address, which reads the texts of large models, too."""
    from gptviz.jobs.ray.cluster import Cluster

    cluster = Cluster(address, lambda: _ROOT.path)
    model_cache().when_loaded(partial(cluster.reader, wait=_wait))
    return cluster


def _wait(trace: "Future[Any]", place: Callable[[], int]) -> None:
    """Wait until the cluster has read a text of this script: says its place, and ends with its run."""
    if wait([trace], LOOK).done:
        return
    here = st.empty()
    while not wait([trace], LOOK).done:
        here.caption(f"The cluster reads your text: number {place()} in line")
    here.empty()


def ask(
    run: Run, function: Callable[..., R], *args: Any, known: R | None = None, **options: Any
) -> Job[R]:
    """The job of this task (see `Task`) with a run's model and edits: the one that there is, or started.

    With a result that is `known` it is done.
    """
    return queue().get(
        _task(run, function, *args, **options), runs.model(run.model), visitor(), known
    )


def find(run: Run, function: Callable[..., R], *args: Any, **options: Any) -> Job[R] | None:
    """The same, where somebody has asked for it; nothing is started."""
    return queue().find(_task(run, function, *args, **options))


def _task(run: Run, function: Callable[..., Any], *args: Any, **options: Any) -> Task:
    return Task(function, run.model, args, tuple(sorted(options.items())), run.edits)


def visitor() -> str:
    """The visitor in whose name the jobs of this script stand in the queue."""
    return session() or ""
