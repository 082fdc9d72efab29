"""Maps on a Ray cluster: what a second machine brings, what a killed one costs, and how far it would go.

    python benchmarks/cluster.py

Measured: thirty visitors ask for a Knock-out map each, of texts of their own (`--tokens` long), on a cluster
of one node with one processor and of two, in turn, with the CPU that the nodes' workers, the process that
hands them their tasks and all else on this machine took, which here share two cores; then with two, of which
one is killed in the middle. As many have a text of their own read by a model of GPT-2's smallest size, here
one after the other, and by Ray Serve. Simulated: what nodes bring on machines of their own, where each map
takes the CPU that it took here, one after the other in the process that hands them out, and then on the node
that is free; and learners who act every 15 s, one act in three a map, with as many processors as are named,
served in the order in which they come, where a map takes what the measured ones took.
"""

import argparse
import heapq
import os
import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
from ray.cluster_utils import Cluster as Nodes

from gptviz import LanguageModel, load
from gptviz.analysis.ablation import knock_out
from gptviz.jobs import Queue, Task
from gptviz.jobs.ray.cluster import EACH, Cluster

VISITORS = 30
ACT = 15.0  # seconds between two acts of a learner, and which part of them are maps
MAPS = 1 / 3
LEARNERS = (10, 100, 1000)
PROCESSORS = (2, 8, 32, 128)
HOURS = 1.0
NODES = (1, 2, 3, 4, 8)  # whose throughput is simulated
MOST = 600.0
STORE = 2 * 10**9  # bytes of a node for models


@contextmanager
def cluster(nodes: int) -> Iterator[tuple[Nodes, Queue]]:
    """A cluster of so many nodes of one processor each, beside a head that has none, and a line before it."""
    head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": STORE}
    made = Nodes(initialize_head=True, head_node_args=head)
    for _ in range(nodes):
        made.add_node(num_cpus=1, object_store_memory=STORE)
    with tempfile.TemporaryDirectory() as folder:
        queue = Queue(Cluster(made.address, lambda: Path(folder)), 10**8)
        try:
            yield made, queue
        finally:
            queue.close()
            made.shutdown()


def ask(queue: Queue, lm: LanguageModel, rng: random.Random, tokens: int, visitors: int) -> list:
    """A map for each visitor, of a text that nobody has had."""
    texts = [tuple(rng.randrange(256, 4000) for _ in range(tokens)) for _ in range(visitors)]
    return [
        queue.get(Task(knock_out, "mini", (ids, None)), lm, f"{i}") for i, ids in enumerate(texts)
    ]


def timed(queue: Queue, lm: LanguageModel, rng: random.Random, tokens: int) -> float:
    """Seconds until all thirty have their maps."""
    began = time.perf_counter()
    jobs = ask(queue, lm, rng, tokens, VISITORS)
    assert all(job.join(MOST) and job.state == "done" for job in jobs)
    return time.perf_counter() - began


def used() -> np.ndarray:
    """Seconds of CPU so far: of the nodes' workers, of the driver, and of everything on this machine."""
    ticks = os.sysconf("SC_CLK_TCK")
    workers = 0
    driver = 0
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has just ended
            command = (process / "cmdline").read_bytes()
            took = sum(map(int, (process / "stat").read_text().rsplit(")", 1)[1].split()[11:13]))
            workers += took * command.startswith((b"ray::do", b"ray::IDLE"))
            driver += took * (b"gptviz.jobs.ray.driver" in command)
    user, nice, system, _, _, *interrupts = map(int, Path("/proc/stat").read_text().split()[1:8])
    return np.array([workers, driver, user + nice + system + sum(interrupts)]) / ticks


def warm(queue: Queue, lm: LanguageModel, rng: random.Random, nodes: int, tokens: int) -> None:
    """Wait until every node has done a map: its worker has then loaded torch, and the model."""
    while queue.backend.slots < EACH * nodes:
        ask(queue, lm, rng, tokens, 1)[0].join(MOST)
    for _ in range(3):
        assert all(job.join(MOST) for job in ask(queue, lm, rng, tokens, 2 * nodes))


