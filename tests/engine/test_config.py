"""GPTConfig and LlamaConfig: what they refuse, and how they are read like the book's dict.

Their counts of parameters against torch's: tests/analysis/test_anatomy.py and tests/test_llama.py.
"""

import pytest

from gptviz.engine.config import GPTConfig, divisors
from gptviz.engine.llama_config import LlamaConfig, RopeFreq
from gptviz.llama import LLAMA32_CONFIG
from gptviz.model import GPT_CONFIG_124M

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


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("vocab_size", 0), ("n_layers", 1.5), ("n_heads", True), ("n_kv_groups", 3), ("emb_dim", 10**9),
        ("hidden_dim", 2**21), ("hidden_dim", None), ("rope_base", 0), ("rope_base", float("inf")),
        ("rope_base", "1e4"), ("rope_freq", 8.0), ("rope_freq", {"factor": 8.0}), ("qk_norm", 1),
        ("qkv_bias", None), ("tie_embeddings", "no"), ("norm_eps", 1.0), ("head_dim", 0),
    ],
)  # fmt: skip
def test_values_that_no_llama_has_are_refused_by_name(key, value):
    with pytest.raises(
        ValueError, match="the config lacks low_freq" if type(value) is dict else key
    ):
        LlamaConfig(**SIZES | {"hidden_dim": 24, "n_kv_groups": 2, key: value})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("factor", 0.0), ("low_freq_factor", "1"), ("high_freq_factor", 1.0),
        ("original_context_length", 0.5),
    ],
)  # fmt: skip
def test_scalings_that_mean_nothing_are_refused_by_name(key, value):
    with pytest.raises(ValueError, match=key):
        RopeFreq(**LLAMA32_CONFIG["rope_freq"] | {key: value})


@pytest.mark.parametrize(
    ("kind", "book"), [(GPTConfig, GPT_CONFIG_124M), (LlamaConfig, LLAMA32_CONFIG)]
)
def test_a_config_is_read_like_the_books_dict(kind, book):
    config = kind.from_dict(book)
    assert {key: config[key] for key in book if key != "rope_freq"} == {
        key: value for key, value in book.items() if key != "rope_freq"
    }
    assert kind.from_dict(config.to_dict()) == config and hash(config) == hash(kind(**book))
    assert [*config] == config.keys() == [*config.to_dict()]
    assert config.get("emb_dim") == book["emb_dim"] and config.get("dtype", 3) == 3
    with pytest.raises(KeyError):
        config["dtype"]
    with pytest.raises(ValueError, match="unknown keys in a config: dtype; known are vocab_size"):
        kind.from_dict(book | {"dtype": 1})
    with pytest.raises(ValueError, match="the config lacks emb_dim, n_layers"):
        kind.from_dict({k: v for k, v in book.items() if k not in ("emb_dim", "n_layers")})
