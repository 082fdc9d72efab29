"""Circuits: batched and restarted passes are what edits do one by one, and what missing weights do."""

import itertools
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from gptviz import Edit
from gptviz.analysis import circuit_search
from gptviz.analysis.circuit_passes import Passes, all_heads, edits_of
from gptviz.ui.shell.state import UNSAID_TEXT
from tests.analysis.written_out import IDS, Stopped, Told, without
from tests.conftest import above, random_lm

BASELINES = ("zero", "mean", "sample")
TINY = random_lm(3, n_layers=2, n_heads=2)  # 16 circuits: few enough to try all
HEADS = all_heads(TINY)


def likely(lm):
    """The token that the model says."""
    return int(lm.trace(IDS, keep=[]).next_tokens(1)["id"][0])


def measured(logits, target):
    """F: a probability, or of a pair the difference."""
    pair = isinstance(target, tuple)
    return float(above(logits, *target) if pair else logits.double().softmax(0)[target])


def by_edits(lm, text, target, heads, baseline, feed_forwards=True, position=-1):
    """F from one pass with edits."""
    edits = edits_of(lm, heads, baseline, feed_forwards)
    return measured(lm.trace(text, keep=[], edits=edits).logits(position), target)


def everyone(heads):
    """All circuits of these heads."""
    return [c for n in range(len(heads) + 1) for c in itertools.combinations(heads, n)]


@pytest.mark.parametrize("baseline", BASELINES)
@pytest.mark.parametrize(
    ("feed_forwards", "position", "target"), [(True, -1, 7), (False, 3, (12, 7))]
)
def test_a_batch_is_one_pass_with_edits_after_the_other(baseline, feed_forwards, position, target):
    lm = random_lm(6)
    how = baseline, feed_forwards, position
    chosen = [(), [(0, 1)], [(0, 0), (1, 2)], all_heads(lm)[2:7], all_heads(lm)]
    alone = [by_edits(lm, IDS, target, heads, *how) for heads in chosen]
    assert np.allclose(Passes(lm, IDS, target, *how).of(chosen), alone, atol=1e-5)
    are_brought(lm, target, chosen[2], *how)


@pytest.mark.parametrize("target", [7, (12, 7), (12, None)])
def test_any_measure_is_that_of_the_pass_with_edits(target):
    lm = random_lm(6)
    token, against = target if isinstance(target, tuple) else (target, None)
    logits = lm.trace(IDS, keep=[], edits=edits_of(lm, [(0, 1)], "zero")).logits(-1)
    wanted = {
        "logit": float(above(logits, token, against)),
        "probability": float(logits.double().softmax(0)[token]),
        "loss": float(torch.nn.functional.cross_entropy(logits.double(), torch.tensor(token))),
    }
    for measure, value in wanted.items():
        passes = Passes(lm, IDS, target, "zero", measure=measure)
        assert passes.of([[(0, 1)]])[0] == pytest.approx(value, abs=1e-5)
        brought = circuit_search.brings(lm, IDS, target, [(0, 1)], "zero", measure=measure)
        assert brought[0, 1] == pytest.approx(value - passes.of([()])[0], abs=1e-5)
    with pytest.raises(ValueError, match="bits"):
        Passes(lm, IDS, target, measure="bits")


def are_brought(lm, target, own, *how):
    """What each head brings is a pass with it less one without it."""
    alone = partial(by_edits, lm, IDS, target)
    own = set(own)
    brought = [alone(own | {head}, *how) - alone(own - {head}, *how) for head in all_heads(lm)]
    assert np.allclose(
        circuit_search.brings(lm, IDS, target, own, *how).ravel(), brought, atol=1e-5
    )


def test_a_circuit_with_zeros_is_a_model_without_those_weights():
    """Nothing of ours: the plain forward of a copy whose output weights are 0."""
    lm = random_lm(6)
    for heads in ([(0, 1), (1, 3)], [], [(1, 0)]):
        others = [Edit("z", b, "zero", [h]) for b, h in set(all_heads(lm)) - set(heads)]
        with torch.no_grad():
            logits = without(lm, *others).model(torch.tensor([IDS]))[0, -1]
        found = Passes(lm, IDS, 7, "zero").of([heads])[0]
        assert found == pytest.approx(measured(logits, 7), abs=1e-5)


