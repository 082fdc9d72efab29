"""Which of Hugging Face's families a config is of: GPT-2 and GPT-Neo, or Llama and its relatives."""

from pathlib import Path
from typing import Any

from gptviz.engine.config import GPTConfig
from gptviz.engine.kinds import Config
from gptviz.models.checkpoints import hugging_face, llama
from gptviz.models.checkpoints.assemble import Dialect
from gptviz.models.checkpoints.looks import read_json


def read_config(path: Path) -> Config:
    """Our config from their file. Raises CheckpointError, see `config_of`."""
    return config_of(read_json(path), path)


def config_of(values: dict[str, Any], path: Path) -> Config:
    """Our config from theirs. Raises CheckpointError that names the key that no model of ours can follow."""
    if llama.is_llama(values):
        return llama.config_of(values, path)
    return hugging_face.config_of(values, path)


def dialect_of(config: Config, values: dict[str, Any]) -> Dialect:
    """How their files name the tensors of a model of this config."""
    if isinstance(config, GPTConfig):
        return hugging_face.dialect_of(config, values)
    return llama.DIALECT
