"""The page "Switch parts off" through AppTest: what is drawn is `knock_out`."""

import math
import re

import numpy as np
import pytest

from gptviz.analysis import knock_out
from gptviz.analysis.asked import asked_of
from gptviz.digits import fixed, percent, significant
from gptviz.ui.shell.state import UNSAID_TEXT
from tests.specs import charts, given, keys, number, prose, words

TEXT = "The cat sat on the mat. The dog sat on the"
MILL = 2958


ASKED = {"null": "mean", "measure": "logit", "against": 300, "token": 4, "target": 99}
CHANGED = {"measure": "logit", "against": "mean", "edits": "z.4.3=zero"}
LOSS = {"measure": "loss", "null": "sample", "edits": "mlp_out.1=zero"}


@pytest.mark.parametrize("query", [{}, ASKED, CHANGED, LOSS])
def test_what_is_drawn_is_knock_out_of_the_model_and_of_the_unchanged_one(run_page, mini, query):
    at = run_page("knock_out", text=TEXT, **query)
    lm = mini.edited(query["edits"]) if "edits" in query else mini
    position = query.get("token", -1)
    logits = lm.trace(TEXT, keep=[]).logits(position).double()
    asked = asked_of(mini, TEXT, position)  # of the model as it is, whatever is changed
    token = query.get("target", asked.answer)
    target = (token, query.get("against", asked.instead))
    found, plain = (
        knock_out(one, TEXT, target, query.get("null", "zero"), position) for one in (lm, mini)
    )
    own = float(logits.softmax(0)[token])
    column = found["probability"]
    by = query.get("measure", "probability")
    lost = {"logit": -found["effect"], "probability": own - column, "loss": found["rise"]}[by]
    chart, listed = charts(at)
    assert np.allclose(np.ravel(chart["data"][0]["z"]), lost, atol=2e-5)
    order = np.argsort(-np.abs(lost), kind="stable")[:12]
    bars, *ghosts = listed["data"]
    assert np.allclose(bars["x"], found[by].iloc[order], atol=2e-5)  # as long as what is left
    whole = logits[token] - (logits.mean() if target[1] == "mean" else logits[target[1]])
    nothing_muted = {"logit": float(whole), "probability": own, "loss": -math.log(own)}[by]
    assert listed["layout"]["shapes"][0]["x0"] == pytest.approx(nothing_muted, abs=1e-4)
    colors = bars["marker"]["color"]
    (opened,) = (i for i, color in enumerate(colors) if colors.count(color) == 1)
    # the head without which the guess loses most
    needed = (found["kind"].iloc[order] == "head") & (lost.iloc[order] > 0)
    assert opened == needed.tolist().index(True)
    assert by != "probability" or bars["text"][opened] == percent(column[order[opened]])
    assert len(ghosts) == ("edits" in query) and not keys(at, "knock_out_st")
    opposite = int((np.sign(column - own) != np.sign(found["effect"])).sum())
    assert (f"For {opposite} of the 60 parts" in prose(at)) == (by == "logit" and opposite > 0)
    for ghost in ghosts:  # the same parts of the unchanged model
        assert np.allclose(ghost["x"], plain[by].iloc[order], atol=2e-5)
        told = [a or b for a, b in zip(bars["text"], ghost["text"], strict=True)]
        unit = " nats" if by == "loss" else ""
        both = [f"{fixed(one[by][order[0]], 2)}{unit}" for one in (plain, found)]
        assert told[0] == " → ".join(dict.fromkeys(both)) and any("→" in text for text in told)
        said = number(chart["data"][0]["hovertext"][4][3].split()[-2])
        was = plain["rise"] if by == "loss" else -plain["effect"]
        assert said == pytest.approx(was[43], abs=6e-4) and abs(said) > 0.01


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"block": 4, "head": 3},
        {"block": 5, "part": "attention", "null": "mean", "token": 4, "target": 99, "against": 300},
        {"block": 2, "part": "feed-forward", "edits": "z.4.3=zero"},
    ],
)
def test_the_guess_goes_from_nothing_muted_to_the_part_muted(run_page, mini, query):
    at = run_page("knock_out", text=TEXT, **query)
    position = query.get("token", len(mini.encode(TEXT)) - 1)
    own = [query["edits"]] if "edits" in query else []
    block = query.get("block", 0)
    sites = {"head": "z", "attention": "attn_out", "feed-forward": "mlp_out"}
    site = sites[query.get("part", "head")]
    if not query:  # as long as nobody chose, the head that changes the prediction most
        table = knock_out(mini, TEXT)
        strongest = table[table["kind"] == "head"]["lost"].abs().idxmax()
        block = int(table["block"][strongest])
        query = {"head": int(table["head"][strongest])}
    of_head = f".{query['head']}" if site == "z" else ""
    mute = f"{site}.{block}{of_head}={query.get('null', 'zero')}"
    was, now = (
        mini.trace(TEXT, keep=[], edits=edits).logits(position).double().softmax(0)
        for edits in (own, [*own, mute])
    )
    sent = given(at, "knock_out_guess")
    ids = [row["id"] for row in sent["rows"]]
    first = was.argsort(descending=True)[:5].tolist()
    assert ids[:5] == first  # they keep their places, whatever is muted
    watched = query.get("target", first[0])
    assert {*now.argsort(descending=True)[:5].tolist(), watched} <= set(ids)
    assert len(ids) == len(set(ids)) <= 12
    shown = {"ghost": was, "probability": now}
    for name, chances in shown.items():
        assert [row[name] for row in sent["rows"]] == pytest.approx(chances[ids].tolist(), abs=2e-6)
        rest = 1 - float(chances[ids].sum())
        assert sent["rest"][name] == pytest.approx(rest, abs=1e-5)
    top = sent["rows"][0]
    assert top["p_text"].split(" → ")[0] == percent(float(was.max()))
    said = words(at)
    if watched == first[0] and "block" in query and not own:  # what was clicked, as it happened
        assert f"falls: **{top['p_text']}**" in said


