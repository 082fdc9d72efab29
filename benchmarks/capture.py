"""What a full trace costs, beside the same weights' plain forward pass and the ways others capture.

    python benchmarks/capture.py [--tokens 16 128 512 1024] [--rounds 7]

GPT-2 124M with random weights, float32, the same in every column. Each round runs every way once, in turn,
so that a machine that slows down slows all of them; a figure is the median over the rounds of the ratio of
CPU time (of all threads: what other programs do counts little) to transformers' plain eager forward pass, or
to what `--to` names, of the same round. `--wall` takes the time on the clock, `--threads 1` keeps threads
that wait for each other from being counted; `--no-memory` leaves the peaks out. Peak memory is what a fresh
process gained over its loaded model. Opened is what a trace works out afterwards, of all blocks one after the
other: divided by that of the trace, it is what a block costs of its share of a pass. The last row is what no
full trace can be below. TransformerLens is measured where it is installed
(`pip install transformer_lens==4.3.0`, in an environment of its own: it brings a lot along).
"""

import argparse
import importlib.util
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parent.parent))

from gptviz.engine.config import GPTConfig
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.sites import SITES
from gptviz.engine.trace import Trace
from gptviz.model import GPT_CONFIG_124M, GPTModel
from gptviz.tokenizer import get_encoding
from gptviz.tokenizer.encodings import GPT2_FOLDER
from tests.models.checkpoints import makers

PLAIN = "transformers, plain forward"
SDPA = "transformers, the body with SDPA"
TRACE = "gptviz, a trace"
FULL = "gptviz, a trace that holds everything"
ATTENTION = "gptviz, attention opened in every block"
BLOCKS = "gptviz, the rest opened in every block"
FLOOR = "the blocks' matrix products and nothing else"
WAYS = [
    PLAIN,
    SDPA,
    "transformers, output_attentions + output_hidden_states",
    "TransformerLens, run_with_cache",
    "gptviz, plain forward",
    "gptviz, forward without the head",
    TRACE,
    FULL,
    ATTENTION,
    BLOCKS,
    "the book's code as printed",
    FLOOR,
]


def make(way: str) -> Callable[[torch.Tensor], object]:
    """A function from ids (1, T) to whatever that way returns; only its own model is built."""
    config = GPT_CONFIG_124M | {"qkv_bias": True, "drop_rate": 0.0}
    torch.manual_seed(0)
    model = GPTModel(config).eval()
    if way.startswith("transformers"):
        theirs = makers.in_transformers(model, GPTConfig.from_dict(config))
        if way == SDPA:
            theirs.set_attn_implementation("sdpa")
            return lambda ids: theirs.transformer(ids, use_cache=False)
        if "output" in way:
            options = {"output_attentions": True, "output_hidden_states": True}
        else:
            options = {}
        return lambda ids: theirs(ids, use_cache=False, **options)
    if way == FLOOR:
        return lambda ids: products(model, ids.shape[1])
    if way.startswith("TransformerLens"):
        lens = to_transformer_lens(model, config)
        return lambda ids: lens.run_with_cache(ids)
    if way.startswith("the book"):
        book = BookModel(model)
        return lambda ids: book(ids)
    if way in (TRACE, FULL, ATTENTION, BLOCKS):
        return tracing(
            way, LanguageModel(model, get_encoding("gpt2"), GPTConfig.from_dict(config), "124M")
        )
    if way == "gptviz, plain forward":
        return model
    return model.final_hidden


def tracing(way: str, lm: LanguageModel) -> Callable[[torch.Tensor], object]:
    made: dict[int, Trace] = {}

    def trace(ids: torch.Tensor) -> object:
        return lm.trace(ids[0].tolist(), keep=list(SITES) if way == FULL else None)

    def opened(ids: torch.Tensor) -> None:
        if ids.shape[1] not in made:  # in the round that warms up
            made.clear()
            made[ids.shape[1]] = lm.trace(ids[0].tolist())
        found = made[ids.shape[1]].released()  # in which nothing is opened yet
        for block in range(lm.config.n_layers):
            found["attn" if way == ATTENTION else "mlp_act", block]

    if way in (ATTENTION, BLOCKS):
        return opened
    return trace


