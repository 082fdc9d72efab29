"""Path patching against the three passes as torch hooks on the book's model."""

import pandas as pd
import pytest
import torch

from gptviz.analysis.activation_patching import patching
from gptviz.analysis.patched_paths import path_patching, path_positions
from tests.analysis.test_activation_patching import difference, target_of
from tests.analysis.written_out import IDS as CLEAN, OTHER as CORRUPT, Told
from tests.conftest import KINDS_OF_MODELS, above, random_lm


def hooked(model, ids, z=None, reads=None):
    """A pass with heads' outputs replaced by `z` {block: (H, T, d)} and reads by {(read, block, head): (T, d)}.

    Gives the logits, every head's output and every block's reads, from hooks on the modules alone.
    """
    seen = {}
    handles = []
    for b, block in enumerate(model.trf_blocks):
        att = block.att
        heads = att.num_heads
        width = att.head_dim

        def split(x, heads=heads, width=width):
            return x[0].view(-1, heads, width).transpose(0, 1)  # (1, T, D) -> (H, T, d)

        def joined(x):
            return x.transpose(0, 1).reshape(1, x.shape[1], -1)  # (H, T, d) -> (1, T, D)

        def before_out(module, args, b=b, split=split, joined=joined):
            seen["z", b] = split(args[0]).clone()
            if z is not None and b in z:
                return (joined(z[b]),)
            return None

        handles.append(att.out_proj.register_forward_pre_hook(before_out))
        for name, layer in (("q", att.W_query), ("k", att.W_key), ("v", att.W_value)):

            def after(module, args, out, name=name, b=b, split=split, joined=joined):
                value = split(out).clone()
                seen[name, b] = value.clone()
                for (read, at, head), new in (reads or {}).items():
                    if (read, at) == (name, b):
                        value[head] = new
                return joined(value)

            handles.append(layer.register_forward_hook(after))
    with torch.no_grad():
        logits = model(torch.tensor([ids]))[0]
    for handle in handles:
        handle.remove()
    return logits, seen


def by_hooks(lm, own, source, sender, receivers, target, position, sent_at=slice(None)):
    """The difference of logits with one path patched."""
    _, mine = hooked(lm.model, own)
    _, theirs = hooked(lm.model, source)
    block, head = sender
    z = {b: mine["z", b].clone() for b in range(block, lm.config.n_layers)}
    z[block][head, sent_at] = theirs["z", block][head, sent_at]
    logits, path = hooked(lm.model, own, z)
    if receivers != "logits":
        reads = {(read, b, h): path[read, b][h] for read, b, h in receivers if b > block}
        logits, _ = hooked(lm.model, own, reads=reads)
    return above(logits[position], *target).item()


def receivers_for(lm):
    """The logits, a head's queries, and the keys and values of two heads of two blocks, where there are so many."""
    last = lm.config.n_layers - 1
    head = lm.config.n_heads - 1
    every = [[("q", last, 0)], [("v", max(1, last - 1), 0), ("k", last, head), ("v", last, head)]]
    return ["logits", *(every if last else [])]


@pytest.mark.parametrize("changes", KINDS_OF_MODELS.values(), ids=KINDS_OF_MODELS)
@pytest.mark.parametrize(("direction", "position"), [("denoising", -1), ("noising", 3)])
def test_a_path_is_three_passes_with_hooks(changes, direction, position):
    lm = random_lm(6, **changes)
    for receivers in receivers_for(lm):
        target = target_of(lm, CLEAN, CORRUPT, position)
        told = Told()
        table = path_patching(
            lm, CLEAN, CORRUPT, target, receivers, direction, position, progress=told
        )
        assert told.came_to(len(table))
        last = lm.config.n_layers - (receivers != "logits")
        assert list(zip(table["block"], table["head"], strict=True)) == [
            (b, h) for b in range(last) for h in range(lm.config.n_heads)
        ]
        own, source = (CORRUPT, CLEAN) if direction == "denoising" else (CLEAN, CORRUPT)
        clean, corrupt = (difference(lm, ids, (), target, position) for ids in (CLEAN, CORRUPT))
        for row in table.iloc[::3].itertuples():
            logit = by_hooks(lm, own, source, (row.block, row.head), receivers, target, position)
            assert row.logit == pytest.approx(logit, abs=1e-5, rel=1e-6)
            metric = (logit - corrupt) / (clean - corrupt)
            assert row.metric == pytest.approx(metric, abs=1e-4)
            assert row.effect == pytest.approx(metric - (direction == "noising"), abs=1e-4)


def test_what_is_sent_at_one_position_is_three_passes_with_hooks():
    lm = random_lm(6, n_layers=3)
    target = target_of(lm, CLEAN, CORRUPT)
    for receivers in ("logits", [("q", 1, 0), ("v", 2, 1), ("q", 2, 3)]):
        table = path_patching(
            lm, CLEAN, CORRUPT, target, receivers, direction="noising", sent_at=-2
        )
        for row in table.iloc[::2].itertuples():
            sender = (row.block, row.head)
            place = len(CLEAN) - 2
            logit = by_hooks(
                lm, CLEAN, CORRUPT, sender, receivers, target, -1, slice(place, place + 1)
            )
            assert row.logit == pytest.approx(logit, abs=1e-5, rel=1e-6)
    assert (table["change"] != 0).any()


