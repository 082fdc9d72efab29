"""nanoGPT's files: ckpt.pt, a state dict beside its `model_args`, and meta.pkl, a table of characters.

Weights are torch Linears, (out, in) as ours; query, key and value are one tensor; the head is tied; with
`bias=False` neither Linears nor LayerNorms have a bias. Which GELU it is stands in no file: nanoGPT had the
one with tanh until pull request 274 of June 2023, and the exact one since then.

meta.pkl is read as data. Pickles are programs. This reader lets one build dicts, lists, strings and numbers,
which have opcodes of their own; the first opcode that looks a name up (how every attack starts) is refused.
"""

import pickle
import re
from pathlib import Path
from typing import Any, NoReturn

from gptviz.checkpoints.assemble import Copy, Dialect
from gptviz.checkpoints.errors import CheckpointError, errors_of
from gptviz.checkpoints.hugging_face import gpt2_table
from gptviz.checkpoints.tensors import Shapes, Tensors
from gptviz.engine.config import GPTConfig
from gptviz.tokenizer.vocabulary import Vocabulary, of_characters

ARGUMENTS = {"vocab_size": "vocab_size", "block_size": "context_length", "n_embd": "emb_dim"}
ARGUMENTS |= {"n_head": "n_heads", "n_layer": "n_layers"}


def table(config: GPTConfig) -> list[Copy]:
    """Every tensor of a model of nanoGPT; minGPT's, of the same names, have a head of their own."""
    head = [] if config.tie_embeddings else [Copy("lm_head.weight", "out_head.weight")]
    return gpt2_table(config.n_layers, "transformer.", biases=config.linear_bias) + head


IN_BLOCK = re.compile(r"transformer\.h\.(\d+)\.")
SIZES = ("transformer.wte.weight", "transformer.wpe.weight")

DIALECT = Dialect(
    "a nanoGPT checkpoint",
    table,
    prefixes=("_orig_mod.",),  # torch.compile's
    head="lm_head.weight",
    ignored=re.compile(r"transformer\.h\.\d+\.attn\.bias"),  # causal masks
)


def is_nanogpt(saved: object) -> bool:
    return isinstance(saved, dict) and "model_args" in saved and "model" in saved


def read_config(path: Path, saved: dict[str, Any]) -> GPTConfig:
    """Our config from `model_args`. Raises CheckpointError that names the argument."""
    arguments = saved["model_args"]
    if not isinstance(arguments, dict):
        raise CheckpointError(f'{path}: "model_args" holds {type(arguments).__name__}, not a dict')
    missing = [name for name in ARGUMENTS if name not in arguments]
    if missing:
        raise CheckpointError(f'{path}: "model_args" lacks {missing[0]}')
    # what does not say "bias" is of January 2023 or older
    activation = "gelu" if "bias" in arguments else "gelu_tanh"
    bias = arguments.get("bias", True)
    if not isinstance(bias, bool):
        raise CheckpointError(f'{path}: "model_args" says bias is {bias!r}; it must be True or False')
    with errors_of(f'{path}: "model_args"'):
        return GPTConfig(
            **{ours: arguments[theirs] for theirs, ours in ARGUMENTS.items()},
            drop_rate=arguments.get("dropout", 0.0),
            qkv_bias=bias,
            tie_embeddings=True,
            activation=activation,
            norm_bias=bias,
            linear_bias=bias,
        )


def doubt(path: Path, config: GPTConfig) -> str:
    """A sentence that says which GELU is assumed of a file, empty where it can be no other."""
    if config.activation != "gelu":
        return ""
    return (
        f"{path.name} does not say which GELU it was trained with, and the exact one is assumed, as nanoGPT "
        "has it since June 2023; build-nanogpt and older nanoGPTs have the one with tanh: say then that the "
        'activation is "gelu_tanh"'
    )


def is_named_so(shapes: Shapes) -> bool:
    """Whether these tensors, by their plain names, are a nanoGPT's: Hugging Face's names, other shapes."""
    width, *_ = shapes.get("transformer.ln_f.weight", (0,))
    return shapes.get("transformer.h.0.attn.c_attn.weight") == (3 * width, width)


def config_of(tensors: Tensors, n_heads: int) -> GPTConfig:
    """Our config from the shapes of tensors that are named so. Raises CheckpointError."""
    names = DIALECT.names(tensors)
    for name in SIZES:
        if name not in names:
            raise CheckpointError(f"{tensors.path} lacks {name}, which gives the model's size")
    vocab_size, emb_dim = tensors.shapes[names["transformer.wte.weight"]]
    context_length, _ = tensors.shapes[names["transformer.wpe.weight"]]
    head, embedding = names.get("lm_head.weight"), names["transformer.wte.weight"]
    has_bias = "transformer.ln_f.bias" in names
    with errors_of(tensors.path):
        return GPTConfig(
            vocab_size=vocab_size,
            context_length=context_length,
            emb_dim=emb_dim,
            n_heads=n_heads,
            n_layers=len({found[1] for name in names if (found := IN_BLOCK.match(name))}),
            qkv_bias=has_bias,
            tie_embeddings=head is None or tensors.shares(head, embedding),
            activation="gelu",
            norm_bias=has_bias,
            linear_bias=has_bias,
        )


# ---- meta.pkl: a character model's vocabulary ----

LARGEST = 16 * 2**20  # bytes; Unicode's 150,000 characters fit


class _DataOnly(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> NoReturn:
        raise CheckpointError(f"it asks for {module}.{name}, which is code, and only data is read here")

    def persistent_load(self, pid: Any) -> NoReturn:
        raise CheckpointError("it refers to something outside the file")


def read_meta(path: Path) -> Vocabulary:
    """The character vocabulary of a meta.pkl. Raises CheckpointError; never runs anything."""
    try:
        if path.stat().st_size > LARGEST:
            raise CheckpointError(f"it has {path.stat().st_size:,} bytes; at most {LARGEST:,} are read")
        with path.open("rb") as file:
            meta = _DataOnly(file).load()
        return _vocabulary(meta)
    except Exception as error:  # a damaged pickle may raise nearly anything
        kind = "" if isinstance(error, CheckpointError) else f"{type(error).__name__} "
        raise CheckpointError(f"{path} is not nanoGPT's table of characters: {kind}{error}") from None


def _vocabulary(meta: Any) -> Vocabulary:
    if not isinstance(meta, dict) or not isinstance(meta.get("stoi"), dict):
        raise CheckpointError('it has no dict "stoi" from characters to ids')
    for character, id in meta["stoi"].items():
        if type(character) is not str or type(id) is not int:
            raise CheckpointError(f'"stoi" says {character!r}: {id!r}; expected a character and an id')
    if meta.get("itos") != {id: character for character, id in meta["stoi"].items()}:
        raise CheckpointError('"itos" is not the reverse of "stoi"')
    try:
        return of_characters(meta["stoi"])
    except ValueError as error:
        raise CheckpointError(str(error)) from None
