"""What a model is made of, from its config alone: every tensor, the sum line by line, the memory.

The tensors are those of a real model, built on torch's meta device: it has every shape and no
numbers, so a model of any size costs no memory. The order of the sum is the book's, chapter 4.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import pandas as pd
import torch

from gptviz.engine.architecture import architecture_of
from gptviz.engine.blank import blank_of
from gptviz.engine.config import GPTConfig
from gptviz.engine.kinds import Config
from gptviz.engine.past import past_bytes

TOKEN = "token embedding"
POSITION = "position embedding"
ATTENTION = "attention"
FEED_FORWARD = "feed-forward"
HEAD = "output head"

BYTES = {"float32": torch.float32.itemsize, "bfloat16": torch.bfloat16.itemsize}  # a number takes

_EMBEDDED = {"tok_emb": TOKEN, "pos_emb": POSITION}


def parts(config: Config) -> tuple[str, ...]:
    """The parts of a model of this kind, in the order of the pass; the norms by their name there."""
    kind = architecture_of(config)
    norm = kind.named.norm
    embedded = [_EMBEDDED[site] for site in kind.embedded.values()]
    return (*embedded, ATTENTION, FEED_FORWARD, norm, f"final {norm}", HEAD)


def _part(local: str, config: Config) -> str:
    """The part of a tensor by its name, which in a block is without the block's. Norms of queries are attention's."""
    norm = architecture_of(config).named.norm
    of_modules = {
        **_EMBEDDED,
        "att": ATTENTION,
        "ff": FEED_FORWARD,
        "final_norm": f"final {norm}",
        "out_head": HEAD,
    }
    return of_modules.get(local.split(".")[0], norm)


@dataclass(frozen=True)
class Tensor:
    """One tensor of a model. `symbols` is its shape in the config's words: ("4 emb_dim", "emb_dim")."""

    name: str  # as in the state_dict
    part: str  # one of `parts`
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

    config: Config
    tensors: tuple[Tensor, ...]

    @property
    def parameters(self) -> int:
        return sum(tensor.parameters for tensor in self.tensors)

    def block(self, block: int) -> tuple[Tensor, ...]:
        return tuple(tensor for tensor in self.tensors if tensor.block == block)


@lru_cache(maxsize=32)
def anatomy(config: Config) -> Anatomy:
    """Build the config's model on the meta device, where nothing is allocated, and list what it has.

    Raises ValueError for a tensor that the model's record does not know, or whose shape is not as it says.
    """
    model = blank_of(config)
    first: dict[int, str] = {}  # id of a parameter -> the first name that it has
    tensors = []
    for name, parameter in model.named_parameters(remove_duplicate=False):
        shared = first.setdefault(id(parameter), name)
        tensors.append(
            _tensor(name, tuple(parameter.shape), config, None if shared == name else shared)
        )
    return Anatomy(config, tuple(tensors))


def _tensor(name: str, shape: tuple[int, ...], config: Config, shared_with: str | None) -> Tensor:
    block = None
    local = name
    if name.startswith("trf_blocks."):
        _, number, local = name.split(".", 2)
        block = int(number)
    known = architecture_of(config).shapes.of
    if local not in known:
        raise ValueError(f"the model has a tensor {name!r}, which is none of {', '.join(known)}")
    symbols = known[local]
    if shape != tuple(_value(symbol, config) for symbol in symbols):
        raise ValueError(f"{name} has the shape {shape}; it should be ({', '.join(symbols)})")
    return Tensor(name, _part(local, config), block, shape, symbols, shared_with)


def _value(symbol: str, config: Config) -> int:
    """A symbol's number: "4 emb_dim" of a width of 768 is 3072."""
    words = symbol.replace("×", "").split()
    return math.prod(int(word) if word.isdecimal() else config[word] for word in words)


def _formula(symbols: Sequence[str]) -> str:
    """A tensor's sides as a product: "(n_heads × head_dim) × emb_dim"."""
    if len(symbols) == 1:
        return symbols[0]
    return " × ".join(f"({symbol})" if "×" in symbol else symbol for symbol in symbols)


# ---- tables ----


