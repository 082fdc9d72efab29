"""The list of changes: any address is read, what does not fit is kept, and clicks edit the list."""

import pytest
from hypothesis import given, strategies as st

from gptviz import Edit
from gptviz.ui.shell import changes, state
from tests.conftest import random_lm


@pytest.fixture
def session(monkeypatch):
    held: dict[str, object] = {}
    monkeypatch.setattr("gptviz.ui.shell.params.st.session_state", held)
    return held


PIECES = st.text("zq.=@+-, *0123456789abzeroemnfhids_/\\'\"<>\x00é漢", max_size=25)
EDITS = (
    "z.0.1=zero z.9.0=zero z.0.9=zero z.0@4=zero z.0@99=mean z=zero attn.0=uniform mlp_out.1=mean"
)
NEAR = st.sampled_from(EDITS.split())


@given(parts=st.lists(PIECES | NEAR, max_size=6))
def test_any_address_is_read_and_what_does_not_fit_is_kept(lm, parts):
    held: dict[str, object] = {"edits": ",".join(parts)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gptviz.ui.shell.params.st.session_state", held)
        found = changes.found(lm, 5)
        assert [change.text for change in found] == changes.written()
        made = changes.made(found)
        lm.trace([1, 2, 3, 4, 5], keep=[], edits=made)  # what is made can be made
        assert len(made) + sum(change.refusal is not None for change in found) == len(found)
        for change in found:
            assert change.refusal is None or change.refusal.strip()


def test_clicks_edit_the_list(session):
    off = Edit("z", 1, "zero", [0])
    average = Edit("z", 1, "mean", [0])
    other = Edit("mlp_out", 0, "zero")
    changes.add(off)
    changes.add(other)
    assert session["edits"] == "z.1.0=zero,mlp_out.0=zero"
    changes.switch()
    assert session["edits_off"] is True and state.EDITS.value
    # in the place of what was done to the same head; and what is added is made
    changes.add(average)
    assert session["edits"] == "mlp_out.0=zero,z.1.0=mean" and session["edits_off"] is False
    changes.remove(0)
    assert session["edits"] == "z.1.0=mean"
    changes.undo()
    assert session["edits"] == ""
    session["edits"] = "what is this,z.0=zero"
    changes.switch()
    changes.clear()
    assert session["edits"] == "" and session["edits_off"] is False


def test_more_than_a_link_can_hold_is_not_added(session, monkeypatch):
    said = []
    monkeypatch.setattr(changes.st, "toast", said.append)
    session["edits"] = ",".join(["z.0.1=zero"] * changes.MOST)
    changes.add(Edit("z", 5, "zero", [7]))
    assert len(said) == 1 and "z.5.7" not in str(session["edits"])


def test_a_mean_over_a_sample_that_the_model_cannot_read_is_refused(session, lm):
    session["edits"] = "z.0=sample,mlp_out.1=zero"
    assert [change.refusal for change in changes.found(lm, 5)] == [None, None]
    refused, other = changes.found(random_lm(vocab_size=20), 5)
    assert "no tokens for the sample" in refused.refusal and other.refusal is None
    assert changes.made((refused, other)) == (other.edit,)
