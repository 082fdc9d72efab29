"""Every number of the one picture, against a forward pass that is written out by hand in float64."""

import math
from functools import lru_cache

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gptviz.analysis import machine
from gptviz.analysis.places import Place, parse, possible, resolve
from gptviz.analysis.reads import sites_of
from gptviz.engine.config import GPTConfig
from gptviz.ui.shell.state import DEFAULT_TEXT
from tests.conftest import random_lm

OFF = (1, 0)  # the block and head that are switched off in a changed run
AT = [
    "",
    "embedding",
    "block.0",
    "block.last",
    "block.0.norm1",
    "block.1.norm2",
    "final_norm",
    "block.1.attention",
]
AT += [
    "block.1.head.0",
    "block.last.head.strongest",
    "block.1.head.1.cell.here.strongest",
    "block.0.head.0.cell.1.2",
]
AT += [
    "block.1.feed_forward",
    "block.0.unit.strongest",
    "block.1.unit.3",
    "out_head",
    "logit.best",
    "logit.7",
]


@pytest.fixture(scope="module")
def twelve():
    return random_lm(3, n_layers=12, n_heads=12, emb_dim=48)


@lru_cache(maxsize=4)
def by_hand(lm, ids, off=None):
    """All that happens to a text: what goes in and out of each part, a dict a block."""
    w = {name: value.detach().double() for name, value in lm.model.state_dict().items()}
    count, heads = len(ids), lm.config.n_heads

    def linear(x, name):
        return x @ w[f"{name}.weight"].T + w.get(f"{name}.bias", 0)

    def norm(x, name):
        x = x - x.mean(-1, keepdim=True)
        x = x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-5)
        return x * w[f"{name}.scale"] + w.get(f"{name}.shift", 0)

    def split(x):
        return x.view(count, heads, -1).transpose(0, 1)  # (T, D) -> (H, T, d)

    x = w["tok_emb.weight"][list(ids)] + w["pos_emb.weight"][:count]
    out = {"in": x, "blocks": []}
    for b in range(lm.config.n_layers):
        name = f"trf_blocks.{b}"
        found = {"pre": x, "norm1": norm(x, f"{name}.norm1")}
        q, k, v = (
            split(linear(found["norm1"], f"{name}.att.W_{part}")) for part in ("query", "key", "value")
        )
        scores = q @ k.mT  # (H, T, T)
        weights = (
            (scores / math.sqrt(q.shape[-1]))
            .masked_fill(torch.ones(count, count).triu(1) > 0, -math.inf)
            .softmax(-1)
        )
        z = weights @ v
        if off is not None and off[0] == b:
            z[off[1]] = 0
        found |= {"q": q, "k": k, "v": v, "scores": scores, "weights": weights, "z": z}
        out_proj = w[f"{name}.att.out_proj.weight"]
        d = q.shape[-1]
        found["wrote"] = torch.stack(
            [z[h] @ out_proj[:, h * d : (h + 1) * d].T for h in range(heads)]
        )  # (H, T, D)
        found["brings"] = torch.stack([v[h] @ out_proj[:, h * d : (h + 1) * d].T for h in range(heads)])
        found["attn"] = linear(z.transpose(0, 1).reshape(count, -1), f"{name}.att.out_proj")
        found["mid"] = x + found["attn"]
        found["norm2"] = norm(found["mid"], f"{name}.norm2")
        before = linear(found["norm2"], f"{name}.ff.layers.0")
        after = 0.5 * before * (1 + torch.tanh(math.sqrt(2 / math.pi) * (before + 0.044715 * before**3)))
        found |= {"before": before, "after": after, "mlp": linear(after, f"{name}.ff.layers.2")}
        x = found["post"] = found["mid"] + found["mlp"]
        out["blocks"].append(found)
    out["final"] = norm(x, "final_norm")
    out["logits"] = out["final"] @ w["out_head.weight"].T
    return out


def size(x):
    return float(x.norm())


