"""The knock-out map of a whole model: every head, attention and feed-forward muted in turn, in five ways.

    python benchmarks/interventions.py [--models mini gpt2-untrained] [--tokens 32] [--rounds 3] [--threads 1]

Each way gives the next-token logits with each part set to zero, one row a part; the largest difference to
the first way's is printed. Every round runs every way once, in turn, so that a machine that slows down slows
all of them; a figure is the median over the rounds of CPU time in seconds (`--wall`: on the clock). The
text is the beginning of README.md. TransformerLens (`pip install transformer_lens==4.3.0`) is measured where
it is installed, the way its own tutorials mute a head: `run_with_hooks`, one run a part, the same weights.
"""

import argparse
import importlib.util
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent.parent))

import gptviz
from gptviz.analysis.ablation import MutedPart, batches, parts_of
from gptviz.engine import forward
from gptviz.model import GPTModel

STORY = (Path(__file__).parent.parent / "README.md").read_text("utf-8")
Way = Callable[[], torch.Tensor]  # (parts, V)


def one_by_one(lm: gptviz.LanguageModel, ids: list[int]) -> torch.Tensor:
    """`lm.trace` with one edit, for each part."""
    return torch.stack(
        [lm.trace(ids, keep=[], edits=[part.edit("zero")]).logits(-1) for part in parts_of(lm)]
    )


def batched(lm: gptviz.LanguageModel, ids: list[int]) -> torch.Tensor:
    """A whole pass for the parts of a block together."""
    found = []
    for b in range(lm.config.n_layers):
        parts = [part for part in parts_of(lm) if part.block == b]
        hidden = lm.hidden(torch.tensor([ids] * len(parts)), muting(lm, b, parts))
        found.append(head(lm, hidden[:, -1]))
    return torch.cat(found)


def restarted(lm: gptviz.LanguageModel, ids: list[int]) -> torch.Tensor:
    """Each part alone, in a pass that begins at its block."""
    streams = lm.trace(ids, keep=["resid_pre"])
    found = []
    for part in parts_of(lm):
        hooks = muting(lm, part.block, [part])
        hidden = forward.hidden_from(
            lm.model, part.block, streams["resid_pre", part.block][None], hooks
        )
        found.append(head(lm, hidden[:, -1]))
    return torch.cat(found)


def both(lm: gptviz.LanguageModel, ids: list[int]) -> torch.Tensor:
    """What `gptviz.analysis.knock_out` does."""
    rows = batches(lm, lm.trace(ids, keep=["resid_pre"]), len(ids) - 1, "zero")
    return head(lm, torch.cat(list(rows)))


def transformer_lens(lens: Any, lm: gptviz.LanguageModel, ids: list[int]) -> torch.Tensor:
    names = {"head": "attn.hook_z", "attention": "hook_attn_out", "feed-forward": "hook_mlp_out"}
    found = []
    for part in parts_of(lm):

        def mute(value: torch.Tensor, hook: object, head: int | None = part.head) -> torch.Tensor:
            if head is None:
                return torch.zeros_like(value)
            by_head = value.clone().view(*value.shape[:2], lm.config.n_heads, -1)  # (1, T, H, D/H)
            by_head[:, :, head] = 0
            return by_head.view(value.shape)

        hooks = [(f"blocks.{part.block}.{names[part.kind]}", mute)]
        found.append(lens.run_with_hooks(torch.tensor([ids]), fwd_hooks=hooks)[0, -1])
    return torch.stack(found)


def muting(lm: gptviz.LanguageModel, block: int, parts: list[MutedPart]) -> list[forward.Hook]:
    """Hooks that mute the i-th part in the i-th text of a batch."""
    d = lm.config.emb_dim // lm.config.n_heads

    def of(kind: str) -> Callable[[torch.Tensor], torch.Tensor]:
        def mute(value: torch.Tensor) -> torch.Tensor:
            value = value.clone()
            for row, part in zip(value, parts, strict=True):
                if part.kind == kind:
                    row[
                        :,
                        slice(None)
                        if part.head is None
                        else slice(part.head * d, part.head * d + d),
                    ] = 0
            return value

        return mute

    path = f"trf_blocks.{block}"
    return [
        forward.Hook(f"{path}.att.out_proj", "input", of("head")),
        forward.Hook(f"{path}.att", "output", of("attention")),
        forward.Hook(f"{path}.ff", "output", of("feed-forward")),
    ]


def with_biases(lm: gptviz.LanguageModel) -> tuple[GPTModel, dict]:
    """The same model with biases of zero in its queries, keys and values, as GPT-2 has some; its sizes."""
    config = vars(lm.config) | {"qkv_bias": True}
    model = GPTModel(config).eval()
    for name, value in model.state_dict().items():
        value.copy_(lm.model.state_dict().get(name, torch.zeros(())))
    return model, config


def head(lm: gptviz.LanguageModel, hidden: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return hidden @ lm.model.out_head.weight.T


def ways_of(lm: gptviz.LanguageModel, ids: list[int], lens: bool) -> dict[str, Way]:
    found: dict[str, Way] = {
        "one by one": lambda: one_by_one(lm, ids),
        "batched by block": lambda: batched(lm, ids),
        "restarted at the block": lambda: restarted(lm, ids),
        "restarted and batched: `knock_out`": lambda: both(lm, ids),
    }
    if lens and importlib.util.find_spec("transformer_lens"):
        from benchmarks.capture import to_transformer_lens

        bridge = to_transformer_lens(*with_biases(lm))
        found["TransformerLens, `run_with_hooks`"] = lambda: transformer_lens(bridge, lm, ids)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", nargs="+", default=["mini", "gpt2-untrained"])
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--threads", type=int, help="torch's threads (as torch chooses, if not given)"
    )
    parser.add_argument("--no-lens", action="store_true", help="leave TransformerLens out")
    parser.add_argument(
        "--wall", action="store_true", help="the time on the clock instead of CPU time"
    )
    args = parser.parse_args()
    if args.wall:
        clock = time.perf_counter
    else:
        clock = time.process_time
    if args.threads:
        torch.set_num_threads(args.threads)
    what = "CPU seconds"
    if args.wall:
        what = "seconds"
    print(
        f"{what} for all parts, {args.tokens} tokens, {torch.get_num_threads()} threads\n",
        flush=True,
    )
    for name in args.models:
        lm = gptviz.load(name)
        ids = lm.encode(STORY)[: args.tokens]
        ways = ways_of(lm, ids, not args.no_lens)
        took = {}
        apart = {}
        with torch.no_grad():
            truth = ways["one by one"]()
            for way, work in ways.items():  # once before it counts
                apart[way] = float((work() - truth).abs().max())
            for _ in range(args.rounds):
                for way, work in ways.items():
                    began = clock()
                    work()
                    took.setdefault(way, []).append(clock() - began)
        print(
            f"| {name}, {len(truth)} parts | seconds | times as fast | largest difference of a logit |"
        )
        print("|---|---|---|---|")
        first = statistics.median(took["one by one"])
        for way, seconds in took.items():
            middle = statistics.median(seconds)
            print(f"| {way} | {middle:.2f} | {first / middle:.1f} | {apart[way]:.0e} |", flush=True)
        print()


if __name__ == "__main__":
    main()
