"""A model's sizes where no config of a known format gives them.

Most are in the shapes of the tensors. The number of heads is in no shape: it may be in settings that a training
script saved in the same file as the weights, or else it must be asked for.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gptviz.engine.config import WIDEST, divisors
from gptviz.models.checkpoints.errors import CheckpointError, HeadsMissing
from gptviz.models.checkpoints.tensors import Record, Tensors

# What settings call the number of heads: the book's config; GPT-2's, nanoGPT's and minGPT's; GPT-Neo's; and the
# configs of most other models of Hugging Face.
HEADS = ("n_heads", "n_head", "num_heads", "num_attention_heads")


def embedding_sizes(
    tensors: Tensors, token_name: str, position_name: str, names: Mapping[str, str]
) -> dict[str, Any]:
    """Read vocab_size, context_length and emb_dim from the shapes of the two embeddings.

    `token_name` and `position_name` are the embeddings' names in the format, such as "tok_emb.weight". `names`
    maps names in the format to names in this file. Raises CheckpointError.
    """
    shapes = []
    for name in (token_name, position_name):
        if name not in names:
            raise CheckpointError(f"{tensors.path} lacks {name}, which gives the model's size")
        shape = tensors.shapes[names[name]]
        if len(shape) != 2:
            raise CheckpointError(
                f"{tensors.path}: {name} has the shape {shape}; expected two dimensions"
            )
        shapes.append(shape)
    # The width of the position embedding is not compared here: `assemble.checked` compares every shape.
    (vocab_size, emb_dim), (context_length, _) = shapes
    # `heads_missing` looks for the divisors of emb_dim before a GPTConfig checks any size, and would look for
    # very long in a damaged file. The other sizes can wait for the GPTConfig.
    if not 1 <= emb_dim <= WIDEST:
        raise CheckpointError(
            f"{tensors.path}: emb_dim is {emb_dim}; it must be from 1 to {WIDEST}"
        )
    return {"vocab_size": vocab_size, "context_length": context_length, "emb_dim": emb_dim}


def heads_missing(path: Path, emb_dim: int) -> HeadsMissing:
    """Make the error for a file that does not say the number of heads.

    Its sentence asks for the number that stood in the config of the model's training.
    """
    choices = divisors(emb_dim)
    return HeadsMissing(
        f"{path} does not say how many attention heads the model has; say it as its config did: "
        f"gptviz.load({path.name!r}, n_heads=...). {emb_dim} dimensions can be divided among "
        f"{', '.join(map(str, choices))} heads; GPT-2 has 64 dimensions per head",
        choices,
        emb_dim,
    )


def settings_of(value: object) -> dict[Any, Any]:
    """Return the fields of settings in a file as a dict, empty for anything else.

    Settings are a dict, or were an object when they were saved, such as build-nanogpt's GPTConfig: a Record
    stands in for it.
    """
    if isinstance(value, Record):
        return value.fields
    if isinstance(value, dict):
        return value
    return {}


def heads_beside(saved: object) -> int | None:
    """Find the number of heads in settings saved beside the weights, as Lightning's hyper_parameters are.

    `saved` is all that a file holds: `{"state_dict": ..., "hyper_parameters": {"n_heads": 12}}`, or a config.json
    such as minGPT's. Read are the settings in its entries, and settings in those. A number in `saved` itself,
    with no settings around it, is not read. None where no settings have the number, or different ones.
    """
    if not isinstance(saved, dict):
        return None
    numbers = set()
    for value in saved.values():
        settings = settings_of(value)
        for inner in (settings, *map(settings_of, settings.values())):
            # not isinstance: True would be an int, and is no number of heads
            numbers |= {inner[name] for name in HEADS if type(inner.get(name)) is int}
    if len(numbers) == 1:
        return numbers.pop()
    return None
