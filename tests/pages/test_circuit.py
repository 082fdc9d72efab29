"""The page "Circuit" through AppTest: what is drawn and said is that of passes with edits."""

import re
import sys

import numpy as np
import pytest

from gptviz.analysis import circuit, circuit_story, copied_story
from gptviz.analysis.circuit_passes import Passes, all_heads, edits_of
from gptviz.analysis.circuit_search import Circuit, in_order, parse, random_order, ranking, score
from gptviz.analysis.head_formulas import ROLES
from gptviz.analysis.head_roles import roles
from gptviz.digits import fixed, significant
from gptviz.ui.models.in_use import ALLOW_PATHS
from gptviz.ui.shell import slow
from gptviz.ui.shell.state import UNSAID_TEXT
from tests.models.checkpoints import makers
from tests.specs import charts, keys, opened, paragraph, prose, words

TEXT = "The cat sat on the mat. The dog sat on the"
SIXTEEN = "0.1+0.4+0.5+0.7+1.1+1.4+1.7+2.0+2.7+3.4+4.1+4.3+4.7+5.0+5.3+5.6"


def here(at):
    """Size and F of the circuit on the screen, and the sheet's colours."""
    _, curve, sheet = charts(at)[:3]
    values = np.array(curve["data"][0]["y"], float)
    (size,) = np.flatnonzero(np.isfinite(values))
    return int(size), float(values[size]), np.array(sheet["data"][0]["z"])


def by_edits(lm, text, heads, token, others="sample", feed_forwards=True):
    edits = edits_of(lm, heads, others, feed_forwards)
    return float(lm.trace(text, keep=[], edits=edits).logits(-1).double().softmax(0)[token])


def test_a_links_circuit_and_score_are_worked_out_anew(run_page, mini):
    at = run_page("circuit", text=UNSAID_TEXT, circuit=SIXTEEN, score="0.9764")
    size, value, brings = here(at)
    heads = parse(SIXTEEN, mini)
    mill = mini.encode(" mill")[0]
    assert size == 16 and value == pytest.approx(by_edits(mini, UNSAID_TEXT, heads, mill), abs=1e-5)
    assert f"{value:.4f}" == "0.9764" and len(at.success) == 1 and not at.warning
    fewer, more = (
        by_edits(mini, UNSAID_TEXT, set(heads) ^ {one}, mill) for one in ((4, 3), (2, 2))
    )
    assert (brings[4, 3], brings[2, 2]) == pytest.approx((value - fewer, more - value), abs=1e-5)
    link = next(block.value for block in at.code if "score=" in block.value)
    assert f"circuit={SIXTEEN}&score=0.9764" in link
    for wrong in ("0.9423", "much"):
        at = run_page("circuit", text=UNSAID_TEXT, circuit=SIXTEEN, score=wrong)
        assert "0.9764" in at.warning[0].value and wrong in at.warning[0].value and not at.success


def test_a_small_score_is_compared_by_the_digits_that_it_has(run_page, mini):
    few = "4.0"
    mill = mini.encode(" mill")[0]
    value = by_edits(mini, UNSAID_TEXT, parse(few, mini), mill)
    assert 0 < value < 0.001
    query = {"text": UNSAID_TEXT, "circuit": few}
    link = next(
        block.value for block in run_page("circuit", **query).code if "score=" in block.value
    )
    own = re.search(r"score=([^&\s]+)", link)[1]
    assert float(own) == pytest.approx(value, rel=1e-2)
    assert run_page("circuit", **query, score=own).success
    assert run_page("circuit", **query, score=f"{value + 5e-4:.4f}").warning