@pytest.mark.parametrize("null", ["zero", "mean"])
def test_a_click_on_the_map_previews_and_the_button_below_puts_zero(run_page, mini, null):
    at = run_page("knock_out", text=TEXT, null=null, block=4, head=3)
    (caption,) = [one.value for one in at.caption if "Click a cell" in one.value]
    assert (
        "without that part" in caption
        and "The button above switches it off on every page" in caption
    )
    assert ("(then it outputs 0)" in caption) == (
        null != "zero"
    )  # the map may put something else there
    heads = given(at, "knock_out_guess")["heads"]
    assert heads["p"] == "part on → part off"
    at.button(key="change_knock_out_quick").click().run()
    assert at.query_params["edits"] == "z.4.3=zero"
    left = float(
        mini.trace(TEXT, keep=[], edits=["z.4.3=zero"]).logits(-1).double().softmax(0).max()
    )
    assert given(at, "changes")["effect"]["top_now"] == pytest.approx(left, rel=1e-4)


def test_one_word_says_that_a_part_is_off_and_the_fields_words_stand_once(run_page):
    for edits in ("", "z.4.3=zero"):
        said = prose(run_page("knock_out", text=TEXT, edits=edits))
        seen = re.sub(r"<[^>]*>", "", said)
        assert not re.search(r"\b[Mm]ut(e|ed|es|ing)\b|[Kk]nock-out", seen)
        assert seen.count("ablation") == 1 and "knock-out or muting" in said
        assert ("With nothing switched off it is" in seen) == (not edits)


def test_the_bars_slide_again_only_when_something_else_is_muted(run_page):
    one, again, other = (
        given(run_page("knock_out", text=TEXT, **query), "knock_out_guess")["outlined"]
        for query in (
            {"block": 4, "head": 3},
            {"block": 4, "head": 3, "measure": "logit"},
            {"block": 4, "head": 2},
        )
    )
    assert one == again != other


