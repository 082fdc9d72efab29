"""The page "Why this token?" through AppTest: what is drawn is `attribution`, and adds up to the logit."""

from urllib.parse import parse_qsl

import numpy as np
import pytest

from gptviz.analysis import attribution, knock_out, source_tokens
from gptviz.analysis.asked import asked_of
from gptviz.analysis.flow import contribution_graph, rollout, token_flow
from gptviz.analysis.logit_attribution import logit
from gptviz.analysis.paths import paths
from gptviz.engine import sites as engine_sites
from gptviz.jobs import Queue
from gptviz.ui.shell.state import UNSAID_TEXT
from gptviz.ui.shell.target import MEAN
from tests.pages.conftest import open_all
from tests.specs import attributes, charts, given, in_numbers, keys, links, opened, prose, words

TEXT = "The cat sat on the mat. The dog sat on the"
MILL = 2958
TOWN = 1647


def sum_on_screen(at):
    found = attributes(at, "why_sum")
    return int(found["parts"]), float(found["sum"]), float(found["logit"])


def grid_of(table):
    """The parts of the mini model's blocks: heads, bias, feed-forward."""
    return table[table["block"].notna()]["contribution"].to_numpy().reshape(6, 10)


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"against": 300},
        {"target": 12, "against": "mean", "token": 4},
        {"target": 12, "against": 8000, "token": 0, "block": 2, "head": 7},
    ],
)
def test_what_is_drawn_is_attribution(run_page, mini, query):
    at = run_page("why", text=TEXT, **query)
    trace = mini.trace(TEXT)
    position = query.get("token", len(trace) - 1)
    asked = asked_of(mini, TEXT, position)
    against = query.get("against", asked.instead)
    against = None if against == "mean" else against
    target = query.get("target", asked.answer)
    table = attribution(trace, mini.model, target, against, position)
    parts, total, own = sum_on_screen(at)
    assert parts == len(table) and total == pytest.approx(table["contribution"].sum(), abs=1e-9)
    assert own == pytest.approx(logit(trace, target, against, position)) and abs(total - own) < 1e-4

    bars = charts(at)[0]["data"]
    x = np.array(bars[0]["x"])
    base = np.array(bars[0]["base"])
    shown = table["contribution"][table["contribution"].abs().sort_values()[::-1].index[:12]]
    assert np.allclose(x[:12], shown.sort_values()[::-1]) and x[:13].sum() == pytest.approx(total)
    assert x[13] == pytest.approx(total) and base[0] == base[13] == 0
    assert np.allclose(base[1:13], np.cumsum(x[:12]))  # a bar begins where the one before it ended

    of_blocks = table[table["block"].notna()]  # the embedding comes before them, the shift after
    halves = of_blocks.groupby(["block", of_blocks["part"] == "feed-forward"])["contribution"].sum()
    by_block = charts(at)[3]["data"][0]
    assert np.allclose(by_block["y"][1:13], halves) and np.isclose(by_block["y"][-1], total)
    assert np.allclose(by_block["base"][1:-1], np.cumsum(by_block["y"][:-2]))

    strongest = divmod(int(np.abs(grid_of(table)[:, :8]).argmax()), 8)
    block = query.get("block", strongest[0])
    head = query.get("head", strongest[1])
    found = source_tokens(trace, mini.model, target, against, position)[block, :, : position + 1]
    chips = given(at, "chips")["shares"]
    assert [chip["share"] for chip in chips[: position + 1]] == pytest.approx(
        found[head].tolist(), abs=1e-6
    )
    assert chips[position + 1 :] == [None] * (len(trace) - position - 1)


def test_the_story_of_mill_against_town_is_said_in_words(run_page, mini):
    at = run_page("why", text=UNSAID_TEXT, against=TOWN)
    assert sum_on_screen(at) == (
        63,
        pytest.approx(8.9311, abs=1e-4),
        pytest.approx(8.9311, abs=1e-4),
    )
    said = words(at)
    table = attribution(mini.trace(UNSAID_TEXT), mini.model, MILL, TOWN)
    most = table.loc[table["contribution"].abs().idxmax()]
    assert (most["part"], most["block"]) == ("feed-forward", 5) and most["contribution"] > 0
    assert (
        "The strongest vote for `·mill` over `·town` comes from the feed-forward layer of block 5; "
        "some vote against." in said
    )
    heads = table[(table["part"] == "head") & (table["block"] == 5)]["contribution"].sum()
    assert f"All heads of block 5 together contribute **{heads:.2f}**." in said
    assert "Most of that was read from `·mill` (position 7)." in said
    assert "minus that of `·town`: **8.93**." in said


def test_the_same_text_with_another_word_is_one_click_away(run_page):
    at = run_page("why", text=UNSAID_TEXT)
    (label,) = [label for label in links(at) if label.startswith("Check it")]
    assert label == "Check it: what is the guess with `·barn` in the place of `·mill`?"
    asked = dict(parse_qsl(links(at)[label].query_string))
    assert asked["text"] == UNSAID_TEXT.replace("mill", "barn")
    # nothing is known to put in the place of any of these
    assert not any(label.startswith("Check it") for label in links(run_page("why", text="Of it")))