def products(model: GPTModel, n_tokens: int) -> None:
    """The linear layers through oneDNN, and scores and weighted values of as much as the causal mask leaves.

    Nothing is added, divided, normalised, copied or kept: no pass in float32 can be faster on a machine
    whose products are no faster than these.
    """
    layers = [layer for layer in model.trf_blocks.modules() if isinstance(layer, torch.nn.Linear)]
    inputs = {size: torch.ones(n_tokens, size) for size in {layer.in_features for layer in layers}}
    for layer in layers:
        x = inputs[layer.in_features]
        torch.ops.mkldnn._linear_pointwise(x, layer.weight, layer.bias, "none", [], "")
    att = model.trf_blocks[0].att
    queries = torch.ones(att.num_heads, n_tokens, att.head_dim)
    half = queries[:, : n_tokens // 2]
    for _ in model.trf_blocks:
        scores = queries @ half.transpose(1, 2)  # (H, T, T/2)
        scores @ half


def to_transformer_lens(model: GPTModel, config: dict) -> Any:
    """TransformerLens 4 around transformers' GPT-2 with our weights; its tokenizer comes from disk."""
    from transformer_lens.model_bridge import TransformerBridge
    from transformers import AutoTokenizer, GPT2TokenizerFast

    encoder_json, vocab_bpe = (str(GPT2_FOLDER / name) for name in ("encoder.json", "vocab.bpe"))
    with tempfile.TemporaryDirectory() as folder:
        GPT2TokenizerFast(vocab=encoder_json, merges=vocab_bpe).save_pretrained(folder)
        tokenizer = AutoTokenizer.from_pretrained(folder)
        theirs = makers.in_transformers(model, GPTConfig.from_dict(config))
        return TransformerBridge.boot_transformers(
            "gpt2", hf_model=theirs, tokenizer=tokenizer, device="cpu"
        )


class BookModel(torch.nn.Module):
    """The same weights through the book's own lines: element-wise GELU and LayerNorm, a float mask."""

    def __init__(self, model: GPTModel):
        super().__init__()
        self.model = model
        self.mask = torch.triu(torch.ones(1024, 1024), diagonal=1)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        m = self.model
        x = m.tok_emb(ids) + m.pos_emb(torch.arange(ids.shape[1]))
        for block in m.trf_blocks:
            x = self.attention(block.att, block.norm1.formula(x)) + x
            first, gelu, second = block.ff.layers
            x = second(gelu.formula(first(block.norm2.formula(x)))) + x
        return m.out_head(m.final_norm.formula(x))

    def attention(self, att: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
        b, n, _ = x.shape
        queries, keys, values = (
            w(x).view(b, n, att.num_heads, att.head_dim).transpose(1, 2)  # (b, H, T, head_dim)
            for w in (att.W_query, att.W_key, att.W_value)
        )
        scores = queries @ keys.transpose(2, 3)
        scores.masked_fill_(self.mask.bool()[:n, :n], -torch.inf)
        weights = torch.softmax(scores / keys.shape[-1] ** 0.5, dim=-1)
        context = (weights @ values).transpose(1, 2)
        return att.out_proj(context.contiguous().view(b, n, att.d_out))  # (b, T, d_out)


def random_ids(n_tokens: int) -> torch.Tensor:
    return torch.randint(0, 50257, (1, n_tokens), generator=torch.Generator().manual_seed(n_tokens))


def ratios(
    ways: list[str], to: str, sizes: list[int], rounds: int, clock: Callable[[], float]
) -> dict[tuple[str, int], float]:
    functions = {way: make(way) for way in ways}
    found = {}
    with torch.no_grad():
        for n in sizes:
            ids = random_ids(n)
            times: dict[str, list[float]] = {way: [] for way in ways}
            for attempt in range(rounds + 1):
                for way in ways:
                    began = clock()
                    result = functions[way](ids)
                    seconds = clock() - began
                    del result
                    if attempt:  # the first round warms up
                        times[way].append(seconds)
            for way in ways:
                found[way, n] = statistics.median(
                    own / other for own, other in zip(times[way], times[to], strict=True)
                )
    return found


def peak_memory(way: str, n_tokens: int) -> int:
    """MiB that one call gained over the loaded model, in a process of its own."""
    command = [sys.executable, __file__, "--peak", way, "--tokens", str(n_tokens)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def print_peak(way: str, n_tokens: int) -> None:
    function = make(way)
    ids = random_ids(n_tokens)
    with torch.no_grad():
        function(random_ids(8))
        # Linux: the high-water mark starts again from here
        Path("/proc/self/clear_refs").write_text("5")
        before = memory_kib("VmRSS")
        result = function(ids)
    print((memory_kib("VmHWM") - before) // 1024)
    del result


def memory_kib(field: str) -> int:
    status = Path("/proc/self/status").read_text()
    return int(
        next(line.split()[1] for line in status.splitlines() if line.startswith(field + ":"))
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tokens", type=int, nargs="+", default=[16, 128, 512, 1024])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument(
        "--threads", type=int, help="torch's threads (as torch chooses, if not given)"
    )
    parser.add_argument("--to", default=PLAIN, choices=WAYS, help="the way that all are divided by")
    parser.add_argument(
        "--wall", action="store_true", help="the time on the clock instead of CPU time"
    )
    parser.add_argument("--no-memory", action="store_true", help="do not measure the peaks")
    parser.add_argument("--peak", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.peak:
        return print_peak(args.peak, args.tokens[0])
    ways = [
        w
        for w in WAYS
        if not w.startswith("TransformerLens") or importlib.util.find_spec("transformer_lens")
    ]
    if args.threads:
        torch.set_num_threads(args.threads)
    if args.wall:
        timer = time.perf_counter
    else:
        timer = time.process_time
    found = ratios(ways, args.to, args.tokens, args.rounds, timer)
    clock = "time" if args.wall else "CPU time"
    peaks = "" if args.no_memory else "; + MiB at the peak"
    print(f"{clock} relative to {args.to}; {torch.get_num_threads()} threads{peaks}\n")
    print(
        "| T = | "
        + " | ".join(str(n) for n in args.tokens)
        + " |\n|---|"
        + "---|" * len(args.tokens)
    )
    for way in ways:
        cells = [
            f"{found[way, n]:.2f}" + ("" if args.no_memory else f" (+{peak_memory(way, n)} MiB)")
            for n in args.tokens
        ]
        print(f"| {way} | " + " | ".join(cells) + " |", flush=True)
    return None


if __name__ == "__main__":
    main()
