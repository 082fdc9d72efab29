"""nanoGPT's layout, and that of its relatives minGPT and build-nanogpt: GPT-2's names, with torch's Linears.

A Linear keeps its weight as (out, in), as ours does; Hugging Face's Conv1D as (in, out). So the shape of
`attn.c_attn.weight` tells which one a file has. nanoGPT's ckpt.pt has its sizes in `model_args`, a file of
build-nanogpt in `config`; a bare state dict has all but the number of heads in its shapes. minGPT's head is
not tied, the others' are. With nanoGPT's `bias=False` neither Linears nor LayerNorms have a bias. Which GELU
it is stands in no file: nanoGPT had tanh's approximation until pull request 274 of June 2023, and has had
the exact one since then; build-nanogpt and minGPT have tanh's.

meta.pkl is read as data. Pickles are programs. This reader lets one build dicts, lists, strings and numbers,
which have opcodes of their own; the first opcode that looks a name up (how every attack starts) is refused.
"""

import pickle
import re
from pathlib import Path
from typing import Any, NoReturn

import torch

from gptviz.engine.config import GPTConfig
from gptviz.models.checkpoints.assemble import Copy, Dialect
from gptviz.models.checkpoints.errors import CheckpointError, errors_of
from gptviz.models.checkpoints.hugging_face import ROOT, gpt2_table, head_table
from gptviz.models.checkpoints.sizes import embedding_sizes, heads_missing, settings_of
from gptviz.models.checkpoints.tensors import Tensors
from gptviz.tokenizer.vocabulary import Vocabulary, of_characters

ARGUMENTS = {"vocab_size": "vocab_size", "block_size": "context_length", "n_embd": "emb_dim"}
ARGUMENTS |= {"n_head": "n_heads", "n_layer": "n_layers"}

IN_BLOCK = re.compile(r"h\.(\d+)\.")
QKV = "h.0.attn.c_attn.weight"


def _table(config: GPTConfig) -> list[Copy]:
    return gpt2_table(config.n_layers, biases=config.linear_bias) + head_table(config)


DIALECT = Dialect(
    "a nanoGPT checkpoint",
    _table,
    head="lm_head.weight",
    root=ROOT,
    ignored=re.compile(r"h\.\d+\.attn\.bias"),  # causal masks
)


def is_nanogpt(saved: object) -> bool:
    """Whether what was saved is nanoGPT's ckpt.pt or a file of build-nanogpt, which say their sizes."""
    return (
        isinstance(saved, dict) and "model" in saved and ("model_args" in saved or _is_build(saved))
    )


def _is_build(saved: dict[str, Any]) -> bool:
    return ARGUMENTS.keys() <= settings_of(saved.get("config")).keys()


def has_linears(tensors: Tensors) -> bool:
    """Whether GPT-2's names are those of torch's Linears, (out, in), and not of Hugging Face's Conv1D."""
    shape = tensors.shapes.get(DIALECT.names(tensors).get(QKV, ""), ())
    return len(shape) == 2 and shape[0] == 3 * shape[1]


def read_config(path: Path, saved: dict[str, Any]) -> GPTConfig:
    """Our config from nanoGPT's `model_args` or build-nanogpt's `config`. Raises CheckpointError that names
    what is wrong in it.
    """
    if "model_args" in saved:
        key = "model_args"
        arguments = saved[key]
    else:
        key = "config"
        arguments = settings_of(saved[key])
    if not isinstance(arguments, dict):
        raise CheckpointError(f'{path}: "{key}" holds {type(arguments).__name__}, not a dict')
    missing = [name for name in ARGUMENTS if name not in arguments]
    if missing:
        raise CheckpointError(f'{path}: "{key}" lacks {missing[0]}')
    # nanoGPT's files that do not say "bias" are of January 2023 or older
    is_exact = key == "model_args" and "bias" in arguments
    bias = arguments.get("bias", True)
    if not isinstance(bias, bool):
        raise CheckpointError(f'{path}: "{key}" says bias is {bias!r}; it must be True or False')
    with errors_of(f'{path}: "{key}"'):
        return GPTConfig(
            **{ours: arguments[theirs] for theirs, ours in ARGUMENTS.items()},
            drop_rate=arguments.get("dropout", 0.0),
            qkv_bias=bias,
            tie_embeddings=True,
            activation="gelu" if is_exact else "gelu_tanh",
            norm_bias=bias,
            linear_bias=bias,
        )


