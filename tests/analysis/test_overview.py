"""The Overview's numbers against the trace."""

import numpy as np
import pytest

from gptviz.analysis.overview import SITES, spreads, token_table
from gptviz.analysis.reads import sites_of

TEXT = 'He said, "Seven green parrots?"'


def test_the_spreads_are_the_trace(lm):
    t = lm.trace(TEXT)
    position = 3
    norms = spreads(lm, lm.trace(TEXT, keep=sites_of(spreads, lm)), position)
    assert len(norms) == 2 * lm.config.n_layers + 1 and norms["norm"].iloc[-1] == "final"
    for found, row in (
        (norms["before"][0], t["resid_pre", 0]),
        (norms["after"].iloc[-1], t["final"]),
    ):
        assert found == pytest.approx(float(row[position].double().std(correction=0)), rel=1e-5)


def test_a_line_a_token(lm):
    t = lm.trace(TEXT)
    table = token_table(lm, lm.trace(TEXT, keep=SITES))
    assert table["id"].tolist() == [token.id for token in t.tokens]
    assert np.allclose(table["sum_norm"], t["embed"].norm(dim=-1).numpy(), rtol=1e-5)
    assert np.allclose(
        table["first_variance"], t["embed"].var(dim=-1, unbiased=False).numpy(), rtol=1e-4
    )
    last = t["resid_post", lm.config.n_layers - 1].var(dim=-1, unbiased=False).numpy()
    assert np.allclose(table["last_variance"], last, rtol=1e-4)
