"""From a file's tensors to a model: every name and shape is checked before the first number is copied.

Whether the model can overflow is known from its weights' largest: `largest_possible`.
"""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from gptviz.engine.blank import blank_of
from gptviz.engine.config import GPTConfig
from gptviz.engine.kinds import Config, Model
from gptviz.models.checkpoints.errors import CheckpointError
from gptviz.models.checkpoints.tensors import Shapes, Tensors

LONGEST_CONTEXT = 32768  # one head's weights of such a text are 4 GiB
MOST_BLOCKS = 1000  # GPT-3 has 96


@dataclass(frozen=True)
class Copy:
    """One tensor of our model (`target`) out of one of the file's (`source`).

    `transposed`: the file keeps the weight as (in, out), torch's Linear as (out, in).
    `third`: the file has query, key and value as one tensor, 0, 1 and 2 along the output.
    `first`: the file may have more rows; ours are the first. `factor`: ours are that many times theirs.
    """

    source: str
    target: str
    transposed: bool = False
    third: int | None = None
    first: bool = False
    factor: float = 1.0

    def take(self, tensor: torch.Tensor, rows: int) -> torch.Tensor:
        if self.transposed:
            turned = tensor.t()
        else:
            turned = tensor
        if self.third is None:
            return turned[:rows]
        return turned.chunk(3)[self.third]

    def source_shape(self, target_shape: tuple[int, ...]) -> tuple[int, ...]:
        out, *inner = target_shape
        full = (out if self.third is None else 3 * out, *inner)
        if self.transposed:
            return full[::-1]
        return full


@dataclass(frozen=True)
class Dialect:
    """How one kind of checkpoint names things.

    `table` lists every tensor of a model with this config, without `head`, the output head, where it is
    tied. `root` may stand before any name; names that match `ignored` hold no weights (causal masks).
    `other_names`: how some files call a tensor, and its name in the table. `bound` says how large the numbers of
    a model get, from its weights' largest; None is `largest_possible`, a GPTModel's. `renamed` is for files
    whose names differ by a rule.
    """

    name: str
    table: Callable[[Any], list[Copy]]
    head: str
    root: str = ""
    ignored: re.Pattern[str] = re.compile(r"(?!)")
    other_names: Mapping[str, str] = field(default_factory=dict)
    bound: Callable[[Any, Mapping[str, float]], float] | None = None
    renamed: Callable[[str], str] | None = None

    def plain(self, name: str) -> str:
        """A bare name as the table has it."""
        plain = name.removeprefix(self.root)
        if self.renamed is not None:
            plain = self.renamed(plain)
        return self.other_names.get(plain, plain)

    def names(self, tensors: Tensors) -> dict[str, str]:
        """Plain name to the file's own, for everything that holds weights."""
        names: dict[str, str] = {}
        for name, bare in tensors.bare.items():
            plain = self.plain(bare)
            if self.ignored.fullmatch(plain):
                continue
            if plain in names:
                raise CheckpointError(f"{tensors.where(name)} has both {names[plain]} and {name}")
            names[plain] = name
        return names


def assemble(config: Config, dialect: Dialect, tensors: Tensors, dtype: torch.dtype) -> Model:
    """A model with the file's weights as `dtype`, in eval mode. All of it, or a CheckpointError.

    The numbers are copied: the model does not depend on the file afterwards. Needs the memory of the
    weights and of the largest tensor beside them.
    """
    model, weights = checked(config, dialect, tensors, dtype)
    return filled(model, weights, config.tie_embeddings)


def filled(model: Model, weights: Iterator[tuple[str, torch.Tensor]], tied: bool) -> Model:
    """A model of shapes alone with these weights, in eval mode; a `tied` head is the token embedding."""
    state = dict(weights)
    if tied:
        state["out_head.weight"] = state["tok_emb.weight"]
    model.load_state_dict(state, assign=True)
    if tied:  # `assign` made two parameters of it
        model.out_head.weight = model.tok_emb.weight
    return model.eval()


