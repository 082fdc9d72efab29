"""Heads on trial in code: what is said in general is of the unchanged model, as on the page."""

import re

import pytest

from gptviz.analysis import head_trial
from gptviz.analysis.head_general import general
from gptviz.analysis.head_portrait import portrait
from gptviz.analysis.head_roles import roles
from gptviz.analysis.head_trial import trial
from gptviz.ui.views.heads.snippet import measured_heads
from tests.conftest import random_lm

TEXT = "one two one two one"
EDITS = ("z.0.1=zero", "attn.1.2=uniform")


def test_in_general_is_of_the_unchanged_model_and_this_text_of_both(monkeypatch, tmp_path, capsys):
    """What the page shows is `general`, `trial` and `portrait` of the model as it is."""
    monkeypatch.setenv("GPTVIZ_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(head_trial, "PASSAGES", 2)
    lm = random_lm(context_length=24)
    changed = lm.edited(*EDITS)
    table = measured_heads(changed, TEXT, 1, 2, True, "nearby", "nearby")
    said = capsys.readouterr().out
    assert table.equals(general(lm).table)
    own = trial(lm, 1, 2, "nearby")
    assert own.table.to_string() in said and f"{own.repeated} {own.unrepeated}\n" in said
    over, other = portrait(lm, 1, 2, "nearby"), portrait(changed, 1, 2, "nearby")
    assert f"entropy {over.mean_entropy} " in said and f"entropy {other.mean_entropy} " not in said
    spreads = [float(number) for number in re.findall(r"^spread +([0-9.]+)", said, re.M)][:2]
    for found, model in zip(spreads, (changed, lm), strict=True):
        assert found == pytest.approx(roles(model.trace(TEXT))[1][2].spread, rel=1e-4)
    assert spreads[0] != pytest.approx(spreads[1], rel=1e-3)
