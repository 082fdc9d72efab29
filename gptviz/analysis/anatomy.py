"""What a model is made of, from its config alone: every tensor, the sum line by line, the memory.

The tensors are those of a real GPTModel, built on torch's meta device: it has every shape and no
numbers, so a model of any size costs no memory. The order of the sum is the book's, chapter 4.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import pandas as pd
import torch

from gptviz.engine.blank import blank_model
from gptviz.engine.config import GPTConfig

PARTS = (
    "token embedding",
    "position embedding",
    "attention",
    "feed-forward",
    "LayerNorm",
    "final LayerNorm",
    "output head",
)
TOKEN, POSITION, ATTENTION, FEED_FORWARD, NORM, FINAL, HEAD = PARTS

BYTES = {"float32": torch.float32.itemsize, "bfloat16": torch.bfloat16.itemsize}  # a number takes

_D = ("emb_dim",)
_DD = ("emb_dim", "emb_dim")

# a tensor's name, without trf_blocks.3. in front -> its part, and its shape in the config's words
_TENSORS: dict[str, tuple[str, tuple[str, ...]]] = {
    "tok_emb.weight": (TOKEN, ("vocab_size", "emb_dim")),
    "pos_emb.weight": (POSITION, ("context_length", "emb_dim")),
    **{
        f"att.{name}.weight": (ATTENTION, _DD)
        for name in ("W_query", "W_key", "W_value", "out_proj")
    },
    **{f"att.{name}.bias": (ATTENTION, _D) for name in ("W_query", "W_key", "W_value", "out_proj")},
    "ff.layers.0.weight": (FEED_FORWARD, ("4 emb_dim", "emb_dim")),
    "ff.layers.0.bias": (FEED_FORWARD, ("4 emb_dim",)),
    "ff.layers.2.weight": (FEED_FORWARD, ("emb_dim", "4 emb_dim")),
    "ff.layers.2.bias": (FEED_FORWARD, _D),
    **{f"{norm}.{name}": (NORM, _D) for norm in ("norm1", "norm2") for name in ("scale", "shift")},
    "final_norm.scale": (FINAL, _D),
    "final_norm.shift": (FINAL, _D),
    "out_head.weight": (HEAD, ("vocab_size", "emb_dim")),
}


@dataclass(frozen=True)
class Tensor:
    """One tensor of a model. `symbols` is its shape in the config's words: ("4 emb_dim", "emb_dim")."""

    name: str  # as in the state_dict
    part: str  # one of PARTS
    block: int | None
    shape: tuple[int, ...]
    symbols: tuple[str, ...]
    # the tensor whose numbers these are: a tied output head has none of its own
    shared_with: str | None

    @property
    def parameters(self) -> int:
        """The parameters that this tensor adds to the model: 0 if it is another part's."""
        if self.shared_with:
            return 0
        return math.prod(self.shape)

    @property
    def where(self) -> str:
        """Its place in the model: "block 3 · attention"."""
        if self.block is None:
            return self.part
        return f"block {self.block} · {self.part}"

    @property
    def local_name(self) -> str:
        """Its name within its block: "att.W_query.weight"."""
        if self.block is None:
            return self.name
        return self.name.split(".", 2)[2]


@dataclass(frozen=True)
class Anatomy:
    """A config's tensors, in the order of the model's state_dict."""

    config: GPTConfig
    tensors: tuple[Tensor, ...]

    @property
    def parameters(self) -> int:
        return sum(tensor.parameters for tensor in self.tensors)

    def block(self, block: int) -> tuple[Tensor, ...]:
        return tuple(tensor for tensor in self.tensors if tensor.block == block)


@lru_cache(maxsize=32)
def anatomy(config: GPTConfig) -> Anatomy:
    """Build the config's GPTModel on the meta device, where nothing is allocated, and list what it has.

    Raises ValueError for a tensor that this module does not know, or whose shape is not as it says.
    """
    model = blank_model(config)
    first: dict[int, str] = {}  # id of a parameter -> the first name that it has
    tensors = []
    for name, parameter in model.named_parameters(remove_duplicate=False):
        shared = first.setdefault(id(parameter), name)
        tensors.append(
            _tensor(name, tuple(parameter.shape), config, None if shared == name else shared)
        )
    return Anatomy(config, tuple(tensors))


