"""Activation patching: a batch is one edit after the other, and transformers agrees."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

import gptviz
from gptviz import Edit
from gptviz.analysis import patches
from gptviz.analysis.activation_patching import agreement, patching, strongest
from gptviz.analysis.alignment import differing
from gptviz.analysis.patches import POSITION_SITES, SITES, Patch, patches_of
from gptviz.analysis.reach import unseen
from gptviz.ui.shell.other_text import PAIRS
from tests.analysis.written_out import IDS as CLEAN, OTHER as CORRUPT, Told
from tests.conftest import KINDS_OF_MODELS, above, random_lm
from tests.models.checkpoints import makers


def place(row):
    return [None if pd.isna(row[name]) else int(row[name]) for name in ("head", "position")]


def patch_of(row, ids=CLEAN):
    """A row of a table as an edit, with the values of these ids."""
    return Patch(row["site"], row["block"], *place(row)).edit(ids)


def target_of(lm, clean, corrupt, position=-1):
    """Two tokens whose difference is far from the same in both texts."""
    moved = lm.trace(clean, keep=[]).logits(position) - lm.trace(corrupt, keep=[]).logits(position)
    return int(moved.argmax()), int(moved.argmin())


def difference(lm, ids, edits, target, position=-1):
    return above(lm.trace(ids, keep=[], edits=edits).logits(position), *target).item()


def map_of(table, site, blocks=6):
    """(L, places): the effects at a site."""
    return table[table["site"] == site]["effect"].to_numpy().reshape(blocks, -1)


@pytest.mark.parametrize("changes", KINDS_OF_MODELS.values(), ids=KINDS_OF_MODELS)
def test_a_batch_is_one_edit_after_the_other(changes, monkeypatch):
    lm = random_lm(6, **changes)
    for direction, position, numbers in (
        ("denoising", -1, 4 * 32 * len(CLEAN) * 2),
        ("noising", 3, 2**22),
    ):
        monkeypatch.setattr(patches, "BATCH_NUMBERS", numbers)
        target = target_of(lm, CLEAN, CORRUPT, position)
        told = Told()
        table = patching(lm, CLEAN, CORRUPT, target, SITES, direction, position, told)
        at = range(len(CLEAN))[position]
        assert len(table) == lm.config.n_layers * (3 * (at + 1) + 5 * lm.config.n_heads)
        assert told.came_to(len(table))
        own, source = (CORRUPT, CLEAN) if direction == "denoising" else (CLEAN, CORRUPT)
        clean, corrupt = (difference(lm, ids, (), target, position) for ids in (CLEAN, CORRUPT))
        values = lm.trace(source)
        for number, row in enumerate(table.to_dict("records")):
            edit = patch_of(row, source)
            assert Edit.parse(str(edit)) == edit
            # the values as data, in every ninth row; in the others from the same pass
            edit = edit if number % 9 == 0 else replace(edit, value=values)
            logit = difference(lm, own, [edit], target, position)
            assert row["logit"] == pytest.approx(logit, abs=1e-5, rel=1e-6), edit
            metric = (logit - corrupt) / (clean - corrupt)
            assert row["metric"] == pytest.approx(metric, abs=1e-4)
            assert row["effect"] == pytest.approx(metric - (direction == "noising"), abs=1e-4)


@pytest.mark.parametrize("direction", ["denoising", "noising"])
def test_an_estimate_is_what_a_small_part_of_the_patch_does_for_the_whole(direction):
    """Against edits that put in a hundredth of the way from one text's numbers to the other's."""
    lm = random_lm(6)
    eps = 0.01
    target = target_of(lm, CLEAN, CORRUPT, 5)
    table = patching(lm, CLEAN, CORRUPT, target, SITES, direction, 5, estimate=True)
    own, source = (CORRUPT, CLEAN) if direction == "denoising" else (CLEAN, CORRUPT)
    mine = lm.trace(own)
    theirs = lm.trace(source)
    for row in table.iloc[::5].to_dict("records"):
        site = row["site"]
        block = row["block"]
        head, position = ([one] if one is not None else None for one in place(row))
        value = mine[site, block]
        way = theirs[site, block] - value
        edits = [Edit(site, block, value + part * way, head, position) for part in (-eps, eps)]
        less, more = (difference(lm, own, [edit], target, 5) for edit in edits)
        assert row["estimate"] == pytest.approx((more - less) / (2 * eps), abs=0.02, rel=0.02), row
    said = agreement(table).set_index("site")
    assert said.index.tolist() == list(SITES)
    for site, rows in table.groupby("site"):
        off = (rows["estimate"] - rows["change"]).abs()
        worst = rows.loc[off.idxmax()]
        assert said.loc[site, "worst"] == off.max() and said.loc[site, "block"] == worst["block"]
        correlation = np.corrcoef(rows["estimate"], rows["change"])[0, 1]
        assert said.loc[site, "correlation"] == pytest.approx(correlation)
    assert "estimate" not in patching(lm, CLEAN, CORRUPT, target, "z")


def test_where_attribution_patching_fails(mini):
    """A saturated softmax has no slope: of keys and queries the guess is nearly nothing, of outputs near."""
    table = patching(mini, PAIRS[0].text, PAIRS[0].other, sites=("z", "q", "k"), estimate=True)
    said = agreement(table).set_index("site")
    assert said.loc["z", "correlation"] > 0.99 and said.loc["q", "correlation"] < 0.2
    assert said.loc["q", "worst"] > 0.95 * said.loc["q", "largest"] > 4


def test_the_bundled_models_pair(mini):
    """The word stays at its own place until block 5, whose attention hands it to the last position."""
    table = patching(mini, PAIRS[0].other, PAIRS[0].text, sites=["resid_pre", "attn_out"])
    stream = map_of(table, "resid_pre")
    attention = map_of(table, "attn_out")
    assert stream.argmax(axis=1).tolist() == [7] * 6 and stream[:, 7].min() > 0.9
    assert not stream[:, :7].any()  # before the token that differs nothing is another
    assert attention[5].argmax() == 15 and attention[5, 15] > 0.9


def test_one_head_hands_on_who_is_meant(mini):
    table = patching(mini, PAIRS[1].other, PAIRS[1].text, sites=["resid_pre", "z", "attn"])
    stream, outputs, pattern = (map_of(table, site) for site in ("resid_pre", "z", "attn"))
    assert stream.argmax(axis=1).tolist() == [7, 7, 7, 7, 10, 10] and stream.max(axis=1).min() > 0.9
    assert outputs.argmax() == 3 * 8 + 7 and outputs[3, 7] > 0.85 and abs(pattern[3, 7]) < 0.02


@pytest.mark.parametrize("pair", PAIRS[:3], ids=lambda pair: pair.label)
def test_every_pair_makes_the_model_say_something_else(mini, pair):
    table = patching(mini, pair.other, pair.text, sites="resid_pre")
    assert len(mini.encode(pair.text)) == len(mini.encode(pair.other))
    at = differing(*map(mini.encode, (pair.text, pair.other)))
    assert table["effect"][at].tolist() == pytest.approx([1], abs=1e-5)


def test_transformers_with_its_own_hooks():
    """A second truth: transformers' GPT-2 with our weights, its own activations put in by its own hooks."""
    lm = random_lm(6, n_layers=3)
    theirs = makers.in_transformers(lm.model, lm.config)
    d = lm.config.head_dim
    modules = {"resid_pre": "", "attn_out": "attn", "mlp_out": "mlp", "z": "attn.c_proj"}
    for row in patching(lm, CLEAN, CORRUPT, (7, 8000), sites=list(modules)).to_dict("records")[
        2::4
    ]:
        module = theirs.transformer.h[row["block"]].get_submodule(modules[row["site"]])
        head, position = place(row)
        where = (0, position) if head is None else (0, slice(None), slice(head * d, head * d + d))
        kept = []

        def visit(given, where=where, kept=kept):
            """Keep the first pass's values, and put them into the second's."""
            kept.append(given.clone())
            given[where] = kept[0][where]
            return given

        if row["site"] in ("resid_pre", "z"):
            handle = module.register_forward_pre_hook(
                lambda _m, args, v=visit: (v(args[0]), *args[1:])
            )
        else:
            handle = module.register_forward_hook(
                lambda _m, _a, out, v=visit: (
                    (v(out[0]), *out[1:]) if isinstance(out, tuple) else v(out)
                )
            )
        with torch.no_grad():
            _, logits = (theirs(torch.tensor([ids])).logits[0, -1] for ids in (CLEAN, CORRUPT))
        handle.remove()
        assert row["logit"] == pytest.approx(above(logits, 7, 8000).item(), abs=2e-4), row


