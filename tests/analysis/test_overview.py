"""The Overview's numbers against the trace."""

import numpy as np
import pytest
import torch

from gptviz.analysis.overview import SITES, around, folded, glance, token_table
from gptviz.analysis.reads import sites_of

TEXT = 'He said, "Seven green parrots?"'


def test_a_glance_is_the_trace(lm):
    t = lm.trace(TEXT)
    position = 3
    seen = glance(lm, lm.trace(TEXT, keep=sites_of(glance, lm)), position)
    norms = seen.norms
    assert np.array_equal(seen.parts[0] + seen.parts[1], seen.parts[2])
    assert len(norms) == 2 * lm.config.n_layers + 1 and norms["norm"].iloc[-1] == "final"
    x = t["resid_pre", 0][position].double()
    assert norms["before"][0] == pytest.approx(float(((x - x.mean()) ** 2).mean().sqrt()), rel=1e-5)
    last = t["final"][position].double()
    assert norms["after"].iloc[-1] == pytest.approx(
        float(((last - last.mean()) ** 2).mean().sqrt()), rel=1e-5
    )
    for row, site in zip((*seen.units, seen.added), ("mlp_pre", "mlp_act", "mlp_out"), strict=True):
        assert np.array_equal(row, t[site, lm.config.n_layers - 1][position])
    logits = t.logits(position)
    assert seen.following["id"].tolist() == logits.topk(5).indices.tolist()
    expected = torch.softmax(logits.double(), 0)[seen.following["id"].tolist()].numpy()
    assert np.allclose(seen.following["probability"], expected, rtol=1e-5)


def test_the_neighbours_hold_the_chosen_one(lm):
    tokens = lm.trace("a b c d e f g h i j k l", keep=()).tokens
    for position in range(len(tokens)):
        near = around(tokens, position)
        assert tokens[position] in near and len(near) == 6
        assert [t.position for t in near] == list(range(near[0].position, near[0].position + 6))
    assert around(tokens[:3], 1) == tokens[:3]


@pytest.mark.parametrize(("n", "shape"), [(1024, (16, 64)), (256, (8, 32)), (16, (2, 8)), (7, (1, 7))])
def test_a_long_row_is_folded_from_the_left(n, shape):
    values = np.arange(n, dtype=np.float32)
    assert folded(values).shape == shape and np.array_equal(folded(values).ravel(), values)


def test_a_line_a_token(lm):
    t = lm.trace(TEXT)
    table = token_table(lm, lm.trace(TEXT, keep=SITES))
    assert table["id"].tolist() == [token.id for token in t.tokens]
    assert np.allclose(table["sum_norm"], t["embed"].norm(dim=-1).numpy(), rtol=1e-5)
    assert np.allclose(table["first_variance"], t["embed"].var(dim=-1, unbiased=False).numpy(), rtol=1e-4)
    last = t["resid_post", lm.config.n_layers - 1].var(dim=-1, unbiased=False).numpy()
    assert np.allclose(table["last_variance"], last, rtol=1e-4)