@pytest.mark.parametrize("direction", ["denoising", "noising"])
def test_where_heads_write_is_three_passes_with_hooks_at_each_position(direction):
    lm = random_lm(6, n_layers=3)
    target = target_of(lm, CLEAN, CORRUPT)
    senders = [(1, 2), (0, 1)]
    places = [2, len(CLEAN) - 1]
    for receivers in ("logits", [("q", 2, 0), ("v", 2, 1)]):
        told = Told()
        table = path_positions(
            lm, CLEAN, CORRUPT, senders, places, target, receivers, direction, progress=told
        )
        assert told.came_to(len(places))
        rows = zip(table["block"], table["head"], table["position"], strict=True)
        assert list(rows) == [(b, h, p) for p in places for b, h in sorted(senders)]
        own, source = (CORRUPT, CLEAN) if direction == "denoising" else (CLEAN, CORRUPT)
        before = difference(lm, own, (), target, -1)
        for row in table.itertuples():
            at = slice(row.position, row.position + 1)
            sender = (row.block, row.head)
            logit = by_hooks(lm, own, source, sender, receivers, target, -1, at)
            assert row.logit == pytest.approx(logit, abs=1e-5, rel=1e-6)
            assert row.change == pytest.approx(logit - before, abs=1e-5)


def test_the_logits_read_a_head_at_the_position_that_is_looked_at_alone():
    lm = random_lm(6)
    target = target_of(lm, CLEAN, CORRUPT)
    last = len(CLEAN) - 1
    whole = path_patching(lm, CLEAN, CORRUPT, target)
    senders = [(0, 1), (1, 3)]
    table = path_positions(lm, CLEAN, CORRUPT, senders, range(last + 1), target)
    assert table["change"][table["position"] < last].abs().max() < 1e-6
    for row in table[table["position"] == last].itertuples():
        found = whole[(whole["block"] == row.block) & (whole["head"] == row.head)]
        assert row.logit == pytest.approx(found["logit"].item(), abs=1e-5)


@pytest.mark.parametrize(
    ("senders", "positions", "why"),
    [
        ([(1, 0)], [0], "head 0 of block 1, which stands before no receiver"),
        ([(0, 9)], [0], "head 9 of block 0"),
        ([(0, 0)], [], "positions is empty"),
        ([(0, 0)], [99], "99"),
    ],
)
def test_a_sender_or_a_position_that_does_not_exist_is_refused(senders, positions, why):
    lm = random_lm(6)
    with pytest.raises(ValueError, match=why):
        path_positions(lm, CLEAN, CORRUPT, senders, positions, (42, 30), [("q", 1, 1)])


def test_a_head_of_the_last_block_has_no_path_but_the_direct_one():
    """Patching it moves the prediction by that path alone, so both numbers are the same."""
    lm = random_lm(6)
    target = target_of(lm, CLEAN, CORRUPT)
    last = f"block == {lm.config.n_layers - 1}"
    all_paths = patching(lm, CLEAN, CORRUPT, target, ["z"]).query(last)["logit"]
    direct = path_patching(lm, CLEAN, CORRUPT, target).query(last)["logit"]
    # the feed-forward of its own block reads it, too, on both ways
    assert direct.to_numpy() == pytest.approx(all_paths.to_numpy(), abs=1e-5)


def test_a_model_with_edits_has_them_in_every_pass():
    lm = random_lm(6).edited("z.0.1=zero")
    target = target_of(lm, CLEAN, CORRUPT)
    table = path_patching(lm, CLEAN, CORRUPT, target, [("q", 1, 0)])
    off = table.query("block == 0 and head == 1")
    assert off["change"].item() == 0  # its output is 0 in both texts
    assert (table["change"] != 0).any()


def test_of_many_texts_there_are_means_and_standard_errors():
    lm = random_lm(6)
    texts = [CLEAN, CLEAN[::-1]]
    others = [CORRUPT, CORRUPT[::-1]]
    target = target_of(lm, CLEAN, CORRUPT)
    single = [
        path_patching(lm, *pair, target)["change"] for pair in zip(texts, others, strict=True)
    ]
    table = path_patching(lm, texts, others, target)
    assert table["change"].to_numpy() == pytest.approx(pd.concat(single, axis=1).mean(axis=1))
    assert (table["n"] == 2).all() and table["change_se"].notna().all()


@pytest.mark.parametrize(
    ("receivers", "why"),
    [
        ("heads", "it must be one of logits"),
        ([], "receivers is empty"),
        ([("z", 1, 1)], "must be one of q, k, v"),
        ([("q", 60, 1)], "there is no receivers' block 60"),
        ([("q", 1, 9)], "there is no receivers' head 9"),
        ([("q", 0, 1)], "which no head stands before"),
        ([(3, 1)], 'give "logits", or reads'),
    ],
)
def test_a_receiver_that_does_not_exist_is_refused_in_a_sentence(receivers, why):
    with pytest.raises(ValueError, match=why):
        path_patching(random_lm(6), CLEAN, CORRUPT, None, receivers)
