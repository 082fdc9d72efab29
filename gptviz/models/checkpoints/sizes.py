"""A model's sizes where no config says them: from shapes, and from settings saved beside the weights."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gptviz.engine.config import WIDEST, divisors
from gptviz.models.checkpoints.errors import CheckpointError, HeadsMissing
from gptviz.models.checkpoints.tensors import Record, Tensors

# how the book's config, GPT-2's and GPT-Neo's call the number of heads
HEADS = ("n_heads", "n_head", "num_heads", "num_attention_heads")


def embedding_sizes(
    tensors: Tensors, token: str, position: str, names: Mapping[str, str]
) -> dict[str, Any]:
    """The vocabulary, context and width that the two embeddings have; `names` gives the file's own names.

    Raises CheckpointError.
    """
    shapes = []
    for name in (token, position):
        if name not in names:
            raise CheckpointError(f"{tensors.path} lacks {name}, which gives the model's size")
        shape = tensors.shapes[names[name]]
        if len(shape) != 2:
            raise CheckpointError(
                f"{tensors.path}: {name} has the shape {shape}; expected two dimensions"
            )
        shapes.append(shape)
    (vocab_size, emb_dim), (context_length, _) = shapes
    if not 1 <= emb_dim <= WIDEST:
        raise CheckpointError(
            f"{tensors.path}: emb_dim is {emb_dim}; it must be from 1 to {WIDEST}"
        )
    return {"vocab_size": vocab_size, "context_length": context_length, "emb_dim": emb_dim}


def heads_missing(path: Path, emb_dim: int) -> HeadsMissing:
    """The error for a file whose shapes say everything but the number of heads."""
    choices = divisors(emb_dim)
    return HeadsMissing(
        f"{path} does not say how many attention heads the model has; say it as its config did: "
        f"gptviz.load({path.name!r}, n_heads=...). {emb_dim} dimensions can be divided among "
        f"{', '.join(map(str, choices))} heads; GPT-2 has 64 dimensions per head",
        choices,
        emb_dim,
    )


def settings_of(value: object) -> dict[Any, Any]:
    """The fields of settings in a file, which may be a dict or an object of the reader's own class."""
    if isinstance(value, Record):
        return value.fields
    if isinstance(value, dict):
        return value
    return {}


def heads_beside(saved: object) -> int | None:
    """The number of heads in settings saved beside the weights, as Lightning's hyper_parameters are.

    None where they do not say it, or say several.
    """
    if not isinstance(saved, dict):
        return None
    numbers = set()
    for value in saved.values():
        settings = settings_of(value)
        for inner in (settings, *map(settings_of, settings.values())):
            numbers |= {inner[name] for name in HEADS if type(inner.get(name)) is int}
    if len(numbers) == 1:
        return numbers.pop()
    return None
