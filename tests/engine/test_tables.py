"""What a trace says of itself at once: its loss, its sites as tables, what an editor offers."""

import inspect

import numpy as np
import pytest
import torch

import gptviz
from gptviz.engine.sites import SITES
from tests.conftest import random_lm

TEXT = "The cat sat on the mat"


@pytest.fixture(scope="module")
def lm():
    return gptviz.load("mini")


def test_the_loss_is_the_books_cross_entropy_of_the_plain_and_of_a_changed_model(lm):
    ids = torch.tensor(lm.encode(TEXT))
    with torch.no_grad():
        logits = lm.model(ids[None, :-1])
    # calc_loss_batch of chapter 5
    books = torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[1:])
    assert lm.trace(TEXT).loss() == pytest.approx(books.item(), abs=1e-5)
    changed = lm.edited("z.4.3=zero").trace(TEXT)
    probabilities = changed.logits().double().softmax(-1)[range(len(ids) - 1), ids[1:]]
    assert changed.loss() == pytest.approx(-probabilities.log().mean().item(), abs=1e-5)
    assert abs(changed.loss() - lm.trace(TEXT).loss()) > 1e-3
    with pytest.raises(
        ValueError, match="one token has no next token, and so no loss: trace two or more"
    ):
        lm.trace("The").loss()


@pytest.mark.parametrize("site", SITES)
def test_a_table_has_a_sites_numbers_with_its_tokens_beside_them(lm, site):
    t = lm.trace(TEXT)
    block = 3 if SITES[site].per_block else None
    of_heads = SITES[site].form != "rows"
    table = t.table(site, block, 1) if of_heads else t.table(site, block)
    expected = t[site, block] if block is not None else t[site]
    if of_heads:
        expected = expected[1]
    assert np.array_equal(table.to_numpy(), expected.numpy())
    names = [token.shown for token in t.tokens]
    assert table.index.tolist() == names
    if site == "attn":
        assert table.columns.tolist() == names and [table.index.name, table.columns.name] == [
            "query",
            "key",
        ]
    else:
        assert (
            table.columns.tolist() == [*range(expected.shape[-1])] and table.index.name == "token"
        )
    table.iloc[0, 0] = 9.0  # a table of one's own
    assert np.array_equal((t[site, block][1] if of_heads else expected).numpy(), expected.numpy())


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (
            lambda t: t.table("attn", 1),
            r"attn has a table for each head, from 0 to 3: t.table\('attn', 1, head\)",
        ),
        (lambda t: t.table("attn", 1, 4), "no head 4; they go from 0 to 3"),
        (lambda t: t.table("attn"), "site 'attn' needs a block, from 0 to 1"),
        (lambda t: t.table("mlp_out", 0, 1), "mlp_out has no heads: ask for .* without the head 1"),
        (
            lambda t: t.table("attention", 0),
            "there is no site 'attention' .did you mean attn..; the sites are tok_emb",
        ),
    ],
)
def test_a_table_that_there_is_not_is_a_sentence(ask, says):
    with pytest.raises(ValueError, match=says):
        ask(random_lm().trace([5, 6, 7]))


def test_an_editor_offers_the_sites_and_help_says_how_they_are_indexed():
    t = random_lm().trace([5, 6, 7], keep=["z", ("attn", 1)])
    offered = t._ipython_key_completions_()
    assert set(offered) == {"z", "attn", ("z", 0), ("z", 1), ("attn", 1)} and len(offered) == 5
    assert [isinstance(one, str) for one in offered] == [True, True, False, False, False]
    everything = random_lm().trace([5, 6, 7])
    assert {*SITES} == {
        one for one in everything._ipython_key_completions_() if isinstance(one, str)
    }
    assert all(everything[key].numel() for key in everything._ipython_key_completions_())
    said = inspect.getdoc(type(t).__getitem__)
    assert 't["attn", 3]' in said and "gptviz.SITES" in said and "(H, T, T)" in said
