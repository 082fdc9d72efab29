"""The page "Knock-out" through AppTest: what is drawn is `knock_out`."""

import numpy as np
import pytest

from gptviz.analysis import knock_out
from gptviz.digits import significant
from gptviz.ui.shell import slow
from gptviz.ui.shell.state import DEFAULT_TEXT
from gptviz.work import Line
from tests.specs import charts, prose

TEXT = "The cat sat on the mat. The dog sat on the"
MILL = 2958


def drawn(at):
    """The map's cells row by row, and the list's bars."""
    cells, bars = charts(at)
    return np.array(cells["data"][0]["z"]).ravel(), bars["data"][0]


@pytest.mark.parametrize(
    ("query", "baseline", "measure"),
    [
        ({}, "zero", "probability"),
        ({"null": "mean", "measure": "logit", "against": 300, "token": 4, "target": 99}, "mean", "logit"),
    ],
)
def test_what_is_drawn_is_knock_out(run_page, mini, query, baseline, measure):
    at = run_page("knock_out", text=TEXT, **query)
    position = query.get("token", -1)
    logits = mini.trace(TEXT, keep=[]).logits(position).double()
    token = query.get("target", int(logits.argmax()))
    target = (token, query["against"]) if "against" in query else token
    table = knock_out(mini, TEXT, target, baseline, position)
    lost = -table["effect"] if measure == "logit" else float(logits.softmax(0)[token]) - table["probability"]
    cells, bars = drawn(at)
    assert np.allclose(cells, lost, atol=2e-5)
    largest = np.sort(np.abs(lost))[::-1][:12]
    assert np.allclose(np.abs(bars["x"]), largest, atol=2e-5)
    assert not [button for button in at.button if button.key in ("knock_out_start", "knock_out_stop")]
    moved = table["probability"] - float(logits.softmax(0)[token])
    opposite = int((np.sign(moved) != np.sign(table["effect"])).sum())
    said = f"For {opposite} of the 60 parts" in prose(at)
    assert said == (measure == "logit" and opposite > 0)


def test_the_story_of_the_previous_token_head(run_page, mini):
    at = run_page("knock_out", text=DEFAULT_TEXT, block=4, head=3, target=MILL)
    cells, bars = drawn(at)
    assert cells.reshape(6, 10)[4, 3] == pytest.approx(0.952 - 0.183, abs=0.001)
    assert bars["text"][bars["marker"]["line"]["width"].index(3)] == "0.183"  # the opened one
    said = [element.value for element in at.markdown]
    assert any("goes from 0.952 to **0.183**" in one for one in said)
    at.button(key="change_knock_out_quick").click().run()  # for the whole app
    assert at.query_params["edits"] == "z.4.3=zero"
    assert drawn(at)[0].reshape(6, 10)[4, 3] == pytest.approx(0, abs=1e-5)


def test_it_comes_from_memory_and_what_is_slow_waits_for_a_click(run_page, monkeypatch):
    text = TEXT + " one"
    monkeypatch.setattr(slow, "UNASKED", 0)
    at = run_page("knock_out", text=text)
    assert not charts(at)
    at.button(key="knock_out_start").click().run()
    assert len(charts(at)) == 2 and at.query_params["map"] == "on"
    monkeypatch.setattr(Line, "start", lambda *_: pytest.fail("it is worked out again"))
    at = run_page("knock_out", text=text, map="on", block=1, part="feed-forward")
    assert len(charts(at)) == 2
    stopped = run_page("knock_out", text=text, map="off")
    assert not charts(stopped) and stopped.info[0].value and stopped.button(key="knock_out_start")


def test_a_work_that_a_busy_server_gave_up_is_begun_again(run_page, monkeypatch):
    given_up, look = [], Line.look

    def too_late(line, work, who, seconds):
        look(line, work, who, seconds if given_up else 0.0)
        given_up.append(work)

    monkeypatch.setattr(Line, "look", too_late)
    at = run_page("knock_out", text=TEXT + " three")
    assert given_up[0].state == "done" and len(charts(at)) == 2


def test_a_changed_model_has_its_own_map(run_page, mini):
    at = run_page("knock_out", text=TEXT, edits="z.4.3=zero", measure="logit")
    lm = mini.edited("z.4.3=zero")
    target = int(lm.trace(TEXT, keep=[]).next_tokens(1)["id"][0])
    cells, _ = drawn(at)
    table, plain = (knock_out(one, TEXT, target) for one in (lm, mini))
    assert np.allclose(cells, -table["effect"], atol=2e-5)
    assert cells.reshape(6, 10)[4, 3] == pytest.approx(0, abs=1e-5)
    order = np.argsort(-np.abs(table["effect"]), kind="stable")[:12]  # the same parts of the unchanged model
    chart, listed = charts(at)
    ghosts = listed["data"][1]
    assert ghosts["name"] == "unchanged"
    assert np.allclose(ghosts["x"], -plain["effect"].iloc[order], atol=2e-5)
    said = float(chart["data"][0]["hovertext"][4][3].split()[-2].replace("−", "-"))
    assert said == pytest.approx(-plain["effect"][43], abs=6e-4) and abs(said) > 0.01
    own = mini.trace(TEXT, keep=[]).logits(-1).double().softmax(0)[target].item()
    opened = run_page("knock_out", text=TEXT, edits="z.4.3=zero", block=4, head=3, target=target)
    left = significant(plain["probability"][43])  # the same without it, changed or not
    said = f"goes from {left} (unchanged {significant(own)}) to **{left}**"
    assert any(said in element.value for element in opened.markdown)


def test_the_unchanged_map_waits_for_a_click_where_both_take_long(run_page, monkeypatch):
    monkeypatch.setattr(slow, "UNASKED", 0)
    query = {"text": TEXT + " two", "edits": "z.4.3=zero", "map": "on"}
    at = run_page("knock_out", **query)
    assert len(charts(at)[1]["data"]) == 1
    at.button(key="knock_out_beside").click().run()
    assert len(charts(at)[1]["data"]) == 2 and at.query_params["map_unchanged"] == "on"
