"""A checkpoint made into files of our own: `python -m gptviz.models.convert` does it in a process of its own.

A file can be made so that reading it never ends or fills the memory, in more ways than a reader can foresee:
a dict's key in a pickle of 700 bytes takes a year to hash. So the app has what strangers bring read by such a
process, which the system ends at its limits, and loads only what that wrote.
"""

import argparse
import errno
import json
import math
import os
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from gptviz.engine.config import ACTIVATIONS
from gptviz.models.checkpoints import CheckpointError, recognise
from gptviz.models.checkpoints.assemble import checked
from gptviz.models.checkpoints.book import table
from gptviz.models.checkpoints.errors import errors_of
from gptviz.models.checkpoints.folder import CONFIG, VOCABULARY, WEIGHTS
from gptviz.models.checkpoints.tensors import Shapes
from gptviz.models.loading import DTYPES, vocabulary_for
from gptviz.parent_watch import end_with_the_server
from gptviz.tokenizer.vocabulary import fitted, save_vocabulary

try:
    import resource
except (
    ImportError
):  # not a Unix: the time by the clock, which the server looks at, is the only limit
    resource = None  # type: ignore[assignment]

SAID = "said.json"  # how it went: whether the activation is assumed, or the error
ASSUMED = "activation_is_assumed"
LONGEST_SENTENCE = 1000
GROWTH = 4  # a number of one byte becomes a float32

SAFETENSORS = {torch.float32: "F32", torch.bfloat16: "BF16"}  # the format's names


@dataclass(frozen=True)
class Limits:
    """What a process may use beyond what it has when it starts to read. `file_bytes` is of each file."""

    cpu_seconds: int
    memory_bytes: int
    seconds: int
    file_bytes: int

    def begin(self) -> None:
        """Have the system end this process, or refuse it memory, at the limits.

        Only Linux keeps to the limit of memory. On Windows there is none but the time, which the server
        looks at.
        """
        if resource is None:
            return
        used = resource.getrusage(resource.RUSAGE_SELF)
        cpu = math.ceil(used.ru_utime + used.ru_stime) + self.cpu_seconds
        signal.alarm(self.seconds)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 1))
        resource.setrlimit(resource.RLIMIT_FSIZE, (self.file_bytes, self.file_bytes))
        size = Path("/proc/self/statm")  # Linux's; macOS has no limit of memory that it keeps to
        if size.exists():
            memory = int(size.read_text().split()[0]) * resource.getpagesize() + self.memory_bytes
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def convert(
    path: Path,
    out: Path,
    *,
    n_heads: int | None = None,
    activation: str | None = None,
    tokenizer: str | None = None,
    named: bool = False,
    drop_surplus: bool = False,
    dtype: str = "float32",
) -> bool:
    """Write the checkpoint at `path` as config.json, model.safetensors and vocabulary.json into a folder.

    `gptviz.load` gives the same model from both. Arguments as for it; `named`: its tokenizer will be given
    by name, and none is written. Needs the memory of the largest tensor, not of the model. config.json says
    which GELU the model has; returns whether that is only assumed. Raises CheckpointError.
    """
    checkpoint = recognise(path, n_heads, activation)
    config = checkpoint.config
    if not named:  # first: it is small, and may be what is wrong
        with errors_of(path):
            vocabulary = vocabulary_for(checkpoint, tokenizer, drop_surplus)
            fitted(vocabulary, "its own", config.vocab_size)
        save_vocabulary(vocabulary, out / VOCABULARY)
    checkpoint.check_bytes()
    model, weights = checked(config, checkpoint.dialect, checkpoint.tensors, DTYPES[dtype])
    shapes = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    written = {copy.target: shapes[copy.target] for copy in table(config)}
    _write(out / WEIGHTS, written, weights, DTYPES[dtype])
    (out / CONFIG).write_text(json.dumps(config.to_dict()), encoding="utf-8")
    return checkpoint.activation_is_assumed


def _write(
    path: Path, shapes: Shapes, weights: Iterable[tuple[str, Tensor]], dtype: torch.dtype
) -> None:
    """A safetensors file, a tensor at a time: the library's own `save_file` wants all of them at once."""
    header: dict[str, dict[str, object]] = {}
    starts = {}
    start = 0
    for name, shape in shapes.items():
        stop = start + math.prod(shape) * dtype.itemsize
        header[name] = {"dtype": SAFETENSORS[dtype], "shape": shape, "data_offsets": (start, stop)}
        starts[name] = start
        start = stop
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    with path.open("wb") as file:
        file.write(len(head).to_bytes(8, "little") + head)
        for name, tensor in weights:
            file.seek(8 + len(head) + starts[name])
            file.write(tensor.flatten().view(torch.uint8).numpy().data)


def main() -> None:
    """Convert within limits, and write to the file SAID how it went."""
    args = parser().parse_args()
    if args.leash:
        end_with_the_server(args.out)
    if args.nice and hasattr(os, "nice"):
        os.nice(args.nice)
    if args.limits is not None:
        Limits(*args.limits).begin()
    answer(args)
    os._exit(0)  # before libraries that are still at work print anything


def parser() -> argparse.ArgumentParser:
    """The command line of the process."""
    parser = argparse.ArgumentParser(prog="python -m gptviz.models.convert", description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("out", type=Path, help="an empty folder")
    parser.add_argument("--n-heads", type=int)
    parser.add_argument("--activation", choices=ACTIVATIONS)
    parser.add_argument("--tokenizer", help="a file, for a checkpoint that brings none")
    parser.add_argument("--named", action="store_true", help="write no tokenizer")
    parser.add_argument(
        "--drop-surplus", action="store_true", help="go on without tokens that have no row"
    )
    parser.add_argument("--dtype", choices=DTYPES, default="float32")
    parser.add_argument(
        "--limits", type=int, nargs=4, help="cpu_seconds memory_bytes seconds file_bytes"
    )
    parser.add_argument("--nice", type=int, help="how far to stand back for other programs")
    parser.add_argument(
        "--leash", action="store_true", help="end, and remove `out`, with standard input"
    )
    return parser


def answer(args: argparse.Namespace) -> None:
    """Convert, and write to the file SAID how it went."""
    outcome: dict[str, object] = {}
    names = ("n_heads", "activation", "tokenizer", "named", "drop_surplus", "dtype")
    options = {name: getattr(args, name) for name in names}
    try:
        outcome[ASSUMED] = convert(args.path, args.out, **options)
    except CheckpointError as error:
        outcome = {
            "error": type(error).__name__,
            "message": str(error),
            "emb_dim": getattr(error, "emb_dim", 0),
        }
    except (
        Exception
    ) as error:  # strangers' files may raise anything, and find the memory or the disk full
        outcome = {
            "error": "CheckpointError",
            "message": f"{args.path} cannot be read: {_why(error)}",
        }
    outcome |= {"message": str(outcome.get("message", ""))[:LONGEST_SENTENCE]}
    (args.out / SAID).write_text(json.dumps(outcome), encoding="utf-8")


def _why(error: Exception) -> str:
    if isinstance(error, MemoryError) or "allocate" in str(error):
        return "that takes more memory than it may take"
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        return "the server's disk is full"
    return f"{type(error).__name__} {error}"


if __name__ == "__main__":
    main()