@pytest.mark.parametrize(
    ("way", "baseline", "within"),
    [("remove", "mean", 0.5), ("add", "sample", 0.1), ("add", "zero", 1e-9)],
)
def test_each_step_of_a_search_is_the_closest_of_all_that_it_could_take(way, baseline, within):
    lm = random_lm(6)
    token = (likely(lm), 7)
    found = circuit_search.circuit(lm, IDS, token, baseline, way=way, within=within)
    whole, empty = (by_edits(lm, IDS, token, heads, baseline) for heads in (all_heads(lm), []))
    assert (found.whole, found.empty) == pytest.approx((whole, empty), abs=1e-5)
    stages = found.stages
    assert stages[0] == (tuple(all_heads(lm)) if way == "remove" else ())
    for before, after, row in zip(
        stages[:-1], stages[1:], found.steps[1:].itertuples(), strict=True
    ):
        others = before if way == "remove" else set(all_heads(lm)) - set(before)
        tried = [by_edits(lm, IDS, token, set(before) ^ {head}, baseline) for head in others]
        assert abs(row.value - whole) == pytest.approx(
            min(abs(one - whole) for one in tried), abs=1e-5
        )
        assert row.value == pytest.approx(by_edits(lm, IDS, token, after, baseline), abs=1e-5)
        assert set(before) ^ set(after) == {(row.block, row.head)} and row.size == len(after)
    assert found.value == pytest.approx(by_edits(lm, IDS, token, found.heads, baseline), abs=1e-5)
    assert found.kept and abs(found.value - whole) <= within * abs(whole - empty) + 1e-5
    assert found.heads in stages and len(stages) > 1


@pytest.mark.parametrize("target", [7, (12, 7), (300, 5)])
@pytest.mark.parametrize("baseline", BASELINES)
def test_beside_an_exhaustive_search_of_a_tiny_model(target, baseline):
    """All 16 circuits of four heads, a pass with edits each: a greedy search is among them, and no better."""
    values = {frozenset(c): by_edits(TINY, IDS, target, c, baseline) for c in everyone(HEADS)}
    passes = Passes(TINY, IDS, target, baseline)
    assert np.allclose(passes.of(everyone(HEADS)), list(values.values()), atol=1e-5)
    off = {c: abs(value - passes.whole) for c, value in values.items()}
    enough = 0.1 * off[frozenset()] + 1e-5
    fewest = min(len(c) for c in values if off[c] <= enough)
    for way in ("remove", "add"):
        found = circuit_search.search(passes, way)
        assert found.kept and off[frozenset(found.heads)] <= enough and len(found.heads) >= fewest
    for heads in (HEADS[:2], HEADS[1:], []):
        worth = circuit_search.score(passes, heads)
        gaps = {}
        for k in everyone(heads):
            own, whole = (values[frozenset({*some} - {*k})] for some in (heads, HEADS))
            gaps[circuit_search.written(k)] = abs(own - whole)
        assert dict(zip(worth["K"], worth["gap"], strict=True)) == pytest.approx(gaps, abs=2e-5)
        assert worth["K"][0] == "" and gaps[""] == pytest.approx(off[frozenset(heads)], abs=2e-5)


@pytest.mark.parametrize("feed_forwards", [True, False])
def test_a_circuit_that_raises_the_prediction_does_not_keep_it(feed_forwards):
    """Of the tiny model's circuits and targets, those that give the token more than the model does."""
    raised = 0
    missed = 0
    for token in range(0, 8000, 1600):
        passes = Passes(TINY, IDS, (token, 7), "zero", feed_forwards)
        values = dict(zip(everyone(HEADS), passes.of(everyone(HEADS)).tolist(), strict=True))
        enough = circuit_search.allowed(passes.whole, values[()])
        assert enough == pytest.approx(0.1 * abs(passes.whole - values[()]))
        raised += sum(value - passes.whole > enough for value in values.values())
        for way in ("remove", "add"):
            found = circuit_search.search(passes, way)
            assert found.kept == (abs(found.value - passes.whole) <= enough)
            assert found.value == pytest.approx(values[found.heads], abs=1e-6)
            if not found.kept:  # then nothing on its way was closer
                missed += 1
                closest = min(abs(values[c] - passes.whole) for c in found.stages)
                assert abs(found.value - passes.whole) == pytest.approx(closest, abs=1e-6)
    assert raised and bool(missed) == (not feed_forwards)