def _tensor(
    name: str, shape: tuple[int, ...], config: GPTConfig, shared_with: str | None
) -> Tensor:
    block = None
    local = name
    if name.startswith("trf_blocks."):
        _, number, local = name.split(".", 2)
        block = int(number)
    if local not in _TENSORS:
        raise ValueError(f"the model has a tensor {name!r}, which is none of {', '.join(_TENSORS)}")
    part, symbols = _TENSORS[local]
    if shape != tuple(_value(symbol, config) for symbol in symbols):
        raise ValueError(f"{name} has the shape {shape}; it should be ({', '.join(symbols)})")
    return Tensor(name, part, block, shape, symbols, shared_with)


def _value(symbol: str, config: GPTConfig) -> int:
    """A symbol's number: "4 emb_dim" of a width of 768 is 3072."""
    *factor, name = symbol.split()
    return math.prod(int(n) for n in factor) * config[name]


# ---- tables ----


def tensor_table(config: GPTConfig) -> pd.DataFrame:
    """Return a row per tensor of the state_dict; `parameters` adds up to the whole model."""
    # of a real GPTModel on torch's meta device: every shape, no memory
    tensors = anatomy(config).tensors
    table = pd.DataFrame(
        {
            "tensor": [t.name for t in tensors],
            "part": [t.where for t in tensors],
            "shape": [" × ".join(str(n) for n in t.shape) for t in tensors],
            "formula": [" × ".join(t.symbols) for t in tensors],
            "parameters": [t.parameters for t in tensors],
        }
    )
    _add_share_and_bytes(table)
    table["shared_with"] = [t.shared_with or "" for t in tensors]
    return table


def part_table(config: GPTConfig) -> pd.DataFrame:
    """Return a row per part, in the order of PARTS, all blocks together: parameters, share, bytes."""
    rows = [(tensor.part, tensor.parameters) for tensor in anatomy(config).tensors]
    tensors = pd.DataFrame(rows, columns=["part", "parameters"])
    table = tensors.groupby("part").sum().reindex(PARTS).reset_index()
    _add_share_and_bytes(table)
    return table


def _add_share_and_bytes(table: pd.DataFrame) -> None:
    table["share"] = table["parameters"] / table["parameters"].sum()
    for dtype, size in BYTES.items():
        table[f"{dtype}_bytes"] = table["parameters"] * size


# ---- beside the weights ----

# "Let's build GPT" as a notebook after it has it: 65 characters; it prints this many parameters
NOTEBOOK = GPTConfig(vocab_size=65, context_length=256, emb_dim=384, n_heads=8, n_layers=3)
NOTEBOOK_PRINTS = 5_468_993


def parameters_with_head_bias(config: GPTConfig) -> int:
    """The parameters of a config whose output head also adds a bias, one number for each token.

    The notebook's `lm_head` is `nn.Linear(emb_dim, vocab_size)`; the book's `out_head` has `bias=False`.
    """
    return anatomy(config).parameters + config.vocab_size


def score_memory(config: GPTConfig) -> pd.DataFrame:
    """The bytes of all T × T attention scores in float32, for a text of T tokens.

    A row for each T = 1, 2, 4, ... and for `context_length`; columns tokens, one head, one block, all blocks.
    A pass that only predicts holds those of one block at a time; training keeps all for the way back.
    """
    lengths = [2**power for power in range(config.context_length.bit_length())]
    if lengths[-1] != config.context_length:
        lengths.append(config.context_length)
    table = pd.DataFrame({"tokens": lengths})
    # as floats: whole numbers of 64 bits are too small for what can be asked here
    table["one head"] = table["tokens"].astype(float) ** 2 * BYTES["float32"]
    table["one block"] = table["one head"] * config.n_heads
    table["all blocks"] = table["one block"] * config.n_layers
    return table