def throughput(nodes: int, handed: float, worked: float, maps: int = 10_000) -> float:
    """Maps a second of nodes with a processor each, where nothing else shares these processors."""
    free = [0.0] * nodes
    given = 0.0
    for _ in range(maps):
        given += handed
        heapq.heappush(free, max(given, heapq.heappop(free)) + worked)
    return maps / max(free)


def read(queue: Queue, rng: random.Random, tokens: int) -> tuple[float, float]:
    """Seconds until all thirty have their traces of GPT-2: one after the other here, and by the cluster."""
    lm = load("gpt2-untrained")
    backend = queue.backend
    took = []
    assert isinstance(backend, Cluster)
    far = backend.reader("gpt2", lm, lambda found, place: None)
    for reader in (lm, far):
        reader.trace([1, 2, 3])
        texts = [[rng.randrange(50_000) for _ in range(tokens)] for _ in range(VISITORS)]
        began = time.perf_counter()
        with ThreadPoolExecutor(VISITORS) as visitors:
            list(visitors.map(reader.trace, texts))
        took.append(time.perf_counter() - began)
    return took[0], took[1]


def simulated(
    learners: int, processors: int, seconds: float, rng: random.Random
) -> tuple[float, float]:
    """Median and 95 of 100 of the seconds that learners wait for a map, when `processors` make them."""
    asked = []
    now = 0.0
    while now < 3600 * HOURS:
        now += rng.expovariate(learners * MAPS / ACT)
        asked.append(now)
    free = [0.0] * processors
    waits = []
    for when in asked:
        done = max(when, heapq.heappop(free)) + seconds
        heapq.heappush(free, done)
        waits.append(done - when)
    waits.sort()
    return statistics.median(waits), waits[int(0.95 * len(waits))]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=20)
    args = parser.parse_args()
    lm = load("mini")
    rng = random.Random(0)
    took: dict[int, list[float]] = {}
    for nodes in (1, 2):
        with cluster(nodes) as (made, queue):
            warm(queue, lm, rng, nodes, args.tokens)
            before = used()
            took[nodes] = [timed(queue, lm, rng, args.tokens) for _ in range(args.rounds)]
            maps, driver, every = used() - before
            said = ", ".join(f"{seconds:.1f}" for seconds in took[nodes])
            print(f"measured: {VISITORS} maps on {nodes} node(s): {said} s", flush=True)
            print(
                f"measured: in all {maps:.1f} s of CPU for maps, {driver:.1f} s to hand them out, "
                f"{every - maps - driver:.1f} s for all else here",
                flush=True,
            )
            if nodes == 2:
                here, there = read(queue, rng, args.tokens)
                print(
                    f"measured: {VISITORS} texts read by GPT-2: {here:.1f} s here, {there:.1f} s by Ray Serve"
                )
                jobs = ask(queue, lm, rng, args.tokens, VISITORS)
                jobs[4].join(MOST)
                made.remove_node(made.list_all_nodes()[2], allow_graceful=False)
                ended = [job.join(MOST) and job.state for job in jobs]
                print(
                    f"measured: a node killed after five maps: {ended.count('done')} of {VISITORS} done"
                )
    one, two = (min(took[nodes]) for nodes in (1, 2))
    print(f"measured: the second node brings {one / two - 1:.2f} of the first")
    done = args.rounds * VISITORS
    made = [throughput(nodes, driver / done, maps / done) for nodes in NODES]
    said = ", ".join(f"{nodes}: {of:.1f}" for nodes, of in zip(NODES, made, strict=True))
    print(f"simulated: maps a second by nodes with machines of their own: {said}")
    print(f"simulated: the second node brings {made[1] / made[0] - 1:.2f} of the first")
    each = one / VISITORS
    print(f"\nsimulated: {each:.3f} s a map; {HOURS:g} h; half and 95 of 100 wait, in seconds")
    print("learners " + "".join(f"{f'{p} processors':>20}" for p in PROCESSORS))
    for learners in LEARNERS:
        cells = []
        for processors in PROCESSORS:
            if learners * MAPS / ACT * each >= processors:
                cells.append("too many")
            else:
                half, most = simulated(learners, processors, each, rng)
                cells.append(f"{half:.2f}, {most:.2f}")
        print(f"{learners:>8} " + "".join(f"{cell:>20}" for cell in cells))


if __name__ == "__main__":
    main()
