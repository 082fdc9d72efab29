"""The Compare page through AppTest: what it draws and says against the models' own passes."""

import math
import re

import numpy as np
import pytest

import gptviz
from gptviz.ui.shell.state import UNSAID_TEXT
from tests.specs import charts, keys, paragraph, prose, put


def predicted(at):
    """What comes next, the picture of bars."""
    (drawn,) = [chart for chart in charts(at) if chart["data"][0]["type"] == "bar"]
    return drawn


def bars(at):
    left, right = predicted(at)["data"]
    return np.array(left["x"]), np.array(right["x"])


def map_of(at, number):
    """The heads' map is the first one, the streams' the second."""
    drawn = [chart for chart in charts(at) if chart["data"][0]["type"] == "heatmap"]
    return np.array(drawn[number]["data"][0]["z"])


def plain(at):
    """The page's sentences without what escapes Markdown."""
    return prose(at).replace("\\", "")


def distribution(trace, position=-1):
    return trace.logits(position).double().softmax(dim=0)


def test_before_and_after_a_change(run_page, mini):
    at = run_page("compare", vs="edits", edits="z.4.3=zero")
    changed = mini.trace(UNSAID_TEXT, edits=["z.4.3=zero"])
    own = mini.trace(UNSAID_TEXT)
    assert [round(side[0], 3) for side in bars(at)] == [0.183, 0.952]
    p = distribution(own)
    q = distribution(changed)
    assert f"{(p * (p / q).log2()).sum():.3g} bits" in prose(at)
    grid = map_of(at, 0)
    # the next block is the first that sees it
    assert np.abs(grid[:5]).max() < 1e-5 < 0.01 < grid[5].min()
    a = changed["attn", 5].double()
    b = own["attn", 5].double()
    assert np.allclose(grid[5], ((a - b).abs().sum(-1) / 2)[:, 1:].mean(-1), atol=1e-6)
    streams = map_of(at, 1)
    assert np.abs(streams[:5]).max() < 1e-6 < streams[5:].max()


@pytest.mark.parametrize(
    ("query", "right"),
    [
        ({}, "own"),  # with and without the change, where nothing else is asked
        ({"vs": "edits", "vs_edits": "z.5.0=zero"}, "z.5.0=zero"),
        ({"vs": "model"}, "untrained"),  # a side that an address names stays
        ({"vs_model": "mini-untrained"}, "untrained"),
        ({"edits_off": "on"}, "untrained"),  # nothing is changed then
        ({"vs": "edits", "vs_edits": "nonsense"}, "own"),
    ],
)
def test_under_a_change_the_right_side_is_the_model_without_it(run_page, mini, query, right):
    at = run_page("compare", edits="z.4.3=zero", **query)
    lm = gptviz.load("mini-untrained") if right == "untrained" else mini
    expected = lm.trace(UNSAID_TEXT, edits=[right] if "=" in right else [])
    left = mini.trace(UNSAID_TEXT, edits=[] if "edits_off" in query else ["z.4.3=zero"])
    shown = bars(at)
    for side, trace in zip(shown, (left, expected), strict=True):
        assert side.max() == pytest.approx(distribution(trace).max().item(), rel=1e-5)
    # the address does not say what nobody chose
    assert at.query_params.get("vs") == query.get("vs")


def test_a_choice_of_sides_stays_when_the_change_is_taken_back(run_page):
    at = run_page("compare", edits="z.4.3=zero")
    switch = at.button_group(key="compare_differs")
    assert switch.value == "edits"
    switch.set_value("text").run()
    for edits in ("z.4.3=zero", ""):
        assert put(at, edits=edits).query_params["vs"] == "text"
        assert "the other text" in prose(at)


def test_a_model_of_another_shape_and_vocabulary(run_page, mini):
    at = run_page("compare", vs_model="gpt2-untrained", text="Seven green parrots")
    other = gptviz.load("gpt2-untrained").trace("Seven green parrots")
    left, right = bars(at)
    assert right.max() == pytest.approx(distribution(other).max().item())
    assert len(charts(at)) == 1  # no map of heads, and none of streams
    assert "12 × 12 heads" in prose(at)
    assert not math.isnan(left.max())


