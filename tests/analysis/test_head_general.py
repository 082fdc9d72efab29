"""Heads in general: what is known of the bundled model, and a small model's numbers written out."""

import math
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given, settings, strategies as st

from gptviz import Edit
from gptviz.analysis import head_general
from gptviz.analysis.head_general import MEASURES, general, known_general
from gptviz.engine.sample import Window
from gptviz.files import disk_cache
from gptviz.models.loading import load
from tests.analysis.written_out import Stopped, Told
from tests.conftest import random_lm

INDUCTION = {(5, head) for head in (0, 3, 4, 5, 7)}


@pytest.fixture(scope="module")
def found(mini):
    return general(mini, disk=False)


def test_the_bundled_model_has_its_known_heads(found):
    roles = {(row.block, row.head): row.role for row in found.table.itertuples()}
    assert {place for place, role in roles.items() if role == "induction"} == INDUCTION
    assert roles[4, 3] == "previous" and found.row(4, 3)["share"] > 0.9
    best = found.table.nlargest(5, "copies_top5")
    assert set(zip(best["block"], best["head"], strict=True)) == INDUCTION


def test_what_ships_with_the_bundled_model_is_what_is_measured(mini, found):
    ships = known_general(mini)
    assert ships is not None and ships.key == found.key
    pd.testing.assert_frame_equal(ships.table, found.table, check_dtype=False, rtol=1e-4, atol=1e-5)
    assert (ships.sequences, ships.windows) == (found.sequences, found.windows)
    assert (
        known_general(load("mini-untrained")) is None
        and known_general(mini.edited("z.0.0=zero")) is None
    )


def test_every_measure_is_a_column_within_its_scale(found):
    assert len(found.table) == 48 and found.sequences == 16 and found.windows > 30
    for name in MEASURES:
        values = found.table[name]
        assert values.notna().all(), name
        assert values.min() >= (-1 if name in ("ov_copying", "qk_matching") else 0) - 1e-5
        assert values.max() <= 1 + 1e-5 or name in ("entropy", "distance", "write")


def test_it_is_kept_on_disk_and_one_changed_weight_makes_another(tmp_path, monkeypatch):
    monkeypatch.setenv(disk_cache.SETTING, str(tmp_path))
    lm = random_lm(5, context_length=16)
    first = general(lm)
    again = general(lm, progress=lambda *_: pytest.fail("nothing was to be worked out"))
    assert again.known and not first.known and again.key == first.key
    assert again.table.equals(first.table)
    with torch.no_grad():
        lm.model.trf_blocks[1].att.W_key.weight[0, 0] += 1e-3
    assert general(lm).key != first.key


def test_a_small_models_numbers_by_hand(monkeypatch):
    lm = random_lm(6, context_length=12, n_heads=2)
    sample = [Window("", (5, 6, 7, 5, 6, 8)), Window("", (9, 5, 5))]
    random = [(3, 4, 5, 6, 4, 5, 6, 8), (1, 2, 3, 1, 2, 3)]
    monkeypatch.setattr(head_general, "sample_windows", lambda _: sample)
    monkeypatch.setattr(head_general, "random_repeats", lambda _: random)
    found = general(lm, disk=False)
    for b in range(2):
        for h in range(2):
            row = found.row(b, h)
            cells = []
            entropies = []
            far = 0.0
            mass = 0.0
            for window in sample:
                attn = lm.trace(window.ids)["attn", b][h].double()
                at = torch.arange(len(window.ids))
                cells += attn.diagonal(-1).tolist()
                entropies += [
                    -sum(a * math.log(a) for a in weights if a) for weights in attn[1:].tolist()
                ]
                far += (attn * (at[:, None] - at))[1:, 1:].sum().item()
                mass += attn[1:, 1:].sum().item()
            assert row["previous"] == pytest.approx(np.mean(cells), abs=1e-6)
            assert row["entropy"] == pytest.approx(np.mean(entropies), abs=1e-5)
            assert row["distance"] == pytest.approx(far / mass, abs=1e-4)
            # to what came next
            cells = (0, 4, 2), (0, 5, 3), (0, 6, 4), (1, 3, 1), (1, 4, 2), (1, 5, 3)
            looked = [lm.trace(random[i])["attn", b][h, q, k].item() for i, q, k in cells]
            assert row["induction"] == pytest.approx(np.mean(looked), abs=1e-6)
            w = lm.model.trf_blocks[b].att.out_proj.weight[:, h * 16 : (h + 1) * 16].detach()
            wrote = torch.cat([lm.trace(window.ids)["z", b][h] @ w.T for window in sample])
            assert row["write"] == pytest.approx(wrote.norm(dim=-1).mean().item(), rel=1e-4)