def test_the_whole_model_is_faithful_and_complete():
    worth = circuit_search.score(Passes(TINY, IDS, 7), HEADS)
    assert len(worth) == 16 and worth["gap"].max() == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("baseline", BASELINES)
def test_the_model_without_k_keeps_its_feed_forwards(baseline):
    """Of circuits without them, too: with K empty the gap is the faithfulness."""
    passes = Passes(TINY, IDS, (12, 7), baseline, feed_forwards=False)
    for heads in (HEADS, HEADS[1:]):
        told = Told()
        worth = circuit_search.score(passes, heads, progress=told)
        wanted = []
        for k in everyone(heads):
            own, whole = ([head for head in some if head not in k] for some in (heads, HEADS))
            circuit = by_edits(TINY, IDS, (12, 7), own, baseline, feed_forwards=False)
            wanted.append((circuit, by_edits(TINY, IDS, (12, 7), whole, baseline)))
        assert np.allclose(worth[["circuit", "model"]], wanted, atol=2e-5)
        assert worth["model"][0] == pytest.approx(passes.whole, abs=1e-5)
        assert told.came_to(2 * len(worth))


def test_the_sets_of_a_large_circuit():
    heads = all_heads(random_lm(6))
    sets, everything = circuit_search.subsets(heads)
    assert not everything and sets[0] == () and tuple(heads) in sets
    assert all((head,) in sets for head in heads) and len(sets) == len(set(sets)) > len(heads) + 10
    assert all(set(k) <= set(heads) for k in sets) and sets == circuit_search.subsets(heads)[0]


def test_the_bundled_model_needs_its_induction_heads(mini):
    """Of 48 heads 16 are enough; none of three heads of block 5 can be left out."""
    heads = "0.1+0.4+0.5+0.7+1.1+1.4+1.7+2.0+2.7+3.4+4.1+4.3+4.7+5.0+5.3+5.6"
    passes = Passes(mini, UNSAID_TEXT, " mill", "sample")
    chosen = circuit_search.parse(heads, mini)
    enough = circuit_search.allowed(passes.whole, passes.of([()])[0])
    assert abs(passes.of([chosen])[0] - passes.whole) <= enough
    for head in ((5, 0), (5, 3), (5, 6)):
        assert passes.of([set(chosen) - {head}])[0] < passes.whole - enough


def test_a_random_order_is_every_head_once(lm):
    order, again, other = (circuit_search.random_order(lm, seed) for seed in (3, 3, 4))
    assert sorted(order) == all_heads(lm) and order == again != other
    passes = Passes(lm, IDS, 7)
    steps = circuit_search.in_order(passes, order)
    assert steps["size"].tolist() == list(range(len(order) + 1))
    assert steps["value"].iloc[-1] == pytest.approx(passes.whole, abs=1e-6)
    assert steps["value"].iloc[3] == pytest.approx(
        by_edits(lm, IDS, 7, order[:3], "mean"), abs=1e-5
    )


def test_an_edited_model_has_its_own_circuits():
    lm = random_lm(6).edited("z.0.1=zero", "resid_mid.1@2=mean")
    token = (likely(lm), 7)
    passes = Passes(lm, IDS, token, "sample")
    assert passes.whole == pytest.approx(measured(lm.trace(IDS).logits(-1), token), abs=1e-5)
    assert abs(passes.whole - Passes(lm.plain, IDS, token).whole) > 1e-2
    heads = [(0, 1), (1, 0)]
    assert passes.of([heads])[0] == pytest.approx(
        by_edits(lm, IDS, token, heads, "sample"), abs=1e-5
    )
    are_brought(lm, token, all_heads(lm), "sample")


def test_it_can_be_stopped_and_leaves_nothing_behind():
    lm = random_lm(6)
    told = Told(stop_after=3)
    before = lm.trace(IDS, keep=[]).logits(-1)
    with pytest.raises(Stopped):
        circuit_search.circuit(lm, IDS, 99, progress=told)
    assert told == [(4, 36), (8, 36), (12, 36)]
    assert not any(
        module._forward_hooks or module._forward_pre_hooks for module in lm.model.modules()
    )
    assert torch.equal(lm.trace(IDS, keep=[]).logits(-1), before)


