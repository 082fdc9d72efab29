"""The last steps of Attention by hand: why √d, and dropout, as printed and in this model."""

import math

import numpy as np
import pytest
import torch

from gptviz.digits import significant
from gptviz.lessons import scaling as lesson
from tests.lessons.test_dropout import JOURNEY, ONES
from tests.specs import charts, in_numbers, left_by_program, paragraph, prose

TEXT = "Sam and the dog and the cat"


def root(run_page, **query):
    return run_page("attention_by_hand", text=TEXT, hand_way="root", **query)


def drawn(at):
    """The charts of why √d by what they are: three over d, two of a query, softmax, two of heads."""
    names = ("variance", "largest", "gradient", "scores", "weights", "sharper", "divided", "undivided")
    return dict(zip(names, charts(at), strict=True))


def test_the_charts_over_d_and_one_query(run_page):
    at = root(run_page, sc_d=256, sc_query=7)
    found = drawn(at)
    table = lesson.by_size()
    for name in ("variance", "largest", "gradient"):
        raw, scaled = found[name]["data"]
        assert np.allclose(raw["y"], table[name]) and np.allclose(scaled["y"], table[f"{name}_scaled"])
    raw = lesson.scores()[256][7]
    for trace, scores in zip(found["weights"]["data"], (raw / 16, raw), strict=True):
        assert np.allclose(trace["y"], torch.softmax(torch.from_numpy(scores), -1))
    assert [trace["name"] for trace in found["weights"]["data"]] == ["q · k ÷ √d", "q · k"]


def test_a_changed_models_heads_stand_beside_the_unchanged_models(run_page, mini):
    """Both from their own scores: softmax of q · k, divided and not; and where nothing can differ, why."""
    edits = ["mlp_out.0=zero", "attn.3.2=uniform"]
    at = root(run_page, block=3, edits=",".join(edits))
    found = drawn(at)
    bars = {name: {bar["name"]: bar["y"] for bar in found[name]["data"]} for name in ("undivided", "divided")}
    means = []
    for lm, name in ((mini.edited(*edits), "changed"), (mini, "unchanged")):
        t = lm.trace(TEXT)
        scores = (t["q", 3] @ t["k", 3].mT).double()
        hidden = torch.ones_like(scores).triu(1).bool()
        for which, values in (("undivided", scores), ("divided", scores / math.sqrt(32))):
            weights = values.masked_fill(hidden, -torch.inf).softmax(-1)
            expected = weights[:, 1:].max(-1).values.mean(-1)
            assert np.allclose(bars[which][name], expected, atol=1e-5)
            means.append(expected.mean().item())
    said = paragraph(at, "A query's largest weight")
    now_raw, now, was_raw, was = (significant(mean, 2) for mean in means)
    assert f"is {now} (unchanged {was})" in said and f"would be {now_raw} (unchanged {was_raw})" in said
    assert "The weights of head 2 are replaced" in prose(at)
    table = in_numbers(at, "scaling_heads")
    assert np.allclose(table["largest_scaled"], bars["divided"]["changed"])
    assert np.allclose(table["unchanged largest_scaled"], bars["divided"]["unchanged"])
    at = root(run_page, block=3, edits="z.3.2=zero")
    assert "cannot matter for the scores of block 3" in prose(at)


def test_the_softmax_that_the_slide_prints(run_page):
    printed = "tensor([1.7128e-02, 8.5274e-04, 3.1371e-04, 4.6558e-02, 9.3515e-01])"
    assert printed in root(run_page, sc_factor=10).code[0].value


def dropout(run_page, **query):
    """The page, and what its three squares hold."""
    at = run_page("attention_by_hand", text=TEXT, hand_way="dropout", **query)
    return at, [chart["data"][0]["z"] for chart in charts(at)]


@pytest.mark.parametrize(("weights", "printed"), [("ones", ONES), ("journey", JOURNEY)])
def test_the_dropout_that_the_book_prints(run_page, weights, printed):
    at, (_, _, after) = dropout(run_page, sc_weights=weights)
    assert np.allclose(after, printed, atol=5e-5)
    assert "The book prints them" in prose(at)


def test_dropout_on_this_texts_attention(run_page, mini):
    at, (before, _, after) = dropout(run_page, sc_weights="text", sc_p=0.2, sc_seed=5, block=2, head=6)
    attn = mini.trace(TEXT)["attn", 2][6]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        expected = torch.nn.functional.dropout(attn, 0.2)
    assert np.allclose(after, expected, atol=1e-5) and np.allclose(before, attn, atol=1e-5)
    assert np.allclose(left_by_program(at)["picture"].after, expected, atol=1e-5)
    at, _ = dropout(run_page, sc_weights="text", block=2, edits="z.1.2=zero")
    assert "of the changed model" in prose(at)
