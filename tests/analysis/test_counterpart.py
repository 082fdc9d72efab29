"""A second text made from a first: one token is another, and the model says another word."""

import pytest
import torch

from gptviz.analysis.alignment import differing
from gptviz.analysis.counterpart import counterpart
from gptviz.ui.shell.state import UNSAID_TEXT
from tests.conftest import above


def moved(own, other):
    """By how much the word said first loses to the one said now; None where it is the same."""
    first = int(own.argmax())
    now = int(other.argmax())
    return None if first == now else (above(own, first, now) - above(other, first, now)).item()


@pytest.mark.parametrize(
    ("text", "position"), [(UNSAID_TEXT, -1), ("The man took off", -1), (UNSAID_TEXT, 8)]
)
def test_one_token_is_another_and_so_is_the_answer(mini, text, position):
    ids = mini.encode(text)
    found = counterpart(mini, ids, position)
    assert mini.encode(found.text) == list(found.ids) and differing(ids, found.ids) == [
        found.position
    ]
    assert found.ids[found.position] == found.token
    trace = mini.trace(ids)
    assert counterpart(mini, ids, position, own=trace).ids == found.ids
    expected = trace.logits(found.position - 1)  # it is one of the likeliest there
    assert found.position and int((expected > expected[found.token]).sum()) < 4
    own, other = (mini.trace(i, keep=[]).logits(position) for i in (ids, found.ids))
    assert found.moved == pytest.approx(moved(own, other), abs=1e-3)


def test_the_copied_word_is_what_matters_most(mini):
    found = counterpart(mini, mini.encode(UNSAID_TEXT))
    assert found.position == 7  # ·mill


def test_it_is_the_largest_of_those_that_it_tries(mini):
    """Every other single change by the model's own second choice moves less."""
    ids = mini.encode("The man took off")
    found = counterpart(mini, ids)
    own = mini.trace(ids)
    for place in range(1, 3):
        best = own.logits(place - 1).topk(2).indices.tolist()
        token = next(i for i in best if i != ids[place])
        other = mini.trace([*ids[:place], token, *ids[place + 1 :]]).logits(-1)
        assert (moved(own.logits(-1), other) or 0) <= found.moved + 1e-3


def test_batches_are_texts_one_by_one(mini, monkeypatch):
    ids = mini.encode("The king loved his daughter")
    whole = counterpart(mini, ids)
    monkeypatch.setattr("gptviz.analysis.counterpart.BATCH_TOKENS", 1)
    one = counterpart(mini, ids)
    assert one.ids == whole.ids and one.moved == pytest.approx(whole.moved, abs=1e-4)


def test_a_changed_models_own_answers_count(mini):
    changed = mini.edited("z.5.0+3+4+5+7=zero")
    found = counterpart(changed, mini.encode("The man took off"))
    logits = changed.trace(found.ids, keep=[]).logits(-1)
    assert int(logits.argmax()) != int(
        changed.trace("The man took off", keep=[]).logits(-1).argmax()
    )
    assert torch.isfinite(logits).all()


@pytest.mark.parametrize("edit", ["mlp_out.2=x3", "embed@-1=x2", "embed@4=x2"])
def test_changes_of_later_tokens_and_of_the_last_one_are_made_in_every_text(mini, edit):
    changed = mini.edited(edit)
    ids = mini.encode("The man took off his")
    found = counterpart(changed, ids, 2)
    own, other = (changed.trace(one, keep=[]).logits(2) for one in (ids, found.ids))
    assert found.moved == pytest.approx(moved(own, other), abs=1e-3)
