"""The page "Heads on trial" through AppTest: what is drawn of every head is what its analysis gives."""

import json

import numpy as np
import pytest

from gptviz.analysis.attention import mean_writes
from gptviz.analysis.head_roles import most_telling, role_table, roles
from gptviz.ui.shell.state import DEFAULT_TEXT
from gptviz.ui.views.heads.words import SHORT
from tests.pages.test_next_token import given
from tests.specs import charts

TEXT = "The cat sat on the mat. The cat sat on the"


def heads_drawn(figure):
    """(block, head) -> (x, y) of all points of the finder."""
    return {
        (b, h): (x, y)
        for trace in figure["data"]
        for (b, h, _), x, y in zip(trace.get("customdata", []), trace["x"], trace["y"], strict=False)
    }


@pytest.mark.parametrize("query", [{}, {"block": 4, "head": 3, "across": "here_copies", "up": "here_spread"}])
def test_the_finder_and_the_bars_are_the_measured_roles(run_page, mini, query):
    at = run_page("heads", text=TEXT, **query)
    trace = mini.trace(TEXT)
    found = roles(trace)
    finder, bars, sheet = charts(at)
    drawn = heads_drawn(finder)
    assert len(drawn) == 48
    names = query.get("across", "here_previous"), query.get("up", "here_first")
    for row in found:
        for role in row:
            values = [role.shares.get(n[5:], role.spread) for n in names]
            assert drawn[role.block, role.head] == pytest.approx(values)
    chosen = most_telling(found) if not query else found[4][3]
    shares = [
        chosen.shares[n] for n in ("induction", "copies", "first", "previous", "itself", "marks", "nearby")
    ]
    assert np.allclose(bars["data"][1]["x"], shares)
    words = np.array(sheet["data"][0]["text"])
    assert words.tolist() == [[SHORT[role.kind] for role in row] for row in found]
    chips = given(at, "chips")["weights"]
    assert chips == pytest.approx(trace["attn", chosen.block][chosen.head, -1].tolist())


def test_what_a_text_cannot_show_is_greyed_and_a_click_offers_one_that_does(run_page):
    at = run_page("heads", text="one two three", up="here_induction")
    finder, bars, _ = charts(at)
    assert not heads_drawn(finder) and finder["layout"]["annotations"]
    assert [i for i, x in enumerate(bars["data"][1]["x"]) if x is None or np.isnan(x)] == [0, 1, 5]
    assert len(bars["layout"]["annotations"]) == 3
    at.button(key="heads_offer_0").click().run()
    assert not at.exception
    finder, bars, _ = charts(at)
    assert len(heads_drawn(finder)) == 48 and not bars["layout"]["annotations"]
    assert at.query_params["text"] == DEFAULT_TEXT


@pytest.mark.parametrize("text", ["a", "日本語 🦜 é", "<b>**`$x$`**</b>\n\n\t  ", "word " * 300])
def test_any_text_is_drawn(run_page, text):
    at = run_page("heads", text=text, across="nonsense", block=99, head=99)
    assert at.number_input(key="block").value == 5 and at.number_input(key="head").value == 7
    for chart in at.get("plotly_chart"):
        json.loads(chart.proto.spec, parse_constant=lambda name: pytest.fail(f"{name} in a figure"))


def test_the_table_has_every_number(run_page, mini):
    at = run_page("heads", text=TEXT)
    at.session_state["numbers_heads-here"] = True
    at.run()
    trace = mini.trace(TEXT)
    wanted = role_table(roles(trace), mean_writes(trace, mini.model))
    assert np.allclose(at.dataframe[0].value["to_previous"], wanted["to_previous"], atol=1e-6)
    assert at.dataframe[0].value["role"].tolist() == wanted["role"].tolist()