def test_what_is_nearly_certain_is_not_written_as_certain(run_page, mini):
    first = int(mini.edited("final=x50").trace(TEXT, keep=[]).logits(-1).argmax())
    at = run_page("knock_out", text=TEXT, edits="final=x50", target=first)
    assert "0.99999994" in words(at) and "1.00000" not in words(at)


def test_of_a_head_that_is_off_nothing_is_left_to_mute(run_page, mini):
    at = run_page("knock_out", text=TEXT, edits="z.4.3=zero", block=4, head=3, target=MILL)
    plain = knock_out(mini, TEXT, MILL)
    left = significant(plain["probability"][43])  # the same without it, changed or not
    assert "Without head 4·3 the prediction stays the same" in prose(at)
    assert f"has a probability of {left}." in prose(at)
    again = "Your change is of head 4·3 already. Switching it off changes nothing more: "
    again += "the probability of `·mill` stays at"
    assert again in words(at)
    of_another = run_page("knock_out", text=TEXT, edits="z.4.3=zero", block=5, head=0, target=MILL)
    assert "already" not in words(of_another)


@pytest.mark.parametrize(
    "query", [{"text": TEXT, "edits": "final=zero"}, {"text": "The", "null": "mean"}]
)
def test_no_part_is_said_to_change_most_where_none_changes_anything(run_page, query):
    said = prose(run_page("knock_out", **query))  # nothing goes on, or a token is its own mean
    assert (
        "Switching off any single part changes nothing" in said
        and "Of the single heads" not in said
    )
    assert "the prediction stays the same" in said and "number 1 of 60" not in said


def test_no_head_is_said_to_change_most_where_only_feed_forwards_change_anything(run_page):
    said = words(run_page("knock_out", text=TEXT, edits="attn.*=zero"))
    assert "No single head changes it." in said and "Of the single heads" not in said
    shown = words(run_page("knock_out", text=TEXT, edits="attn.*=zero", block=5, head=2))
    assert "Without head 5·2 the prediction stays the same" in shown and "is number" not in shown


@pytest.mark.parametrize("edit", ["z.4.3=zero", "z.5.0+3+4+5+7=zero", "mlp_out.2=x0.99"])
def test_a_part_whose_muting_brings_a_lost_word_back_comes_first(run_page, mini, edit):
    changed = mini.edited(edit)
    was = float(mini.trace(UNSAID_TEXT, keep=[]).logits(-1).double().softmax(0)[MILL])
    now = float(changed.trace(UNSAID_TEXT, keep=[]).logits(-1).double().softmax(0)[MILL])
    table = knock_out(changed, UNSAID_TEXT, MILL)
    heads = table[table["kind"] == "head"]
    best = heads.loc[heads["probability"].idxmax()]
    said = words(run_page("knock_out", text=UNSAID_TEXT, edits=edit, target=MILL))
    story = f"switching off head {best['block']}·{best['head']} as well brings `·mill` back to **"
    rescued = now <= was / 2 and best["probability"] >= 0.9 * was
    assert (story + percent(best["probability"]) in said) == rescued
    assert ("brings `·mill` back" in said) == (table["probability"].max() >= 0.9 * was >= 1.8 * now)
    assert ("With head 4·3 off, switching off head 0·6 as well" in said) == (edit == "z.4.3=zero")


def test_a_word_that_another_part_would_bring_back_is_told_of_beside_the_one_that_is_muted(
    run_page, mini
):
    table = knock_out(mini.edited("z.4.3=zero"), UNSAID_TEXT, MILL)
    heads = table[table["kind"] == "head"]
    best = heads.loc[heads["probability"].idxmax()]
    of_another = table["probability"][3 * 10 + 4]
    said = words(run_page("knock_out", text=UNSAID_TEXT, edits="z.4.3=zero", block=3, head=4))
    assert (
        f"Switch off head 3·4, and the probability of `·mill` rises to **{percent(of_another)}**"
        in said
    )
    instead = f"Switch off head {best['block']}·{best['head']} instead, and `·mill` is back at **"
    assert instead + percent(best["probability"]) in said
