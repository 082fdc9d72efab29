"""Training that one watches: what the snapshots cost, and how long it takes until an induction head is there.

    python benchmarks/live_training.py [--rounds 3] [--steps 100] [--until 600]
    python benchmarks/live_training.py --at-once 10    # nothing else: so many visitors press Train at once

One thread of torch, as the app's workers have it; seconds are those of the processor, so that other programs
on the machine matter less. The first table trains the usual run (repeated random tokens, 2 blocks, 4 heads,
64 wide, windows of 64, batches of 32) for so many steps with and without snapshots every 20 steps, in turn,
and takes the median of the rounds; validation is in both. The second trains until the best head's induction
score reaches 0.6, or until the last step.
"""

import argparse
import os
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent.parent))

from gptviz.training.live import LiveConfig, begin, train
from gptviz.ui.training.trainings import Trainings

ENOUGH = 0.6


def tokens_a_second(folder: Path, steps: int, snapshots: bool) -> float:
    config = LiveConfig(steps=steps)
    run = begin(folder, config)
    began = time.process_time()
    train(run.folder, snapshots=snapshots)
    tokens = steps * config.batch_size * config.context_length
    return tokens / (time.process_time() - began)


def until_enough(folder: Path, last: int, **changes: object) -> tuple[str, str, str]:
    """(step and seconds of the processor until 0.6, the highest score, the validation loss at the end)."""
    run = begin(folder, LiveConfig(steps=last, **changes))  # type: ignore[arg-type]
    began = time.process_time()
    for step in range(20, last + 20, 20):  # a pause changes nothing, and costs some milliseconds
        train(run.folder, stop_at=step)
        if run.measures[-1].best_induction[0] >= ENOUGH:
            break
    seconds = time.process_time() - began
    best = max(run.measures, key=lambda m: m.best_induction)
    reached = next((m.step for m in run.measures if m.best_induction[0] >= ENOUGH), None)
    if reached:
        when = f"step {reached}, {seconds:.0f} s"
    else:
        when = f"not by step {last} ({seconds:.0f} s)"
    return when, f"{best.best_induction[0]:.2f}", f"{run.measures[-1].validation:.2f}"


def at_once(number: int, steps: int) -> None:
    """The app's own queue with one run of each of so many visitors, no two of them equal."""
    cores = os.cpu_count() or 1
    runs = Trainings(cores, 2**40)
    began = time.monotonic()
    trainings = [runs.start(f"visitor {i}", LiveConfig(steps=steps, seed=i)) for i in range(number)]
    while any(training.active for training in trainings):
        time.sleep(0.1)
    wall = time.monotonic() - began
    assert all(training.state == "done" for training in trainings)
    runs.close()
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = (used.ru_utime + used.ru_stime) / cores
    print(
        f"{number} trainings of {steps} steps: {wall:.1f} s, their CPU / {cores} cores: {cpu:.1f} s"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--until", type=int, default=600)
    parser.add_argument(
        "--at-once", type=int, default=0, metavar="N", help="visitors who train one each"
    )
    args = parser.parse_args()
    if args.at_once:
        return at_once(args.at_once, args.steps)
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        tokens_a_second(folder / "warm", 20, True)
        found: dict[bool, list[float]] = {False: [], True: []}
        for turn in range(args.rounds):
            for snapshots in found:
                found[snapshots].append(
                    tokens_a_second(folder / f"{turn}{snapshots}", args.steps, snapshots)
                )
        without, with_them = (statistics.median(found[snapshots]) for snapshots in (False, True))
        ratio = statistics.median(b / a for a, b in zip(found[False], found[True], strict=True))
        print("| | tokens a second |\n|---|---|")
        print(f"| without snapshots | {without:,.0f} |")
        print(f"| with snapshots every 20 steps | {with_them:,.0f} ({ratio:.2f} of that) |\n")
        print(
            "| run | induction score of 0.6 | highest score | validation loss then |\n|---|---|---|---|"
        )
        for name, changes in (
            ("2 blocks", {}),
            ("2 blocks, another seed", {"seed": 1}),
            ("2 blocks, without feed-forward", {"feed_forward": False}),
            ("1 block", {"n_layers": 1}),
        ):
            row = until_enough(folder / name, args.until, **changes)
            print(f"| {name} | {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
