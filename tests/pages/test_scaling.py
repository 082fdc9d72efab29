"""The Scaling page through AppTest: printed softmax and dropout, this model's heads, a measurement."""

import math
import re

import numpy as np
import pytest
import torch

from gptviz.digits import significant
from gptviz.lessons import cost as cost_lesson
from gptviz.lessons import scaling as lesson
from gptviz.ui.views.scaling.snippet import sizes
from tests.lessons.test_dropout import JOURNEY, ONES
from tests.specs import charts

TEXT = "Sam and the dog and the cat"


def drawn(at):
    """The page's charts by what they are: three over d, two of a query, heads, softmax, three squares."""
    names = (
        "variance",
        "largest",
        "gradient",
        "scores",
        "weights",
        "heads",
        "sharper",
        "before",
        "mask",
        "after",
    )
    found = charts(at)
    return dict(zip(names, found, strict=False)), found[len(names) :]


def test_the_charts_over_d_and_one_query(run_page):
    at = run_page("scaling", text=TEXT, sc_d=256, sc_query=7)
    found, _ = drawn(at)
    table = lesson.by_size()
    for name in ("variance", "largest", "gradient"):
        raw, scaled = found[name]["data"]
        assert np.allclose(raw["y"], table[name]) and np.allclose(scaled["y"], table[f"{name}_scaled"])
    raw = lesson.scores()[256][7]
    for trace, scores in zip(found["weights"]["data"], (raw, raw / 16), strict=True):
        assert np.allclose(trace["y"], torch.softmax(torch.from_numpy(scores), -1))


def test_this_models_heads(run_page, mini):
    found, _ = drawn(run_page("scaling", text=TEXT, block=3))
    attn = mini.trace(TEXT)["attn", 3]
    assert np.allclose(found["heads"]["data"][1]["y"], attn[:, 1:].max(-1).values.mean(-1), atol=1e-5)


def test_a_changed_models_heads_stand_beside_the_unchanged_models(run_page, mini):
    """Both from their own scores: softmax of q · k, divided and not; and where nothing can differ, why."""
    edits = ["mlp_out.0=zero", "attn.3.2=uniform"]
    at = run_page("scaling", text=TEXT, block=3, edits=",".join(edits))
    found, _ = drawn(at)
    bars = found["heads"]["data"]
    assert [bar["name"] for bar in bars[2:]] == ["unchanged"] * 2
    places = [bar["offsetgroup"] for bar in bars]
    assert places[:2] == places[2:] and places[0] != places[1]
    means = []
    for lm, (raw, divided) in ((mini.edited(*edits), bars[:2]), (mini, bars[2:])):
        t = lm.trace(TEXT)
        scores = (t["q", 3] @ t["k", 3].mT).double()
        hidden = torch.ones_like(scores).triu(1).bool()
        for drawn_bars, values in ((raw, scores), (divided, scores / math.sqrt(32))):
            weights = values.masked_fill(hidden, -torch.inf).softmax(-1)
            expected = weights[:, 1:].max(-1).values.mean(-1)
            assert np.allclose(drawn_bars["y"], expected, atol=1e-5)
            means.append(expected.mean().item())
    (said,) = [m.value for m in at.markdown if "A query's largest weight" in m.value]
    now_raw, now, was_raw, was = (significant(mean, 2) for mean in means)
    assert f"is {now} (unchanged {was})" in said and f"would be {now_raw} (unchanged {was_raw})" in said
    assert any("The weights of head 2 are replaced" in m.value for m in at.markdown)
    at.session_state["numbers_scaling_heads"] = True
    at.run()
    table = at.dataframe[0].value
    for name, bar in (("largest_scaled", bars[1]), ("unchanged largest_scaled", bars[3])):
        assert np.allclose(table[name], bar["y"])
    at = run_page("scaling", text=TEXT, block=3, edits="z.3.2=zero", sc_weights="text")
    assert any("cannot matter for the scores of block 3" in m.value for m in at.markdown)
    assert any("of the changed model" in caption.value for caption in at.caption)


@pytest.mark.parametrize(
    ("factor", "printed"),
    [(1, "tensor([0.1997, 0.1479, 0.1338, 0.2207, 0.2979])"),
     (10, "tensor([1.7128e-02, 8.5274e-04, 3.1371e-04, 4.6558e-02, 9.3515e-01])")],
)  # fmt: skip
def test_the_softmax_that_the_slide_prints(run_page, factor, printed):
    at = run_page("scaling", text=TEXT, sc_factor=factor)
    assert printed in at.code[0].value


@pytest.mark.parametrize(("weights", "printed"), [("ones", ONES), ("journey", JOURNEY)])
def test_the_dropout_that_the_book_prints(run_page, weights, printed):
    found, _ = drawn(run_page("scaling", text=TEXT, sc_weights=weights))
    assert np.allclose(found["after"]["data"][0]["z"], printed, atol=5e-5)


def test_dropout_on_this_texts_attention(run_page, mini):
    at = run_page("scaling", text=TEXT, sc_weights="text", sc_p=0.2, sc_seed=5, block=2, head=6)
    found, _ = drawn(at)
    attn = mini.trace(TEXT)["attn", 2][6]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        expected = torch.nn.functional.dropout(attn, 0.2)
    assert np.allclose(found["after"]["data"][0]["z"], expected, atol=1e-5)
    assert np.allclose(found["before"]["data"][0]["z"], attn, atol=1e-5)


def test_the_cost_is_measured_when_somebody_asks_and_can_be_stopped(run_page, monkeypatch):
    monkeypatch.setattr(cost_lesson, "SIZES", (8, 16))
    real = cost_lesson.measure
    monkeypatch.setattr(cost_lesson, "measure", lambda heads, d: real(heads, d, sizes=(8, 16), repeats=1))
    at = run_page("scaling", text=TEXT)
    assert not drawn(at)[1]
    at.button(key="cost_start").click().run()
    (seconds, size) = drawn(at)[1]
    assert list(size["data"][1]["y"]) == [2 * 4 * 8 * n * n for n in (8, 16)]
    assert all(y > 0 for y in seconds["data"][1]["y"])
    assert at.button(key="cost_start") and "cost" not in " ".join(at.query_params)
    at.session_state["numbers_attention_cost"] = True
    at.run()
    assert at.dataframe[0].value["tokens"].tolist() == [8, 16]


@pytest.mark.parametrize("text", ["a", "once upon a time " * 100])
def test_one_token_and_a_full_context(run_page, text):
    at = run_page("scaling", text=text, sc_weights="text", block=5)
    assert len(drawn(at)[0]) == 10
    at.session_state["numbers_scaling_heads"] = True
    at.run()
    assert not at.exception


def test_in_code_is_the_same_picture(mini, capsys):
    picture = sizes(mini, TEXT, block=1, factor=10, p=0.5, seed=123)
    assert picture.equals(lesson.by_size())
    out = capsys.readouterr().out
    assert "9.3515e-01" in out and "[2., 2., 0., 2., 2., 0.]" in out
    largest = re.search(r"^0 .*?(\d\.\d+)\s*$", out, re.MULTILINE)
    assert largest is not None and math.isfinite(float(largest[1]))