def rows(lm, place, found, position):
    """What the lines of a place hold, in turn, and the numbers beside them (None: any)."""
    kind, w = place.kind, {name: value.detach().double() for name, value in lm.model.state_dict().items()}
    b = found["blocks"][place.block] if "block" in place.at else None
    if kind == "embedding":
        token, where = w["tok_emb.weight"][found["ids"][position]], w["pos_emb.weight"][position]
        return [(token, size(token)), (where, size(where)), (token + where, size(token + where))]
    if kind in ("norm1", "norm2", "final_norm"):
        x = found["blocks"][-1]["post"] if kind == "final_norm" else b["pre" if kind == "norm1" else "mid"]
        y = found["final"] if kind == "final_norm" else b[kind]
        x, y, name = x[position], y[position], f"trf_blocks.{place.block}.{kind}" if b else "final_norm"
        variance = float(x.var(correction=0))
        flat = (x - x.mean()) / math.sqrt(variance + 1e-5)
        scale, shift = w[f"{name}.scale"], w[f"{name}.shift"]
        return [
            (x, float(x.mean())), (x - x.mean(), variance), (flat, math.sqrt(variance + 1e-5)),
            (scale, float(scale.mean())), (shift, float(shift.mean())), (y, float(y.var(correction=0))),
        ]  # fmt: skip
    if kind == "cell":
        q, k, v = (
            b["q"][place.head, place.query],
            b["k"][place.head, place.key],
            b["v"][place.head, place.key],
        )
        score, root = float(q @ k), math.sqrt(len(q))
        weight = float(b["weights"][place.head, place.query, place.key])
        lines = [(q, size(q)), (k, size(k)), (q * k, score), (None, root), (None, score / root)]
        if place.key > place.query:
            return [*lines, (None, 0.0)]
        row = b["scores"][place.head, place.query, : place.query + 1] / root
        e = torch.exp(row - row.max())
        return [
            *lines,
            (None, float(e[place.key])),
            (None, float(e.sum())),
            (None, weight),
            (v, size(v)),
            (weight * v, size(weight * v)),
        ]
    if kind == "feed_forward":
        before, after, norm2, mlp = (b[name][position] for name in ("before", "after", "norm2", "mlp"))
        return [
            (norm2, size(norm2)),
            (before, int((before > 0).sum())),
            (after, size(after)),
            (mlp, size(mlp)),
        ]
    if kind == "unit":
        name, u = f"trf_blocks.{place.block}.ff.layers", place.unit
        row, asks, writes = b["norm2"][position], w[f"{name}.0.weight"][u], w[f"{name}.2.weight"][:, u]
        before, after = (float(b[part][position, u]) for part in ("before", "after"))
        return [
            (row, size(row)), (asks, size(asks)), (row * asks, float(row @ asks)),
            (None, float(w[f"{name}.0.bias"][u])), (None, before), (None, after), (writes, size(writes)),
            (after * writes, size(after * writes)),
        ]  # fmt: skip
    row = found["final"][position]
    if kind == "out_head":
        return [(row, size(row))]
    logits, column = found["logits"][position], w["out_head.weight"][place.id]
    rank = 1 + int((logits > logits[place.id]).sum())
    return [
        (row, size(row)), (column, size(column)), (row * column, float(logits[place.id])),
        (None, float(logits.softmax(-1)[place.id])), (None, rank),
    ]  # fmt: skip


def near(now, expected):
    expected = np.asarray(expected, dtype=np.float64)
    assert np.allclose(now, expected, rtol=2e-3, atol=2e-4 * max(1.0, float(np.abs(expected).max(initial=0))))


