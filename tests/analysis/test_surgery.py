"""Surgery on the cache against an attention that is written out, and against edits of a whole pass."""

import math

import pytest
import torch
from hypothesis import given, settings, strategies as st

from gptviz.analysis.surgery import Operation, Surgery, surgery
from gptviz.engine.edits import Edit
from tests.analysis.written_out import without
from tests.conftest import random_lm

IDS = [5, 70, 300, 12, 12, 4000, 9, 811]
N = len(IDS) - 1


def cached(lm, ids):
    """Of each block the keys and values of all tokens but the last, (H, T - 1, d)."""
    trace = lm.trace(ids)
    return [[trace[site, b][:, :-1] for site in "kv"] for b in range(lm.config.n_layers)]


def written_out(lm, cache, last, position):
    """The last token's logits when it looks at these keys and values and at its own."""
    model = lm.model
    heads = lm.config.n_heads
    with torch.no_grad():
        x = model.tok_emb.weight[last] + model.pos_emb.weight[position]
        for block, (keys, values) in zip(model.trf_blocks, cache, strict=True):
            read = block.norm1.formula(x)
            att = block.att
            q, k, v = (
                (w.weight @ read + w.bias).view(heads, 1, -1)
                for w in (att.W_query, att.W_key, att.W_value)
            )
            keys = torch.cat([keys, k], dim=1)  # (H, T, d)
            values = torch.cat([values, v], dim=1)
            scores = (q * keys).sum(dim=-1) / math.sqrt(lm.config.head_dim)  # (H, T)
            weights = scores.exp() / scores.exp().sum(dim=-1, keepdim=True)
            x = x + block.att.out_proj((weights[..., None] * values).sum(dim=1).flatten())
            x = x + block.ff(block.norm2.formula(x))
        return model.out_head(model.final_norm.formula(x))


def operated(lm, operation):
    at = operation.position
    other = operation.other
    here = list(range(N))
    order = {"delete": here[:at] + here[at + 1 :], "freeze": here}.get(operation.kind)
    if order is None:  # two change places
        order = here[:]
        order[at] = other
        order[other] = at
    orders = (here if operation.kind == "swap values" else order), order  # of keys and of values
    cache = cached(lm, IDS)
    if operation.kind == "freeze":
        frozen = cache
        cache = cached(lm, [*IDS[:other], operation.token, *IDS[other + 1 :]])
        for block, old in zip(cache, frozen, strict=True):
            for rows, of_old in zip(block, old, strict=True):
                rows[:, at] = of_old[:, at]
    cache = [[rows[:, kept] for rows, kept in zip(block, orders, strict=True)] for block in cache]
    return written_out(lm, cache, IDS[-1], N)


@pytest.mark.parametrize(
    "operation",
    [
        Operation("delete", 0),
        Operation("delete", N - 1),
        Operation("swap values", 1, other=5),
        Operation("swap values", 0, other=0),
        Operation("swap", 2, other=6),
        Operation("freeze", 4, other=1, token=999),
        Operation("freeze", 1, other=1, token=999),
    ],
    ids=str,
)
def test_each_operation_is_the_attention_written_out(lm, operation):
    found = surgery(lm, IDS, operation)
    torch.testing.assert_close(found.after, operated(lm, operation), rtol=1e-3, atol=1e-3)
    assert found.agrees and found.disagreement < 1e-4
    torch.testing.assert_close(found.uncached, lm.trace(IDS).logits(-1), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", Operation.KINDS)
@pytest.mark.parametrize("edit", ["z.0.1+3=zero", "v.1.2=zero", "mlp_out.0=zero", "z.*.0=zero"])
def test_of_a_changed_model_it_is_that_of_one_with_those_weights_at_zero(kind, edit):
    """An edit to zero is a model whose weights there are zero: no edit is made in its passes."""
    lm = random_lm(seed=3)
    other = without(lm, Edit.parse(edit))
    asked = {"delete": (), "freeze": (5, 999)}.get(kind, (5,))
    found, wanted = (
        surgery(one, IDS, Operation(kind, 2, *asked)) for one in (lm.edited(edit), other)
    )
    assert found.agrees and found.kl_bits > 0
    for name in ("uncached", "cached", "after"):
        torch.testing.assert_close(
            getattr(found, name), getattr(wanted, name), rtol=1e-4, atol=1e-4
        )
    assert not torch.allclose(
        found.after, surgery(lm, IDS, Operation(kind, 2, *asked)).after, atol=1e-2
    )


@settings(max_examples=20)
@given(position=st.integers(0, N - 1), seed=st.integers(0, 3))
def test_to_delete_is_to_hide_a_column_from_the_new_query_in_all_blocks(position, seed):
    lm = random_lm(seed)

    def hidden(weights):
        row = weights[:, -1:].clone()
        row[..., position] = 0
        return torch.cat([weights[:, :-1], row / row.sum(dim=-1, keepdim=True)], dim=1)

    edits = [Edit("attn", b, hidden, positions=[-1]) for b in range(lm.config.n_layers)]
    whole = lm.trace(IDS, keep=[], edits=edits).logits(-1)
    found = surgery(lm, IDS, Operation("delete", position))
    torch.testing.assert_close(found.after, whole, rtol=1e-3, atol=1e-3)


def test_the_order_in_the_cache_is_nothing_to_attention(mini):
    ids = mini.encode("Seven green parrots sang behind the old mill. Seven green")
    same = surgery(mini, ids, Operation("swap", 1, other=7))
    torch.testing.assert_close(same.after, same.cached, rtol=1e-4, atol=1e-4)
    assert same.kl_bits < 1e-6
    assert surgery(mini, ids, Operation("swap values", 1, other=7)).kl_bits > 1e-3
    assert surgery(mini, ids, Operation("freeze", 3, other=7, token=ids[7])).kl_bits < 1e-6


def test_a_frozen_text_without_what_was_frozen_is_the_other_text(lm):
    other = [*IDS[:3], 77, *IDS[4:]]
    # position 0 cannot see position 3
    found = surgery(lm, IDS, Operation("freeze", 0, other=3, token=77))
    torch.testing.assert_close(found.unfrozen, lm.trace(other).logits(-1), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(found.after, found.unfrozen, rtol=1e-3, atol=1e-3)
    assert surgery(lm, IDS, Operation("delete", 0)).unfrozen is None


def test_the_divergence_in_bits():
    p = torch.tensor([0.5, 0.25, 0.25])
    q = torch.tensor([0.25, 0.5, 0.25])
    found = Surgery(p.log(), p.log(), q.log())
    assert found.kl_bits == pytest.approx(0.5 * 1 - 0.25 * 1, abs=1e-6)
    assert found.disagreement == 0 and found.agrees
    assert not Surgery(p.log() + 0.01, p.log(), q.log()).agrees
    assert Surgery(p.log(), p.log(), p.log()).kl_bits == 0


def test_two_tokens_and_the_only_one_deleted(lm):
    found = surgery(lm, IDS[:2], Operation("delete", 0))
    nothing = [[rows[:, :0] for rows in block] for block in cached(lm, IDS[:2])]
    torch.testing.assert_close(
        found.after, written_out(lm, nothing, IDS[1], 1), rtol=1e-3, atol=1e-3
    )


def test_a_text_is_encoded(lm):
    text = "The cat sat on"
    one, other = (surgery(lm, given, Operation("delete", 0)) for given in (text, lm.encode(text)))
    assert torch.equal(one.after, other.after)