def test_the_cone_is_what_a_patch_really_changes():
    lm = random_lm(6, n_layers=3)
    own = lm.trace(CORRUPT)
    for site in POSITION_SITES:
        edit = Patch(site, 1, position=2).edit(CLEAN)
        patched = lm.trace(CORRUPT, edits=[edit])
        for seen in POSITION_SITES:
            for block in range(3):
                for position in range(len(CLEAN)):
                    moved = not torch.equal(
                        patched[seen, block][position], own[seen, block][position]
                    )
                    assert moved == (
                        unseen(edit, seen, block, lm.config, len(CLEAN), position=position) is None
                    )


def test_a_changed_model_keeps_its_changes_under_every_patch():
    lm = random_lm(6)
    edits = [Edit("z", 0, heads=[1]), Edit("mlp_out", 1, "mean")]
    table = patching(
        lm.edited(*edits), CLEAN, CORRUPT, (7, 8000), sites=["attn_out", "v"], position=5
    )
    for row in table.to_dict("records"):
        logit = difference(lm, CORRUPT, [*edits, patch_of(row)], (7, 8000), 5)
        assert row["logit"] == pytest.approx(logit, abs=1e-6)


@pytest.mark.parametrize(
    "before", [[], ["resid_pre.1@1=zero"], ["z.0.1=zero"], ["mlp_out.0=sample"]], ids=str
)
def test_a_patch_changes_nothing_before_the_texts_differ(before):
    """Both texts are read by the changed model: what they have in common stays in common, to the bit."""
    table = patching(random_lm(6).edited(*before), CLEAN, CORRUPT, (7, 8000))
    same = table[(table["position"] < 2).fillna(False)]
    assert len(same) == 3 * 2 * 2 and (same["effect"] == 0).all()
    late = (
        (table["block"] == 1) & (table["position"].fillna(6) < 6) & (table["site"] != "resid_pre")
    )
    assert (table[late]["effect"] == 0).all()  # nothing after it carries it to the last position
    assert (table["effect"].abs() > 0.01).any()


