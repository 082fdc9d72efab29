"""The Baselines page through AppTest: its numbers against Counter, and against the training's own loss."""

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest

from gptviz.analysis.tokens import chapter
from gptviz.engine.sample import passages
from gptviz.lessons.bigram import count, learn
from gptviz.lessons.compared import Fit, counted, held_out_bytes
from gptviz.lessons.mlp import Recipe
from gptviz.training.evaluate import model_nats
from tests.pages.conftest import run_page
from tests.specs import charts, in_numbers, paragraph, paragraphs

TEXT = "the king and the queen and the king, and the queen and the cat"
SINGLE, PAIRS, TRIPLES = (
    f"counted: {what}" for what in ("characters", "pairs (bigram)", "triples (trigram)")
)


@pytest.fixture(scope="module")
def at():
    return run_page("baselines", base_steps=50, base_step=50)


def test_the_tables_are_the_counts_and_what_is_learnt(at):
    left, right = charts(at)[1]["data"]
    labels = [{"⏎": "\n", "·": " "}.get(c, c) for c in left["y"]]
    assert len(labels) == 30 and set(labels) == {c for c, _ in Counter(chapter()).most_common(30)}
    pairs = Counter(pairwise(chapter()))
    firsts = Counter(chapter()[:-1])
    expected = [[pairs[a, b] / firsts[a] for b in labels] for a in labels]
    assert np.allclose(left["z"], expected, atol=1e-6)
    counts = count(chapter())
    *_, network = learn(counts, steps=50)
    places = counts.tokenizer.encode("".join(labels))
    assert np.allclose(right["z"], network.probabilities[np.ix_(places, places)], atol=1e-6)
    said = paragraph(at, "Left: the counts")
    assert f"{pairs['h', 'e'] / firsts['h']:.0%}".replace("%", " %") in said  # after h comes e
    assert f"{network.loss(counts):.3f} nats" in said and f"{counts.loss:.3f}" in said
    table = in_numbers(at, "baselines_pairs")
    assert table["counted"].sum() == len(chapter()) - 1


def test_all_pay_for_the_same_bytes(at, mini):
    """The bundled model's bar is what the model card's own measurement gives, in windows as long."""
    scale = charts(at)[0]["data"][0]
    bits = dict(zip(charts(at)[0]["layout"]["yaxis"]["ticktext"], scale["x"], strict=True))
    found = counted(chapter())
    assert bits[PAIRS] == pytest.approx(found.bigram) and bits[SINGLE] == found.unigram
    nats = 0.0
    end = mini.tokenizer.eot_token
    for passage in passages():
        ids = np.array([end, *mini.encode(passage.text)])
        for start in range(0, len(ids) - 1, 255):  # a context of 256 ids predicts 255
            nats += model_nats(mini.model, ids[start : start + 256], stride=255).sum()
    assert bits["mini"] == pytest.approx(nats / math.log(2) / held_out_bytes(), rel=1e-4)
    assert bits["mini"] < bits["MLP, 3 back"] < bits[SINGLE]
    assert bits[TRIPLES] == pytest.approx(found.trigram)


def test_the_mlp_s_curve_ends_where_the_bar_is(at):
    held_out, own = charts(at)[2]["data"]
    assert charts(at)[2]["layout"]["xaxis"]["ticktext"] == [0, 50]
    assert held_out["y"][-1] == pytest.approx(charts(at)[0]["data"][0]["x"][4], rel=1e-6)
    assert own["y"][0] == pytest.approx(math.log2(72), abs=0.1)  # it begins as a blind guess


def test_a_training_that_was_left_goes_on_as_if_it_had_not_been():
    recipe = Recipe(hidden=16, steps=70)
    parts = Fit(TEXT, recipe)
    whole = Fit(TEXT, recipe)
    for steps in (30, 25, 100, 5):
        parts.go_on(steps)
    whole.go_on(70)
    assert parts.done and parts.steps == [0, 30, 55, 70] and whole.steps == [0, 70]
    assert parts.held_out[-1] == whole.held_out[-1] and parts.own[-1] == whole.own[-1]


def test_an_untrained_model_is_told_from_what_its_tokens_bring():
    at = run_page("baselines", model="mini-untrained", base_steps=50)
    cost = in_numbers(at, "baselines_scale")["bits per byte"].iloc[-1]
    said = next(text for text in paragraphs(at) if "Blind guessing among its" in text)
    blind = float(said.partition("8,192 tokens would need ")[2].split(" ")[0])
    assert cost == pytest.approx(blind, abs=0.05)  # less than the bigram's, and nothing was learned
