"""The process that speaks to a Ray cluster for a server (`cluster`): it ends with either of them."""

import logging
import sys
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache
from multiprocessing.connection import Connection
from typing import Any

import ray
import torch
from ray.exceptions import RayError, RayTaskError, TaskCancelledError

from gptviz import LanguageModel
from gptviz.jobs.inside import MOST_MODELS
from gptviz.jobs.ray.cluster import join
from gptviz.jobs.task import Task

READERS = 64  # texts that wait for the deployment of large models; others wait for these
SECONDS = 0.25  # between two words on the progress of a task, and on the size of the cluster


@ray.remote(num_cpus=0, max_restarts=-1)
class ProgressActor:
    """How far tasks are, (done, of) by number: all workers of the cluster tell this actor."""

    def __init__(self) -> None:
        self._how_far: dict[int, tuple[int, int]] = {}

    def tell(self, number: int, done: int, of: int) -> None:
        self._how_far[number] = done, of

    def all(self, numbers: list[int]) -> dict[int, tuple[int, int]]:
        """Those at work, and forget the others."""
        self._how_far = {number: far for number, far in self._how_far.items() if number in numbers}
        return self._how_far


@ray.remote(max_retries=0)
def do(task: Task, model: list[Any], number: int, actor: Any) -> Any:
    """`task` in a worker of the cluster, with a model that lies in its store."""
    torch.set_num_threads(1)
    said = 0.0

    def progress(done: int, of: int) -> None:
        nonlocal said
        if time.monotonic() - said > SECONDS:
            said = time.monotonic()
            actor.tell.remote(number, done, of)

    return task.do(_model(*model), progress)


@lru_cache(MOST_MODELS)
def _model(stored: Any) -> LanguageModel:
    return ray.get(stored)


@ray.remote
def stand() -> None:
    """Begin a worker of the cluster: it imports torch, in some seconds, before somebody asks."""


class Driver:
    """What a server says by `link`, done; what becomes of it, said there."""

    def __init__(self, link: Connection):
        self._link = link
        self._lock = threading.Lock()
        self._models: dict[str, Any] = {}
        self._at_work: dict[int, Any] = {}
        self._progress = ProgressActor.remote()  # type: ignore[attr-defined]
        self._readers = ThreadPoolExecutor(READERS)
        self._deploying = threading.Lock()
        self._passes: Any = None
        threading.Thread(target=self._tell, daemon=True).start()

    def say(self, what: str, number: int, value: Any) -> None:
        with self._lock, suppress(OSError):  # the server is gone, and this process ends
            self._link.send((what, number, value))

    def do(self, number: int, task: Task, file: str) -> None:
        # within a list Ray leaves it to the worker to fetch it, which keeps what it has fetched
        ref = self._at_work[number] = do.remote(task, [self._stored(file)], number, self._progress)
        ref.future().add_done_callback(lambda future: self._ended(number, future.result))

    def read(self, number: int, file: str, *text: Any) -> None:
        stored = self._stored(file)
        self._readers.submit(self._ended, number, lambda: self._read(file, stored, text))

    def _read(self, file: str, stored: Any, text: tuple[Any, ...]) -> bytes:
        from gptviz.jobs.ray import passes  # Ray Serve, for who has a large model

        logging.getLogger("ray.serve").setLevel(logging.WARNING)
        with self._deploying:
            self._passes = self._passes or passes.deployed()
        return (
            self._passes.options(multiplexed_model_id=file)
            .read.remote(file, [stored], text)
            .result()
        )

    def _stored(self, file: str) -> Any:
        """A model in the cluster's store, for all of its workers."""
        if file not in self._models:
            with warnings.catch_warnings(action="ignore"):  # nobody writes into a model's weights
                self._models[file] = ray.put(torch.load(file, mmap=True, weights_only=False))
        return self._models[file]

    def _ended(self, number: int, result: Callable[[], Any]) -> None:
        self._at_work.pop(number, None)
        try:
            self.say("done", number, result())
        except TaskCancelledError:
            return
        except RayTaskError as problem:
            self.say("failed", number, problem.cause)
        except Exception as problem:  # whatever it was, who waits is told
            self.say("lost", number, f"{type(problem).__name__}: {problem}")

    def stop(self, number: int) -> None:
        ref = self._at_work.pop(number, None)
        if ref is not None:
            ray.cancel(ref)

    def forget(self, file: str) -> None:
        self._models.pop(file, None)

    def _tell(self) -> None:
        """How many tasks the cluster can do at a time, and how far those are that it does."""
        slots = 0
        while True:
            with suppress(RayError):  # the actor's machine is gone: it comes again on another
                now = int(ray.cluster_resources().get("CPU", 0))
                if now != slots:
                    for _ in range(now - slots):
                        stand.remote()
                    slots = now
                    self.say("slots", 0, slots)
                if self._at_work:
                    told = ray.get(self._progress.all.remote([*self._at_work]), timeout=1)
                    for number, far in told.items():
                        self.say("progress", number, far)
            time.sleep(SECONDS)


def main(handle: str, address: str) -> None:
    """Serve whoever holds the other end of a connection, until he lets go of it."""
    link = Connection(int(handle))
    try:
        join(address)
    except ValueError as problem:
        link.send(("refused", 0, f"{problem}"))
        return
    driver = Driver(link)
    with suppress(EOFError, OSError):
        while True:
            what, *words = link.recv()
            if what == "end":
                return
            getattr(driver, what)(*words)


if __name__ == "__main__":
    from gptviz.jobs.ray import driver  # by this name, by which the cluster's workers import it

    driver.main(*sys.argv[1:])
