"""What a look at a model's weights costs beside a pass: `PYTHONPATH=. python benchmarks/weights.py`."""

import statistics
import time
from collections.abc import Callable

import torch

import gptviz
from gptviz.engine.weights import fingerprint

TEXT = "The old miller told the children about the sea, and the children asked him for more of it."
ROUNDS = 100


def seconds(work: Callable[[], object]) -> float:
    began = time.thread_time()
    work()
    return time.thread_time() - began


def main() -> None:
    torch.set_num_threads(1)
    lm = gptviz.load("mini")
    ids = lm.encode(TEXT)[:20]
    ways = {"fingerprint": lambda: fingerprint(lm.model), "trace": lambda: lm.trace(ids)}
    took = {
        name: statistics.median(seconds(way) for _ in range(ROUNDS)) for name, way in ways.items()
    }
    print(
        f"{len(ids)} tokens of the bundled model, medians of {ROUNDS}, milliseconds of one thread"
    )
    for name, value in took.items():
        print(f"{name:12} {1e3 * value:7.3f}")
    print(f"{'share':12} {100 * took['fingerprint'] / took['trace']:6.2f} %")


if __name__ == "__main__":
    main()
