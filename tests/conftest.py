"""What all tests share: a small random model, and the bundled one. Nothing here needs a network."""

import pytest
import torch

import gptviz
from gptviz.config import GPTConfig
from gptviz.language_model import LanguageModel
from gptviz.model import GPTModel
from gptviz.tokenizer import get_encoding


def random_lm(seed: int = 0, **changes: object) -> LanguageModel:
    """A LanguageModel of random weights, large enough that attention is far from uniform."""
    tokenizer = get_encoding("mini")
    sizes = {
        "vocab_size": tokenizer.n_vocab,
        "context_length": 64,
        "emb_dim": 32,
        "n_heads": 4,
        "n_layers": 2,
    }
    config = GPTConfig.from_dict(sizes | {"qkv_bias": True} | changes)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = GPTModel(config)
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.3)
    return LanguageModel(model.eval(), tokenizer, config, "random")


@pytest.fixture(scope="session")
def lm() -> LanguageModel:
    return random_lm()


@pytest.fixture(scope="session")
def mini() -> LanguageModel:
    return gptviz.load("mini")