def test_it_opens_with_the_fewest_of_the_strongest_heads_that_are_enough(run_page, mini):
    at = run_page("circuit")
    kept, curve = charts(at)[:2]
    mill = mini.encode(" mill")[0]
    found = ranking(mini, UNSAID_TEXT, mill, "sample")
    heads = found.heads[: found.fewest]
    lit = {tuple(place) for place in np.argwhere(np.array(kept["data"][0]["z"])).tolist()}
    assert lit == set(heads) and here(at)[0] == len(heads) < 48
    ranks = dict(zip(found.heads, range(1, 49), strict=True))
    looks = {
        (role.block, role.head): ROLES[role.kind].label
        for row in roles(mini.trace(UNSAID_TEXT))
        for role in row
    }
    for head, cell in zip(all_heads(mini), kept["data"][1]["text"], strict=True):
        rank, *word = cell.split("<br>")
        assert rank == str(ranks[head]) and len(word) == (head in heads)
        assert head not in heads or looks[head] in word[0]
    assert "More heads can lose it again" in prose(at)
    assert found.values[found.fewest :].min() < found.whole - found.allowed
    line = next(line for line in curve["data"] if line["name"] == "strongest first")
    assert np.allclose(line["y"], found.values, atol=1e-5)
    said = f"Keep only these **{len(heads)} heads**, and the model still says `·mill`."
    assert said in re.sub("<.*?>", "", prose(at))
    value = by_edits(mini, UNSAID_TEXT, heads, mill)
    assert here(at)[1] == pytest.approx(value, abs=1e-5)
    at.slider(key="circuit_keep").set_value(5).run()
    assert at.query_params["keep"] == "5" and here(at)[0] == 5
    value = by_edits(mini, UNSAID_TEXT, found.heads[:5], mill)
    assert here(at)[1] == pytest.approx(value, abs=1e-5)
    assert "`·mill` loses too much of its probability" in prose(at)
    assert "More heads can lose it again" not in prose(at)
    link = next(block.value for block in at.code if "score=" in block.value)
    assert "keep=5&score=" in link and "circuit=" not in link
    at.button(key="circuit_fewest").click().run()
    assert here(at)[0] == len(heads) and not at.query_params["keep"]
    for key, count in (("circuit_none", 0), ("circuit_all", 48)):  # a number says it, and no list
        at.button(key=key).click().run()
        assert here(at)[0] == count and at.query_params["keep"] == str(count)
        # it is not kept, or there are no more
        assert "More heads can lose it again" not in prose(at)
        assert not at.query_params.get("circuit")


def test_where_many_passes_take_long_the_order_waits_for_a_click(run_page, monkeypatch):
    monkeypatch.setattr(slow, "UNASKED", 0)
    at = run_page("circuit", text=TEXT, others="zero")
    assert not keys(at, "circuit_keep") and len(charts(at)[1]["data"]) == 1
    at.button(key="circuit_order").click().run()
    assert at.query_params["heads_order"] == "on" and at.slider(key="circuit_keep").value < 48


def test_a_search_is_circuit_and_its_result_is_shown(run_page, mini, monkeypatch):
    # among which it searches: the test is short then
    few = [(0, 1), (1, 3), (4, 3), (5, 0), (5, 3)]
    monkeypatch.setattr(sys.modules[Circuit.__module__], "all_heads", lambda lm: few)
    at = run_page("circuit", text=TEXT, others="zero", heads_order="off")
    at.button(key="circuit_add").click().run()
    assert at.query_params["search"] == "add"
    token = int(mini.trace(TEXT, keep=[]).next_tokens(1)["id"][0])
    found = circuit(mini, TEXT, token, "zero", way="add")
    drawn = charts(at)[1]["data"]
    assert here(at)[0] == len(found.heads) and len(found.steps) > 1
    assert np.allclose(
        np.array(drawn[1]["y"])[found.steps["size"]], found.steps["value"], atol=1e-5
    )
    ordered = in_order(Passes(mini, TEXT, token, "zero"), random_order(mini))
    assert np.allclose(np.array(drawn[2]["y"])[ordered["size"]], ordered["value"], atol=1e-5)
    tables = opened(at, "numbers_circuit-search").dataframe
    table = next(one.value for one in tables if "way" in one.value)
    assert np.allclose(table["value"][: len(found.steps)], found.steps["value"], atol=1e-5)
    # each with its own Stop
    both = run_page("circuit", text=TEXT + " one", others="zero", search="both", heads_order="off")
    assert [line["name"] for line in charts(both)[1]["data"][1:3]] == [
        "removed one by one", "added one by one",
    ]  # fmt: skip
    at.button(key="circuit_none").click().run()
    assert here(at)[0] == 0 and at.query_params["circuit"] == "none"
    at.button(key="circuit_all").click().run()
    assert here(at)[0] == 48


def test_its_worth_is_score(run_page, mini):
    at = run_page("circuit", text=TEXT, circuit="4.3+5.0", target=99, against=300, others="mean")
    opened(at, "numbers_circuit-sets")
    found = score(Passes(mini, TEXT, (99, 300), "mean"), [(4, 3), (5, 0)])
    table = next(one.value for one in at.dataframe if "gap" in one.value)
    assert np.allclose(table["gap"], found["gap"], atol=1e-4) and len(table) == 4
    said = paragraph(at, "Completeness")  # open beside the sentence
    faithful = fixed(found["gap"][0], 2)
    complete = fixed(found["gap"].max(), 2)
    assert f"**{faithful}**" in said and f": **{complete}**" in said