def checked(
    config: Config, dialect: Dialect, tensors: Tensors, dtype: torch.dtype
) -> tuple[Model, Iterator[tuple[str, torch.Tensor]]]:
    """A model of shapes alone, and its weights by their names, each read when it is asked for.

    A tied output head is not among them. Raises CheckpointError for names and shapes at once, for numbers
    as they come, and at their end for a model that they let overflow.
    """
    names = dialect.names(tensors)
    path = tensors.path
    if config.n_layers > MOST_BLOCKS:
        raise CheckpointError(f"{path} has {config.n_layers} blocks; at most {MOST_BLOCKS} work")
    if config.n_layers > len(names):  # before anything is built as deep as a damaged config says
        raise CheckpointError(
            f"{path} has {len(names)} tensors, too few for {config.n_layers} blocks"
        )
    if config.context_length > LONGEST_CONTEXT:
        length = config.context_length
        raise CheckpointError(
            f"{path}: the context length is {length}; at most {LONGEST_CONTEXT} work"
        )
    try:
        model = blank_of(config)
        copies = dialect.table(config)
    except RuntimeError as error:  # a tensor of more bytes than there are numbers for
        raise CheckpointError(
            f"{path}: no model can be as large as the config says: {error}"
        ) from None
    # a tied head may be stored all the same: then it must be the embedding, or it stands for it
    head = None
    if config.tie_embeddings:
        head = names.pop(dialect.head, None)
    embedding = next(copy.source for copy in copies if copy.target == "tok_emb.weight")
    if head is not None and embedding not in names:
        names[embedding] = head
        head = None
    _check_names(tensors, names, {copy.source for copy in copies})
    shapes = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    wanted: dict[str, list[Copy]] = {}  # by the file's own names
    for copy in copies:
        name = names[copy.source]
        wanted.setdefault(name, []).append(copy)
        shape = tensors.shapes[name]
        expected = copy.source_shape(shapes[copy.target])
        if copy.first and shape[:1] > expected[:1]:
            expected = shape[:1] + expected[1:]
        if shape != expected:
            where = f"{tensors.where(name)}: {name}"
            raise CheckpointError(f"{where} has the shape {shape}; the config asks for {expected}")
        if head is not None and copy.target == "tok_emb.weight":
            _check_tied(tensors, head, name)
    bound = dialect.bound or largest_possible
    return model, _copied(tensors, wanted, shapes, dtype, config, bound)


def _check_names(tensors: Tensors, names: dict[str, str], expected: set[str]) -> None:
    missing = sorted(expected - names.keys())
    surplus = sorted(names.keys() - expected)
    counts = f"({len(missing)} tensors missing, {len(surplus)} too many, {len(expected)} expected)"
    if missing:
        raise CheckpointError(f"{tensors.path} lacks {missing[0]} {counts}")
    if surplus:
        name = names[surplus[0]]
        raise CheckpointError(
            f"{tensors.where(name)} has {name}, which such a model does not have {counts}"
        )


def _check_tied(tensors: Tensors, head: str, embedding: str) -> None:
    shape = tensors.shapes[head]
    expected = tensors.shapes[embedding]
    if tensors.shares(head, embedding):
        return
    if shape == expected:
        first, second = (tensor.clone() for _, tensor in tensors.read([embedding, head]))
        if torch.equal(first, second):
            return
    raise CheckpointError(
        f"{tensors.where(head)}: {head} {shape} is not the same as {embedding} {expected}, but the "
        "config says that the output head is tied to the embedding"
    )


