"""The rows say what the numbers say, and each sentence's arithmetic comes out; and the picture of a draw."""

import itertools
import math
import re

import numpy as np
import pytest
import torch

from gptviz.analysis.next_token import candidates
from gptviz.digits import percent
from gptviz.engine.sampling import Sampling
from gptviz.figures.candidates import (
    before_and_after,
    candidate_rows,
    column_heads,
    draw_rows,
    place_text,
)
from gptviz.figures.next_token import probability_text
from tests.specs import number

LOGITS = torch.randn(500, generator=torch.Generator().manual_seed(4)) * 3


def rows_of(sampling, logits=LOGITS):
    found = candidates(logits, 12, sampling)
    return found, *candidate_rows(found, sampling, lambda i: f"<{i}>", lambda i: i % 2 == 0)


@pytest.mark.parametrize("logits", [LOGITS, LOGITS - 40], ids=["a sum above 1", "a sum below 1"])
@pytest.mark.parametrize(
    "sampling",
    [Sampling(), Sampling(0.7), Sampling(2.0, 40, 0.9), Sampling(0.05, None, 0.5), Sampling(1, 5)],
)
def test_a_kept_rows_sentence_can_be_worked_out(sampling, logits):
    found, rows, _ = rows_of(sampling, logits)
    power = r"e\^\((?P<x>−?[\d.]+) (?P<sign>[−+]) (?P<sum>[\d.]+)\) = (?P<p>[\d.]+(?: × 10⁻\S+)?),"
    said = 0
    softmax = logits.double().softmax(0)
    for row in rows:
        if row["filter"] != "kept":
            continue
        match = re.search(power, row["sentence"])
        log_sum = number(match["sum"]) * (1 if match["sign"] == "−" else -1)
        assert math.exp(number(match["x"]) - log_sum) == pytest.approx(row["probability"], rel=0.02)
        assert match["p"] == row["p_text"]
        assert number(row["scaled_text"]) == pytest.approx(
            row["logit"] / sampling.temperature, abs=0.0051
        )
        own = f" The model itself gives it {probability_text(softmax[row['id']].item())}."
        assert row["sentence"].endswith(own) == (not sampling.changes_nothing)
        said += 1
    assert said == min(found.kept, len(rows))


def test_a_cut_row_names_its_filter():
    _, rows, rest = rows_of(Sampling(1.0, 6, 0.5))
    last = rows[-1]
    first = rows[0]
    assert (last["out"], last["filter_text"], last["p_text"]) == (True, "✕ top-k", "0")
    assert "top-k 6 cuts it" in last["sentence"]
    assert (first["out"], first["filter_text"]) == (False, "✓")
    by_p = [row for row in rows if row["filter"] == "top-p"]
    assert by_p and all("top-p 0.5 cuts it" in row["sentence"] for row in by_p)
    assert (rest["out"], rest["filter_text"], rest["p_text"]) == (True, "✕", "0")


def test_temperature_zero_divides_by_nothing():
    _, rows, rest = rows_of(Sampling(0.0))
    assert rows[0]["p_text"] == "1" and "the largest" in rows[0]["sentence"]
    assert all(row["p_text"] == "0" and "not the largest" in row["sentence"] for row in rows[1:])
    assert rest["p_text"] == "0" and {row["scaled_text"] for row in rows} == {""}
    assert column_heads(Sampling(0.0))["scaled"] == "÷ 0"


def test_a_step_that_does_nothing_has_no_column():
    assert list(column_heads(Sampling())) == ["rank", "token", "p"]
    assert column_heads(Sampling(1.0, None, 1.0)) == column_heads(Sampling())
    assert {"logit", "scaled"} <= column_heads(Sampling(0.9)).keys()
    assert "filter" not in column_heads(Sampling(0.9))
    for sampling in (Sampling(1.0, 5), Sampling(1.0, None, 0.9)):
        assert "filter" in column_heads(sampling) and "logit" not in column_heads(sampling)


def test_rows_and_rest_and_tokens():
    found, rows, rest = rows_of(Sampling(0.5))
    assert sum(row["probability"] for row in rows) + rest["probability"] == pytest.approx(1)
    assert rest["token"] == "all 488 others together"
    own, set_so = ((LOGITS.double() / t).softmax(0) for t in (1, 0.5))
    shares = [
        probability_text(1 - p[found.table["id"].tolist()].sum().item()) for p in (set_so, own)
    ]
    assert rest["sentence"] == (
        f"The other 488 tokens of the vocabulary, none of them cut, share {shares[0]}. "
        f"Without these settings they share {shares[1]}."
    )
    assert [row["token"] for row in rows] == [f"<{i}>" for i in found.table["id"]]
    assert [row["whole"] for row in rows] == [i % 2 == 0 for i in found.table["id"]]
    assert [row["first"] for row in rows] == [True] + [False] * 11
    assert column_heads(Sampling(0.5))["scaled"] == "÷ 0.5"


