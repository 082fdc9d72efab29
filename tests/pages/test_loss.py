"""The Loss page through AppTest: its numbers are torch's cross-entropy on the model's own logits."""

import math
import re

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from gptviz.analysis.loss import SLIDE_LOSSES
from gptviz.digits import fixed
from tests.specs import charts, in_numbers, prose, table

TEXT = "Sam and the dog and the cat"


@pytest.fixture(scope="module")
def expected(mini):
    """(T - 1,): what torch says of the logits of a plain forward pass."""
    ids = torch.tensor(mini.encode(TEXT))
    with torch.no_grad():
        logits = mini.model(ids[None])[0]
    return F.cross_entropy(logits[:-1], ids[1:], reduction="none")


def test_the_bars_and_the_sentence_are_torchs_cross_entropy(run_page, expected, mini):
    at = run_page("loss", text=TEXT, token=2)
    lines = [shape["y0"] for shape in charts(at)[0]["layout"]["shapes"]]
    assert lines == pytest.approx(
        [math.log(mini.config.vocab_size), expected.mean().item()], abs=1e-4
    )
    assert f"**{fixed(expected.mean().item(), 4)} nats**" in prose(at)
    assert f"**{fixed(expected[2].item(), 4)}** nats" in prose(at)
    assert f"**{fixed(expected.mean().item(), 4)}**, the cross-entropy" in prose(at)
    shown = in_numbers(at, "loss")
    assert np.allclose(shown["loss"].iloc[1:-1], expected, atol=1e-4)
    assert np.allclose(shown["log_sum"].iloc[1:-1] - shown["logit"].iloc[1:-1], expected, atol=1e-4)
    assert shown["loss"].iloc[-1] == pytest.approx(expected.mean().item(), abs=1e-4)
    one = run_page("loss", text="a")
    assert not charts(one) and "so there is no loss" in prose(one)


@pytest.mark.parametrize("edits", ["", "mlp_out.0=zero"])
def test_every_page_says_one_mean_loss_and_one_perplexity_of_it(run_page, mini, edits):
    """Of a text that costs much, where three digits of the perplexity would be another whole number."""
    text = "umbrella quark 77 ; Zoe } of of moon"
    lm, query = (mini.edited(edits), {"edits": edits}) if edits else (mini, {})
    logits = lm.trace(text, keep=["final"])["final"] @ mini.model.out_head.weight.detach().T
    mean = F.cross_entropy(logits[:-1].double(), torch.tensor(mini.encode(text)[1:])).item()
    loss = f"{mean:.4f}"
    perplexity = f"{math.exp(mean):.0f}"
    assert len(perplexity) == 4 and perplexity == f"{math.exp(float(loss)):.0f}"
    at = run_page("loss", text=text, **query)
    found = re.findall(r"(?:e\^[\d.]+ = \**|among )([\d.]+)", prose(at))
    assert found == [perplexity] * 3
    assert loss in charts(at)[0]["layout"]["annotations"][1]["text"] and f"**{loss}**" in prose(at)
    assert f"is **{loss}" in prose(run_page("positions", text=text, **query))


def test_the_slides_and_the_notebook(run_page):
    at = run_page("loss", text=TEXT)
    rows = table(at, "slides")
    assert [row[2] for row in rows] == ["0.2367", "0.2905", "0.1163", "0.1312", "0.2253"]
    for row, printed in zip(rows, SLIDE_LOSSES, strict=True):  # what is another, is said
        assert row[3] == fixed(
            printed, 4
        ) or f"{fixed(printed, 4)} where this is {row[3]}" in prose(at)
    assert rows[0][3] == "1.4411" and "**4.4837**" in prose(at) and "**4.1744**" in prose(at)


@pytest.mark.parametrize("text", ["umbrella quark 77 ; Zoe } of of moon", TEXT])
def test_a_model_that_knows_nothing_is_no_better_than_a_guess(run_page, mini, text):
    at = run_page("loss", text=text, edits="resid_post.5=zero")
    costs = charts(at)[0]["data"][0]["y"]
    guess = math.log(mini.config.vocab_size)
    assert ("cost no more" in prose(at)) == (np.mean(costs) >= guess) and "ln 8,192" in prose(at)