def test_a_feed_forward_layer_is_said_to_read_one_token(run_page):
    at = run_page("why", text=UNSAID_TEXT, block=5, why_part="feed-forward")
    assert "The feed-forward layer of block 5 reads `·red` alone (position 15)." in words(at)
    assert at.button(key="change_why_quick").label == "Switch off block 5's feed-forward"


def test_another_target_and_head_run_no_model(run_page, passes):
    at = run_page("why", text=TEXT)
    passes.clear()
    at.selectbox(key="against_box").set_value(MEAN).run()
    at.number_input(key="head").set_value(2).run()
    at.number_input(key="block").set_value(1).run()
    assert not passes
    assert at.query_params["head"] == "2" and at.query_params["against"] == "mean"


def test_muting_is_knock_out_and_stands_beside_the_direct_share(run_page, mini, monkeypatch):
    at = run_page("why", text=TEXT, against=300)
    at.toggle(key="mute").set_value(True).run()
    assert at.query_params["mute"] == "on"
    trace = mini.trace(TEXT)
    target = int(trace.next_tokens(1)["id"][0])
    direct = grid_of(attribution(trace, mini.model, target, 300))
    table = knock_out(mini, TEXT, (target, 300))
    total = -table["effect"].to_numpy().reshape(6, 10)
    grid, scatter = charts(at)[4:]
    assert np.allclose(grid["data"][0]["z"], total, atol=2e-5)
    assert np.allclose(scatter["data"][0]["x"], direct[:, :8].ravel(), atol=1e-6)
    assert np.allclose(scatter["data"][0]["y"], total[:, :8].ravel(), atol=2e-5)
    assert not keys(at, "why_stop")
    drawn = in_numbers(at, "muting")
    assert np.allclose(drawn["logit"], table["logit"], atol=2e-5)
    assert np.allclose(drawn["takes away"], total.ravel(), atol=2e-5)
    # all heads of a block, and their bias
    attentions = drawn[drawn["kind"] == "attention"]["direct"]
    assert np.allclose(attentions, direct[:, :9].sum(axis=1), atol=1e-6)
    monkeypatch.setattr(Queue, "start", lambda *_: pytest.fail("it is worked out again"))
    run_page("why", text=TEXT, against=300, mute="on", block=1, head=1)


@pytest.mark.parametrize("edits", ["", "attn.3.1=uniform"])
def test_a_long_texts_attention_is_not_kept_and_yet_known(run_page, mini, monkeypatch, edits):
    text = TEXT + " one two three"  # a text whose attention nobody has kept
    monkeypatch.setattr(engine_sites, "SMALL", 0)
    sources = charts(
        run_page(
            "why",
            text=text,
            block=3,
            token=8,
            target=12,
            against="mean",
            edits=edits,
            shown="changed",
        )
    )[1]
    trace = mini.trace(text, edits=[edits] if edits else [])
    found = source_tokens(trace, mini.model, 12, None, 8)[3]
    assert np.allclose(sources["data"][0]["z"], found[:, :9], atol=1e-6)


@pytest.mark.parametrize("text", ["<b>**`$x$`**</b>\n\n\t  ", "word " * 300])
def test_any_text_is_explained(run_page, text):
    at = run_page("why", text=text, mute="on" if len(text) < 20 else "off")
    _, total, own = sum_on_screen(at)
    assert abs(total - own) < 1e-4
    assert len(given(at, "chips")["shares"]) == len(given(at, "chips")["tokens"])
    if text.startswith("<b>"):  # no token is markup
        bars = charts(at)[2]["layout"]["xaxis"]["ticktext"]
        assert "<" not in "".join(bars) and any("&lt;" in tick for tick in bars)
    assert charts(at)  # plain JSON: no NaN, which no browser reads


# ---- a changed model ----


def test_a_changed_logit_stands_beside_the_unchanged_one(run_page, mini):
    edits = "z.5.0+3+4+5+7=zero"
    at = run_page(
        "why", text=UNSAID_TEXT, target=MILL, against="mean", block=5, head=3, edits=edits
    )
    plain = mini.trace(UNSAID_TEXT)
    changed = mini.trace(UNSAID_TEXT, edits=[edits])
    new, old = (attribution(trace, mini.model, MILL) for trace in (changed, plain))
    _, total, own = sum_on_screen(at)
    assert total == pytest.approx(new["contribution"].sum()) and abs(total - own) < 1e-4
    bars, sources = (chart["data"] for chart in charts(at)[:2])
    grid = charts(opened(at, "map_why"))[-1]["data"]
    before = logit(plain, MILL)
    # the ghosts: each begins with its bar
    assert bars[1]["x"][-1] == pytest.approx(before, abs=1e-4)
    assert sum(bars[1]["x"][:-1]) == pytest.approx(before, abs=1e-4)
    assert np.array_equal(bars[1]["base"], bars[0]["base"])
    shares = dict(zip(np.round(bars[0]["x"][:12], 6), bars[1]["x"], strict=False))
    pairs = zip(new["contribution"].round(6), old["contribution"], strict=True)
    assert all(shares[a] == pytest.approx(b, abs=1e-5) for a, b in pairs if a in shares and a)
    assert np.allclose(grid[0]["z"], grid_of(new) - grid_of(old), atol=1e-5)
    was = source_tokens(plain, mini.model, MILL)[5]
    assert np.allclose(sources[0]["z"][3], -was[3], atol=1e-5)  # off: nothing is left
    assert f"**{before:.3g} → {own:.3g}**" in prose(at)
    assert "Your change leaves the head nothing to contribute" in prose(at)
    frame = in_numbers(at, "why")["contribution"]
    assert np.allclose(frame, [*new["contribution"], total, own], atol=1e-4)