def test_before_and_after_keep_their_places_and_say_what_happened():
    muted = torch.randn(500, generator=torch.Generator().manual_seed(6)) * 3
    watched = int(LOGITS.argmin())
    new = muted.argsort(descending=True)[:3].tolist()
    old = LOGITS.argsort(descending=True)[:3].tolist()
    both = [*old, *new, watched]
    before, after = (candidates(logits, 3, also=both) for logits in (LOGITS, muted))
    rows, rest = before_and_after(before, after, "head 0·1", str, 3, [watched], came=new[1])
    assert [row["id"] for row in rows] == [*old, watched, *new]
    was, now = (logits.double().softmax(0) for logits in (LOGITS, muted))
    for row in rows:
        before_it, after_it = (p[row["id"]].item() for p in (was, now))
        assert (row["ghost"], row["probability"]) == pytest.approx((before_it, after_it))
        short = [percent(p) if p >= 1e-5 else "<0.001 %" for p in (before_it, after_it)]
        assert row["p_text"] == (" → ".join(short) if short[0] != short[1] else short[0])
        assert row["sentence"].startswith(
            f"has {probability_text(before_it)}, rank {row['was_rank']}. "
        )
        assert f"Without head 0·1 it has {probability_text(after_it)}, rank" in row["sentence"]
    assert [row["came"] for row in rows] == [row["id"] == new[1] for row in rows]
    assert rest["ghost"] == pytest.approx(1 - was[both].sum().item())
    assert rest["p_text"] == f"{percent(rest['ghost'])} → {percent(rest['probability'])}"
    assert "Unchanged" not in rest["sentence"]
    certain = candidates(LOGITS * 99, 3, also=both)
    rows, _ = before_and_after(certain, certain, "head 0·1", str, 3)
    assert [rows[0]["p_text"], rows[-1]["p_text"]] == [">99.9 %", "0 %"]


def test_one_other_token_is_no_crowd():
    few = torch.tensor([float(number) for number in range(13)])
    _, _, rest = rows_of(Sampling(0.5), few)
    own, set_so = ((few.double() / t).softmax(0)[0].item() for t in (1, 0.5))
    assert rest["sentence"] == (
        f"The one other token of the vocabulary, not cut, has {probability_text(set_so)}. "
        f"Without these settings it has {probability_text(own)}."
    )
    _, _, cut = rows_of(Sampling(1.0, 12), few)
    assert cut["sentence"].startswith("The one other token of the vocabulary, which is cut, has 0.")


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(0.7, 40), Sampling(0)])
def test_a_ghost_is_what_the_unchanged_model_gives_under_the_same_settings(sampling):
    """What that is, written out: tests/pages/test_next_token.py."""
    before = torch.randn(500, generator=torch.Generator().manual_seed(5)) * 3
    unchanged = candidates(before, 3, sampling)
    best = int(before.argmax())
    found = candidates(LOGITS, 12, sampling, also=[best])
    rows, rest = candidate_rows(found, sampling, str, lambda i: True, unchanged=unchanged)
    p = unchanged.chosen.probabilities
    assert [row["ghost"] for row in rows] == pytest.approx([float(p[row["id"]]) for row in rows])
    assert sum(row["ghost"] for row in rows) + rest["ghost"] == pytest.approx(1)
    assert [row["id"] for row in rows if row["was_first"]] == [best]
    for row in [*rows, rest]:
        assert row["ghost_text"] in row["sentence"]
    rank = int((before > before[rows[0]["id"]]).sum()) + 1
    assert rows[0]["sentence"].endswith(
        f"Unchanged, it has {rows[0]['ghost_text']}, rank {rank:,}."
    )
    assert ("The changed model itself" in rows[0]["sentence"]) == (not sampling.changes_nothing)
    assert {"before", "p"} <= column_heads(sampling, compared=True).keys()


# ---- the picture of a draw: the rows' stretches are the cumulative sum, the segments are the whole bar ----


def logits(size=50):
    return torch.randn(size, generator=torch.Generator().manual_seed(3)) * 2


@pytest.mark.parametrize(
    "sampling", [Sampling(), Sampling(0.6), Sampling(1.2, 7), Sampling(0.9, 20, 0.8), Sampling(0)]
)
def test_the_bar_is_the_cumulative_sum(sampling):
    found = candidates(logits(), 10, sampling, also=[33])
    drawn = draw_rows(found, sampling, 33, "drawn", str)
    # written out, with numpy
    scaled = logits().double().numpy() / (sampling.temperature or 1)
    order = np.argsort(-scaled, kind="stable")
    p = (
        np.exp(scaled - scaled.max())
        if sampling.temperature
        else (scaled == scaled.max()).astype(float)
    )
    if sampling.top_k:
        p[order[sampling.top_k :]] = 0
    p /= p.sum()
    if sampling.top_p:
        p[order[(np.cumsum(p[order]) - p[order]) >= sampling.top_p]] = 0
        p /= p.sum()
    ends = np.cumsum(p[order])
    for row in drawn.rows:
        assert row["rank"] == list(order).index(row["id"]) + 1
        assert row["stop"] == pytest.approx(ends[row["rank"] - 1]) and row["stop"] <= 1 + 1e-9
        assert row["stop"] - row["start"] == pytest.approx(row["probability"], abs=1e-12)
    assert [row["id"] for row in drawn.rows if row["drawn"]] == [33]
    segments = drawn.segments
    for part in (part for part in segments if part["index"] is not None):
        row = drawn.rows[part["index"]]
        assert (part["start"], part["stop"]) == (row["start"], row["stop"])
    assert segments[0]["start"] == 0 and segments[-1]["stop"] == pytest.approx(1)
    assert all(a["stop"] == pytest.approx(b["start"]) for a, b in itertools.pairwise(segments))
    total = sum(row["probability"] for row in drawn.rows) + drawn.rest["probability"]
    assert total == pytest.approx(1)


def test_a_vocabulary_with_a_row_each_has_no_rest():
    drawn = draw_rows(candidates(logits(4), 10), Sampling(), None, "", str)
    assert drawn.rest is None and len(drawn.segments) == 4


def test_a_narrow_stretch_has_digits_enough():
    assert [place_text(x, 0.2) for x in (0.0, 0.25, 1.0)] == ["0", "0.250", "1"]
    assert place_text(0.970032, 1e-4) == "0.97003"
    assert place_text(0.970032, 0.0) == "0.970032000000"
