"""The attention that a head gives the answer, against the softmax of its own queries and keys."""

import numpy as np
import pytest
import torch

from gptviz.analysis.answer_looks import LOOKS, answer_looks
from tests.analysis.written_out import Told
from tests.conftest import random_lm

IDS = [5, 7, 9, 7, 12, 5]
MANY = [IDS, [7, 9, 9], [1, 2, 3, 4]]
TARGETS = [(7, 12), (9, 7), (1, 100)]


@pytest.mark.parametrize("position", [-1, 3])
def test_it_is_the_softmax_of_queries_and_keys(position):
    lm = random_lm(5)
    told = Told()
    table = answer_looks(lm, IDS, (7, 12), position, progress=told)
    trace = lm.trace(IDS)
    last = range(len(IDS))[position]
    for row in table.itertuples():
        q, k = (trace[site, row.block][row.head] for site in ("q", "k"))
        scores = k[: last + 1] @ q[last] / q.shape[-1] ** 0.5
        weights = torch.softmax(scores.double(), 0)
        assert row.to_answer == pytest.approx(float(weights[1] + weights[3]), abs=1e-5)
        expected = float(weights[4]) if last > 3 else 0
        assert row.to_against == pytest.approx(expected, abs=1e-5)
    assert len(table) == lm.config.n_layers * lm.config.n_heads and told.came_to(1)


def test_means_first_choices_and_what_is_not_there():
    lm = random_lm(5)
    many = answer_looks(lm, MANY, TARGETS)
    each = [answer_looks(lm, ids, aim) for ids, aim in zip(MANY, TARGETS, strict=True)]
    for name in LOOKS:
        values = np.stack([table[name] for table in each])
        assert np.allclose(many[name], values.mean(0))
        assert np.allclose(many[f"{name}_se"], values.std(0, ddof=1) / 3**0.5)
    assert not each[2]["to_against"].any()
    first = int(lm.trace(IDS).logits(-1).argmax())
    assert answer_looks(lm, IDS).equals(answer_looks(lm, IDS, first))
    assert not answer_looks(lm, IDS, 7)["to_against"].any()  # against nothing
    with pytest.raises(ValueError, match="target is twice"):
        answer_looks(lm, IDS, (7, 7))