def test_heads_that_rest_on_the_sample_are_named_for_what_they_do_where_they_can(monkeypatch):
    """Made-up heads: both leave all of the sample on token 0; on random tokens one finds what came next."""
    monkeypatch.setattr(head_general, "sample_windows", lambda _: [Window("", (5, 6, 7, 8, 9, 1))])
    monkeypatch.setattr(head_general, "random_repeats", lambda _: [(3, 4, 5, 6, 4, 5, 6, 8)])

    def pattern(attn, found):
        made = torch.zeros_like(attn)
        made[..., 0] = 1
        if attn.shape[-1] == 8:  # the random tokens; 4 5 6 stand at 1 and at 4
            made[..., [4, 5, 6], 0] = 1 - found
            made[..., [4, 5, 6], [2, 3, 4]] = found
        return made

    edits = [
        Edit("attn", 1, partial(pattern, found=found), [h]) for h, found in enumerate((0.8, 0.4))
    ]
    found = general(random_lm(6, context_length=12, n_heads=2).edited(*edits), disk=False)
    works, rests = (found.row(1, h) for h in (0, 1))
    assert (
        works["role"] == "induction"
        and works["first"] == 1
        and works["share_of_rest"] == pytest.approx(1)
    )
    assert works["share"] == pytest.approx(0.8) and works["rest"] == pytest.approx(0.2)
    assert (
        rests["role"] == "first"
        and rests["share"] == 1
        and rests["induction"] == pytest.approx(0.4)
    )


def test_progress_comes_between_passes_and_may_stop_it():
    told = Told(stop_after=20)  # of 16 random texts and more of the sample
    with pytest.raises(Stopped):
        general(random_lm(7, context_length=16), told, disk=False)
    assert [done for done, _ in told] == [*range(20)] and len({of for _, of in told}) == 1


def test_a_model_without_the_samples_characters_or_with_a_tiny_context_says_so(monkeypatch):
    lm = random_lm(8, context_length=4)
    monkeypatch.setattr(head_general, "sample_windows", lambda _: [])
    found = general(lm, disk=False)
    assert found.sequences == found.windows == 0
    assert found.table["induction"].isna().all() and found.table["previous"].isna().all()
    assert set(found.table["role"]) == {"mixed"} and found.table["ov_copying"].notna().all()


@settings(max_examples=30)
@given(seed=st.integers(0, 999), context=st.integers(1, 64))
def test_random_passages_come_back_once_at_random_distances(seed, context):
    lm = random_lm(context_length=context)
    texts = head_general.random_repeats(lm, 4, seed)
    assert len(texts) == (0 if context < head_general.SHORTEST else 4)
    for ids in texts:
        assert len(ids) == context
        again = [q for q, i in enumerate(ids) if i in ids[:q]]
        back = {q - ids.index(ids[q]) for q in again}
        assert len(back) == 1 and again == list(range(again[0], again[0] + len(again)))
        assert 2 <= len(again) <= context // 3 + 1


def test_offsets_differ_between_sequences(lm):
    texts = head_general.random_repeats(lm)
    backs = [next(q - ids.index(i) for q, i in enumerate(ids) if i in ids[:q]) for ids in texts]
    assert len(texts) == 16 and len(set(backs)) > 8
