"""GPTConfig: what it refuses, and its count of parameters against torch's."""

import itertools

import pytest
import torch

from gptviz.engine.config import GPTConfig, divisors
from gptviz.model import GPTModel

SIZES = {"vocab_size": 61, "context_length": 24, "emb_dim": 16, "n_heads": 4, "n_layers": 2}


@pytest.mark.parametrize("flags", list(itertools.product([True, False], repeat=4)))
def test_parameters_are_counted_as_torch_counts_them(flags):
    names = ("qkv_bias", "tie_embeddings", "norm_bias", "linear_bias")
    config = GPTConfig(**SIZES, **dict(zip(names, flags, strict=True)))
    with torch.device("meta"):
        model = GPTModel(config)
    assert config.parameters == sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("vocab_size", 0), ("n_layers", 1.0), ("n_heads", True), ("n_heads", 3), ("emb_dim", 10**9),
        ("drop_rate", "0.1"), ("drop_rate", 1.0), ("norm_eps", 0), ("norm_eps", float("nan")),
        ("qkv_bias", "no"), ("tie_embeddings", 1), ("activation", "relu"),
    ],
)  # fmt: skip
def test_values_that_no_model_has_are_refused_by_name(key, value):
    with pytest.raises(ValueError, match=key):
        GPTConfig(**SIZES | {key: value})


def test_divisors():
    assert divisors(12) == [1, 2, 3, 4, 6, 12]
