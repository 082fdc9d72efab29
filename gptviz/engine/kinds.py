"""Model and Config: any of the classes of model that can be shown, and any of their configs.

What is particular to one of them is in its record (`gptviz.engine.architecture`), which is found by the class.
"""

from gptviz.engine.config import GPTConfig
from gptviz.engine.llama_config import LlamaConfig
from gptviz.llama import LlamaModel
from gptviz.model import GPTModel

Model = GPTModel | LlamaModel
Config = GPTConfig | LlamaConfig


def gpt2s(config: Config) -> GPTConfig:
    """The config as it is. Raises ValueError unless it is a GPTModel's, for what is about GPT-2 only."""
    if not isinstance(config, GPTConfig):
        raise ValueError(
            f"this is about a GPTModel, and the config given is a {type(config).__name__}: give a model of "
            "GPT-2's kind"
        )
    return config
