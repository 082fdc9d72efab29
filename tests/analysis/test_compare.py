"""Two passes side by side: pairs of tokens, patterns, streams, next tokens, against loops written out."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings, strategies as some

import gptviz
from gptviz.analysis import compare
from gptviz.analysis.compare import Alignment, align, grouped, heads_apart, streams_apart
from gptviz.engine.edits import Edit
from gptviz.engine.tokens import Token

TEXT = "The little birds sang beside the red mill. The little birds sang beside the red"


@pytest.fixture(scope="module")
def untrained():
    return gptviz.load("gpt2-untrained")


def tokens(*pieces):
    return [Token(i, 0, piece, piece.encode()) for i, piece in enumerate(pieces)]


def test_one_text_is_paired_where_both_tokenizers_end_a_token():
    pairs = align(
        tokens("Se", "ven", " par", "rots"), tokens("Seven", " ", "parrots"), one_text=True
    )
    assert pairs.pairs == ((1, 0), (3, 2))
    whole = align(tokens("a", " b"), tokens("a", " b"), one_text=True)
    assert whole.pairs == ((0, 0), (1, 1))


@pytest.mark.parametrize(
    ("left", "right", "pairs"),
    [
        ("a b c d", "a b c d", [(0, 0), (1, 1), (2, 2), (3, 3)]),
        ("a b c d", "a x c d", [(0, 0), (1, 1), (2, 2), (3, 3)]),  # one for one
        ("a b c d", "a c d", [(0, 0), (2, 1), (3, 2)]),  # one that is not there
        ("a b c", "a b c d", [(0, 0), (1, 1), (2, 2)]),  # one goes on
        ("a b c", "x y", [(2, 1)]),  # both end: there they are asked for the next
        ("m n a b", "a b m n a b", [(0, 2), (1, 3), (2, 4), (3, 5)]),  # from the end
        ("a", "a", [(0, 0)]),
    ],
)
def test_two_texts_are_paired_from_the_end_and_from_the_beginning(left, right, pairs):
    found = align(tokens(*left.split()), tokens(*right.split()), one_text=False)
    assert list(found.pairs) == pairs


words = some.lists(some.sampled_from("abcd"), min_size=1, max_size=12)


@given(words, words)
def test_pairs_rise_on_both_sides_and_hold_the_common_ends(left, right):
    found = align(tokens(*left), tokens(*right), one_text=False)
    assert len(found) > 0
    assert all(
        a < c and b < d for (a, b), (c, d) in zip(found.pairs, found.pairs[1:], strict=False)
    )
    assert (
        found.pairs[0][0] >= 0
        and found.pairs[-1][0] < len(left)
        and found.pairs[-1][1] < len(right)
    )
    if left[-1] == right[-1]:
        assert found.pairs[-1] == (len(left) - 1, len(right) - 1)
    itself = align(tokens(*left), tokens(*left), one_text=False)
    assert itself.pairs == tuple((i, i) for i in range(len(left)))


def test_the_pair_of_a_position_is_its_own_or_the_next():
    pairs = Alignment(((1, 0), (4, 2)))
    assert [pairs.nearest(left) for left in range(6)] == [0, 0, 1, 1, 1, 1]


@settings(max_examples=40)
@given(some.integers(2, 9), some.data())
def test_grouped_rows_are_sums_over_the_tokens_since_the_pair_before(n, data):
    ends = sorted(data.draw(some.sets(some.integers(0, n - 1), min_size=1)))
    weights = torch.from_numpy(np.random.default_rng(n).random((2, n, n))).float().tril()
    weights = weights / weights.sum(dim=-1, keepdim=True)
    found = grouped(weights, ends)
    for column, (start, end) in enumerate(itertools.pairwise([-1, *ends])):
        by_hand = weights[:, ends, start + 1 : end + 1].double().sum(dim=-1)
        assert torch.allclose(found[..., column], by_hand, atol=1e-6)
    assert torch.allclose(
        found.sum(dim=-1), torch.ones(2, len(ends), dtype=torch.float64), atol=1e-5
    )


def test_heads_apart_is_half_the_sum_of_the_differences(mini):
    left = mini.trace(TEXT)
    right = mini.trace(TEXT, edits=[Edit("z", 1, heads=[2])])
    same = align(left.tokens, right.tokens, one_text=True)
    found = heads_apart(left, right, same)
    # nothing before the change is another
    assert found.shape == (6, 8) and found[:2].abs().max() == 0
    a, b = (trace["attn", 4][3].double().numpy() for trace in (left, right))
    by_hand = np.mean([0.5 * np.abs(a[q] - b[q]).sum() for q in range(1, len(left))])
    assert found[4, 3].item() == pytest.approx(by_hand, abs=1e-7) and by_hand > 0.001


def test_one_token_has_no_pattern_to_compare(mini):
    one = mini.trace([17])
    assert torch.isnan(heads_apart(one, one, align(one.tokens, one.tokens, one_text=True))).all()


def test_streams_apart_is_one_less_the_cosine_before_each_block_and_after_the_last(mini):
    left = mini.trace("The cat sat there")
    right = mini.trace("A small cat sat there")
    pairs = align(left.tokens, right.tokens, one_text=False)
    found = streams_apart(left, right, pairs)
    assert found.shape == (7, len(pairs))
    i, j = pairs.pairs[-1]
    one, other = (
        trace["resid_post", 5][at].double().numpy() for trace, at in ((left, i), (right, j))
    )
    cosine = one @ other / np.linalg.norm(one) / np.linalg.norm(other)
    assert found[6, -1].item() == pytest.approx(1 - cosine)
    itself = streams_apart(left, left, align(left.tokens, left.tokens, one_text=True))
    assert itself.min() == 0 and itself.max() < 1e-12


def test_next_tokens_of_two_vocabularies_are_the_same_where_their_bytes_are(mini, untrained):
    logits = [lm.trace(TEXT).logits(-1) for lm in (mini, untrained)]
    found = compare.next_tokens(*logits, mini.tokenizer, untrained.tokenizer, k=3)
    for lm, side, own in zip((mini, untrained), ("left", "right"), logits, strict=True):
        p = own.double().softmax(0)
        rows = found.dropna(subset=side)
        ids = rows[f"{side}_id"].tolist()
        assert lm.decode(ids[:1]) == " mill" and set(p.topk(3).indices.tolist()) <= set(ids)
        assert rows[side].tolist() == pytest.approx(p[ids].tolist(), rel=1e-12)
        assert rows[f"{side}_rank"].tolist() == [1 + int((p > p[i]).sum()) for i in ids]
    assert found[["left", "right"]].max(axis=1).is_monotonic_decreasing


def test_a_token_that_a_vocabulary_lacks_has_no_numbers_there(mini, untrained):
    lacking = next(i for i in range(40000, 50000) if mini.encode(untrained.decode([i]))[1:])
    right = torch.zeros(50257).index_fill(0, torch.tensor([lacking]), 50.0)
    found = compare.next_tokens(
        torch.arange(8192.0), right, mini.tokenizer, untrained.tokenizer, k=1
    )
    (row,) = found[found["right_id"] == lacking].itertuples()
    assert row.left_id is pd.NA and math.isnan(row.left) and row.right == pytest.approx(1)
