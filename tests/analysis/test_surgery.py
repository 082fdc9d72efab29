"""Surgery on the cache against an attention that is written out, and against edits of a whole pass."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gptviz.analysis.surgery import Operation, Surgery, surgery
from gptviz.engine.edits import Edit
from tests.conftest import random_lm

IDS = [5, 70, 300, 12, 12, 4000, 9, 811]
N = len(IDS) - 1


def by_hand(lm, entries, last, position):
    """The last token's logits, from a list of (key, value) vectors a block and head, with plain loops."""
    model, c = lm.model, lm.config
    with torch.no_grad():
        x = model.tok_emb.weight[last] + model.pos_emb.weight[position]
        for b, block in enumerate(model.trf_blocks):
            read = block.norm1.formula(x)
            q, k, v = (
                (w.weight @ read + w.bias).split(c.head_dim)
                for w in (block.att.W_query, block.att.W_key, block.att.W_value)
            )
            outputs = []
            for h in range(c.n_heads):
                seen = [*entries[b][h], (k[h], v[h])]
                scores = torch.stack([(q[h] * key).sum() / math.sqrt(c.head_dim) for key, _ in seen])
                weights = scores.exp() / scores.exp().sum()
                outputs.append(sum(w * value for w, (_, value) in zip(weights, seen, strict=True)))
            x = x + block.att.out_proj(torch.cat(outputs))
            x = x + block.ff(block.norm2.formula(x))
        return model.out_head(model.final_norm.formula(x))


def entries_of(trace):
    """[block][head] -> the cached (key, value) pairs, in order."""
    return [
        [list(zip(k[:-1], v[:-1], strict=True)) for k, v in zip(trace["k", b], trace["v", b], strict=True)]
        for b in range(trace.config.n_layers)
    ]


def operated(lm, operation):
    entries = entries_of(lm.trace(IDS))
    if operation.kind == "freeze":
        other = list(IDS)
        other[operation.other] = operation.token
        old, entries = entries, entries_of(lm.trace(other))
    for b, block in enumerate(entries):
        for h, pairs in enumerate(block):
            at, two = operation.position, operation.other
            if operation.kind == "delete":
                del pairs[at]
            elif operation.kind == "swap":
                pairs[at], pairs[two] = pairs[two], pairs[at]
            elif operation.kind == "swap values":
                (k1, v1), (k2, v2) = pairs[at], pairs[two]
                pairs[at], pairs[two] = (k1, v2), (k2, v1)
            else:
                pairs[at] = old[b][h][at]
    return by_hand(lm, entries, IDS[-1], N)


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
    lm, other = random_lm(seed=3), random_lm(seed=3)
    d, parsed = lm.config.head_dim, Edit.parse(edit)
    with torch.no_grad():
        for b in parsed.blocks(lm.config.n_layers):
            block = other.model.trf_blocks[b]
            for h in parsed.heads or ():
                part = slice(h * d, (h + 1) * d)
                if parsed.site == "z":
                    block.att.out_proj.weight[:, part] = 0
                else:
                    block.att.W_value.weight[part], block.att.W_value.bias[part] = 0, 0
            if parsed.site == "mlp_out":
                block.ff.layers[2].weight.zero_(), block.ff.layers[2].bias.zero_()
    asked = {"delete": (), "freeze": (5, 999)}.get(kind, (5,))
    found, wanted = (surgery(one, IDS, Operation(kind, 2, *asked)) for one in (lm.edited(edit), other))
    assert found.agrees and found.kl_bits > 0
    for name in ("uncached", "cached", "after"):
        torch.testing.assert_close(getattr(found, name), getattr(wanted, name), rtol=1e-4, atol=1e-4)
    assert not torch.allclose(found.after, surgery(lm, IDS, Operation(kind, 2, *asked)).after, atol=1e-2)


@pytest.mark.parametrize(
    ("edit", "kind"),
    [
        ("z.0=mean", "swap values"),
        ("attn.1.0=first", "delete"),
        ("attn.*=hide3", "swap"),
        ("k.0@-1=zero", "swap"),
    ],
)
def test_an_edit_that_means_something_else_there_is_refused(edit, kind):
    asked = () if kind == "delete" else (5,)
    with pytest.raises(ValueError, match=r"give lm\.plain"):
        surgery(random_lm().edited(edit), IDS, Operation(kind, 2, *asked))


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
    found = surgery(lm, IDS, Operation("freeze", 0, other=3, token=77))  # position 0 cannot see position 3
    torch.testing.assert_close(found.unfrozen, lm.trace(other).logits(-1), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(found.after, found.unfrozen, rtol=1e-3, atol=1e-3)
    assert surgery(lm, IDS, Operation("delete", 0)).unfrozen is None


def test_the_divergence_in_bits():
    p, q = torch.tensor([0.5, 0.25, 0.25]), torch.tensor([0.25, 0.5, 0.25])
    found = Surgery(p.log(), p.log(), q.log())
    assert found.kl_bits == pytest.approx(0.5 * 1 - 0.25 * 1, abs=1e-6)
    assert found.disagreement == 0 and found.agrees
    assert not Surgery(p.log() + 0.01, p.log(), q.log()).agrees
    assert Surgery(p.log(), p.log(), p.log()).kl_bits == 0


def test_two_tokens_and_the_only_one_deleted(lm):
    found = surgery(lm, IDS[:2], Operation("delete", 0))
    torch.testing.assert_close(
        found.after, by_hand(lm, [[[] for _ in range(4)] for _ in range(2)], IDS[1], 1), rtol=1e-3, atol=1e-3
    )


def test_a_text_is_encoded(lm):
    text = "The cat sat on"
    one, other = (surgery(lm, given, Operation("delete", 0)) for given in (text, lm.encode(text)))
    assert torch.equal(one.after, other.after)
