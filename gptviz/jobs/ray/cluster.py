"""The backend on many machines: tasks of a Ray cluster, with GPTVIZ_RAY=auto or its address.

The server itself is no part of the cluster: Ray ends a program a minute after its cluster is gone. A process
beside it is, `driver`; if that ends, what was at work is begun anew, or fails with a sentence.
"""

import importlib.util
import os
import pickle
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

from gptviz import LanguageModel, Reduction, Trace
from gptviz.engine.edits import Given, edits_of
from gptviz.engine.gradient import Towards
from gptviz.engine.sites import Key, Wanted
from gptviz.jobs.local import Files
from gptviz.jobs.task import Execution, Task

AUTO = "auto"
LARGE = 10**8  # parameters: GPT-2's smallest model; the texts of such a one are read by the cluster
# tasks for a processor: at work, and the next, since Ray hears late that a processor is free
EACH = 2
REACH = 3.0  # seconds for an address to answer; Ray itself would try for a minute and a half
# what Ray reads when it is imported
ENVIRONMENT = {
    # a program ends so long after its cluster; 60 by itself
    "RAY_gcs_rpc_server_reconnect_timeout_s": "15",
    # a model's weights once for all workers of a machine
    "RAY_ENABLE_ZERO_COPY_TORCH_TENSORS": "1",
}


class Lost(RuntimeError):
    """Who worked on a task is gone: a worker, its machine, or the whole cluster."""


def reach(address: str) -> None:
    """Raise ValueError, a sentence, where Ray is not installed or nobody answers at an address."""
    if importlib.util.find_spec("ray") is None:
        raise ValueError("ray is not installed: pip install gptviz[ray]")
    host, _, port = address.rpartition(":")
    if address == AUTO:
        return  # Ray itself knows at once whether one runs here
    if not (host and port.isdigit()):
        raise ValueError(
            f"{address!r} is no address of a Ray cluster; it is {AUTO}, or like 10.0.0.1:6379"
        )
    try:
        socket.create_connection((host, int(port)), REACH).close()
    except (OSError, OverflowError) as problem:
        raise ValueError(f"no Ray cluster answers at {address}: {problem}") from None


def join(address: str) -> None:
    """Make this process part of a cluster: it ends some seconds after the cluster does.

    Raises ValueError, a sentence, where there is none.
    """
    reach(address)
    os.environ |= ENVIRONMENT
    import ray

    try:
        ray.init(address, log_to_driver=False, configure_logging=False, ignore_reinit_error=True)
    except (OSError, RuntimeError) as problem:
        raise ValueError(f"no Ray cluster answers at {address}: {problem}") from None


