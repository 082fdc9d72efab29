"""The sum of a Llama, Qwen2 or Qwen3 against torch's own count of a real model, and of transformers'."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings, strategies as st

from gptviz.analysis.anatomy import (
    anatomy,
    cache_memory,
    part_table,
    parts,
    sum_lines,
    tensor_table,
)
from gptviz.engine.llama_config import LlamaConfig
from gptviz.llama import LlamaModel
from tests.analysis.test_anatomy import assert_each_is_what_its_formula_says, evaluated
from tests.llama_models import both
from tests.llamas import CLASSES

FAMILIES = ("llama", "qwen2", "qwen3")


@st.composite
def configs(draw, family=None):
    """Small configs: of any switches, or of those that a family has."""
    groups = draw(st.integers(1, 3))
    switches = {name: draw(st.booleans()) for name in ("qkv_bias", "qk_norm", "tie_embeddings")}
    if family is not None:
        switches |= {"qkv_bias": family == "qwen2", "qk_norm": family == "qwen3"}
    sizes = {"vocab_size": 70, "context_length": 30, "emb_dim": 20, "n_layers": 3, "hidden_dim": 40}
    numbers = {name: draw(st.integers(1, most)) for name, most in sizes.items()}
    heads = groups * draw(st.integers(1, 3))
    if family == "llama":  # transformers refuses other widths
        numbers["emb_dim"] = heads * draw(st.integers(1, 5))
    return LlamaConfig(
        **numbers,
        n_heads=heads,
        n_kv_groups=groups,
        head_dim=2 * draw(st.integers(1, 6)),
        **switches,
    )


def of_transformers(family, config):
    """Transformers' model of these sizes, whose tensors have no numbers."""
    kind, model_class = CLASSES[family]
    sizes = {
        "vocab_size": config.vocab_size, "hidden_size": config.emb_dim, "intermediate_size": config.hidden_dim,
        "num_hidden_layers": config.n_layers, "num_attention_heads": config.n_heads, "head_dim": config.head_dim,
        "num_key_value_heads": config.n_kv_groups, "max_position_embeddings": config.context_length,
        "tie_word_embeddings": config.tie_embeddings, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": None,
    }  # fmt: skip
    with torch.device("meta"):
        return model_class(kind(**sizes))


@settings(max_examples=60, deadline=None)
@given(configs())
def test_the_tensors_are_those_of_a_model_that_is_really_there(config):
    model = LlamaModel(config)
    found = anatomy(config)
    assert found.parameters == sum(p.numel() for p in model.parameters()) == config.parameters
    state = model.state_dict()
    assert [t.name for t in found.tensors] == list(state)
    assert [t.shape for t in found.tensors] == [tuple(tensor.shape) for tensor in state.values()]
    for tensor in found.tensors:
        tied = tensor.name == "out_head.weight" and config.tie_embeddings
        assert tensor.shared_with == ("tok_emb.weight" if tied else None)


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_the_sum_is_that_of_transformers(family, data):
    config = data.draw(configs(family))
    theirs = of_transformers(family, config)
    distinct = {id(p): p.numel() for p in theirs.parameters()}
    assert sum_lines(anatomy(config))[-1].parameters == sum(distinct.values())
    assert theirs.num_parameters() == part_table(config)["parameters"].sum()
    of_parts = part_table(config).set_index("part")["parameters"]
    modules = {"attention": ".self_attn.", "feed-forward": ".mlp.", "RMSNorm": "layernorm."}
    modules |= {"token embedding": "embed_tokens.", "final RMSNorm": "model.norm."}
    if not config.tie_embeddings:
        modules["output head"] = "lm_head."
    for part, name in modules.items():
        assert of_parts[part] == sum(p.numel() for n, p in theirs.named_parameters() if name in n)


@settings(max_examples=60, deadline=None)
@given(configs())
def test_every_line_of_the_sum_is_what_its_formula_says(config):
    lines = sum_lines(anatomy(config))
    assert_each_is_what_its_formula_says(lines, config)
    assert ("q_norm, k_norm" in [line.label for line in lines]) == config.qk_norm
    by_label = {line.label: line.parameters for line in lines}
    for part in ("attention", "feed-forward"):  # the table of parts and the sum say the same
        assert (
            config.n_layers * by_label[part]
            == (part_table(config).set_index("part")["parameters"][part])
        )


@settings(max_examples=60, deadline=None)
@given(configs())
def test_every_row_of_the_table_is_the_product_of_its_sides(config):
    table = tensor_table(config)
    values = {name: config[name] for name in config if type(config[name]) is int}
    for row in table.itertuples():
        size = evaluated(row.formula, values)
        assert size == evaluated(row.shape, {})
        assert row.parameters == (0 if row.shared_with else size)
    assert table["parameters"].sum() == config.parameters
    assert part_table(config)["share"].sum() == pytest.approx(1)


@pytest.mark.parametrize("family", FAMILIES)
def test_of_a_model_in_use(family):
    lm, theirs = both(family)
    assert anatomy(lm.config).parameters == theirs.num_parameters()
    names = parts(lm.config)
    assert tuple(part_table(lm.config)["part"]) == names
    assert "position embedding" not in names
    biases = [name for name in tensor_table(lm.config)["tensor"] if name.endswith(".bias")]
    assert len(biases) == (3 * lm.config.n_layers if family == "qwen2" else 0)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_memory_of_the_cache_is_that_of_transformers(family):
    lm, theirs = both(family)
    table = cache_memory(lm.config).set_index("tokens")
    assert table.index[-1] == lm.config.context_length
    with torch.no_grad():
        layers = theirs(torch.ones(1, 8, dtype=torch.long), use_cache=True).past_key_values.layers
    held = sum(layer.keys.nbytes + layer.values.nbytes for layer in layers)
    assert table.loc[8, "kept"] == held
    own = replace(lm.config, n_kv_groups=lm.config.n_heads)
    assert table.loc[8, "own"] == cache_memory(own).set_index("tokens").loc[8, "kept"]
    assert (cache_memory(lm.config, number_bytes=2)["kept"] * 2 == table["kept"].to_numpy()).all()


def test_a_shape_is_said_in_the_words_of_the_config():
    config = LlamaConfig(50, 8, 12, 6, 2, 20, 2, head_dim=4, qkv_bias=True)
    lines = {line.label: line for line in sum_lines(anatomy(config))}
    line = lines["W_key, W_value"]
    assert line.formula == "2 × ((n_kv_groups × head_dim) × emb_dim + n_kv_groups × head_dim)"
    assert line.worked == "2 × (8 × 12 + 8) = 2 × 104"
    assert lines["tok_emb"].level == 1
    assert "embeddings" not in lines