def _copied(
    tensors: Tensors,
    wanted: dict[str, list[Copy]],
    shapes: Shapes,
    dtype: torch.dtype,
    config: Config,
    bound: Callable[[Any, Mapping[str, float]], float],
) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield our names with tensors in memory of their own, one tensor of the file at a time."""
    largest: dict[str, float] = {}
    source: dict[str, str] = {}  # our name -> where it came from, for a sentence
    for name, tensor in tensors.read(wanted):
        where = f"{tensors.where(name)}: {name}"
        if not tensor.is_floating_point():
            raise CheckpointError(f"{where} holds {tensor.dtype}; expected floating-point numbers")
        for copy in wanted[name]:
            weights = torch.empty(shapes[copy.target], dtype=dtype)
            weights.copy_(copy.take(tensor.detach(), len(weights))).mul_(copy.factor)
            low, high = (float(end) for end in weights.aminmax())  # NaN if there is one
            if not (math.isfinite(low) and math.isfinite(high)):
                raise CheckpointError(f"{where} {_not_finite(tensor, dtype)}")
            largest[copy.target] = max(-low, high)
            source[copy.target] = where
            yield copy.target, weights
        del tensor
        tensors.release(name)
    if config.norm_eps < SMALLEST:
        eps = f"the config's norm_eps is {config.norm_eps}, which is 0 in float32; GPT-2 has 1e-05"
        raise CheckpointError(f"{tensors.path}: {eps}")
    if not bound(config, largest) < LIMIT:
        target = max(largest, key=largest.__getitem__)
        raise CheckpointError(
            f"{source[target]} holds {largest[target]:.1e}; from weights as large as that the model's sums "
            "can leave the range of float32. The file is damaged, or its training went astray"
        )


def _not_finite(tensor: torch.Tensor, dtype: torch.dtype) -> str:
    bad = tensor.numel() - int(tensor.isfinite().sum())
    if not bad:
        return f"holds {tensor.abs().max():.1e}, which {dtype} does not reach"
    return f"holds infinity or NaN in {bad:,} of its {tensor.numel():,} places; expected finite numbers"


# ---- how large a model's numbers can get ----

LIMIT = 1e37  # of float32's 3.4e38, and bfloat16's: what is left is for rounding
# float32's; a norm_eps below it is 0, and a LayerNorm of equal numbers divides by it
SMALLEST = 1.2e-38


def largest_possible(config: GPTConfig, largest: Mapping[str, float]) -> float:
    """A bound on every number of a GPTModel's pass, for any text, from the weights' largest.

    A LayerNorm's output is at most sqrt(D) in every place, whatever comes in; from there on a sum of n
    products is at most n times the largest of either factor. What stays far below the largest float32 for
    every text never becomes infinity or NaN. Trained models stay below it by a factor of a million and more.

    `largest`: the largest absolute value of each tensor that there is; a tied output head may be left out.
    """

    def largest_in(name: str) -> float:
        return largest.get(name, 0.0)

    def linear(path: str, n: int, x: float) -> float:
        return n * largest_in(f"{path}.weight") * x + largest_in(f"{path}.bias")

    def norm(path: str) -> float:
        return math.sqrt(width) * largest_in(f"{path}.scale") + largest_in(f"{path}.shift")

    def variance(x: float) -> float:  # before it is divided: the sum of (x - mean)²
        return width * (2 * x) * (2 * x)  # not **: that raises where this is infinite

    width = config.emb_dim
    stream = largest_in("tok_emb.weight") + largest_in("pos_emb.weight")
    bounds = [variance(stream)]
    for block in range(config.n_layers):
        path = f"trf_blocks.{block}"
        x = norm(f"{path}.norm1")
        y = norm(f"{path}.norm2")
        q, k, v = (linear(f"{path}.att.W_{part}", width, x) for part in ("query", "key", "value"))
        stream += linear(f"{path}.att.out_proj", width, v)
        bounds += [config.head_dim * q * k, variance(stream)]
        up = linear(f"{path}.ff.layers.0", width, y)
        stream += linear(f"{path}.ff.layers.2", 4 * width, up)
        bounds += [up, variance(stream), variance(x), variance(y)]
    final = norm("final_norm")
    head = largest.get("out_head.weight", largest_in("tok_emb.weight"))
    return max(*bounds, variance(final), width * head * final)
