"""What one more token costs: written with and without keys and values, captured, and in memory.

    python benchmarks/generate.py [--rounds 3] [--threads 1] [--wall]
                                  [--parts written captured memory]

The same weights (random ones of GPT-2 124M's shape, or the bundled model) in every row, greedy, one text.
Each round runs every way once, in turn; a figure is the median over the rounds of its ratio to
`transformers`' `generate(use_cache=True)` in the same round, by CPU time of all threads (`--wall`: by the
clock). "Reading the weights" multiplies one row with every matrix that a token needs, once a token, and does
nothing else: no way in float32 is faster on this machine. "One more token, captured" is a step of a text that
is traced as it grows, relative to a full trace of the same text. The memory is what a fresh process gained at
its peak.
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent.parent))

import gptviz
from benchmarks.capture import BookModel, memory_kib, random_ids
from gptviz.engine.config import GPTConfig
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.past import past_bytes
from gptviz.fast import kernels
from gptviz.model import GPT_CONFIG_124M, GPTModel
from gptviz.tokenizer import get_encoding
from tests.models.checkpoints import makers

THEIRS = "transformers, generate(use_cache=True)"
BOOK = "the book's loop"
WEIGHTS = "reading the weights"
WAYS = [THEIRS, "gptviz", "gptviz, the book's kernels", "gptviz, bfloat16", BOOK, WEIGHTS]


def gpt2_124m() -> LanguageModel:
    config = GPTConfig.from_dict(GPT_CONFIG_124M | {"qkv_bias": True, "drop_rate": 0.0})
    torch.manual_seed(0)
    return LanguageModel(GPTModel(config).eval(), get_encoding("gpt2"), config, "124M")


MODELS: dict[str, Callable[[], LanguageModel]] = {
    "GPT-2 124M's shape": gpt2_124m,
    "the bundled model": lambda: gptviz.load("mini"),
}


def in_bfloat16(lm: LanguageModel) -> LanguageModel:
    half = GPTModel(lm.config).bfloat16().eval()
    half.load_state_dict(lm.model.state_dict())
    return LanguageModel(half, lm.tokenizer, lm.config, lm.name)


def with_biases(lm: LanguageModel) -> GPTModel:
    """The same model with biases of 0 where it has none: transformers' GPT-2 always has them."""
    model = GPTModel(
        lm.config.to_dict() | {"qkv_bias": True, "linear_bias": True, "norm_bias": True}
    )
    for parameter in model.parameters():
        torch.nn.init.zeros_(parameter)
    model.load_state_dict(lm.model.state_dict(), strict=False)
    return model


def book_model(lm: LanguageModel) -> Callable[[torch.Tensor, int], list[int]]:
    """The loop over the book's printed lines, all rows of logits included."""
    book = BookModel(lm.model)
    context = lm.config.context_length

    def write(ids: torch.Tensor, count: int) -> list[int]:
        for _ in range(count):
            logits = book(ids[:, -context:])[:, -1]
            ids = torch.cat((ids, logits.argmax(-1, keepdim=True)), dim=1)
        return ids[0, -count:].tolist()

    return write


def reading(lm: LanguageModel) -> Callable[[torch.Tensor, int], None]:
    """One row times every matrix, as often as there are tokens, by whichever kernel is faster."""
    layers = [layer for layer in lm.model.modules() if isinstance(layer, torch.nn.Linear)]
    rows = {size: torch.ones(1, size) for size in {layer.in_features for layer in layers}}

    def write(_ids: torch.Tensor, count: int) -> None:
        for _ in range(count):
            for layer in layers:
                kernels.linear(rows[layer.in_features], layer.weight, layer.bias)

    return write


def make(way: str, lm: LanguageModel) -> Callable[[torch.Tensor, int], Any]:
    if way == THEIRS:
        theirs = makers.in_transformers(with_biases(lm), lm.config)

        def generate(ids: torch.Tensor, count: int) -> list[int]:
            out = theirs.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=count,
                do_sample=False,
                use_cache=True,
                pad_token_id=0,
                eos_token_id=None,
            )
            return out[0, -count:].tolist()

        return generate
    if way == BOOK:
        return book_model(lm)
    if way == WEIGHTS:
        return reading(lm)
    if "bfloat16" in way:
        ours = in_bfloat16(lm)
    else:
        ours = lm

    def write(ids: torch.Tensor, count: int) -> list[int]:
        return [step.id for step in ours.generate(ids[0].tolist(), count, temperature=0)]

    def slowly(ids: torch.Tensor, count: int) -> list[int]:
        with kernels.by_the_book():
            return write(ids, count)

    if "book's kernels" in way:
        return slowly
    return write


