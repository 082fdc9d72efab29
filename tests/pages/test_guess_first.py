"""Guess first: no page says what becomes of the answer without a part before its reader has guessed."""

import re

import pytest

from gptviz.analysis.asked import asked_of
from gptviz.digits import percent
from gptviz.ui.teach.guess_first import PERCENT, WHY
from tests.pages.test_guide import COVER, below_the_bar, said_by
from tests.specs import given, keys, prose

TEXT = "The cat sat on the mat. The dog sat on the"
CHOSEN = {"text": TEXT, "block": 4, "head": 3}


def chances(lm, *edits):
    """The probability of every next token, with these changes."""
    return lm.trace(TEXT, keep=[], edits=edits).logits(-1).double().softmax(0)


@pytest.mark.parametrize(("page", "null"), [("knock_out", "zero"), ("heads", "mean")])
def test_the_probability_without_a_part_comes_after_the_guess(run_page, mini, page, null):
    at = run_page(page, guess_first="on", null=null, **CHOSEN)
    now = chances(mini)
    without = chances(mini, f"z.4.3={null}")
    answer = asked_of(mini, TEXT).answer
    before = percent(float(now[answer]))
    after = percent(float(without[answer]))
    assert before != after
    asked = re.compile(rf"The probability of .* is {before}\. What is it without head 4·3")
    assert asked.search(prose(at))
    tells = re.compile(rf"(?<![\d.]){re.escape(after)}")
    for element in below_the_bar(at.main):
        assert not tells.search(said_by(element)), said_by(element)[:300]
    at.slider(key=PERCENT).set_value(71)
    at.button(key="guess_first_say").click().run()
    assert f"You guessed **71 %**. It is **{after}**." in prose(at)
    assert tells.search(prose(at).replace(f"It is **{after}**", ""))
    assert not keys(at, "guess_first_s")  # and not again
    at.session_state["head"] = 2
    at.run()
    assert "without head 4·2" in prose(at) and "guess_first_say" in keys(at)


def test_the_bars_show_nothing_muted_and_all_else_is_covered(run_page, mini):
    at = run_page("knock_out", guess_first="on", **CHOSEN)
    bars = given(at, "knock_out_guess")
    now = chances(mini)
    ids = [row["id"] for row in bars["rows"]]
    assert ids == now.argsort(descending=True)[: len(ids)].tolist()
    shown = [row["probability"] for row in bars["rows"]]
    assert shown == pytest.approx(now[ids].tolist(), abs=2e-6)
    assert all(row["ghost"] is None for row in bars["rows"])
    assert not at.get("plotly_chart") and not at.dataframe
    covers = [one for one in at.get("html") if COVER in one.proto.body]
    assert any(WHY in one.proto.body for one in covers)
    at.button(key="guess_first_show").click().run()  # who does not want to guess
    assert at.get("plotly_chart") and "You guessed" not in prose(at)
    assert any(row["ghost"] != row["probability"] for row in given(at, "knock_out_guess")["rows"])


@pytest.mark.parametrize("page", ["knock_out", "heads"])
def test_nobody_is_asked_who_did_not_want_it(run_page, page):
    at = run_page(page, **CHOSEN)
    assert "Guess first" not in prose(at) and at.get("plotly_chart")
    assert not keys(at, "guess_first_s") and at.toggle(key="guess_first").value is False
