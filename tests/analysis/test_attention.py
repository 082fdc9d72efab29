"""The steps of a head against what the model itself computed, and against sums written out by hand."""

import itertools
import math

import pytest
import torch

import gptviz
from gptviz.analysis import attention
from tests.analysis.written_out import by_hand

TEXT = "The cat sat on the mat. The cat sat"


@pytest.fixture(scope="module")
def trace(lm):
    return lm.trace(TEXT)


@pytest.mark.parametrize("block", [0, 1])
@pytest.mark.parametrize("head", [0, 3])
def test_the_steps_lead_from_one_to_the_next(lm, trace, block, head):
    """What stands between the pass's own queries and keys, weights and output is the formula."""
    steps = attention.steps(lm, trace, block, head)
    torch.testing.assert_close(
        torch.softmax(steps.masked, dim=-1), steps.weights, rtol=0, atol=1e-5
    )
    torch.testing.assert_close(steps.weights @ steps.v, steps.z, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(
        steps.weights, attention.weights(lm, trace, block, head), rtol=0, atol=0
    )
    assert torch.equal(steps.weights, trace["attn", block][head])
    assert torch.equal(steps.weights[-1], attention.last_row(lm, trace, block, head))
    for query, key in ((5, 0), (5, 3), (5, 5), (0, 0), (2, 4)):
        cell = attention.cell(lm, trace, block, head, query, key)
        assert math.fsum(cell.products.tolist()) == pytest.approx(cell.score, abs=1e-12)
        assert cell.score == pytest.approx(steps.scores[query, key].item(), abs=1e-4)
        if key > query:  # behind the mask: a score and no weight
            assert cell.weight is None
            continue
        assert cell.row.scaled[key].item() == pytest.approx(cell.scaled, abs=1e-12)
        assert len(cell.row.weights) == query + 1 and cell.row.exp.max().item() == 1
        assert cell.weight == pytest.approx(steps.weights[query, key].item(), abs=1e-5)


def test_the_softmax_survives_scores_that_would_overflow():
    row = attention.softmax_row(torch.tensor([2000.0, 1999.0], dtype=torch.float64))
    assert row.weights.tolist() == pytest.approx([math.e / (1 + math.e), 1 / (1 + math.e)])


@pytest.mark.parametrize("head", [0, None])
def test_without_the_first_token_rows_sum_to_one_again(lm, trace, head):
    weights = attention.weights(lm, trace, 0, head)
    rest = attention.weights(lm, trace, 0, head, True)
    assert rest[:, 0].isnan().all() and rest[0].isnan().all()
    wanted = weights[1:, 1:] / weights[1:, 1:].sum(dim=-1, keepdim=True)
    torch.testing.assert_close(rest[1:, 1:], wanted, rtol=0, atol=1e-5)
    assert not trace["attn", 0].isnan().any(), "the trace itself must stay as it was"
    gave_everything = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    assert attention.without_first(gave_everything).isnan().all()


def test_the_mean_of_a_block_is_a_distribution_again(lm, trace):
    mean = attention.weights(lm, trace, 1)
    torch.testing.assert_close(mean.sum(dim=-1), torch.ones(len(mean)))
    assert mean[4, 2].item() == pytest.approx(
        sum(trace["attn", 1][h, 4, 2].item() for h in range(4)) / 4
    )


def test_what_heads_write_is_as_long_as_in_the_pass_written_out(lm, trace):
    blocks = by_hand(lm, tuple(token.id for token in trace.tokens))["blocks"]
    # (L, H)
    wrote = torch.stack([block["wrote"].norm(dim=-1).mean(dim=-1) for block in blocks]).float()
    torch.testing.assert_close(attention.mean_writes(trace, lm.model), wrote, rtol=1e-4, atol=0)


def test_the_pull_of_the_first_token_is_a_mean_over_the_later_rows(trace):
    # (n_layers, H)
    shares = torch.stack([trace["attn", b][:, 1:, 0].mean(dim=-1) for b in range(2)])
    found = attention.first_token(shares, trace["v", 1][2], 1, 2)
    heads = [trace["attn", b][h] for b in range(2) for h in range(4)]
    means = [sum(attn[1:, 0].tolist()) / (len(trace) - 1) for attn in heads]
    assert (found.mean, found.own) == pytest.approx((sum(means) / 8, means[6]), abs=1e-6)
    assert (found.heads, found.of) == (sum(mean > 0.5 for mean in means), 8)
    assert found.even == pytest.approx(
        sum(1 / n for n in range(2, len(trace) + 1)) / (len(trace) - 1)
    )
    first, *others = (math.hypot(*value) for value in trace["v", 1][2].tolist())
    assert (found.value_norm, found.other_norms) == pytest.approx(
        (first, sum(others) / len(others))
    )


@pytest.mark.parametrize(
    ("mean", "own", "asks"),
    [(0.6, 0.9, (True, True)), (0.014, 0.014, (False, False)), (0.1, 0.9, (False, True))],
)
def test_a_sink_is_one_only_where_its_numbers_say_so(mean, own, asks):
    first = attention.FirstToken(211, mean, 0.022, 0, 144, own, 1.0, 2.0)
    assert (first.draws_all, first.draws_own) == asks
    assert not attention.FirstToken(2, mean, 0.5, 0, 144, own, 1.0, 2.0).draws_all


def test_an_untrained_model_has_no_sink():
    """Its heads look at all tokens alike, so there is nothing to ask about the first one."""
    trace = gptviz.load("mini-untrained").trace(TEXT)
    shares = torch.stack([trace["attn", b][:, 1:, 0].mean(dim=-1) for b in range(6)])
    for block, head in itertools.product(range(6), range(8)):
        found = attention.first_token(shares, trace["v", block][head], block, head)
        assert found is not None and not found.draws_all and not found.draws_own


def test_one_token(lm):
    trace = lm.trace(lm.encode("The")[:1])
    steps = attention.steps(lm, trace, 0, 0)
    assert steps.weights.tolist() == [[1.0]]
    torch.testing.assert_close(steps.z, trace["v", 0][0])
    assert attention.without_first(steps.weights).isnan().all()


@pytest.mark.parametrize("positions", [[3], [0, 2, 9], [9, 4]])
def test_rows_from_queries_and_keys_are_those_of_the_pass(lm, trace, positions):
    wanted = trace["attn", 1][1:3][:, positions, : max(positions) + 1]
    lean = lm.trace(TEXT, keep=["q", "k"])
    for held in (trace, lean):
        rows = attention.rows_of_attention(held, 1, torch.tensor(positions), slice(1, 3))
        torch.testing.assert_close(rows, wanted, rtol=0, atol=1e-6)