def test_nothing_differs_is_said(run_page):
    at = run_page("compare", vs="edits")
    (said,) = at.info
    assert "same pass" in said.value
    # nothing is left without its first word
    assert run_page("compare", vs="text", text="One").warning
    streams = charts(at)[2]
    # rounding is paper
    assert map_of(at, 1).max() < 1e-9 and streams["layout"]["coloraxis"]["cmax"] == 1e-6


def test_a_changed_model_is_nowhere_called_by_its_own_name_alone(run_page, mini):
    at = run_page("compare", vs="model", edits="z.4.3=zero", vs_block=2, vs_head=1, block=3, head=0)
    chosen = [at.number_input(key=key).value for key in ("vs_block", "vs_head", "block", "head")]
    assert chosen == [2, 1, 3, 0]
    said = plain(at)
    assert "**mini (changed)** predicts" in said and "**mini** " not in said
    assert "KL(mini (changed) ‖ mini-untrained)" in said
    assert "· mini (changed)" in said  # over its matrix
    assert "mini (changed)" in str(predicted(at)["layout"]["annotations"])
    at = run_page("compare", vs="model")
    assert "(changed)" not in prose(at) and "**mini** predicts" in prose(at)


def test_a_small_change_is_not_told_as_none_and_its_tokens_as_elsewhere(run_page, mini):
    edit = "resid_post.2@-1=+3*out912"
    said = plain(run_page("compare", edits=edit))
    p, q = (distribution(mini.trace(UNSAID_TEXT, edits=edits)) for edits in ([], [edit]))
    (bits,) = re.findall(r"is ([0-9.]+) bits", said)
    assert 0 < float(bits) == pytest.approx((p * (p / q).log2()).sum().item(), rel=0.01)
    assert mini.tokens([912])[0].text == " fell" and "the output row of “·fell”" in said


def test_two_texts_that_a_changed_model_reads_say_so(run_page, mini):
    texts = "**your text (model changed)**", "**the other text (model changed)**"
    text = "A mill. Seven green parrots sang behind the old"
    other = mini.trace(text, edits=["z.4.3=zero"])
    at = run_page("compare", vs="text", vs_text=text, edits="z.4.3=zero")
    assert all(text in plain(at) for text in texts)
    assert bars(at)[1].max() == pytest.approx(distribution(other).max().item())
    assert f"(position {len(other) - 1})" in prose(at)  # they are paired from their ends
    # an edit that does not fit the shorter text is left out there: that side is the model's own
    at = run_page("compare", vs="text", vs_text="behind the old", edits="z.4.3@15=zero")
    assert texts[0] in plain(at) and "**the other text**" in plain(at)


def test_heads_are_ranked_by_how_much_they_differ(run_page):
    at = run_page("compare", vs="edits", edits="z.2.0=zero")
    grid = map_of(at, 0)
    ranked = [divmod(int(i), 8) for i in np.argsort(-grid.ravel(), kind="stable")[:10]]
    buttons = [button for button in at.button if (button.key or "").startswith("compare_rank_")]
    assert [button.label.split()[0] for button in buttons] == [f"{b}·{h}" for b, h in ranked]
    assert float(buttons[3].label.split()[1]) == pytest.approx(grid[ranked[3]], rel=0.05)
    buttons[3].click().run()
    assert (at.query_params["block"], at.query_params["head"]) == tuple(str(n) for n in ranked[3])
    at = run_page("compare", vs="edits", edits="z.5.0=zero")  # nothing after it looks anywhere
    assert not keys(at, "compare_rank_")
    at = run_page("compare", vs="edits", edits="attn.*=zero")
    assert paragraph(at, "differ most").startswith("48 ")


@pytest.mark.parametrize(
    ("left", "right", "which"), [("a b c", "a b", "previous"), ("a x y c", "a c", "next")]
)
def test_a_token_without_a_partner_is_compared_at_the_nearest_place(run_page, left, right, which):
    token = left.split().index("c" if which == "previous" else "x")
    said = prose(run_page("compare", text=left, vs="text", vs_text=right, token=token))
    assert f"so this is the {which} pair" in said
