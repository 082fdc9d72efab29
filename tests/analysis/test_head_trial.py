"""Labels on trial: the bundled model's known heads keep theirs, and random weights lose them."""

import json
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
import torch.nn.functional as F

from gptviz import Edit
from gptviz.analysis import head_trial
from gptviz.analysis.head_general import General, known_general
from gptviz.analysis.head_trial import others, passages_of, trial
from gptviz.engine import variants
from gptviz.files import disk_cache
from gptviz.models.loading import load
from tests.analysis.written_out import Stopped, Told
from tests.conftest import random_lm


def named(lm, **roles):
    """Heads in general of which a trial asks only their roles: b5h0="induction", and all others mixed."""
    heads = [(b, h) for b in range(lm.config.n_layers) for h in range(lm.config.n_heads)]
    role = [roles.get(f"b{b}h{h}", "mixed") for b, h in heads]
    table = pd.DataFrame(heads, columns=["block", "head"]).assign(role=role)
    return General(table, 0, 0, 0, 0, None)


@pytest.fixture(scope="module")
def heads(mini):
    return named(mini, b4h3="previous", **{f"b5h{h}": "induction" for h in (0, 3, 4, 5, 7)})


@pytest.fixture
def put_to_trial(mini, heads):
    """A head and a label -> the trial of the bundled model, whose heads in general need not be measured."""
    return partial(trial, mini, known=heads, disk=False)


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(head_trial, "PASSAGES", 5)
    monkeypatch.setattr(head_trial, "OTHERS", 2)
    monkeypatch.setattr(head_trial, "LENGTH", 40)


@pytest.mark.usefixtures("few")
def test_the_bundled_models_known_heads_keep_their_labels(put_to_trial):
    found = put_to_trial(5, 0, "induction")
    assert (found.verdict, set(found.reasons.values())) == ("holds", {"enough"})
    own = found.own
    assert own["same_label"].all()
    for baseline in ("zero", "sample"):
        assert own["repeated_rise"][baseline] > 5 * abs(own["unrepeated_rise"][baseline])
    assert found.repeated < 0.5 < 3 < found.unrepeated and (found.passages, found.tokens) == (5, 39)
    previous = put_to_trial(4, 3, "previous")
    assert (
        previous.verdict == "holds"
        and previous.own["rise"]["label"] < 0.1 * previous.own["rise"]["zero"]
    )


@pytest.mark.usefixtures("few")
def test_a_wrong_label_is_not_shown_or_withdrawn(put_to_trial):
    """No harm withdraws nothing: only a head that is missed can be missed for something else."""
    harmless = put_to_trial(5, 6, "induction")
    assert (harmless.verdict, set(harmless.reasons.values())) == ("not shown", {"not missed"})
    for block, head, label in ((5, 0, "previous"), (4, 3, "induction")):  # the other's label
        other = put_to_trial(block, head, label)
        assert other.verdict == "withdrawn"
        own = other.own
        assert own[other.looked_by]["label"] > 0.5 * own[other.looked_by]["even"] > 0
    # induction heads read what it writes: missed on repeats as they are
    for baseline in ("zero", "sample"):
        assert own["extra"][baseline] > 3 * own["extra_se"][baseline]


@pytest.mark.usefixtures("few")
def test_where_the_baselines_disagree_nothing_is_decided(put_to_trial):
    """Without block 0's head 1 mini breaks on any text by zero, by the mean mostly on repeats."""
    found = put_to_trial(0, 1, "copies")
    assert found.verdict == "not decided"
    assert found.reasons == {"zero": "not missed", "sample": "enough"}
    extra = found.own["extra"]
    assert extra["zero"] < 0 < 1 < extra["sample"]


@pytest.mark.usefixtures("few")
def test_an_untrained_model_keeps_no_label():
    lm = load("mini-untrained")
    known = named(lm)
    found = [trial(lm, 5, 3, label, known=known, disk=False) for label in head_trial.TESTABLE]
    assert "holds" not in {tried.verdict for tried in found}