def tensor_table(config: Config) -> pd.DataFrame:
    """Return a row per tensor of the state_dict; `parameters` adds up to the whole model."""
    # of a real model on torch's meta device: every shape, no memory
    tensors = anatomy(config).tensors
    table = pd.DataFrame(
        {
            "tensor": [t.name for t in tensors],
            "part": [t.where for t in tensors],
            "shape": [" × ".join(str(n) for n in t.shape) for t in tensors],
            "formula": [_formula(t.symbols) for t in tensors],
            "parameters": [t.parameters for t in tensors],
        }
    )
    _add_share_and_bytes(table)
    table["shared_with"] = [t.shared_with or "" for t in tensors]
    return table


def part_table(config: Config) -> pd.DataFrame:
    """Return a row per part, in the order of `parts`, all blocks together: parameters, share, bytes."""
    rows = [(tensor.part, tensor.parameters) for tensor in anatomy(config).tensors]
    tensors = pd.DataFrame(rows, columns=["part", "parameters"])
    table = tensors.groupby("part").sum().reindex(parts(config)).reset_index()
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


def parameters_with_head_bias(config: Config) -> int:
    """The parameters of a config whose output head also adds a bias, one number for each token.

    The notebook's `lm_head` is `nn.Linear(emb_dim, vocab_size)`; the book's `out_head` has `bias=False`.
    """
    return anatomy(config).parameters + config.vocab_size


def score_memory(config: Config) -> pd.DataFrame:
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


def cache_memory(config: Config, number_bytes: int = BYTES["float32"]) -> pd.DataFrame:
    """The bytes of the keys and values that are kept while a text is written, for T tokens of it.

    A row for each T of `score_memory`; columns tokens, kept, and own: with a key and a value for each head.
    """
    tokens = score_memory(config)["tokens"]
    kept = [past_bytes(config, int(n), bytes_a_number=number_bytes) for n in tokens]
    in_group = config.n_heads // config.n_kv_groups
    return pd.DataFrame({"tokens": tokens, "kept": kept, "own": [in_group * n for n in kept]})


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
    """The sum as the book works it out. Models of one kind have the same lines, but for what a switch takes out."""
    config = found.config
    tensors = found.tensors
    kind = architecture_of(config)
    embedded = tuple(kind.embedded.values())
    if len(embedded) == 1:
        embeddings = _line(embedded[0], _named(tensors, embedded[0]), 1)
        before = [embeddings]
    else:
        tables = [_line(label, _named(tensors, label), 2) for label in embedded]
        embeddings = _sum("embeddings", tables, 1)
        before = [*tables, embeddings]
    alike = kind.shapes.alike
    of_attention = _alike(found, [one for one in alike if one[0].startswith("att.")], 4)
    attention = _sum(ATTENTION, of_attention, 3)
    of_layers = _alike(found, [one for one in alike if one[0].startswith("ff.")], 4)
    feed_forward = _sum(FEED_FORWARD, of_layers, 3)
    norms = _alike(found, [one for one in alike if one[0].startswith("norm")], 3)
    one_block = _sum("one block", (attention, feed_forward, *norms), 2)
    worked = f"{config.n_layers:,} × {one_block.parameters:,}"
    count = config.n_layers * one_block.parameters
    blocks = Line("all blocks", "n_layers × one block", worked, count, 1, is_sum=True)
    final = _line("final_norm", _named(tensors, "final_norm"), 1)
    head = _line("out_head", _named(tensors, "out_head"), 1)
    if config.tie_embeddings:
        head = Line("out_head", "tied: the numbers of tok_emb, counted above", "", 0, 1)
    total = _sum("the whole model", (embeddings, blocks, final, head), 0)
    return [
        *before,
        *of_attention, attention, *of_layers, feed_forward, *norms, one_block, blocks,
        final, head, total,
    ]  # fmt: skip


def _alike(found: Anatomy, alike: Sequence[Sequence[str]], level: int) -> list[Line]:
    """A line for each entry of modules that are alike, if this model's blocks have them."""
    lines = []
    for modules in alike:
        tensors = _named(found.block(0), modules[0])
        if tensors:
            label = ", ".join(module.removeprefix("att.") for module in modules)
            lines.append(_line(label, tensors, level, times=len(modules)))
    return lines


def _named(tensors: Sequence[Tensor], module: str) -> list[Tensor]:
    return [tensor for tensor in tensors if tensor.local_name.startswith(f"{module}.")]


def _line(label: str, tensors: Sequence[Tensor], level: int, times: int = 1) -> Line:
    """The line of a module with these tensors, or of `times` modules that are alike."""
    counts = [math.prod(tensor.shape) for tensor in tensors]
    formula = _product(times, [_formula(tensor.symbols) for tensor in tensors])
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
