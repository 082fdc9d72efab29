"""The Anatomy page of a Llama, Qwen2 and Qwen3: sums that are transformers', and the form that changes them."""

from dataclasses import replace

import pytest

from gptviz.analysis.anatomy import cache_memory, tensor_table
from gptviz.llama import LlamaModel
from gptviz.ui.parts.anatomy.fields import LLAMA, parts_of, problem
from tests.analysis.test_llama_anatomy import of_transformers
from tests.llama_models import FAMILIES, both
from tests.pages.test_anatomy import form, sum_rows, total
from tests.pages.test_any_model import use
from tests.specs import charts, in_numbers, prose

# what the model cards say, and the family
PUBLISHED = {
    "SmolLM2 135M": ("llama", 134_515_008),
    "Qwen2.5 0.5B": ("qwen2", 494_032_768),
    "Qwen3 0.6B": ("qwen3", 596_049_920),
    "Llama 3.2 1B": ("llama", 1_235_814_400),
    "Llama 2 7B": ("llama", 6_738_415_616),
    "Llama 3.1 8B": ("llama", 8_030_261_248),
}


@pytest.fixture
def llama(run_page, monkeypatch):
    """The page of a family's random model, and the model."""

    def opened(family, **query):
        lm, theirs = both(family)
        use(lm, family, monkeypatch)
        return run_page("anatomy", **query), lm, theirs

    return opened


@pytest.mark.parametrize("family", FAMILIES)
def test_it_opens_with_the_sum_of_transformers(llama, family):
    at, lm, theirs = llama(family)
    assert not at.error
    assert total(at) == theirs.num_parameters()
    assert f"this is {lm.name}" in prose(at)
    rows = sum_rows(at)
    assert rows["the whole model"][-1] == f"{theirs.num_parameters():,}"
    layer = theirs.model.layers[1]
    for label, module in (
        ("attention", layer.self_attn),
        ("feed-forward", layer.mlp),
        ("one block", layer),
    ):
        assert rows[label][-1] == f"{sum(p.numel() for p in module.parameters()):,}"
    assert ("q_norm, k_norm" in rows) == (family == "qwen3")
    drawn = "\n".join(charts(at)[0]["data"][0]["hovertext"])
    assert all(name in drawn for name, one in lm.model.named_parameters() if one.dim() == 2)
    frame = in_numbers(at, "anatomy")
    assert frame["tensor"].tolist() == tensor_table(lm.config)["tensor"].tolist()
    said = prose(at)
    assert "LayerNorms" not in said
    assert "pos_emb" not in said
    assert not any(name.startswith("cfg_") for name in at.query_params)


def test_what_groups_spare_is_what_a_model_without_them_has(llama):
    at, lm, theirs = llama("qwen3")
    own = replace(lm.config, n_kv_groups=lm.config.n_heads)
    more = of_transformers("qwen3", own).num_parameters() - theirs.num_parameters()
    assert f"the model would have {more:,} parameters more" in prose(at)
    assert "it would be 3 times as much" in prose(at)
    kept = in_numbers(at, "anatomy_kept")
    assert kept["kept"].tolist() == cache_memory(lm.config)["kept"].tolist()
    at = form(at, n_kv_groups=9)
    assert total(at) == theirs.num_parameters() + more
    assert "no head shares its key and its value" in prose(at)
    assert sum_rows(at)["W_key, W_value"][-1] == f"+{more // 3:,}"


def test_a_switch_brings_its_line_or_takes_it_out(llama):
    at, lm, _ = llama("llama", cfg_qk_norm="on")
    config = replace(lm.config, qk_norm=True)
    assert total(at) == sum(p.numel() for p in LlamaModel(config).parameters())
    assert sum_rows(at)["q_norm, k_norm"][-1] == "+16"
    assert "counted as attention's" in prose(at)
    at, lm, _ = llama("qwen3", cfg_qk_norm="off", cfg_tie_embeddings="on", cfg_qkv_bias="on")
    config = replace(lm.config, qk_norm=False, tie_embeddings=True, qkv_bias=True)
    assert total(at) == sum(p.numel() for p in LlamaModel(config).parameters())
    assert "q_norm, k_norm" not in sum_rows(at)
    assert "all biases and RMSNorms" in prose(at)
    at.button(key="anatomy_back").click().run()
    assert total(at) == lm.config.parameters


@pytest.mark.parametrize("name", LLAMA.presets)
def test_a_published_model_is_of_its_published_size(name):
    family, parameters = PUBLISHED[name]
    config = LLAMA.presets[name]
    assert config.parameters == parameters
    assert of_transformers(family, config).num_parameters() == parameters
    assert (config.qkv_bias, config.qk_norm) == (family == "qwen2", family == "qwen3")


def test_a_published_model_is_drawn(llama):
    at, _, _ = llama("llama")
    for name in ("Llama 3.1 8B", "Qwen2.5 0.5B"):
        at.button_group(key="anatomy_preset").set_value(name).run()
        assert not at.error
        assert total(at) == PUBLISHED[name][1]
        assert at.number_input(key="anatomy_hidden_dim").value == LLAMA.presets[name].hidden_dim
    # 128,256 × 4,096 of 8,030,261,248
    assert "in Llama 3.1 8B it is only 6.5 % of the model" in prose(at)


def test_what_cannot_be_is_a_sentence_that_says_what_could(llama):
    at, lm, theirs = llama("llama")
    at = form(at, n_kv_groups=4)
    (error,) = at.error
    assert error.value.startswith(
        "9 heads cannot be divided among 4 groups: each must have the same number of heads. "
        "n_kv_groups 3 or 9 would do."
    )
    assert total(at) == theirs.num_parameters()
    own = parts_of(lm.config)
    assert problem(own | {"n_kv_groups": 10}, lm.config).endswith("n_kv_groups 9 would do.")
    assert "head_dim is 7; RoPE turns pairs" in problem(own | {"head_dim": 7}, lm.config)
    for name in LLAMA.sizes:
        assert problem(own | {name: 0}, lm.config) == f"{name} is 0; it must be at least 1."
    for name, most in LLAMA.most.items():
        assert problem(own | {name: most + 1}, lm.config) == (
            f"{name} is {most + 1:,}; this page goes up to {most:,}."
        )
    at, _, _ = llama(
        "llama", cfg_n_kv_groups=1024, **{f"cfg_{name}": most for name, most in LLAMA.most.items()}
    )
    assert not at.error
    assert total(at) > 10**13


def test_the_config_of_a_model_before_it_is_not_shown(run_page, llama, mini, monkeypatch):
    at = run_page("anatomy")
    assert total(at) == sum(p.numel() for p in mini.model.parameters())
    lm, theirs = both("llama")
    use(lm, "llama", monkeypatch)
    at.query_params["cfg_head_dim"] = "7"
    at.run()
    assert "head_dim is 7" in at.error[0].value
    assert total(at) == theirs.num_parameters()