def test_one_token_one_head_and_bfloat16():
    small = random_lm(6, n_heads=1, n_layers=1)
    found = circuit_search.circuit(small, [17], 7)
    assert isinstance(found, circuit_search.Circuit) and found.steps["size"].tolist()[0] == 1
    half = random_lm(6)
    half.model.bfloat16()
    heads = all_heads(half)[:3]
    value = by_edits(half, IDS, 7, heads, "sample")
    assert Passes(half, IDS, 7, "sample").of([heads])[0] == pytest.approx(value, abs=0.05)


@given(st.sets(st.sampled_from(HEADS)))
def test_a_circuit_is_read_as_it_is_written(heads):
    assert circuit_search.parse(circuit_search.written(heads), TINY) == sorted(heads)
    assert circuit_search.parse(circuit_search.written(heads).replace("+", " "), TINY) == sorted(
        heads
    )


@pytest.mark.parametrize(("feed_forwards", "target"), [(True, 7), (False, (12, 7))])
def test_a_ranking_is_by_who_is_left_longest(feed_forwards, target):
    lm = random_lm(6)
    how = "mean", feed_forwards
    found = circuit_search.ranking(lm, IDS, target, *how)
    with_all = set(all_heads(lm))
    full = by_edits(lm, IDS, target, with_all, *how)
    alone = {head: full - by_edits(lm, IDS, target, with_all - {head}, *how) for head in with_all}
    assert [found.effects[head] for head in alone] == pytest.approx([*alone.values()], abs=1e-5)
    whole = measured(lm.trace(IDS, keep=[]).logits(-1), target)
    alike = 0.01 * abs(whole - by_edits(lm, IDS, target, (), *how))
    gone = found.heads[::-1]
    while gone:  # round by round: those go without which F is closest to the model's
        gaps = {
            head: abs(whole - by_edits(lm, IDS, target, {*gone} - {head}, *how)) for head in gone
        }
        easiest = sorted(gone, key=gaps.get)[: max(1, len(gone) // 4)]
        go = [head for head in easiest if gaps[head] <= gaps[easiest[0]] + alike]
        assert set(gone[: len(go)]) == set(go)
        gone = gone[len(go) :]
    assert set(found.heads) == with_all
    values = [by_edits(lm, IDS, target, found.heads[:k], *how) for k in range(len(found.heads) + 1)]
    assert np.allclose(found.values, values, atol=1e-5)
    gaps = np.abs(np.array(values) - whole)
    enough = np.flatnonzero(gaps <= 0.1 * abs(whole - values[0]))
    assert found.fewest == (enough[0] if enough.size else gaps.argmin())
    first = found.heads[:3]
    assert found.size_of(first[::-1]) == 3 and found.size_of(found.heads[1:3]) is None


@pytest.fixture(scope="module")
def orders():
    """Six models' orders of their heads for a text of each, and F of the beginnings by edits, one by one."""
    found = []
    for seed in range(6):
        lm = random_lm(seed)
        text = [*np.roll(IDS, seed)]
        order = circuit_search.ranking(lm, text, 7, "zero")
        firsts = [order.heads[:k] for k in range(len(order.heads) + 1)]
        found.append((order, np.array([by_edits(lm, text, 7, first, "zero") for first in firsts])))
    return found


def test_more_heads_lose_a_prediction_again_where_passes_with_edits_do(orders):
    """Enough heads, too few with more of them, and enough again: from every number of heads, in six models."""
    told = []
    for order, values in orders:
        enough = max(0.1 * abs(values[-1] - values[0]), circuit_search.ROUNDING)
        lost = (values[-1] - values) * (1 if values[-1] > values[0] else -1) > enough
        kept = np.abs(values[-1] - values) <= enough
        sizes = range(len(values))
        expected = [any(kept[k] and lost[j] and any(kept[j:]) for j in sizes[k:]) for k in sizes]
        assert [order.loses_again(k) for k in sizes] == expected
        told.append(expected[order.fewest])
    assert any(told) and not all(told)


def test_a_prediction_that_no_number_of_heads_keeps_is_not_lost_again():
    values = np.array([0.0, 0.5, 0.2, 0.4])
    none = circuit_search.Ranking(((0, 0), (0, 1), (1, 0)), np.zeros((2, 2)), values, 1.0, 0.1)
    assert not any(none.loses_again(k) for k in range(4))
    once = circuit_search.Ranking(none.heads, none.effects, values, 0.5, 0.05)
    assert not any(once.loses_again(k) for k in range(4))  # it never comes back
