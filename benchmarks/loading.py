"""What loading costs: time and peak memory of every reader, beside transformers on the same weights.

    python benchmarks/loading.py [--sizes gpt2 gpt2-medium] [--rounds 5] [--dtype float32]

Random weights in the shapes of GPT-2, written once in each format to a temporary folder, and read from
the disk cache by a fresh process a time, in turn. Seconds run from the call of the loader, imports not
counted, to the model in eval mode, and in the second column to its first logits for one token:
transformers maps the file and reads it when the first pass needs it. Memory is the peak of the resident
set up to there, mapped files included, over the bytes of the weights.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parent.parent))

from gptviz.models.checkpoints.hub import HUB_MODELS
from tests.models.checkpoints import makers

PLAIN = "transformers, from_pretrained"
READERS = {
    PLAIN: "hf",
    "Hugging Face folder, safetensors": "hf",
    "Hugging Face folder, pytorch_model.bin": "old",
    "the book's torch.save": "book.pth",
    "nanoGPT's ckpt.pt": "ckpt.pt",
}

MEASURE = """
import json, sys, time
import torch
torch.set_num_threads(2)

def peak():
    return next(int(line.split()[1]) * 1024 for line in open("/proc/self/status") if line.startswith("VmHWM"))

way, path, heads, dtype = sys.argv[1:]
if way.startswith("transformers"):
    from transformers import GPT2LMHeadModel
    load = lambda: GPT2LMHeadModel.from_pretrained(path, dtype=getattr(torch, dtype)).eval()
else:
    import gptviz
    heads = int(heads) if path.endswith(".pth") else None
    gptviz.load("mini").encode("the tokenizer's module is imported")
    load = lambda: gptviz.load(path, n_heads=heads, tokenizer="gpt2", dtype=dtype).model
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
before, started = peak(), time.perf_counter()
model = load()
seconds = time.perf_counter() - started
with torch.no_grad():
    model(torch.tensor([[1]]))
first = time.perf_counter() - started
weights = sum({p.data_ptr(): p.nbytes for p in model.parameters()}.values())
memory = (peak() - before) / weights
print(json.dumps({"seconds": seconds, "first": first, "memory": memory, "weights": weights}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--sizes", nargs="+", default=["gpt2"], choices=HUB_MODELS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16"])
    args = parser.parse_args()
    for size in args.sizes:
        with tempfile.TemporaryDirectory() as folder:
            write_all(size, Path(folder))
            show(size, args.dtype, measure_all(size, Path(folder), args.dtype, args.rounds))


def write_all(size: str, folder: Path) -> None:
    """The same random weights in every format."""
    config = HUB_MODELS[size].config
    truth = makers.hf_model(
        vocab_size=config.vocab_size,
        n_positions=config.context_length,
        n_embd=config.emb_dim,
        n_head=config.n_heads,
        n_layer=config.n_layers,
    )
    makers.save_hf(truth, folder / "hf")
    makers.save_hf_old(truth, folder / "old")
    torch.save(makers.book_state(truth, masks=False, tied=True), folder / "book.pth")
    torch.save(makers.nanogpt_checkpoint(truth), folder / "ckpt.pt")


def measure_all(
    size: str, folder: Path, dtype: str, rounds: int
) -> dict[str, list[dict[str, float]]]:
    """Every reader once a round, in turn; a first round that fills the disk cache is not counted."""
    found: dict[str, list[dict[str, float]]] = {way: [] for way in READERS}
    heads = str(HUB_MODELS[size].config.n_heads)
    for number in range(rounds + 1):
        for way, name in READERS.items():
            command = [sys.executable, "-c", MEASURE, way, str(folder / name), heads, dtype]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            if number:
                found[way].append(json.loads(done.stdout))
    return found


def show(size: str, dtype: str, found: dict[str, list[dict[str, float]]]) -> None:
    weights = found[PLAIN][0]["weights"]
    print(f"\n{size}, {weights / 1e9:.2f} GB of weights in {dtype}")
    print(
        f"{'reader':40} {'loaded':>8} {'first logits':>13} {'ratio':>6} {'peak memory / weights':>22}"
    )
    for way, rounds in found.items():
        ratios = [r["first"] / p["first"] for r, p in zip(rounds, found[PLAIN], strict=True)]
        seconds, first = (statistics.median(r[key] for r in rounds) for key in ("seconds", "first"))
        memory = max(r["memory"] for r in rounds)
        print(
            f"{way:40} {seconds:6.2f} s {first:11.2f} s {statistics.median(ratios):6.2f} {memory:22.2f}"
        )


if __name__ == "__main__":
    main()