def test_without_a_target_it_is_what_both_texts_say_first(mini):
    pair = PAIRS[2]
    his, her = (mini.encode(word)[0] for word in (" his", " her"))
    table = patching(mini, pair.text, pair.other, sites=["z"])
    assert table.equals(patching(mini, pair.text, pair.other, (" his", " her"), sites="z"))
    assert table.equals(
        patching(mini, mini.encode(pair.text), pair.other, (his, her), sites=("z", "z"))
    )
    assert [*table] == ["site", "block", "head", "position", "logit", "metric", "effect", "change"]
    assert len(table) == 48 == len(patches_of(mini.config, 4, ["z"]))


def test_at_the_last_position_texts_of_any_length_are_averaged(mini):
    one = ("The man took off", "Here the king loved his")
    other = ("The girl took off", "Here the king loved her")
    sites = ("attn_out", "z", "resid_pre")
    both = [
        patching(mini, *pair, sites=sites, estimate=True) for pair in zip(one, other, strict=True)
    ]
    lasts = [table["position"].fillna(-1).isin([-1, table["position"].max()]) for table in both]
    alone = [table[last].reset_index(drop=True) for table, last in zip(both, lasts, strict=True)]
    table = patching(mini, [*one], [*other], sites=sites, estimate=True, last=True)
    assert len(table) == 6 + 48 + 6 and table["n"].eq(2).all()
    assert set(table["position"].dropna()) == {-1} and (table["block"] == alone[0]["block"]).all()
    for name in ("logit", "change", "estimate"):
        assert np.allclose(table[name], (alone[0][name] + alone[1][name]) / 2, atol=1e-5), name


def test_bfloat16():
    lm = gptviz.load("mini", dtype="bfloat16")
    table = patching(lm, PAIRS[0].other, PAIRS[0].text, sites=["resid_pre", "z"])
    assert map_of(table, "resid_pre")[:, 7].min() > 0.85


def test_a_model_of_one_block_has_the_difference_itself_alone():
    cells = np.array([[0.0, 1.0, 0.0, 0.0]])
    assert strongest("resid_pre", cells, [1]) == [(0, 0)] and cells[0, 1] == 1.0
    assert strongest("attn_out", cells, [1]) == [(0, 1), (0, 0)]


def test_no_place_is_left_out_that_carries_what_none_did_at_first():
    cells = np.zeros((4, 3))
    cells[0, 1] = 1.0
    cells[2, 0] = 0.3
    cells[2, 2] = -0.9
    cells[3, 1] = 0.01
    assert strongest("resid_pre", cells, [1], 0.02) == [(2, 2), (2, 0)]
    cells[1, 0] = 0.02
    assert strongest("resid_pre", cells, [1], 0.02) == [(1, 0), (3, 1)]