class Cluster(Files):
    """Tasks for each processor of a Ray cluster, however many it has at the time."""

    gone = (Lost,)

    def __init__(self, address: str, folder: Callable[[], Path]):
        super().__init__(folder)
        self.slots = 1
        self.large = LARGE
        self._reading: list[_OnCluster] = []
        self._address = address
        self._number = 0
        self._running: dict[int, _OnCluster] = {}
        self._link: Connection | None = None
        self._lock = threading.RLock()
        with self._lock, suppress(ValueError):  # who asks for something is told
            self._connect()  # its workers load torch, in some seconds: before somebody asks

    def begin(self, task: Task, file: Path, alone: bool) -> Execution:
        with self._lock:
            self._number += 1
            running = self._running[self._number] = _OnCluster(self, self._number)
            self._say("do", self._number, task, str(file))
        return running

    def reader(self, model: str, lm: LanguageModel, wait: "Wait") -> LanguageModel:
        """A large model as one whose texts the cluster reads, its weights mapped; any other as it is."""
        file = self.ready(model, lm) if lm.config.parameters >= self.large else lm
        if isinstance(file, LanguageModel):
            return lm
        mapped = torch.load(file, mmap=True, weights_only=False)
        return Served(
            mapped.model,
            lm.tokenizer,
            lm.config,
            lm.name,
            activation_is_assumed=lm.activation_is_assumed,
            chat=lm.chat,
            read=partial(self._read, file, wait),
        )

    def _read(self, file: Path, wait: "Wait", *text: Any) -> Trace:
        """The trace of a `passes.Text`, as it was sent. Raises Lost, and what `LanguageModel.trace` does."""
        with self._lock:
            self._number += 1
            try:
                self._say("read", self._number, f"{file}", *text)
            except ValueError as problem:
                raise Lost(f"{problem}") from None
            mine = self._running[self._number] = _OnCluster(self, self._number)
            self._reading.append(mine)
        try:
            wait(mine.future, lambda: self._reading.index(mine) + 1)
            trace: Trace = pickle.loads(mine.future.result())
        finally:
            self._reading.remove(mine)
            mine.cancel()  # who waited may have been stopped
        return trace

    def stop(self, number: int) -> None:
        with self._lock:
            if self._running.pop(number, None) is not None:
                self._say("stop", number)

    def forget(self, model: str) -> None:
        file = self._files.get(model)
        super().forget(model)
        with self._lock:
            if file is not None and self._link is not None:
                self._say("forget", str(file))

    def _say(self, *words: Any) -> None:
        """To the driver, which is started if there is none; ValueError, a sentence, where that cannot be."""
        link = self._link or self._connect()
        with suppress(OSError):  # it has just ended, of which its listener tells all who wait
            link.send(words)

    def _connect(self) -> Connection:
        reach(self._address)
        link, theirs = Pipe()
        driver = subprocess.Popen(
            [sys.executable, "-m", "gptviz.jobs.ray.driver", str(theirs.fileno()), self._address],
            env=os.environ | ENVIRONMENT | {"PYTHONPATH": os.pathsep.join(sys.path)},
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
        theirs.close()
        threading.Thread(target=self._listen, args=(link, driver), daemon=True).start()
        self._link = link
        return link

    def _listen(self, link: Connection, driver: "subprocess.Popen[bytes]") -> None:
        """Hear what the driver says, until it ends."""
        why = f"the Ray cluster at {self._address} is gone"
        with suppress(EOFError, OSError):
            while True:
                what, number, value = link.recv()
                if what == "slots":
                    self.slots = EACH * max(1, value)
                elif what == "refused":
                    why = value
                elif what == "progress" and number in self._running:
                    self._running[number].done = value
                elif what in ("done", "failed", "lost"):
                    self._ended(number, what, value)
        driver.wait()
        with self._lock:
            link.close()
            self._link = None
            self.slots = 1
            left = [*self._running]
        for number in left:
            self._ended(number, "lost", why)

    def _ended(self, number: int, what: str, value: Any) -> None:
        with self._lock:
            running = self._running.pop(number, None)
        if running is None:  # it was stopped meanwhile
            return
        if what == "done":
            running.future.set_result(value)
        else:
            running.future.set_exception(value if what == "failed" else Lost(value))

    def stands(self) -> bool:
        try:
            reach(self._address)
        except ValueError:
            return False
        return True

    def close(self) -> None:
        super().close()
        with self._lock:
            if self._link is not None:
                self._say("end")


# until it is done; its place in the queue
Wait = Callable[["Future[Any]", Callable[[], int]], None]


@dataclass(frozen=True, repr=False)
class Served(LanguageModel):
    """A model whose texts are read elsewhere; of its weights, in a file, a page reads what it needs."""

    read: Callable[..., Trace] = field(kw_only=True, compare=False)

    def trace(
        self,
        text: str | Sequence[int],
        keep: Iterable[Wanted] | None = None,
        edits: Iterable[Given] = (),
        special_tokens: bool = False,
        reduce: Iterable[Reduction] = (),
        after: Trace | None = None,
        grad: Towards | None = None,
        at_once: Iterable[str | Key] = (),
    ) -> Trace:
        """`LanguageModel.trace`: everything of a text elsewhere, and else, or where nobody answers, here."""
        ids = tuple(self._ids(text, special_tokens))
        every = (*self.edits, *edits_of(edits))
        known = after is not None and ids == tuple(token.id for token in after.tokens[: len(ids)])
        here = (
            keep is not None or grad is not None or known or any(edit.is_function for edit in every)
        )
        if not here:
            with suppress(Lost):
                return self.read(ids, every, tuple(at_once), tuple(reduce)).received(self)
        return super().trace(text, keep, edits, special_tokens, reduce, after, grad, at_once)


class _OnCluster:
    def __init__(self, cluster: Cluster, number: int):
        self._cluster = cluster
        self._number = number
        self.future: Future[Any] = Future()
        self.done = (0, 1)

    def progress(self) -> tuple[int, int]:
        return self.done

    def cancel(self) -> None:
        self._cluster.stop(self._number)
