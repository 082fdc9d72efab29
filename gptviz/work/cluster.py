"""Who works on many machines: tasks of a Ray cluster, with GPTVIZ_RAY=auto or its address.

The server itself is no part of the cluster: Ray ends a program a minute after its cluster is gone. A process
beside it is, `driver`; if that ends, what was at work is begun anew, or fails with a sentence.
"""

import importlib.util
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from gptviz.work.local import Files
from gptviz.work.task import Running, Task

RAY = "GPTVIZ_RAY"  # the setting
AUTO = "auto"
REACH = 3.0  # seconds for an address to answer; Ray itself would try for a minute and a half
# what Ray reads when it is imported
ENVIRONMENT = {
    "RAY_gcs_rpc_server_reconnect_timeout_s": "15",  # a program ends so long after its cluster; 60 by itself
    "RAY_ENABLE_ZERO_COPY_TORCH_TENSORS": "1",  # a model's weights once for all workers of a machine
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
            f"{address!r} is no address of a Ray cluster; it must be {AUTO}, or like 10.0.0.1:6379"
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
    """A task for each processor of a Ray cluster, however many it has at the time."""

    gone = (Lost,)

    def __init__(self, address: str, folder: Callable[[], Path]):
        super().__init__(folder)
        self.slots = 1
        self._address, self._number = address, 0
        self._running: dict[int, _OnCluster] = {}
        self._link: Connection | None = None
        self._lock = threading.RLock()
        with self._lock, suppress(ValueError):  # who asks for something is told
            self._connect()  # its workers load torch, in some seconds: before somebody asks

    def begin(self, task: Task, file: Path, alone: bool) -> Running:
        with self._lock:
            self._number += 1
            running = self._running[self._number] = _OnCluster(self, self._number)
            self._say("do", self._number, task, str(file))
        return running

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
            [sys.executable, "-m", "gptviz.work.driver", str(theirs.fileno()), self._address],
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
                    self.slots = max(1, value)
                elif what == "refused":
                    why = value
                elif what == "progress" and number in self._running:
                    self._running[number].done = value
                elif what in ("done", "failed", "lost"):
                    self._ended(number, what, value)
        driver.wait()
        with self._lock:
            link.close()
            self._link, self.slots = None, 1
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


class _OnCluster:
    def __init__(self, cluster: Cluster, number: int):
        self._cluster, self._number = cluster, number
        self.future: Future[Any] = Future()
        self.done = (0, 1)

    def progress(self) -> tuple[int, int]:
        return self.done

    def cancel(self) -> None:
        self._cluster.stop(self._number)