def test_what_a_head_brings_to_the_unchanged_model_is_in_brackets(run_page, mini):
    at = run_page("circuit", edits="z.4.3=zero", others="mean", keep=48)
    sheet, numbers = charts(at)[2]["data"]
    mill = mini.encode(" mill")[0]
    everyone = set(all_heads(mini))
    old, without, new, gone = (
        by_edits(lm, UNSAID_TEXT, heads, mill, "mean")
        for lm in (mini, mini.edited("z.4.3=zero"))
        for heads in (everyone, everyone - {(5, 0)})
    )
    whole, *_, unchanged = [
        s["y0"] for s in charts(at)[1]["layout"]["shapes"] if s["y0"] == s["y1"]
    ]
    assert (whole, unchanged) == pytest.approx((new, old), abs=1e-5)
    assert sheet["z"][5][0] == pytest.approx(new - gone, abs=1e-5)
    last = 5 * mini.config.n_heads  # block 5, head 0
    assert numbers["text"][last] == f"{fixed(sheet['z'][5][0], 2)}<br>({fixed(old - without, 2)})"
    tables = opened(at, "numbers_circuit").dataframe
    table = next(one.value for one in tables if "brings" in one.value).set_index(["block", "head"])
    brings = [table.loc[(5, 0), name] for name in ("unchanged brings", "brings")]
    assert brings == pytest.approx([old - without, new - gone], abs=1e-5)
    at = run_page("circuit", text=TEXT, edits="z.4.3=zero", others="mean", sheet_unchanged="off")
    assert "<br>" not in charts(at)[2]["data"][1]["text"][last]
    at.button(key="circuit_sheet_beside").click().run()
    assert (
        "<br>" in charts(at)[2]["data"][1]["text"][last]
        and at.query_params["sheet_unchanged"] == "on"
    )


def test_a_circuit_becomes_the_model_of_every_page(run_page, mini):
    at = run_page("circuit", text=TEXT, circuit="4.3+5.0", others="mean")
    value = here(at)[1]
    at.button(key="circuit_everywhere").click().run()
    edits = at.query_params["edits"].split(",")
    assert edits == [str(edit) for edit in edits_of(mini, [(4, 3), (5, 0)], "mean")]
    token = int(mini.trace(TEXT, keep=[]).next_tokens(1)["id"][0])
    lm = mini.edited(*edits)
    assert lm.trace(TEXT, keep=[]).logits(-1).double().softmax(0)[token] == pytest.approx(
        value, abs=1e-6
    )


@pytest.mark.parametrize("measure", ["logit", "loss"])
def test_of_two_names_the_chosen_measure_and_baseline_are_those_of_the_circuit(
    run_page, mini, measure
):
    text = "When Tom and Mary left the garden, Tom gave the flowers to"
    heads = [(0, 5), (4, 3), (5, 0)]
    query = {"null": "mean"} | ({} if measure == "logit" else {"measure": measure})
    at = run_page("circuit", text=text, circuit="0.5+4.3+5.0", heads_order="off", **query)
    mary, tom = (mini.encode(name)[0] for name in (" Mary", " Tom"))
    edits = edits_of(mini, heads, "mean")
    logits = mini.trace(text, keep=[], edits=edits).logits(-1).double()
    wanted = {
        "logit": float(logits[mary] - logits[tom]),
        "loss": -float(logits.log_softmax(0)[mary]),
    }[measure]
    assert here(at)[:2] == (3, pytest.approx(wanted, abs=1e-4))
    link = next(block.value for block in at.code if "score=" in block.value)
    assert f"measure={measure}&null=mean" in link


@pytest.mark.parametrize(("forwards", "who"), [("on", "all"), ("off", "the whole model")])
def test_what_is_allowed_is_a_share_of_the_whole_models_way(run_page, mini, forwards, who):
    at = run_page("circuit", text=TEXT, circuit="4.3", forwards=forwards)
    token = int(mini.trace(TEXT, keep=[]).next_tokens(1)["id"][0])
    whole = float(mini.trace(TEXT, keep=[]).logits(-1).double().softmax(0)[token])
    tenth = abs(whole - by_edits(mini, TEXT, (), token, feed_forwards=forwards == "on")) / 10
    said = paragraph(at, "a tenth of the way")
    assert f"an error of {significant(tenth)}, a tenth of the way from no head to {who};" in said
    some = {"on": "all heads change", "off": "all heads and feed-forwards change"}[forwards]
    assert any(some in one.value for one in at.caption)


