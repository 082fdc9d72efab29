"""The page "Knock-out" through AppTest: what is drawn is `knock_out`."""

import numpy as np
import pytest

from gptviz.analysis import knock_out
from gptviz.digits import percent, significant
from gptviz.ui.shell.state import DEFAULT_TEXT
from tests.specs import charts, keys, number, prose, words

TEXT = "The cat sat on the mat. The dog sat on the"
MILL = 2958


ASKED = {"null": "mean", "measure": "logit", "against": 300, "token": 4, "target": 99}


@pytest.mark.parametrize("query", [{}, ASKED, {"measure": "logit", "edits": "z.4.3=zero"}])
def test_what_is_drawn_is_knock_out_of_the_model_and_of_the_unchanged_one(run_page, mini, query):
    at = run_page("knock_out", text=TEXT, **query)
    lm = mini.edited(query["edits"]) if "edits" in query else mini
    position = query.get("token", -1)
    logits = lm.trace(TEXT, keep=[]).logits(position).double()
    token = query.get("target", int(logits.argmax()))
    target = (token, query["against"]) if "against" in query else token
    found, plain = (
        knock_out(one, TEXT, target, query.get("null", "zero"), position) for one in (lm, mini)
    )
    own = float(logits.softmax(0)[token])
    column = found["probability"]
    by = query.get("measure")
    lost = -found["effect"] if by == "logit" else own - column
    chart, listed = charts(at)
    assert np.allclose(np.ravel(chart["data"][0]["z"]), lost, atol=2e-5)
    order = np.argsort(-np.abs(lost), kind="stable")[:12]
    bars, *ghosts = listed["data"]
    assert np.allclose(np.abs(bars["x"]), np.abs(lost[order]), atol=2e-5)
    opened = bars["marker"]["line"]["width"].index(3)  # the head that changes it most
    assert opened == found["kind"].iloc[order].tolist().index("head")
    assert by == "logit" or bars["text"][opened] == percent(column[order[opened]])
    assert len(ghosts) == ("edits" in query) and not keys(at, "knock_out_st")
    opposite = int((np.sign(column - own) != np.sign(found["effect"])).sum())
    assert (f"For {opposite} of the 60 parts" in prose(at)) == (by == "logit" and opposite > 0)
    for ghost in ghosts:  # the same parts of the unchanged model
        assert np.allclose(ghost["x"], -plain["effect"].iloc[order], atol=2e-5)
        said = number(chart["data"][0]["hovertext"][4][3].split()[-2])
        assert said == pytest.approx(-plain["effect"][43], abs=6e-4) and abs(said) > 0.01


def test_what_is_nearly_certain_is_not_written_as_certain(run_page):
    at = run_page("knock_out", text=TEXT, edits="final=x50")
    assert "0.99999994" in words(at) and "1.00000" not in words(at)


def test_of_a_head_that_is_off_nothing_is_left_to_mute(run_page, mini):
    at = run_page("knock_out", text=TEXT, edits="z.4.3=zero", block=4, head=3, target=MILL)
    plain = knock_out(mini, TEXT, MILL)
    left = significant(plain["probability"][43])  # the same without it, changed or not
    assert "Without head 4·3 the prediction stays the same" in prose(at)
    assert f"has a probability of {left}." in prose(at)


@pytest.mark.parametrize(
    "query", [{"text": TEXT, "edits": "final=zero"}, {"text": "The", "null": "mean"}]
)
def test_no_part_is_said_to_change_most_where_none_changes_anything(run_page, query):
    said = prose(run_page("knock_out", **query))  # nothing goes on, or a token is its own mean
    assert "Muting any single part changes nothing" in said and "Of the single heads" not in said
    assert "the prediction stays the same" in said and "number 1 of 60" not in said


def test_no_head_is_said_to_change_most_where_only_feed_forwards_change_anything(run_page):
    said = words(run_page("knock_out", text=TEXT, edits="attn.*=zero"))
    assert "No single head changes it." in said and "Of the single heads" not in said
    shown = words(run_page("knock_out", text=TEXT, edits="attn.*=zero", block=5, head=2))
    assert "Without head 5·2 the prediction stays the same" in shown and "is number" not in shown


@pytest.mark.parametrize("edit", ["z.4.3=zero", "z.5.0+3+4+5+7=zero", "mlp_out.2=x0.99"])
def test_a_part_whose_muting_brings_a_lost_word_back_comes_first(run_page, mini, edit):
    changed = mini.edited(edit)
    was = float(mini.trace(DEFAULT_TEXT, keep=[]).logits(-1).double().softmax(0)[MILL])
    now = float(changed.trace(DEFAULT_TEXT, keep=[]).logits(-1).double().softmax(0)[MILL])
    table = knock_out(changed, DEFAULT_TEXT, MILL)
    heads = table[table["kind"] == "head"]
    best = heads.loc[heads["probability"].idxmax()]
    said = words(run_page("knock_out", text=DEFAULT_TEXT, edits=edit, target=MILL))
    story = f"muting head {best['block']}·{best['head']} as well brings `·mill` back to **"
    rescued = now <= was / 2 and best["probability"] >= 0.9 * was
    assert (story + percent(best["probability"]) in said) == rescued
    assert ("brings `·mill` back" in said) == (table["probability"].max() >= 0.9 * was >= 1.8 * now)
    assert ("With head 4·3 off, muting head 0·6 as well" in said) == (edit == "z.4.3=zero")