def written(name: str, counts: list[int], rounds: int, clock: Callable[[], float]) -> None:
    lm = MODELS[name]()
    # as many as fit: of a context of 256 one token, so that the last of 256 new ones sees it, too
    prompt = random_ids(min(16, lm.config.context_length - max(counts) + 1)) % lm.config.vocab_size
    functions = {way: make(way, lm) for way in WAYS}
    cells: dict[str, list[str]] = {way: [] for way in WAYS}
    with torch.no_grad():
        for function in functions.values():
            function(prompt, 2)
        for count in counts:
            times: dict[str, list[float]] = {way: [] for way in WAYS}
            for _ in range(rounds):
                found = {}
                for way, function in functions.items():
                    began = clock()
                    found[way] = function(prompt, count)
                    times[way].append(clock() - began)
            for way in WAYS:
                ratio = statistics.median(
                    a / b for a, b in zip(times[way], times[THEIRS], strict=True)
                )
                milliseconds = statistics.median(times[way]) / count * 1000
                cell = f"{ratio:.2f} ({milliseconds:.1f} ms)"
                if found[way] not in (None, found[THEIRS]):
                    cell += ", other tokens"
                cells[way].append(cell)
    print(
        f"\n| {name}, new tokens: | "
        + " | ".join(map(str, counts))
        + " |\n|---|"
        + "---|" * len(counts)
    )
    for way in WAYS:
        print(f"| {way} | " + " | ".join(cells[way]) + " |", flush=True)


def captured(sizes: list[int], rounds: int, clock: Callable[[], float]) -> None:
    lm = gpt2_124m()
    grows = []
    first = []
    lm.trace(random_ids(8)[0].tolist())
    for n in sizes:
        ids = random_ids(n + 1)[0].tolist()
        ratios: dict[str, list[float]] = {"grows": [], "first": []}
        for attempt in range(rounds):
            earlier = lm.trace(ids[: n - 1])
            began = clock()
            # copies the keys and values: later ones need not
            earlier = lm.trace(ids[:n], after=earlier)
            after_first = clock()
            step = lm.trace(ids, after=earlier)
            after_step = clock()
            del earlier
            whole = lm.trace(ids)
            end = clock()
            ratios["first"].append((after_first - began) / (end - after_step))
            ratios["grows"].append((after_step - after_first) / (end - after_step))
            if not attempt:
                for key in whole.sites():
                    site, block = key
                    off = (step.rows(site, block) - whole.rows(site, block)).abs().max().item()
                    assert off < 1e-5, f"{key} is off by {off}"
            del step, whole
        grows.append(f"{statistics.median(ratios['grows']):.3f}")
        first.append(f"{statistics.median(ratios['first']):.3f}")
    print("\n| T = | " + " | ".join(map(str, sizes)) + " |\n|---|" + "---|" * len(sizes))
    print("| one more token, captured | " + " | ".join(grows) + " |")
    print("| the first one after a full trace | " + " | ".join(first) + " |", flush=True)


def peak(n_tokens: int) -> None:
    """MiB that a text of so many tokens and one more gained at the peak, in this process."""
    lm = gpt2_124m()
    list(lm.generate(random_ids(8)[0].tolist(), 2, temperature=0))
    # Linux: the high-water mark starts again from here
    Path("/proc/self/clear_refs").write_text("5")
    before = memory_kib("VmRSS")
    list(lm.generate(random_ids(n_tokens)[0].tolist(), 1, temperature=0))
    print((memory_kib("VmHWM") - before) // 1024)


def memory(sizes: list[int]) -> None:
    config = GPTConfig.from_dict(GPT_CONFIG_124M)
    gained = []
    for n in sizes:
        command = [sys.executable, __file__, "--peak", str(n)]
        gained.append(
            json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        )
    print("\n| T = | " + " | ".join(map(str, sizes)) + " |\n|---|" + "---|" * len(sizes))
    print(
        "| keys and values | "
        + " | ".join(f"{past_bytes(config, n) / 2**20:.0f} MiB" for n in sizes)
        + " |"
    )
    print(
        "| reading T tokens, all gained at the peak | "
        + " | ".join(f"{g} MiB" for g in gained)
        + " |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--threads", type=int, help="torch's threads (as torch chooses, if not given)"
    )
    parser.add_argument(
        "--wall", action="store_true", help="the time on the clock instead of CPU time"
    )
    parser.add_argument("--parts", nargs="+", default=["written", "captured", "memory"])
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--counts", type=int, nargs="+", default=[16, 64, 256])
    parser.add_argument("--peak", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.peak:
        return peak(args.peak)
    if args.threads:
        torch.set_num_threads(args.threads)
    if args.wall:
        clock = time.perf_counter
        unit = "time"
    else:
        clock = time.process_time
        unit = "CPU time"
    print(f"{unit}; {torch.get_num_threads()} threads; {args.rounds} rounds")
    if "written" in args.parts:
        for name in args.models:
            written(name, args.counts, args.rounds, clock)
    if "captured" in args.parts:
        captured([128, 512, 1023], args.rounds, clock)
    if "memory" in args.parts:
        memory([128, 512, 1023])
    return None


if __name__ == "__main__":
    main()
