"""The Anatomy page through AppTest: its sums against torch's count, and the form that changes them."""

import re

import pytest

from gptviz.analysis.anatomy import tensor_table
from gptviz.engine.config import GPTConfig
from gptviz.model import GPT_CONFIG_124M, GPTModel
from gptviz.ui.parts.anatomy.fields import GPT2, parts_of, problem
from tests.pages.conftest import turn, whole_app
from tests.specs import charts, in_numbers, prose, table

BOOK = GPTConfig.from_dict(GPT_CONFIG_124M)
SIZES = {"vocab_size": 61, "context_length": 24, "emb_dim": 16, "n_heads": 4, "n_layers": 2}
LINK = {f"cfg_{name}": value for name, value in SIZES.items()}


def total(at) -> int:
    """The headline."""
    (found,) = re.findall(r"^#### ([\d,]+) parameters$", prose(at), re.MULTILINE)
    return int(found.replace(",", ""))


def sum_rows(at):
    """The sum's table: a line's label -> its other cells."""
    return {name: rest for name, *rest in table(at, "anatomy-sum")}


def form(at, **values):
    """Type into the form, one field after the other."""
    for name, value in values.items():
        kind = at.toggle if isinstance(value, bool) else at.number_input
        kind(key=f"anatomy_{name}").set_value(value).run()
    return at


@pytest.fixture(scope="module")
def mini_sum(mini):
    return sum(p.numel() for p in mini.model.parameters())


def test_it_opens_with_the_chosen_models_own_sum(run_page, mini, mini_sum):
    at = run_page("anatomy")
    assert total(at) == mini_sum
    assert "this is mini" in prose(at)
    assert sum_rows(at)["the whole model"][-1] == f"{mini_sum:,}"
    assert at.number_input(key="anatomy_emb_dim").value == mini.config.emb_dim
    assert at.button(key="anatomy_back").disabled
    assert not any(name.startswith("cfg_") for name in at.query_params)


def test_the_picture_is_of_the_models_own_tensors(run_page, mini):
    """That every tensor is in it and to scale: tests/figures/test_anatomy.py."""
    said = "\n".join(charts(run_page("anatomy"))[0]["data"][0]["hovertext"])
    assert all(name in said for name, weight in mini.model.named_parameters() if weight.dim() == 2)
    assert "trf_blocks.3.att.W_query.weight is 256 × 256:<br>65,536 parameters, 0.95 %" in said


def test_the_form_moves_the_sum(run_page, mini_sum):
    at = form(run_page("anatomy"), n_heads=32)
    assert total(at) == mini_sum and "the same number as mini" in prose(at)
    at = form(at, n_heads=8, emb_dim=512, n_layers=12, tie_embeddings=False)
    expected = sum(
        p.numel()
        for p in GPTModel(GPTConfig(8192, 256, 512, 8, 12, tie_embeddings=False)).parameters()
    )
    assert total(at) == expected
    assert f"**+{expected - mini_sum:,}** compared with mini" in prose(at)
    rows = sum_rows(at)
    assert rows["the whole model"][-2:] == [f"{expected:,}", f"+{expected - mini_sum:,}"]
    assert rows["out_head"][-2:] == [f"{8192 * 512:,}", f"+{8192 * 512:,}"]
    assert (
        at.query_params["cfg_emb_dim"] == "512" and at.query_params["cfg_tie_embeddings"] == "off"
    )
    # the model's own config is the model
    at = form(at, emb_dim=256, n_layers=6, tie_embeddings=True)
    assert "this is mini" in prose(at) and at.session_state["cfg_n_layers"] is None


def test_the_presets_and_the_seeds_numbers_by_hand(run_page):
    at = run_page("anatomy")
    for name, preset in GPT2.presets.items():
        at.button_group(key="anatomy_preset").set_value(name).run()
        assert total(at) == preset.parameters
        assert at.number_input(key="anatomy_n_heads").value == preset.n_heads
        assert at.toggle(key="anatomy_qkv_bias").value is preset.qkv_bias
        assert charts(at)[1]["layout"]["yaxis"]["ticktext"] == [name, "mini"]
    assert name == "the book's 124M" and total(at) == 163_009_536
    assert total(form(at, tie_embeddings=True)) == 124_412_160
    assert total(form(at, tie_embeddings=False, qkv_bias=True)) == 163_037_184


def test_a_link_opens_the_form_as_it_was_and_a_button_leads_back(run_page, mini_sum):
    at = run_page(
        "anatomy", **LINK, cfg_qkv_bias="on", cfg_tie_embeddings="off", cfg_norm_bias="off"
    )
    config = GPTConfig(**SIZES, qkv_bias=True, norm_bias=False)
    assert total(at) == sum(p.numel() for p in GPTModel(config).parameters())
    assert at.toggle(key="anatomy_norm_bias").value is False
    assert at.toggle(key="anatomy_linear_bias").value is True
    frame = in_numbers(at, "anatomy")
    assert frame["tensor"].tolist() == tensor_table(config)["tensor"].tolist()
    assert frame["parameters"].sum() == total(at)
    at.button(key="anatomy_back").click().run()
    assert total(at) == mini_sum and "this is mini" in prose(at)
    assert at.number_input(key="anatomy_vocab_size").value == 8192
    assert at.query_params["cfg_vocab_size"] == ""


def test_an_impossible_config_is_a_sentence_and_stays_typed(run_page, mini_sum):
    at = form(run_page("anatomy"), emb_dim=250)
    (error,) = at.error
    assert error.value == (
        "emb_dim 250 cannot be divided among 8 heads: each must get the same whole number of dimensions. "
        "5 or 10 heads would do, or emb_dim 248 or 256. Until you change it, the page shows emb_dim 256 with 8 heads "
        "and 6 blocks."
    )
    assert at.number_input(key="anatomy_emb_dim").value == 250
    assert at.query_params["cfg_emb_dim"] == "250"
    assert total(at) == mini_sum
    at = form(at, n_heads=10)
    assert not at.error
    assert total(at) == GPTConfig(8192, 256, 250, 10, 6, tie_embeddings=True).parameters


def test_what_is_too_large_or_none_is_refused_by_name(run_page, mini_sum):
    own = parts_of(BOOK)
    for name, most in GPT2.most.items():
        assert f"{name} is {most + 1:,}; this page goes up to {most:,}." == problem(
            own | {name: most + 1}, BOOK
        )
        assert not problem(own | {name: most, "n_heads": 1}, BOOK)
    for name in SIZES:
        assert f"{name} is 0; it must be at least 1." == problem(own | {name: 0}, BOOK)
    at = form(run_page("anatomy"), n_layers=201)
    assert (
        "n_layers is 201" in at.error[0].value
        and at.number_input(key="anatomy_n_layers").value == 201
    )
    at = run_page(
        "anatomy", **{f"cfg_{name}": most for name, most in GPT2.most.items()}, cfg_n_heads=64
    )
    assert not at.error and total(at) > 10**13  # the largest that it takes
    at = run_page("anatomy", cfg_n_heads=7)
    assert "cannot be divided among 7 heads" in at.error[0].value and total(at) == mini_sum


def test_the_form_survives_another_page():
    at = form(turn(whole_app(), "anatomy"), n_layers=9)
    turn(turn(at, "tokens"), "anatomy")
    assert at.number_input(key="anatomy_n_layers").value == 9
