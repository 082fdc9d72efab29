"""GPTConfig: what it refuses. Its count of parameters against torch's: tests/analysis/test_anatomy.py."""

import pytest

from gptviz.engine.config import GPTConfig, divisors

SIZES = {"vocab_size": 61, "context_length": 24, "emb_dim": 16, "n_heads": 4, "n_layers": 2}


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