def config_of(tensors: Tensors, n_heads: int | None) -> GPTConfig:
    """The config that the shapes of a bare state dict give, with the caller's number of heads.

    Raises CheckpointError.
    """
    names = DIALECT.names(tensors)
    sizes = embedding_sizes(tensors, "wte.weight", "wpe.weight", names)
    if n_heads is None:
        raise heads_missing(tensors.path, sizes["emb_dim"])
    tied = _is_tied(tensors, names)
    bias = "ln_f.bias" in names
    with errors_of(tensors.path):
        return GPTConfig(
            **sizes,
            n_heads=n_heads,
            n_layers=len({match[1] for name in names if (match := IN_BLOCK.match(name))}),
            qkv_bias=bias,
            tie_embeddings=tied,
            # minGPT alone has a head of its own
            activation="gelu" if tied else "gelu_tanh",
            norm_bias=bias,
            linear_bias=bias,
        )


def _is_tied(tensors: Tensors, names: dict[str, str]) -> bool:
    embedding = names["wte.weight"]
    head = names.get("lm_head.weight")
    if head is None or tensors.shares(head, embedding):
        return True
    if tensors.shapes[head] != tensors.shapes[embedding]:
        return False
    weights = dict(tensors.read([embedding, head]))  # two views of the file: nothing is copied
    return torch.equal(weights[head], weights[embedding])


def doubt(path: Path, config: GPTConfig) -> str:
    """A sentence that says which GELU is assumed of a file, empty where it can be no other."""
    if config.activation != "gelu":
        return ""
    return (
        f"{path.name} does not say which GELU it was trained with, and the exact one is assumed, as nanoGPT "
        "has it since June 2023; build-nanogpt and older nanoGPTs have the one with tanh: say then that the "
        'activation is "gelu_tanh"'
    )


# ---- meta.pkl: a character model's vocabulary ----

LARGEST = 16 * 2**20  # bytes; Unicode's 150,000 characters fit


class _DataOnly(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> NoReturn:
        raise CheckpointError(
            f"it asks for {module}.{name}, which is code, and only data is read here"
        )

    def persistent_load(self, pid: Any) -> NoReturn:
        raise CheckpointError("it refers to something outside the file")


def read_meta(path: Path) -> Vocabulary:
    """The character vocabulary of a meta.pkl. Raises CheckpointError; never runs anything."""
    try:
        if path.stat().st_size > LARGEST:
            raise CheckpointError(
                f"it has {path.stat().st_size:,} bytes; at most {LARGEST:,} are read"
            )
        with path.open("rb") as file:
            meta = _DataOnly(file).load()
        return _vocabulary(meta)
    except Exception as error:  # a damaged pickle may raise nearly anything
        if isinstance(error, CheckpointError):
            kind = ""
        else:
            kind = f"{type(error).__name__} "
        raise CheckpointError(
            f"{path} is not nanoGPT's table of characters: {kind}{error}"
        ) from None


def _vocabulary(meta: Any) -> Vocabulary:
    if not isinstance(meta, dict) or not isinstance(meta.get("stoi"), dict):
        raise CheckpointError('it has no dict "stoi" from characters to ids')
    for character, id in meta["stoi"].items():
        if type(character) is not str or type(id) is not int:
            raise CheckpointError(
                f'"stoi" says {character!r}: {id!r}; expected a character and an id'
            )
    if meta.get("itos") != {id: character for character, id in meta["stoi"].items()}:
        raise CheckpointError('"itos" is not the reverse of "stoi"')
    try:
        return of_characters(meta["stoi"])
    except ValueError as error:
        raise CheckpointError(str(error)) from None