def nearby(text, head, everywhere=False):
    """The head looks evenly at the four tokens before, but not at token 0; tokens 0 and 1 have none."""

    def looking(attn):
        made = attn.clone()
        for q in range(2, len(text)):
            keys = list(range(q + 1)) if everywhere else [k for k in range(q - 4, q) if k > 0]
            made[:, q] = 0
            made[:, q, keys] = 1 / len(keys)
        return made

    return Edit("attn", 1, looking, [head])


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    "standing", [(), ("z.1.2=mean", "attn.1.2=previous", "resid_pre.1@3=zero", "q.1.0=mean")]
)
def test_every_number_of_a_trial_by_whole_passes(lm, standing, monkeypatch):
    """Passes that begin at the block, in batches of two, against whole ones with `lm.trace`'s edits."""
    monkeypatch.setattr(variants, "BATCH_NUMBERS", 2 * 4 * lm.config.emb_dim * 64)
    lm = lm.edited(*standing)
    found = trial(lm, 1, 2, "nearby", disk=False, known=named(lm))
    pairs = passages_of(lm)
    n = len(pairs[0][0]) // 2
    heads = [2, *others(4, 1, 2)]
    changes = [(h, baseline) for baseline in ("zero", "sample") for h in heads] + [
        (2, "even"),
        (2, "label"),
    ]
    assert [*zip(found.table["head"], found.table["change"], strict=True)] == changes

    def loss(text, *edits):
        logits = (
            lm.trace(text, keep=["final"], edits=edits)["final"]
            @ lm.model.out_head.weight.detach().T
        )
        return F.cross_entropy(logits[n:-1], torch.tensor(text[n + 1 :])).item()

    own = np.array([[loss(text) for text in pair] for pair in pairs])
    assert [found.repeated, found.unrepeated] == pytest.approx(own.mean(axis=0), abs=1e-5)
    for row in found.table.itertuples():

        def edit(text, head=row.head, change=row.change):
            if change in ("zero", "sample"):
                return Edit("z", 1, change, [head])
            return nearby(text, head, everywhere=change == "even")

        each = np.array([[loss(text, edit(text)) for text in pair] for pair in pairs]) - own
        rises = {
            "repeated_rise": each[:, 0],
            "unrepeated_rise": each[:, 1],
            "rise": each.mean(axis=1),
        }
        for name, values in (rises | {"extra": each[:, 0] - each[:, 1]}).items():
            assert getattr(row, name) == pytest.approx(values.mean(), abs=1e-5)
            assert getattr(row, f"{name}_se") == pytest.approx(
                np.std(values, ddof=1) / 5**0.5, abs=1e-5
            )


def are_the_same(one, other):
    assert (one.verdict, one.reasons) == (other.verdict, other.reasons)
    assert [one.repeated, one.unrepeated] == pytest.approx(
        [other.repeated, other.unrepeated], abs=1e-5
    )
    pd.testing.assert_frame_equal(one.table, other.table, check_dtype=False, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "block", "head", "label"),
    [("mini", 5, 0, "induction"), ("mini", 5, 6, "marks"), ("mini-world", 5, 0, "induction")],
)
def test_a_bundled_models_trials_ship_with_it(name, block, head, label, tmp_path, monkeypatch):
    """What ships is what is measured; another model, or a changed one, gets none of it."""
    monkeypatch.setenv(disk_cache.SETTING, str(tmp_path))
    bundled = load(name)
    found = head_trial.known_trials(bundled)
    general = known_general(bundled)
    claims = {(row.block, row.head, row.role) for row in general.table.itertuples()}
    claims = {claim for claim in claims if claim[2] in head_trial.TESTABLE}
    ships = json.loads((disk_cache.ASSETS / name / disk_cache.SHIPPED).read_text(encoding="utf-8"))
    assert set(found) == claims and len(claims) == len(ships) - 1
    for other in (load("mini-untrained"), bundled.edited("z.0.0=zero")):
        assert not head_trial.known_trials(other)
    measured = trial(bundled, block, head, label, known=general, disk=False)
    are_the_same(found[block, head, label], measured)


def test_passages_differ_only_in_what_stood_before(mini):
    pairs = passages_of(mini)
    assert len(pairs) == head_trial.PASSAGES and len(set(pairs)) == len(pairs)
    for repeated, unrepeated in pairs:
        n = len(repeated) // 2
        assert len(unrepeated) == len(repeated) == 2 * n
        assert repeated[:n] == repeated[n:] == unrepeated[n:] != unrepeated[:n]
    assert {len(text) for pair in passages_of(random_lm(context_length=16)) for text in pair} == {
        16
    }


@pytest.mark.usefixtures("few")
def test_a_trial_is_kept_and_can_be_stopped(tmp_path, monkeypatch):
    monkeypatch.setenv(disk_cache.SETTING, str(tmp_path))
    lm = random_lm(4, context_length=32, n_heads=2)
    first = trial(lm, 0, 1, "itself", known=named(lm))
    again = trial(lm, 0, 1, "itself", progress=lambda *_: pytest.fail("it was known"))
    are_the_same(again, first)
    trial(lm, 1, 1, "copies", told := Told(), named(lm))
    assert told.came_to(5 * 2 * (1 + 2 * 2 + 2))  # of 2 heads
    with pytest.raises(Stopped):
        trial(lm, 1, 0, "copies", Told(stop_after=2), named(lm))