def test_of_a_changed_model_the_word_is_explained_that_the_unchanged_one_is_asked_for(
    run_page, mini
):
    edits = "z.5.0+3+4+5+7=zero"
    changed = mini.edited(edits)
    asked = asked_of(mini, UNSAID_TEXT)
    logits = changed.trace(UNSAID_TEXT).logits(-1).double()
    assert int(logits.argmax()) != asked.answer == MILL
    at = run_page("why", text=UNSAID_TEXT, edits=edits)
    assert sum_on_screen(at)[2] == pytest.approx(float(logits[MILL] - logits[asked.instead]))
    assert "target" not in at.query_params


@pytest.mark.parametrize(
    "edits", ["z.4.3=mean", "resid_pre.2@5=zero,final=mean", "tok_emb=shuffle3,attn.1=uniform"]
)
def test_any_change_is_explained(run_page, edits):
    at = open_all(run_page("why", text=TEXT, edits=edits, block=4, head=3))
    _, total, own = sum_on_screen(at)
    assert abs(total - own) < 1e-4


# ---- the panels on paths and flow ----


def with_panels(run_page, *names, **query):
    """The page with these panels open; closed they draw nothing."""
    at = run_page("why", **query)
    assert len(charts(at)) == 4
    return opened(at, *(f"why_{name}_box" for name in names))


def test_paths_are_those_that_are_found(run_page, mini):
    at = with_panels(run_page, "paths", text=UNSAID_TEXT, target=MILL, against=TOWN)
    found = paths(mini, mini.trace(UNSAID_TEXT), MILL, TOWN)
    drawn = found.above(0.005, 32)
    above = found.above(0.005)
    values = np.array(charts(at)[-1]["data"][0]["customdata"])[:, 0]
    assert values.sum() == pytest.approx(drawn["logits"].sum(), abs=1e-3)
    assert (
        len(drawn) == 32
        and f"32 largest of {len(above)} edges" in prose(at)
        and "8.93" in prose(at)
    )


def test_the_thresholds_stand_in_the_address(run_page, mini):
    query = {
        "token": 9, "target": MILL, "against": "mean", "paths_from": 5, "flow_from": 10,
    }  # fmt: skip
    at = with_panels(run_page, "paths", "flow", text=UNSAID_TEXT, **query)
    trace = mini.trace(UNSAID_TEXT)
    assert (at.slider(key="paths_from").value, at.slider(key="flow_from").value) == (5, 10)
    of_paths, _, shown = (chart["data"][0] for chart in charts(at)[-3:])
    found = paths(mini, trace, MILL, None, 9).above(0.05)
    assert np.array(of_paths["customdata"])[:, 0].sum() == pytest.approx(
        found["logits"].sum(), abs=1e-3
    )
    assert np.allclose(np.flip(shown["z"], 0), token_flow(mini, trace, 9)[0], atol=1e-4)
    for scaled in (True, False):
        graph = contribution_graph(mini, trace, 9, 0.1, scaled).edges
        drawn = np.array(charts(at)[-2]["data"][0]["customdata"])[:, 0]
        assert np.allclose(np.sort(drawn), np.sort(graph["contribution"]), atol=1e-4)
        at.toggle(key="flow_scaled").set_value(False).run()


def test_rollout_is_drawn_instead(run_page, mini):
    at = with_panels(run_page, "flow", text=UNSAID_TEXT, flow_way="Attention rollout")
    shown = np.flip(charts(at)[-1]["data"][0]["z"], 0)
    assert np.allclose(shown, rollout(mini, mini.trace(UNSAID_TEXT)), atol=1e-5)
    assert f"{100 * shown[0, -1]:.1f} %" in prose(at) and "flow_from" not in [
        s.key for s in at.slider
    ]


@pytest.mark.parametrize("text", ["A", "once upon a time there was " * 60])
def test_panels_of_any_text(run_page, text):
    at = with_panels(run_page, "paths", "flow", text=text)
    assert len(charts(at)) == 7 and len(charts(at)[-1]["data"][0]["z"]) == 7


def test_of_equal_weights_none_is_where_a_head_looked_most(run_page):
    said = prose(
        run_page("why", text=" the" * 30, block=5, head=0, edits="pos_emb=zero,mlp_out.1=mean")
    )
    assert "looking is not taking" not in said