def check(lm, ids, at, position, off=None):
    edited = lm if off is None else lm.edited(f"z.{off[0]}.{off[1]}=zero")
    asked = edited.trace(list(ids), keep=sites_of(resolve, edited, at, position))
    place = resolve(edited, asked, at, position)
    t = edited.trace(list(ids), keep=sites_of(machine.level, edited, place.at))
    level = machine.level(edited, t, place.at, position)
    found = by_hand(lm, tuple(ids), off) | {"ids": list(ids)}
    blocks, window = found["blocks"], machine.window(len(ids), position)
    seen = slice(window.start, window.stop)
    if place.kind == "machine":
        stream = [found["in"], *(b[part] for b in blocks for part in ("mid", "post"))]
        near(level["stream"], torch.stack(stream).norm(dim=-1)[:, seen])
        near(
            level["writes"],
            torch.stack([b[part] for b in blocks for part in ("attn", "mlp")]).norm(dim=-1)[:, seen],
        )
        for b, block in enumerate(blocks):
            brought = (
                block["weights"][:, position, :position, None] * block["brings"][:, :position]
            )  # (H, n, D)
            if off is not None and off[0] == b:
                brought[off[1]] = 0
            most = brought.norm(dim=-1).flatten().sort(descending=True).values[: machine.READS]
            reads = [read for read in level["reads"] if read["block"] == b]
            if off is None:  # a head that is off still looks; what it reads is not passed on
                near([read["brought"] for read in reads], most)
            for read in reads:
                near(read["weight"], block["weights"][read["head"], position, read["key"]])
        expected = found["logits"][position].softmax(-1).sort(descending=True).values[: machine.BEST]
        near([one["value"] for one in level["next"]], expected)
    elif place.kind == "block":
        b = blocks[place.block]
        for wire in level["wires"]:
            near(wire["values"], b[wire["name"]][position][: machine.WIDE])
            near(wire["number"], size(b[wire["name"]][position]))
        pairs = (("attn", "pre"), ("mlp", "mid"))
        near(
            level["cosines"],
            [float(torch.cosine_similarity(b[x][position], b[y][position], dim=0)) for x, y in pairs],
        )
    elif place.kind == "attention":
        b = blocks[place.block]
        down, across = np.tril_indices(len(window))
        near(level["weights"], b["weights"][:, down + window.start, across + window.start])
        near([head["wrote"] for head in level["heads"]], b["wrote"][:, position].norm(dim=-1))
        near([head["weight"] for head in level["heads"]], b["weights"][:, position].max(dim=-1).values)
    elif place.kind == "head":
        b, h = blocks[place.block], place.head
        for name, value in (
            ("q", b["q"][h, position]),
            ("k", b["k"][h, seen]),
            ("v", b["v"][h, seen]),
            ("z", b["z"][h, position]),
        ):
            near(level[name], value)
        scores = b["scores"][h, position, seen]
        near(level["scores"], scores)
        near(level["scaled"], scores / math.sqrt(b["q"].shape[-1]))
        near(level["row"], b["weights"][h, position, seen])
        near(level["outside"], 1 - b["weights"][h, position, seen].sum() if len(window) < len(ids) else 0)
    else:
        expected = rows(lm, place, found, position)
        assert len(level["lines"]) == len(expected)
        for line, (values, number) in zip(level["lines"], expected, strict=True):
            near(line["number"], number)
            assert ("values" in line) == (values is not None)
            if values is not None:
                near(line["values"], values[: len(line["values"])])
                assert len(line["values"]) == line["of"] or len(line["values"]) == machine.WIDE
    assert level["says"] and len(machine.table(level)) >= (position > 0)


@settings(max_examples=25)
@given(
    st.lists(st.integers(0, 199), min_size=1, max_size=30),
    st.integers(0, 29),
    st.sampled_from(AT),
    st.booleans(),
)
def test_every_number_at_every_place_of_twelve_blocks_with_twelve_heads(twelve, ids, position, at, changed):
    check(twelve, ids, at, position % len(ids), OFF if changed else None)


@pytest.mark.parametrize("at", AT)
def test_every_number_at_every_place_of_the_bundled_model(mini, at):
    ids = mini.encode(DEFAULT_TEXT)
    check(mini, ids, at, len(ids) - 1)
    check(mini, ids, at, 3, (4, 3))


def test_what_is_drawn_of_the_unchanged_model_is_what_was_chosen_in_the_changed_one(mini):
    edited, position = mini.edited("z.4.3=zero"), 15
    for at in ("", "block.5.attention", "block.5.head.2", "block.5.feed_forward", "out_head"):
        t, was = edited.trace(DEFAULT_TEXT), mini.trace(DEFAULT_TEXT)
        level = machine.level(edited, t, at, position)
        other = machine.level(mini, was, at, position, level["shown"])
        assert level["shown"] == other["shown"]
        words = [
            [piece for piece in one["says"] if not isinstance(piece, int | float)] for one in (level, other)
        ]
        assert words[0] == words[1]
        assert machine.table(level).shape == machine.table(other).shape
    of_lengths = edited.trace(DEFAULT_TEXT, keep=machine.reading(edited), reduce=machine.LENGTHS)
    now, kept = (machine.level(edited, one, "", position) for one in (of_lengths, t))
    near(now["stream"], kept["stream"])


def test_an_address_leads_to_the_place_that_it_names_or_to_one_that_it_lies_in():
    config = GPTConfig(vocab_size=50, context_length=9, emb_dim=8, n_heads=2, n_layers=3)
    for at in (*AT, "block.3", "block.1.head.2", "block.0.head.1.cell.8.1", "logit.50", "block.1.unit.32"):
        place = parse(at)
        assert place.at == at
        there = possible(place, config, 5)
        assert there in place.path or "last" in at
        assert there.kind != "machine" or at in ("", "block.3")
    for at in (
        "nope",
        "block",
        "block.x",
        "block.-1",
        "block.1.head.1.cell.1",
        "logit.12345678",
        "block.1 ",
        "é",
    ):
        assert parse(at) == Place()
    assert [one.at for one in parse("block.2.head.1.cell.3.0").path] == [
        *("", "block.2", "block.2.attention", "block.2.head.1", "block.2.head.1.cell.3.0")
    ]