# ---- the sum, line by line ----


@dataclass(frozen=True)
class Line:
    """A line of the sum: `label`: `formula` = `worked` = `parameters`.

    `level`: 0 for the whole model, 1 for what it is the sum of, 2 for what that is the sum of ...
    """

    label: str
    formula: str  # in the config's words: "emb_dim × emb_dim + emb_dim"
    worked: str  # with its numbers: "768 × 768 + 768 = 589,824 + 768"
    parameters: int
    level: int
    is_sum: bool = False  # of lines before it


def sum_lines(found: Anatomy) -> list[Line]:
    """The sum as the book works it out. Every config gives the same lines, so that two can be compared."""
    config = found.config
    tensors = found.tensors
    block = found.block(0)
    token, position = (_line(label, _named(tensors, label), 2) for label in ("tok_emb", "pos_emb"))
    embeddings = _sum("embeddings", (token, position), 1)
    qkv = _line("W_query, W_key, W_value", _named(block, "att.W_query"), 4, times=3)
    out_proj = _line("out_proj", _named(block, "att.out_proj"), 4)
    attention = _sum(ATTENTION, (qkv, out_proj), 3)
    up = _line("ff.layers.0", _named(block, "ff.layers.0"), 4)
    down = _line("ff.layers.2", _named(block, "ff.layers.2"), 4)
    feed_forward = _sum(FEED_FORWARD, (up, down), 3)
    norms = _line("norm1, norm2", _named(block, "norm1"), 3, times=2)
    one_block = _sum("one block", (attention, feed_forward, norms), 2)
    worked = f"{config.n_layers:,} × {one_block.parameters:,}"
    count = config.n_layers * one_block.parameters
    blocks = Line("all blocks", "n_layers × one block", worked, count, 1, is_sum=True)
    final = _line("final_norm", _named(tensors, "final_norm"), 1)
    head = _line("out_head", _named(tensors, "out_head"), 1)
    if config.tie_embeddings:
        head = Line("out_head", "tied: the numbers of tok_emb, counted above", "", 0, 1)
    total = _sum("the whole model", (embeddings, blocks, final, head), 0)
    return [
        token, position, embeddings,
        qkv, out_proj, attention, up, down, feed_forward, norms, one_block, blocks,
        final, head, total,
    ]  # fmt: skip


def _named(tensors: Sequence[Tensor], module: str) -> list[Tensor]:
    return [tensor for tensor in tensors if tensor.local_name.startswith(f"{module}.")]


def _line(label: str, tensors: Sequence[Tensor], level: int, times: int = 1) -> Line:
    """The line of a module with these tensors, or of `times` modules that are alike."""
    counts = [math.prod(tensor.shape) for tensor in tensors]
    formula = _product(times, [" × ".join(tensor.symbols) for tensor in tensors])
    worked = _product(times, [" × ".join(f"{n:,}" for n in tensor.shape) for tensor in tensors])
    short = _product(times, [f"{count:,}" for count in counts])
    if times > 1:
        short = f"{times} × {sum(counts):,}"
    if short not in (worked, f"{sum(counts):,}"):
        worked = f"{worked} = {short}"
    return Line(label, formula, worked, times * sum(counts), level)


def _product(times: int, terms: Sequence[str]) -> str:
    """ "3 × (a + b)", "2 × 2 × a" for two of a + a, "a + b" for one."""
    alike = len(terms) > 1 and len(set(terms)) == 1
    if alike:
        inside = f"{len(terms)} × {terms[0]}"
    else:
        inside = " + ".join(terms)
    if times == 1:
        return inside
    if alike or len(terms) == 1:
        return f"{times} × {inside}"
    return f"{times} × ({inside})"


def _sum(label: str, lines: Sequence[Line], level: int) -> Line:
    names = [f"({line.label})" if ", " in line.label else line.label for line in lines]
    counts = [line.parameters for line in lines]
    worked = " + ".join(f"{count:,}" for count in counts)
    return Line(label, " + ".join(names), worked, sum(counts), level, is_sum=True)
