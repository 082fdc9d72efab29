"""Our own layout: a folder with config.json, model.safetensors and tokenizer.tiktoken.

`python -m gptviz.training export` writes it; the names are those of the model itself.
"""

from pathlib import Path

from gptviz.checkpoints.assemble import Dialect
from gptviz.checkpoints.book import table
from gptviz.checkpoints.errors import CheckpointError
from gptviz.checkpoints.hugging_face import read_json
from gptviz.checkpoints.tensors import Tensors, open_tensors
from gptviz.config import GPTConfig
from gptviz.tokenizer import encoding_from_ranks
from gptviz.tokenizer.vocabulary import Vocabulary, of_encoding

CONFIG, WEIGHTS, RANKS = "config.json", "model.safetensors", "tokenizer.tiktoken"

DIALECT = Dialect("gptviz's own folder", table, head="out_head.weight")


def read_config(folder: Path) -> GPTConfig:
    """The folder's config. Raises CheckpointError."""
    path = folder / CONFIG
    try:
        return GPTConfig.from_dict(read_json(path))
    except CheckpointError:
        raise
    except (TypeError, ValueError) as error:
        raise CheckpointError(f"{path}: {error}") from None


def weights_of(folder: Path) -> Tensors:
    if not (folder / WEIGHTS).is_file():
        raise CheckpointError(f"{folder} has no {WEIGHTS}: it is not a model folder")
    return open_tensors(folder / WEIGHTS)


def vocabulary_of(folder: Path) -> Vocabulary | None:
    """The folder's tokenizer, or None where it has none. Raises ValueError for a damaged one."""
    path = folder / RANKS
    return of_encoding(encoding_from_ranks(path, folder.name)) if path.is_file() else None
