"""What this machine can serve, and what is wrong with its settings: `gptviz doctor`.

How many visitors is a rule: `SECONDS` between two clicks of a visitor, half of every core left free, and what
a click costs, which is measured here. It is the page Attention run on new texts, times `THROUGH` for the way
through the server (benchmarks/sessions.py: 122 ms a click of thirty at once, where the page alone took 55).
"""

import math
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from streamlit.testing.v1 import AppTest

from gptviz import load
from gptviz.digits import gigabytes
from gptviz.fast.kernels import enabled
from gptviz.files import disk_cache
from gptviz.jobs.task import RAY
from gptviz.teach.guides import SETTING as GUIDES
from gptviz.ui.memory import resident
from gptviz.ui.models.in_use import default_device
from gptviz.ui.runs import SETTING as TRACES_SETTING, trace_bytes
from gptviz.ui.settings import wrong
from gptviz.ui.shell.navigation import page_file

SECONDS = 15
BUSY = 0.5
THROUGH = 2.5
TOKENS = 20
TIMES = 5
FREE = 2 * 2**30  # bytes of disk below which uploads and trainings soon find none


def cores() -> float:
    """The number of cores that this process may use, by its affinity and its control group."""
    if hasattr(os, "sched_getaffinity"):
        usable = len(os.sched_getaffinity(0))
    else:
        usable = os.cpu_count() or 1
    quota, _, period = _read("/sys/fs/cgroup/cpu.max").partition(" ")
    if quota.isdigit():
        return min(usable, int(quota) / int(period))
    return usable


def memory() -> int | None:
    """The bytes of memory that are free for this process, by the system and its control group.

    None if neither says.
    """
    free = []
    for line in _read("/proc/meminfo").splitlines():
        if line.startswith("MemAvailable:"):
            kilobytes = line.split()[1]
            free.append(1024 * int(kilobytes))
    most = _read("/sys/fs/cgroup/memory.max").strip()
    used = _read("/sys/fs/cgroup/memory.current").strip()
    if most.isdigit() and used.isdigit():
        free.append(int(most) - int(used))
    return min(free, default=None)


def disk() -> int:
    """The bytes that are free on the disk where uploads and trainings lie."""
    return shutil.disk_usage(tempfile.gettempdir()).free


def _read(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:  # another system, or not in a control group
        return ""


def measured() -> tuple[float, float]:
    """Seconds of a pass of the bundled model, and of a processor for a run of the page Attention."""
    lm = load()
    rng = random.Random(1)
    page = AppTest.from_file(str(page_file("attention")), default_timeout=240)
    passes = []
    runs = []
    for _ in range(TIMES + 1):
        ids = [rng.randrange(256) for _ in range(TOKENS)]
        began = time.perf_counter()
        lm.trace(ids)
        passes.append(time.perf_counter() - began)
        page.query_params["text"] = lm.decode(ids)
        began = time.process_time()
        page.run()
        runs.append(time.process_time() - began)
    return min(passes[1:]), statistics.median(runs[1:])


def faults() -> Iterator[str]:
    """The faults of the settings and of the machine, a sentence each."""
    yield from wrong()
    yield from _refused(default_device)
    yield from _refused(enabled)
    guides = os.environ.get(GUIDES)
    if guides and not Path(guides).is_dir():
        yield f"{GUIDES} is {guides!r}, which is no folder"
    folder = disk_cache.folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        yield f"{folder}, where classes and measured heads are kept, cannot be written: {error.strerror}"
    if os.environ.get("GPTVIZ_DATABASE"):
        from gptviz.teach.classroom.tables import open_database

        yield from _refused(open_database)
    if address := os.environ.get(RAY):
        from gptviz.jobs.ray.cluster import reach

        yield from (f"{RAY}: {sentence}" for sentence in _refused(reach, address))
    if disk() < FREE:
        where = tempfile.gettempdir()
        yield f"{where} has {gigabytes(disk())} free; uploads and trainings want {gigabytes(FREE)}"


def _refused(setting: Callable[..., object], *arguments: str) -> Iterator[str]:
    """The sentence of a ValueError if the function behind a setting refuses it; else nothing."""
    try:
        setting(*arguments)
    except ValueError as error:
        yield f"{error}"


def doctor() -> tuple[list[str], list[str]]:
    """Lines about this machine and the visitors that it can serve; its faults, a sentence each."""
    wrongs = [*faults()]
    if wrongs:
        return [], wrongs
    n_cores = cores()
    free = memory()
    pass_seconds, run_seconds = measured()
    click = THROUGH * run_seconds
    own_memory = resident() if sys.platform == "linux" else 2**29  # with the model, and a page run
    replica_bytes = own_memory + trace_bytes()
    replicas = max(1, math.floor(n_cores))
    if free is not None:
        replicas = max(1, min(replicas, free // replica_bytes))
        if free < replica_bytes:
            wrongs.append(
                f"{gigabytes(free)} of memory are free, and a server with its cache of traces may come to "
                f"{gigabytes(replica_bytes)}: set {TRACES_SETTING} lower"
            )
    if free is None:
        memory_free = "what the system does not say"
    else:
        memory_free = f"{gigabytes(free)} free"
    visitors = math.floor(replicas * BUSY * SECONDS / click)
    router = "not there; two replicas on one machine need it"
    if shutil.which("haproxy"):
        router = "there"
    limits = "of time and of memory"
    if sys.platform != "linux":
        limits = "of time; this system keeps to no limit of memory"
    return [
        f"cores      {n_cores:g}; torch takes {torch.get_num_threads()} threads",
        f"memory     {memory_free}; a replica may come to {gigabytes(replica_bytes)}",
        f"disk       {gigabytes(disk())} free in {tempfile.gettempdir()}",
        f"uploads    are read by a process with a limit {limits}",
        f"a pass     {1000 * pass_seconds:.1f} ms: the bundled model, {TOKENS} tokens",
        f"a click    {1000 * click:.0f} ms of a core: {THROUGH:g} times what the page Attention takes here",
        f"serves     about {visitors} visitors who click every {SECONDS} s, with {replicas} replicas",
        f"router     haproxy is {router}",
    ], wrongs
