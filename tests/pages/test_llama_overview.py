"""The first page of Llamas, Qwen2s and Qwen3s: its numbers are those of hooks on every module."""

import json
import re

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from tests.llama_models import FAMILIES, TEXT, both
from tests.llamas import sites_of
from tests.pages.conftest import open_all
from tests.pages.test_any_model import use
from tests.specs import floats, given, prose

BLOCK = 1
HEAD = 4
GROUP = 1  # of three heads each
TOKEN = 8
CLOSE = {"atol": 1e-4, "rtol": 1e-4}


@pytest.fixture(params=FAMILIES)
def model(request, monkeypatch):
    """Our model, in use, with every site of the text by hooks."""
    lm, _ = both(request.param)
    use(lm, request.param, monkeypatch)
    ids = lm.encode(TEXT)
    return lm, ids, sites_of(lm.model, ids)


@pytest.fixture
def place(run_page):
    """The level of a place, with its text: place(address) -> (what the picture is given, its sentence)."""

    def drawn(at):
        found = given(run_page("overview", text=TEXT, token=TOKEN, at=at), "machine")
        return found, "".join(found["says"])

    return drawn


def lines(found):
    return {line["label"]: line for line in found["level"]["lines"]}


def row(line):
    return floats(line["values"]["of"])


def test_the_ribbons_are_the_streams_norms_and_the_bars_the_models(model, place):
    lm, ids, sites = model
    found, _ = place("machine")
    assert found["names"] == {"norm": "RMSNorm", "activation": "SwiGLU"}
    depth = [sites["resid_pre", 0]]
    for block in range(lm.config.n_layers):
        depth += [sites["resid_mid", block], sites["resid_post", block]]
    shown = floats(found["level"]["stream"]["of"]).reshape(len(depth), len(ids))
    np.testing.assert_allclose(shown, torch.stack(depth).norm(dim=-1), **CLOSE)
    chances = sites["logits"][TOKEN].softmax(-1)
    best = chances.topk(10)
    bars = found["level"]["next"]
    assert [bar["at"] for bar in bars] == [f"logit.{i}" for i in best.indices.tolist()]
    np.testing.assert_allclose([bar["value"] for bar in bars], best.values, **CLOSE)
    for read in found["level"]["reads"]:
        block, head, key = (read[name] for name in ("block", "head", "key"))
        weight = sites["attn", block][head, TOKEN, key]
        assert read["weight"] == pytest.approx(float(weight), abs=1e-4)
        d = lm.config.head_dim
        value = sites["v", block].unflatten(1, (-1, d))[key, head // 3]
        out = lm.model.trf_blocks[block].att.out_proj.weight[:, head * d : (head + 1) * d]
        assert read["brought"] == pytest.approx((weight * (out @ value)).norm().item(), rel=1e-3)


def test_a_token_has_one_vector_and_its_position_none(model, place):
    lm, ids, _ = model
    found, says = place("embedding")
    (line,) = found["level"]["lines"]
    vector = lm.model.tok_emb.weight[ids[TOKEN]].detach()
    np.testing.assert_allclose(row(line), vector, **CLOSE)
    assert line["number"] == pytest.approx(float(vector.norm()), rel=1e-4)
    assert "adds none for its position" in says


@pytest.mark.parametrize("name", ["norm1", "norm2"])
def test_a_norm_divides_by_the_root_of_the_mean_square(model, place, name):
    lm, _, sites = model
    found, says = place(f"block.{BLOCK}.{name}")
    site = {"norm1": "resid_pre", "norm2": "resid_mid"}[name]
    x = sites[site, BLOCK][TOKEN]
    norm = getattr(lm.model.trf_blocks[BLOCK], name)
    shown = lines(found)
    np.testing.assert_allclose(row(shown["what comes out"]), norm(x).detach(), **CLOSE)
    assert shown["the token's vector"]["number"] == pytest.approx(float((x**2).mean()), rel=1e-4)
    assert "RMSNorm subtracts nothing" in says
    assert "LayerNorm" not in json.dumps(found["level"])


def test_a_head_has_the_turned_query_and_the_keys_of_its_group(model, place):
    lm, ids, sites = model
    found, _ = place(f"block.{BLOCK}.head.{HEAD}")
    level = found["level"]
    d = lm.config.head_dim
    q = sites["q_rot", BLOCK][HEAD, TOKEN]
    k = sites["k_rot", BLOCK][GROUP]
    np.testing.assert_allclose(floats(level["q"]["of"]), q, **CLOSE)
    np.testing.assert_allclose(floats(level["k"]["of"]).reshape(len(ids), d), k, **CLOSE)
    np.testing.assert_allclose(floats(level["scaled"]["of"]), k @ q / d**0.5, **CLOSE)
    weights = sites["attn", BLOCK][HEAD, TOKEN]
    np.testing.assert_allclose(floats(level["row"]["of"]), weights, **CLOSE)


def test_the_feed_forward_has_gates_what_they_let_through_and_the_product(model, place):
    lm, _, sites = model
    found, says = place(f"block.{BLOCK}.feed_forward")
    gate, up, product, out = (
        sites[site, BLOCK][TOKEN] for site in ("mlp_gate", "mlp_up", "mlp_act", "mlp_out")
    )
    _, *shown = found["level"]["lines"]
    for line, numbers in zip(shown, (gate, F.silu(gate), up, product, out), strict=True):
        drawn = row(line)
        np.testing.assert_allclose(drawn, numbers[: len(drawn)], **CLOSE)
    opened = int((gate > 0).sum())
    assert shown[0]["number"] == opened
    assert f" alone: {opened} of its {len(gate)} units have an open gate." in says
    second = lm.model.trf_blocks[BLOCK].ff.fc3.weight.detach()
    writes = product.abs() * second.norm(dim=0)
    bars = found["level"]["bars"]
    np.testing.assert_allclose(
        [bar["value"] for bar in bars], writes.topk(len(bars)).values, **CLOSE
    )
    unit, _ = place(f"block.{BLOCK}.unit.{int(writes.argmax())}")
    added = row(unit["level"]["lines"][-1])
    expected = product[writes.argmax()] * second[:, writes.argmax()]
    np.testing.assert_allclose(added, expected[: len(added)], **CLOSE)


def test_a_logit_is_the_final_vector_times_a_row_of_the_head(model, place):
    _, _, sites = model
    found, _ = place("logit.best")
    logits = sites["logits"][TOKEN]
    shown = lines(found)
    number = shown["product, number by number"]["number"]
    assert number == pytest.approx(float(logits.max()), abs=1e-4)
    assert shown["through softmax over the vocabulary"]["number"] == pytest.approx(
        float(logits.softmax(-1).max()), abs=1e-4
    )


def at_details(at, column):
    """The table of *Details* that has this column, with all of them open."""
    return next(one.value for one in open_all(at).dataframe if column in one.value)


def test_words_and_tables_are_of_this_model(model, run_page):
    _, ids, sites = model
    at = run_page("overview", text=TEXT, token=TOKEN)
    table = at_details(at, "token_norm")
    assert "position_norm" not in table
    first = sites["resid_pre", 0]
    np.testing.assert_allclose(table["token_norm"], first.norm(dim=-1), **CLOSE)
    np.testing.assert_allclose(table["first_mean_square"], first.square().mean(dim=-1), **CLOSE)
    norms = at_details(at, "before")
    last = sites["resid_post", 2][TOKEN]
    assert norms["before"].iloc[-1] == pytest.approx(float(last.square().mean()) ** 0.5, rel=1e-4)
    said = re.sub("<.*?>", "", prose(at))
    assert "LayerNorm" not in said and "GELU" not in said and "variance" not in said
    stops = {stop["at"]: stop["says"] for stop in given(at, "machine")["way"]}
    assert "Nothing is added for its position" in stops["embedding"]
    assert stops["final_norm"] == "One more RMSNorm, and the list is ready for the guess."
    assert not any("LayerNorm" in says for says in stops.values())
    assert len(ids) > TOKEN