def test_where_no_head_matters_nobody_is_asked_for_fewer(run_page):
    said = words(run_page("circuit", text=TEXT, edits="final=zero"))
    assert "there is nothing to keep" in said and "with fewer" not in said and "How few" not in said


def test_the_story_is_told_when_it_is_asked_for(run_page, mini):
    assert circuit_story.COUNT == 2 * circuit_story.LEAST  # the fewest sentences, in pairs
    at = run_page("circuit", text=UNSAID_TEXT, others="zero")
    assert not [one for one in at.markdown if "shown**" in one.value or "*not shown*" in one.value]
    at.button(key="circuit_story").click().run()
    assert at.query_params["story"] == "on"
    told = circuit_story.story(mini, baseline="zero")
    lines = [line for one in at.markdown for line in one.value.splitlines()]
    assert any(f"right name in **{told.right} of {told.n}**" in line for line in lines)
    for claim in told.claims:
        role = claim.role.name
        (line,) = [line for line in lines if line.lower().startswith(f"- **{role.lower()}**")]
        assert ("**shown**" in line) == claim.shown
        assert claim.effect is None or fixed(abs(claim.effect), 2) in line
        assert ("Not tested" in line) == (claim.effect is None)
    assert any(
        "±: the standard error over the 12 pairs of sentences." in one.value for one in at.caption
    )
    whole = fixed(told.worth.whole, 2)
    (worth,) = [line for line in lines if line.startswith("**As a circuit**")]
    assert whole in worth and "every other head outputs 0. " in worth
    assert ("explains nothing" in worth) == (not told.worth.explains)
    is_shown = any(claim.shown for claim in told.claims)
    assert ("no role is shown" in worth) == (not is_shown)
    assert not [one for one in at.caption if "the changed model" in one.value]


def test_the_story_of_a_copied_word_is_of_texts_like_this_one(run_page, mini, monkeypatch):
    monkeypatch.setattr(copied_story, "COUNT", circuit_story.LEAST)
    at = run_page("circuit", text=UNSAID_TEXT, story="copied", null="other")
    told = copied_story.copied_story(mini, UNSAID_TEXT, "other")
    lines = [line for one in at.markdown for line in one.value.splitlines()]
    assert any(f"first choice in **{told.first} of {told.n}** texts" in line for line in lines)
    for claim in told.claims:
        role = claim.role.name
        (line,) = [line for line in lines if line.lower().startswith(f"- **{role}**")]
        assert ("**shown**" in line) == claim.shown
        assert claim.reason in line
        assert not claim.shown or fixed(abs(claim.lost), 2) in line
        value = f"its value in {copied_story.OTHERS[claim.role.other]}"
        # of several heads, or of one
        off = (f"(each gives {value})", f"({value} instead)")
        assert not claim.shown or any(one in line for one in off)
        is_above = claim.role.other == "next" and 0 < told.difference < (claim.effect or 0)
        assert ("more than all of it, since the other text asks" in line) == is_above
    (worth,) = [line for line in lines if line.startswith("**As a circuit**")]
    assert "every other head outputs its value in the text with another word behind" in worth
    assert "circuit_story" in keys(at) and "copied_story" not in keys(at)


def test_a_model_without_the_sentences_words_keeps_the_rest_of_the_page(
    run_page, monkeypatch, tmp_path
):
    """The address may ask for the story all the same: a sentence stands there, no button and no warning."""
    monkeypatch.setenv(ALLOW_PATHS, "1")
    folder = makers.save_characters(tmp_path)
    at = run_page("circuit", model=f"path:{folder}", text="ABBA! 1", story="on")
    lines = [one.value for one in at.markdown]
    assert any(line.startswith("It cannot be told here") for line in lines)
    assert "circuit_story" not in [one.key for one in at.button] and not at.warning
    assert "Over many texts" in [one.value for one in at.subheader]


def test_a_story_that_is_refused_keeps_the_rest_of_the_page(run_page, monkeypatch):
    monkeypatch.setattr(circuit_story, "COUNT", circuit_story.LEAST - 1)
    at = run_page("circuit", text=UNSAID_TEXT, story="on")
    assert any("a story needs" in one.value for one in at.warning)
    assert "Over many texts" in [one.value for one in at.subheader]
