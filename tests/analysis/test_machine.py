"""Every number of the one picture, against a forward pass that is written out by hand in float64."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from gptviz.analysis import compare, machine
from gptviz.analysis.places import resolve
from gptviz.analysis.reads import sites_of
from gptviz.ui.shell.state import UNSAID_TEXT
from tests.analysis.written_out import by_hand, weights_of
from tests.conftest import random_lm

OFF = (1, 0)  # the block and head that are switched off in a changed run
AT = [
    "", "embedding", "block.0", "block.last", "block.0.norm1", "block.1.norm2", "final_norm",
    "block.1.attention", "block.1.head.0", "block.last.head.strongest", "block.0.head.0.cell.1.2",
    "block.1.head.1.cell.here.strongest", "block.1.feed_forward", "block.0.unit.strongest", "block.1.unit.3",
    "out_head", "logit.best", "logit.7",
]  # fmt: skip


@pytest.fixture(scope="module")
def twelve():
    return random_lm(3, n_layers=12, n_heads=12, emb_dim=48)


def lines_of(lm, place, found, position):
    """What the lines of a place hold, in turn: rows, (row, number) pairs, numbers."""
    kind = place.kind
    w = weights_of(lm.model)
    b = found["blocks"][place.block] if "block" in place.at else None
    if kind == "embedding":
        token = w["tok_emb.weight"][found["ids"][position]]
        where = w["pos_emb.weight"][position]
        return [token, where, token + where]
    if kind in ("norm1", "norm2", "final_norm"):
        if kind == "final_norm":
            x = found["blocks"][-1]["post"]
            y = found["final"]
        else:
            x = b["pre" if kind == "norm1" else "mid"]
            y = b[kind]
        x = x[position]
        y = y[position]
        name = f"trf_blocks.{place.block}.{kind}" if b else "final_norm"
        variance = x.var(correction=0)
        divisor = torch.sqrt(variance + 1e-5)
        scale = w[f"{name}.scale"]
        shift = w[f"{name}.shift"]
        through = [(x, x.mean()), (x - x.mean(), variance), ((x - x.mean()) / divisor, divisor)]
        return [*through, (scale, scale.mean()), (shift, shift.mean()), (y, y.var(correction=0))]
    if kind == "cell":
        q = b["q"][place.head, place.query]
        (k, v) = (b[name][place.head, place.key] for name in "kv")
        score = q @ k
        root = math.sqrt(len(q))
        lines = [q, k, (q * k, score), root, score / root]
        if place.key > place.query:
            return [*lines, 0]
        row = b["scores"][place.head, place.query, : place.query + 1] / root
        e = torch.exp(row - row.max())
        weight = b["weights"][place.head, place.query, place.key]
        return [*lines, e[place.key], e.sum(), weight, v, weight * v]
    if kind == "feed_forward":
        before, after, norm2, mlp = (
            b[name][position] for name in ("before", "after", "norm2", "mlp")
        )
        return [norm2, (before, (before > 0).sum()), after, mlp]
    if kind == "unit":
        name = f"trf_blocks.{place.block}.ff.layers"
        u = place.unit
        row = b["norm2"][position]
        asks = w[f"{name}.0.weight"][u]
        writes = w[f"{name}.2.weight"][:, u]
        before, after = (b[part][position, u] for part in ("before", "after"))
        products = (row * asks, row @ asks)
        return [row, asks, products, w[f"{name}.0.bias"][u], before, after, writes, after * writes]
    row = found["final"][position]
    if kind == "out_head":
        return [row]
    logits = found["logits"][position]
    column = w["out_head.weight"][place.id]
    rank = 1 + (logits > logits[place.id]).sum()
    return [row, column, (row * column, logits[place.id]), logits.softmax(-1)[place.id], rank]


def near(now, expected):
    expected = np.asarray(expected, dtype=np.float64)
    assert np.allclose(
        now, expected, rtol=2e-3, atol=2e-4 * max(1.0, float(np.abs(expected).max(initial=0)))
    )


def are_the_lines(lines, expected):
    assert len(lines) == len(expected)
    for line, one in zip(lines, expected, strict=True):
        values, number = one if isinstance(one, tuple) else (torch.as_tensor(one), None)
        if number is None:  # a row's size, or the number itself
            number = values.norm() if values.dim() else values
        near(line["number"], number)
        assert ("values" in line) == (values.dim() == 1)
        if "values" in line:
            near(line["values"], values[: len(line["values"])])
            assert len(line["values"]) == line["of"] or len(line["values"]) == machine.WIDE


def are_the_reads(reads, blocks, position, off):
    """Of each block those that bring most; what is read by a head that is off is not passed on."""
    for b, block in enumerate(blocks):
        own = [read for read in reads if read["block"] == b]
        near(
            [r["weight"] for r in own],
            [block["weights"][r["head"], position, r["key"]] for r in own],
        )
        lengths = block["brings"][:, :position].norm(dim=-1)  # (H, n)
        if off is not None and off[0] == b:
            lengths[off[1]] = 0
        brought = block["weights"][:, position, :position] * lengths
        most = brought.flatten().sort(descending=True).values[: machine.READS]
        near([read["brought"] for read in own], most)


def test_without_heads_nothing_is_read(mini):
    lm = mini.edited(*(f"z.{b}=zero" for b in range(mini.config.n_layers)))
    assert not machine.level(lm, lm.trace("a b c"), "", 2)["reads"]


@pytest.mark.parametrize(("value", "times"), [("mean", 0), ("x0.5", 0.5), ("x-2", 2)])
def test_a_head_brings_as_much_of_what_it_read_as_it_hands_on(mini, value, times):
    ids = mini.encode(UNSAID_TEXT)
    edited = mini.edited(f"z.5.0={value}")
    at = len(ids) - 1
    unchanged = machine.level(mini, mini.trace(ids), "", len(ids) - 1)
    level = machine.level(edited, edited.trace(ids), "", at, unchanged["shown"])
    was, now = (
        {(one["block"], one["head"], one["key"]): one["brought"] for one in some["reads"]}
        for some in (unchanged, level)
    )
    assert any(place[:2] == (5, 0) for place in was)
    for place, brought in was.items():
        assert now[place] == pytest.approx(
            brought * (times if place[:2] == (5, 0) else 1), rel=1e-3
        )


def drawn_at(place, found, position, window):
    """The arrays of a place that is no list of lines, by their names in the level."""
    seen = slice(window.start, window.stop)
    blocks = found["blocks"]
    if place.kind == "machine":
        stream = torch.stack([found["in"], *(b[part] for b in blocks for part in ("mid", "post"))])
        writes = torch.stack([b[part] for b in blocks for part in ("attn", "mlp")])
        return {"stream": stream.norm(dim=-1)[:, seen], "writes": writes.norm(dim=-1)[:, seen]}
    b = blocks[place.block]
    if place.kind == "block":
        pairs = (("attn", "pre"), ("mlp", "mid"))
        return {
            "cosines": [
                torch.cosine_similarity(b[x][position], b[y][position], dim=0) for x, y in pairs
            ]
        }
    if place.kind == "attention":
        down, across = np.tril_indices(len(window))
        return {"weights": b["weights"][:, down + window.start, across + window.start]}
    at = (place.head, position), (place.head, seen)
    scores, row = (b[name][place.head, position, seen] for name in ("scores", "weights"))
    rows = {
        "q": b["q"][at[0]],
        "k": b["k"][at[1]],
        "v": b["v"][at[1]],
        "z": b["z"][at[0]],
        "row": row,
    }
    scaled = scores / math.sqrt(b["q"].shape[-1])
    return rows | {"scores": scores, "scaled": scaled, "outside": 1 - row.sum()}


def check(lm, ids, at, position, off=None):
    edited = lm if off is None else lm.edited(f"z.{off[0]}.{off[1]}=zero")
    asked = edited.trace(list(ids), keep=sites_of(resolve, edited, at, position))
    place = resolve(edited, asked, at, position)
    t = edited.trace(list(ids), keep=sites_of(machine.level, edited, place.at))
    level = machine.level(edited, t, place.at, position)
    found = by_hand(lm, tuple(ids), off) | {"ids": list(ids)}
    if "lines" in level:
        are_the_lines(level["lines"], lines_of(lm, place, found, position))
    else:
        for name, values in drawn_at(
            place, found, position, machine.window(len(ids), position)
        ).items():
            near(level[name], values)
    if place.kind == "machine":
        are_the_reads(level["reads"], found["blocks"], position, off)
        chances = found["logits"][position].softmax(-1).sort(descending=True).values
        near([one["value"] for one in level["next"]], chances[: machine.BEST])
    elif place.kind == "block":
        rows = [found["blocks"][place.block][wire["name"]][position] for wire in level["wires"]]
        near([wire["values"] for wire in level["wires"]], torch.stack(rows)[:, : machine.WIDE])
        near([wire["number"] for wire in level["wires"]], torch.stack(rows).norm(dim=-1))
    elif place.kind == "attention":
        b = found["blocks"][place.block]
        near([head["wrote"] for head in level["heads"]], b["wrote"][:, position].norm(dim=-1))
        near(
            [head["weight"] for head in level["heads"]],
            b["weights"][:, position].max(dim=-1).values,
        )
    assert level["says"] and len(machine.table(level)) >= (position > 0)


@settings(max_examples=25)
@given(
    st.lists(st.integers(0, 199), min_size=1, max_size=30),
    st.integers(0, 29),
    st.sampled_from(AT),
    st.booleans(),
)
def test_every_number_at_every_place_of_twelve_blocks_with_twelve_heads(
    twelve, ids, position, at, changed
):
    check(twelve, ids, at, position % len(ids), OFF if changed else None)


@pytest.mark.parametrize("at", AT)
def test_every_number_at_every_place_of_the_bundled_model(mini, at):
    ids = mini.encode(UNSAID_TEXT * 2)  # more tokens than are drawn
    check(mini, ids, at, len(ids) - 1)
    check(mini, ids, at, 3, (4, 3))


def test_what_is_drawn_of_the_unchanged_model_is_what_was_chosen_in_the_changed_one(mini):
    edited = mini.edited("z.4.3=zero")
    position = 15
    for at in ("", "block.5.attention", "block.5.head.2", "block.5.feed_forward", "out_head"):
        t = edited.trace(UNSAID_TEXT)
        was = mini.trace(UNSAID_TEXT)
        level = machine.level(edited, t, at, position)
        other = machine.level(mini, was, at, position, level["shown"])
        assert level["shown"] == other["shown"]
        said, words = (
            [p for p in one["says"] if not isinstance(p, int | float)] for one in (level, other)
        )
        assert said == words
        assert machine.table(level).shape == machine.table(other).shape
    of_lengths = edited.trace(UNSAID_TEXT, keep=machine.reading(edited), reduce=machine.LENGTHS)
    now, kept = (machine.level(edited, one, "", position) for one in (of_lengths, t))
    near(now["stream"], kept["stream"])


def test_of_equal_logits_the_lower_id_has_the_better_rank():
    lm = random_lm(5)
    with torch.no_grad():
        lm.model.out_head.weight[9] = lm.model.out_head.weight[4]
    t = lm.trace([3, 1, 2])
    ranks = [machine.level(lm, t, f"logit.{i}", 2)["lines"][-1]["number"] for i in (4, 9)]
    order = t.next_tokens(k=lm.config.vocab_size, position=2)["id"].tolist()
    assert ranks == [order.index(4) + 1, order.index(9) + 1] == [ranks[0], ranks[0] + 1]
    table = compare.expected(t, t, 2, 2, k=ranks[1]).set_index("left_id")
    assert table.loc[[4, 9], "left_rank"].tolist() == ranks


def test_a_norm_of_nearly_equal_numbers_does_not_say_that_their_variance_becomes_1():
    """eps under the root is then as large as the variance."""
    lm = random_lm(5)
    with torch.no_grad():
        for table in (lm.model.tok_emb, lm.model.pos_emb):
            table.weight.mul_(1e-3)
    t = lm.trace([3, 1, 2])
    variance = float(t["resid_pre", 0][2].double().var(unbiased=False))
    numbers = [p for p in machine.level(lm, t, "block.0.norm1", 2)["says"] if isinstance(p, float)]
    assert (
        numbers[:2] == pytest.approx([variance, variance / (variance + 1e-5)]) and numbers[1] < 0.9
    )


def test_a_weight_that_a_change_put_there_is_not_what_softmax_gives():
    lm = random_lm(5)
    for edited, sign in ((lm, "="), (lm.edited("attn.1.0=uniform"), "")):
        t = edited.trace([3, 1, 2])
        lines = machine.level(edited, t, "block.1.head.0.cell.2.1", 2)["lines"]
        assert [line["op"] for line in lines if line["label"] == "attention weight"] == [sign]
