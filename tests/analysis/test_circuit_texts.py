"""A circuit on many texts: each number is a pass with edits, or one with weights taken away."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from gptviz import Edit
from gptviz.analysis.circuit_passes import all_heads, edits_of
from gptviz.analysis.circuit_search import of_passes, three_values
from gptviz.analysis.circuit_texts import KEPT, circuit_on, share_kept
from gptviz.analysis.patches import value_of
from tests.analysis.written_out import Told, without
from tests.conftest import above, random_lm

TEXTS = [[5, 300, 17, 4000], [8, 8, 9], [1, 2, 3, 4, 5, 6]]
TARGETS = [(7, 12), (8, 9), (10, 4000)]
HEADS = ((0, 1), (1, 0), (1, 3))


@pytest.mark.parametrize("baseline", ["zero", "mean"])
def test_each_row_is_a_pass_with_its_edits(baseline):
    lm = random_lm(4)
    told = Told()
    table = circuit_on(lm, TEXTS[0], TARGETS[0], HEADS, baseline, progress=told)
    assert tuple(table["kept"]) == KEPT and told.came_to(3)
    rest = [head for head in all_heads(lm) if head not in HEADS]
    for row, kept in enumerate((all_heads(lm), HEADS, rest, ())):
        edits = edits_of(lm, kept, baseline)
        expected = float(above(lm.trace(TEXTS[0], edits=edits).logits(-1), *TARGETS[0]))
        assert table["logit"][row] == pytest.approx(expected, abs=1e-5)
    assert np.allclose(table["lost"], table["logit"][0] - table["logit"])
    # the same three numbers as the page's own, which runs them as one batch
    question = (TEXTS[0], TARGETS[0], baseline)
    three = of_passes(lm, question, three_values, HEADS)
    assert np.allclose(three, table["logit"][[0, 1, 3]], atol=1e-5)


def test_each_text_has_its_own_other_one():
    lm = random_lm(4)
    others = [[5, 300, 99, 17], [8, 9, 9], [1, 2, 30, 4, 5, 60]]
    baselines = [value_of(ids) for ids in others]
    table = circuit_on(lm, TEXTS, TARGETS, HEADS, baselines)
    rest = [head for head in all_heads(lm) if head not in HEADS]
    for row, kept in ((1, HEADS), (2, rest), (3, ())):
        values = []
        for text, target, other in zip(TEXTS, TARGETS, others, strict=True):
            there = lm.trace(other)
            edits = [replace(edit, value=there) for edit in edits_of(lm, kept, "zero")]
            values.append(float(above(lm.trace(text, edits=edits).logits(-1), *target)))
        assert table["logit"][row] == pytest.approx(np.mean(values), abs=1e-5)
    with pytest.raises(ValueError, match="3 texts and 2 baselines"):
        circuit_on(lm, TEXTS, TARGETS, HEADS, baselines[:2])
    with pytest.raises(ValueError, match=r"text 1: .*as many"):
        circuit_on(lm, TEXTS, TARGETS, HEADS, [baselines[0], baselines[0], baselines[2]])
    with pytest.raises(ValueError, match="a list is for a list of texts"):
        circuit_on(lm, TEXTS[0], TARGETS[0], HEADS, baselines)


def test_zero_is_a_model_without_those_weights():
    lm = random_lm(4)
    rest = [Edit("z", b, "zero", [h]) for b, h in all_heads(lm) if (b, h) not in HEADS]
    expected = float(above(without(lm, *rest).trace(TEXTS[1]).logits(-1), *TARGETS[1]))
    found = circuit_on(lm, TEXTS[1], TARGETS[1], HEADS, "zero")["logit"][1]
    assert found == pytest.approx(expected, abs=1e-5)


def test_many_texts_are_the_mean_of_each():
    lm = random_lm(4)
    many = circuit_on(lm, TEXTS, TARGETS, HEADS, feed_forwards=False)
    each = [
        circuit_on(lm, text, target, HEADS, feed_forwards=False)
        for text, target in zip(TEXTS, TARGETS, strict=True)
    ]
    values = np.stack([table["logit"] for table in each])
    assert np.allclose(many["logit"], values.mean(0)) and (many["n"] == 3).all()
    assert np.allclose(many["logit_se"], values.std(0, ddof=1) / 3**0.5)
    means = values.mean(0)
    share = (means[1] - means[3]) / (means[0] - means[3])
    assert share_kept(many.assign(logit=100 * means)) == pytest.approx(share)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_share_of_next_to_no_way_is_none(sign):
    table = pd.DataFrame({"kept": KEPT})
    for whole, share in ((0.0, None), (0.09, None), (0.125, 4.0), (1.0, 0.5), (4.0, 0.125)):
        found = share_kept(table.assign(logit=[sign * whole, sign * 0.5, 7.0, 0.0]))
        assert found == share


def test_the_whole_model_keeps_all_and_a_missing_head_is_said():
    lm = random_lm(4)
    table = circuit_on(lm, TEXTS[0], None, all_heads(lm))
    assert share_kept(table.assign(logit=100 * table["logit"])) == pytest.approx(1)
    first = lm.trace(TEXTS[0]).logits(-1)
    assert table["logit"][0] == pytest.approx(float(above(first, int(first.argmax()))), abs=1e-5)
    for heads, says in (([(2, 0)], "there is no block 2"), ([(0, 4)], "there is no head 4")):
        with pytest.raises(ValueError, match=says):
            circuit_on(lm, TEXTS[0], TARGETS[0], heads)
    with pytest.raises(ValueError, match="2 texts and 3 targets"):
        circuit_on(lm, TEXTS[:2], TARGETS, HEADS)
