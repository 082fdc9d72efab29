"""The page "Patching" through AppTest: what is drawn is `patching`, a click is an edit of the app."""

import re
from dataclasses import replace

import numpy as np
import pytest
import streamlit as st
import torch

from gptviz import Edit
from gptviz.analysis import patching
from gptviz.analysis.activation_patching import SHARES_FROM, agreement
from gptviz.analysis.counterpart import counterpart
from gptviz.analysis.names import renamed
from gptviz.analysis.other_texts import SWAP, other_texts
from gptviz.analysis.patches import HEAD_SITES, Patch
from gptviz.analysis.prompts import indirect_objects
from gptviz.digits import percent, significant
from gptviz.ui.parts.patching import through
from gptviz.ui.parts.patching.other import Other, toggle
from gptviz.ui.shell import slow, state
from gptviz.ui.shell.other_text import PAIRS
from tests.specs import (
    attributes,
    charts,
    floats,
    given,
    in_numbers,
    keys,
    left_by_program,
    prose,
    put,
    table as small_table,
    words,
)

BARN = PAIRS[0].other
TEXT = "The man took off"
OTHER = "The woman took off"


@pytest.mark.parametrize(
    ("site", "edits"), [("resid_pre", ""), ("mlp_out", ""), ("resid_pre", "mlp_out.1=zero")]
)
def test_the_maps_are_patching(run_page, mini, site, edits):
    how = {"patch_site": site, "edits": edits, "patch_way": "denoising"}
    at = run_page("patching", text=TEXT, other=OTHER, **how)
    places, heads, guessed = charts(at)
    lm = mini.edited(edits) if edits else mini
    target = (
        lm.trace(OTHER, keep=[]).next_tokens(1)["id"][0],
        lm.trace(TEXT, keep=[]).next_tokens(1)["id"][0],
    )
    sites = [site, *HEAD_SITES] if site == "resid_pre" else [site]
    now, was = (
        patching(one, OTHER, TEXT, target, sites=sites, estimate=True) for one in (lm, mini)
    )
    for axis, column in (("x", "change"), ("y", "estimate")):
        assert np.allclose(guessed["data"][0][axis][: len(now)], now[column], atol=1e-4)
    worst = agreement(now).to_dict("records")
    for said, row in zip(small_table(at, "attribution patching"), worst, strict=False):
        assert said[1:] == [significant(row[name]) for name in ("largest", "correlation", "worst")]
    panels = zip((places["data"][0], *heads["data"]), sites, strict=False)
    for panel, name in panels if site == "resid_pre" else [(places["data"][0], site)]:
        effect, unchanged = (
            table[table["site"] == name]["effect"].to_numpy().reshape(6, -1) for table in (now, was)
        )
        if name == site:  # the map begins at the first token that differs, ·man | ·woman
            assert not effect[:, 0].any() and not unchanged[:, 0].any()
            effect, unchanged = effect[:, 1:], unchanged[:, 1:]
        grid = np.array(panel["z"])[:6]  # below it is the row behind the last block
        assert np.allclose(grid, effect, atol=1e-4)
        if edits:
            assert np.allclose(np.array(panel["customdata"])[:6, :, 1], unchanged, atol=1e-3)
    assert not places["layout"].get("shapes")
    if edits:
        rows = in_numbers(at, "patching")
        assert np.allclose(rows["effect"], now["effect"], atol=1e-4)
        assert np.allclose(rows["unchanged effect"], was["effect"], atol=1e-4)


@pytest.mark.parametrize(("way", "edits"), [("denoising", "mlp_out.1=zero"), ("noising", "")])
def test_where_the_ends_lie_close_it_tells_logits_and_no_percents(run_page, mini, way, edits):
    """After "... off" both texts say " the" and " a" with nearly one difference: .30 logits apart."""
    target = tuple(
        mini.encode(word)[0] for word in (" the", " a")
    )  # of the clean text, the corrupt one
    own, instead = target[::-1] if way == "denoising" else target
    texts = (OTHER, TEXT) if way == "denoising" else (TEXT, OTHER)  # clean, corrupt
    patch = Patch("resid_pre", 2, position=1).edit(mini.encode(OTHER))
    at = run_page(
        "patching", text=TEXT, other=OTHER, patch_way=way, target=own, against=instead,
        edits=",".join(filter(None, (edits, str(patch)))),
    )  # fmt: skip
    changes = {}
    for name, lm in (("own", mini.edited(edits) if edits else mini), ("unchanged", mini)):
        logits = lm.trace(TEXT, keep=[]).logits(-1).double()
        before = float(logits[target[0]] - logits[target[1]])
        table = patching(lm, *texts, target, sites=["resid_pre", *HEAD_SITES], direction=way)
        changes[name] = table["logit"].to_numpy() - before
        assert abs(table["metric"] - table["effect"]).iloc[0] == (way == "noising")
    ends = [lm.trace(text, keep=[]).logits(-1)[list(target)].diff() for text in texts]
    assert abs(float(ends[0] - ends[1])) < SHARES_FROM
    grid = np.array(charts(at)[0]["data"][0]["z"])[:6]
    own = changes["own"][:24].reshape(6, 4)[:, 1:]
    assert np.allclose(grid, own, atol=1e-4) and np.abs(grid).max() > 0.1
    coloraxis = charts(at)[0]["layout"]["coloraxis"]
    assert (coloraxis["cmin"], coloraxis["cmax"]) == (-1, 1)
    sentences = prose(at).replace("\n", " ").split(". ")
    told = [
        said for said in sentences if "moves the difference by" in said or "matters most" in said
    ]
    assert len(told) >= 3 and all("logits" in part and "%" not in part for part in told)
    made = attributes(at, "patches_made")
    assert float(made["effect"]) == pytest.approx(grid[2, 0], abs=1e-4)
    rows = in_numbers(at, "patching")
    assert not {"metric", "effect"} & set(rows)
    assert np.allclose(rows["change"][:-1], changes["own"], atol=1e-4)
    if edits:
        assert np.allclose(rows["unchanged change"][:-1], changes["unchanged"], atol=1e-4)


@pytest.mark.parametrize("way", ["denoising", "noising"])
def test_the_headline_leaves_out_the_difference_itself(run_page, way):
    """Into block 0 at ·man | ·woman goes the other token: that it is the other text is no finding."""
    at = run_page("patching", text=TEXT, other=OTHER, patch_way=way)
    grid = np.array(charts(at)[0]["data"][0]["z"])
    assert grid[0, 0] == pytest.approx(1 if way == "denoising" else -1, abs=1e-4)  # the map has it
    first, more = (
        next(line for line in words(at).splitlines() if begin in line)
        for begin in ("Copy one vector", "The copied vector is")
    )
    places = [
        (int(b), int(p)) for b, p in re.findall(r"block (\d) (?:at [^(]*)?\(position (\d)\)", more)
    ]
    assert [b for b, _ in places] == [1, 5]
    for (block, position), said in zip(places, (first, more), strict=True):
        share = abs(grid[block, position - 1])
        assert share == np.abs(grid[block]).max() and f"{significant(100 * share, 2)} %" in said


@pytest.mark.parametrize("way", ["denoising", "noising"])
def test_the_last_row_is_a_patch_behind_the_last_block(run_page, mini, way):
    at = run_page("patching", text=TEXT, other=OTHER, patch_way=way)
    target = [int(mini.trace(text, keep=[]).next_tokens(1)["id"][0]) for text in (TEXT, OTHER)]
    own, other = (
        mini.trace(text, keep=[]).logits(-1).double()[target].diff().item()
        for text in (TEXT, OTHER)
    )
    *_, row = np.array(charts(at)[0]["data"][0]["z"])
    for position, effect in zip((1, 2, 3), row, strict=True):
        patch = Patch("resid_post", 5, position=position).edit(mini.encode(OTHER))
        logits = mini.trace(TEXT, keep=[], edits=[patch]).logits(-1).double()
        moved = (logits[target].diff().item() - own) / abs(other - own)
        assert effect == pytest.approx(moved if way == "denoising" else -moved, abs=1e-4)


def test_a_change_that_looks_ahead_keeps_the_columns_before(run_page, mini):
    """A mean over the text moves tokens before the first one that differs: they are drawn, too."""
    query = {"text": TEXT, "other": OTHER, "target": 7, "against": 300}
    at = run_page("patching", **query, edits="z.0.1=mean,embed=mean")
    assert len(charts(at)[0]["data"][0]["z"][0]) == 4
    assert len(charts(run_page("patching", **query))[0]["data"][0]["z"][0]) == 3


def test_the_switch_lets_the_texts_change_places(run_page, mini):
    made, turned = (
        Patch("attn_out", 5, position=3).edit(mini.encode(text)) for text in (OTHER, TEXT)
    )
    words_chosen = {"target": 7, "against": 300}
    at = run_page("patching", text=TEXT, other=OTHER, edits=f"z.0.1=zero,{made}", **words_chosen)
    at.button_group(key="patch_way").set_value("denoising").run()
    assert (at.query_params["target"], at.query_params["against"]) == ("300", "7")
    assert at.query_params["text"] == OTHER and at.query_params["other"] == TEXT
    assert at.query_params["edits"] == f"z.0.1=zero,{turned}"


def test_the_switch_takes_a_chosen_answer_along_where_none_stands_against_it(run_page):
    """The mean of all, chosen on another page, is no word of this page: the answer changes its side alone."""
    chosen = {"target": 7, "against": "mean"}
    at = run_page("patching", text=TEXT, other=OTHER, **chosen)
    (before,) = [one.value for one in at.caption if "We measure the logit of" in one.value]
    at.button_group(key="patch_way").set_value("denoising").run()
    assert at.query_params["against"] == "7" and not at.query_params.get("target")
    (after,) = [one.value for one in at.caption if "We measure the logit of" in one.value]
    both = re.compile("logit of (`[^`]*`) minus that of (`[^`]*`)")
    assert both.search(after).groups() == both.search(before).groups()


def test_a_patch_that_is_made_is_framed_and_leaves_the_maps_as_they_are(run_page, mini):
    made = Patch("resid_pre", 2, position=1).edit(mini.encode(OTHER))
    plain, changed = (
        run_page("patching", text=TEXT, other=OTHER, edits=edits) for edits in ("", made)
    )
    before, after = (charts(at)[0] for at in (plain, changed))
    assert np.allclose(before["data"][0]["z"], after["data"][0]["z"], atol=1e-6)
    shapes = after["layout"]["shapes"]
    assert [[shape[end] for end in ("x0", "x1", "y0", "y1")] for shape in shapes] == [
        [-0.5, 2.5, 2.5, 6.5],  # what it reaches: this position and later ones, in later blocks
        [-0.5, 0.5, 1.5, 2.5],
    ]
    said = attributes(changed, "patches_made")
    his, her = (mini.encode(word)[0] for word in (" his", " her"))
    logits = mini.trace(TEXT, keep=[], edits=[made]).logits(-1).double()
    assert float(said["logit"]) == pytest.approx(float(logits[his] - logits[her]), abs=1e-5)
    assert float(said["effect"]) == pytest.approx(after["data"][0]["z"][2][0], abs=1e-5)


def test_programs_of_paths_and_of_many_texts_leave_out_what_was_patched_here(run_page, mini):
    made = Patch("resid_pre", 2, position=1).edit(mini.encode(OTHER))
    at = run_page("patching", text=TEXT, other=OTHER, edits=made, many="pronoun")
    his, her = (mini.encode(word)[0] for word in (" his", " her"))
    left = left_by_program(at, "in_code_path")
    expected = mini.path_patching(TEXT, OTHER, (his, her), direction="noising")["logit"]
    assert np.allclose(left["picture"]["logit"], expected, atol=1e-4) and "unchanged" not in left
    drawn = np.array(next(c for c in charts(at) if "error_x" in c["data"][0])["data"][0]["x"])
    left = left_by_program(at, "in_code_many")
    means = left["picture"]["change"].to_numpy(float)
    assert np.allclose(drawn, means[np.argsort(-np.abs(means), kind="stable")[:12]], atol=2e-5)
    assert not left["lm"].edits and "unchanged" not in left


@pytest.mark.parametrize("way", ["denoising", "noising"])
def test_it_says_which_way_a_patch_moves_the_prediction(run_page, mini, way):
    whose = "of the way to the other text’s"
    made = Patch("resid_pre", 2, position=1).edit(mini.encode(OTHER))
    at = run_page("patching", text=TEXT, other=OTHER, patch_way=way, edits=made)
    lines = prose(at).splitlines()
    told = [line for line in lines if "This patch now applies" in line or "matters most" in line]
    assert len(told) == 2
    assert all("moves the prediction" in line and whose in line for line in told)
    first = next(line for line in lines if "Copy one vector" in line)
    assert "of the way to the other’s." in first


def test_more_than_the_whole_way_is_said_in_times(run_page, mini):
    texts = [f"When Tom and Mary went home, {name} gave it to" for name in ("Tom", "Mary")]
    made = Patch("resid_pre", 4, position=7).edit(mini.encode(texts[1]))
    mary, tom = (mini.encode(word)[0] for word in (" Mary", " Tom"))
    ends = [mini.trace(text, keep=[]).logits(-1) for text in texts]
    patched = mini.trace(texts[0], keep=[], edits=[made]).logits(-1)
    own, theirs, with_it = (float(row[mary] - row[tom]) for row in (*ends, patched))
    share = (with_it - own) / (theirs - own)
    assert share > 1.05
    at = run_page("patching", text=texts[0], other=texts[1], edits=made)
    said = f"It moves the prediction **{share:.1f} times** the way to the other text’s."
    assert said in prose(at)


@pytest.mark.parametrize("way", ["denoising", "noising"])
def test_a_patch_of_the_wrong_sign_moves_away(run_page, mini, way):
    texts = ["When Tom and Mary left, Tom spoke to", "When Mary and Tom left, Mary spoke to"]
    made = Patch("resid_pre", 1, position=3).edit(mini.encode(texts[1]))
    mary, tom = (mini.encode(word)[0] for word in (" Mary", " Tom"))
    ends = [mini.trace(text, keep=[]).logits(-1) for text in texts]
    patched = mini.trace(texts[0], keep=[], edits=[made]).logits(-1)
    own, theirs, with_it = (float(row[mary] - row[tom]) for row in (*ends, patched))
    wrong = (own - with_it) / (theirs - own)
    assert wrong > 0.02
    at = run_page("patching", text=texts[0], other=texts[1], patch_way=way, edits=made)
    (told,) = [line for line in prose(at).splitlines() if "This patch now applies" in line]
    said = f"moves the prediction **{percent(wrong)}** away from the other text’s"
    assert said in told and "−" not in told


@pytest.mark.parametrize("way", ["denoising", "noising"])
def test_where_the_clean_text_is_answered_wrongly_it_says_what_a_patch_moves(run_page, mini, way):
    text = "When Tom and Mary left the garden, Tom gave the flowers to"
    other = "When Tom and Mary left the garden, Mary gave the flowers to"
    own = "your text"
    names = [" Mary", " Tom"]
    if way == "denoising":
        own = "the other text"
        names.reverse()
    right, wrong = names
    logits = mini.trace(text if own == "your text" else other, keep=[]).logits(-1)
    ahead = float(logits[mini.encode(wrong)[0]] - logits[mini.encode(right)[0]])
    said = (
        f"in {own} (clean) the model prefers `·{wrong.strip()}` to the answer `·{right.strip()}`, by "
        f"{ahead:.2f} logits"
    )
    at = run_page("patching", text=text, other=other, patch_way=way)
    assert (said in prose(at)) == (ahead > 0)
    assert "Mind the sign" not in prose(run_page("patching", patch_way=way))


def test_the_block_in_which_the_answer_moves_to_another_token_is_said(run_page, mini):
    """By a hook before that block, and one behind it: there the other token has what it did not have before."""
    text = "The little birds sang beside the red mill. The little birds sang beside the red"
    other = text.replace("mill", "barn")
    mine, theirs = (torch.tensor([mini.encode(one)]) for one in (text, other))
    answers = [mini.encode(word)[0] for word in (" mill", " barn")]
    mill = mini.encode(text).index(answers[0])

    def difference(ids, block=None, position=-1):
        """The two logits' difference; with a block, a position of what goes in there is the other text's."""
        streams = []
        blocks = mini.model.trf_blocks
        hook = blocks[block or 0].register_forward_pre_hook(
            lambda _, given: streams.append(given[0])
        )
        with torch.no_grad():
            mini.model(theirs)
        hook.remove()

        def put(_, given):
            patched = given[0].clone()
            patched[0, position] = streams[0][0, position]
            return (patched,)

        hooks = []
        if block is not None:
            hooks.append(blocks[block].register_forward_pre_hook(put))
        with torch.no_grad():
            logits = mini.model(ids)[0, -1]
        for one in hooks:
            one.remove()
        return float(logits[answers[0]] - logits[answers[1]])

    clean = difference(mine)
    corrupt = difference(theirs)

    def lost(block, position):
        return (clean - difference(mine, block, position)) / (clean - corrupt)

    assert (
        abs(lost(5, mill)) > 0.9 and abs(lost(5, -1)) < 0.1
    )  # and behind block 5 the last token has all
    said = "In block 5 most of the answer moves on to `·red`."
    assert said in words(run_page("patching", text=text, other=other))
    for query in ({"patch_site": "attn_out"}, {"other": text[:-3] + "big"}):
        at = run_page("patching", text=text, **({"other": other} | query))
        assert "of the answer moves on to" not in words(at)


@pytest.mark.parametrize("way", ["noising", "denoising"])
def test_many_texts_are_measured_as_the_two_texts_above(run_page, mini, monkeypatch, way):
    """One sign, the clean text's answer minus the corrupt one's, and one kind of other text."""
    monkeypatch.setattr(slow, "UNASKED", 10**15)
    texts = ["When Tom and Mary left, Tom spoke to", "When Mary and Tom left, Mary spoke to"]
    signs = [(" Mary", " Tom"), (" Tom", " Mary")]
    at = run_page("patching", text=texts[0], other=texts[1], patch_way=way, many="names")
    if way == "denoising":  # the text of the page is the corrupt one
        texts.reverse()
        signs.reverse()
    here = patching(mini, *texts, signs[0], sites=["z"], direction=way)["change"]
    prompts = [
        replace(one, other=renamed(one.text, dict(zip(names, names[::-1], strict=True))))
        for one in indirect_objects(mini, 24, exchanged=True)
        for names in [[str(name).strip() for name in one.target]]
    ]
    pairs = [one.text for one in prompts], [one.other for one in prompts]
    targets = [one.target for one in prompts]
    means = patching(mini, *pairs, targets, sites=["z"], direction=way)["change"]
    largest = means.abs().idxmax()
    (said,) = [line for line in prose(at).splitlines() if line.startswith("Over **24 texts**")]
    assert f"block {largest // 8} · head {largest % 8}" in said
    words_of = " − ".join(f"`·{name.strip()}`" for name in signs[0])
    assert f"above it is {significant(here[largest])} (of {words_of}, the clean" in said
    assert f"{significant(abs(means[largest]))} ± " in said
    assert "of another kind" not in said


def test_what_to_watch_is_said_of_the_bundled_model_as_it_is(run_page, mini, monkeypatch):
    monkeypatch.setattr(
        slow, "UNASKED", 0
    )  # no map: those of a changed model take a pass for every patch
    pair = PAIRS[0]
    patch = Patch("resid_pre", 2, position=10).edit(mini.encode(pair.other))
    for edits, said in ((str(patch), True), (f"z.3.7=zero,{patch}", False)):
        at = run_page("patching", text=pair.text, other=pair.other, edits=edits)
        assert (pair.watch in prose(at)) == said, edits


def test_the_default_prompt_has_its_other_text(run_page):
    at = run_page("patching")
    assert at.text_input(key="other_box").value == BARN
    (marked,) = [e.proto.body for e in at.get("html") if "pair-token" in e.proto.body]
    assert marked.count('data-differs="1"') == 1 and marked.count('data-testid="pair-token"') == 16


def test_of_two_names_the_other_one_comes_again_and_the_rest_is_offered(run_page, mini):
    text = "When Tom and Mary left the garden, Tom gave the flowers to"
    at = run_page("patching", text=text)
    assert at.text_input(key="other_box").value == (
        "When Tom and Mary left the garden, Mary gave the flowers to"
    )
    assert "other" not in at.query_params and len(charts(at)) == 3 and not at.warning
    box = at.selectbox(key="other_kind")
    assert box.options == [
        "The other name comes again",
        "Swap the two names",
        "A third name",
        "The other order",
        "One other token",
    ]
    wanted = other_texts(mini, text)
    assert box.value == wanted[0].text
    box.set_value(wanted[2].text).run()
    assert at.query_params["other"] == wanted[2].text
    assert at.text_input(key="other_box").value == wanted[2].text


def test_a_name_of_two_tokens_is_said_and_a_text_of_one_length_is_taken(run_page, mini):
    text = "When Tom and Anna left the garden, Tom gave the flowers to"
    at = run_page("patching", text=text, patch_site="mlp_out")
    taken = at.text_input(key="other_box").value
    assert len(mini.encode(taken)) == len(mini.encode(text)) and taken != text
    (note,) = [one.value for one in at.caption if "Made from your text" in one.value]
    assert "the other name comes again" in note and "“Anna” has 2 tokens" in note
    box = at.selectbox(key="other_kind")
    place = box.options.index("Swap the two names (15 tokens)")
    swapped = [one.text for one in other_texts(mini, text) if one.kind == SWAP]
    assert place < len(box.options) - 1 and len(swapped) == 1
    box.set_value(swapped[0]).run()
    assert "“Anna” has 2 tokens" in at.warning[0].value and not charts(at)


def test_any_other_prompt_has_one_made(run_page, mini):
    at = run_page("patching", text="Once upon a time there was a")
    made = at.text_input(key="other_box").value
    assert len(mini.encode(made)) == 7 and len(charts(at)) == 3
    at.text_input(key="other_box").set_value("Once upon a day there was a").run()
    assert at.query_params["other"] == "Once upon a day there was a"


def test_a_token_more_is_named_and_can_be_added(run_page, mini):
    pair = PAIRS[3]
    at = run_page("patching", text=pair.text, other=pair.other)
    assert "`·old`" in at.warning[0].value and not charts(at)
    at.button(key="other_fill").click().run()
    assert len(mini.encode(at.query_params["text"])) == len(mini.encode(pair.other))
    at = run_page("patching", text=pair.other, other=pair.text)
    at.button(key="other_fill").click().run()
    assert at.query_params["other"] == "The old man took off"


def test_where_the_texts_do_not_differ_it_says_so(run_page):
    for other, asked, says in (
        (TEXT, {}, "has nothing to bring back"),
        (TEXT, {"target": 5, "against": 9}, "has nothing to bring back"),
    ):
        at = run_page("patching", text=TEXT, other=other, **asked)
        assert says in at.warning[-1].value and not charts(at)


def test_two_chosen_words_are_measured(run_page, mini):
    at = run_page("patching", text=TEXT, other=OTHER, target=300, against=7, token=2)
    table = patching(mini, TEXT, OTHER, (300, 7), "resid_pre", "noising", position=2)
    # of two words whose ends lie close; before the first change
    change = table["logit"] - table["logit"][0]
    grid = charts(at)[0]["data"][0]["z"][:6]
    assert np.allclose(grid, change.to_numpy().reshape(6, 3)[:, 1:], atol=1e-4)


@pytest.mark.parametrize("way", ["denoising", "noising"])
def test_of_two_names_the_answer_and_the_other_name_are_measured(run_page, mini, way):
    text = "When Tom and Mary left the garden, Tom gave the flowers to"
    other = "When Tom and Mary left the garden, Mary gave the flowers to"
    tom, mary = (mini.encode(name)[0] for name in (" Tom", " Mary"))
    at = run_page("patching", text=text, other=other, patch_way=way, measure="loss", against="mean")
    clean, corrupt = (other, text) if way == "denoising" else (text, other)
    words_of = (tom, mary) if way == "denoising" else (mary, tom)
    table = patching(mini, clean, corrupt, words_of, "resid_pre", direction=way)
    grid = np.array(charts(at)[0]["data"][0]["z"])[:6]
    size = "effect" if abs(table["change"] / table["effect"]).max() >= SHARES_FROM else "change"
    assert np.allclose(grid, table[size].to_numpy().reshape(6, -1)[:, -grid.shape[1] :], atol=1e-4)
    assert "patches compare the logits of two words" in prose(at)


def test_a_click_makes_a_patch_and_a_second_one_undoes_it(monkeypatch):
    monkeypatch.setattr(st, "session_state", {})
    edit = Edit("resid_pre", 2, "ids5+17", positions=[1])
    toggle(edit, Other("a b", (5, 17)))
    assert state.EDITS.value == str(edit)
    toggle(edit, Other("a b", (5, 17)))
    assert state.EDITS.value == ""


@pytest.mark.parametrize(
    ("edits", "whose"),
    [
        ("", "the"),
        ("mlp_out.2=x3,embed@-1=x2", "the changed model's"),
        ("resid_pre.1@2=ids5+6+7", "the unpatched model's"),
        ("mlp_out.2=x3,resid_pre.1@2=ids5+6+7", "the changed model's"),
    ],
)
def test_the_text_that_is_made_is_searched_with_the_changes_and_without_the_patches(
    run_page, mini, monkeypatch, edits, whose
):
    text = "The cat sat on the mat"
    # no map: those of a changed model take a pass for every patch
    monkeypatch.setattr(slow, "UNASKED", 0)
    at = run_page("patching", text=text, token=4, edits=edits, patch_made="on")
    (note,) = [one.value for one in at.caption if "Made from your text" in one.value]
    assert f"moves {whose} prediction most" in note
    kept = [edit for edit in edits.split(",") if edit and "ids" not in edit]
    wanted = counterpart(mini.edited(*kept), mini.encode(text), 4)
    assert at.text_input(key="other_box").value == wanted.text


def test_no_head_is_said_to_move_most_where_none_moves_anything(run_page):
    text = "The cat sat on the mat. The cat sat on the"
    said = prose(run_page("patching", text=text, token=3, edits="attn.*=zero"))
    assert "No patched head moves the answer noticeably." in said and "matters most" not in said


@pytest.mark.parametrize(
    ("into", "kept"),
    [
        ("", "logits"),
        ("v05.4", "v5.4"),
        ("v.5.4,q.5.1", "v5.4,q5.1"),  # as an edit names them
        ("q9.0", "logits"),
        ("k٥.1", "logits"),
        ("v5.4,k9.9,q5.1,v5.4", "v5.4,q5.1"),
    ],
)
def test_the_paths_are_path_patching(run_page, mini, into, kept):
    """An address that names a reader which is not there, or that no head stands before, means the logits."""
    at = run_page("patching", path_into=into, patch_way="denoising")
    mill, barn = (mini.encode(word)[0] for word in (" mill", " barn"))
    receivers = "logits"
    readers = []
    if kept != "logits":
        readers = [[name[0], int(name[1]), int(name[3])] for name in kept.split(",")]
        receivers = [tuple(one) for one in readers]
    table = mini.path_patching(BARN, PAIRS[0].text, (barn, mill), receivers=receivers)
    effects = table["effect"].to_numpy().reshape(-1, 8)
    drawn = given(at, "path_map")
    found = floats(drawn["paths"]["effects"]["of"]).reshape(6, 8)
    assert np.allclose(found[: len(effects)], effects, atol=1e-4)
    assert np.isnan(found[len(effects) :]).all()
    assert at.session_state["path_into"] == kept and drawn["paths"]["readers"] == readers
    strongest = table.loc[table["effect"].abs().idxmax()]
    assert f"head {strongest['block']:.0f}·{strongest['head']:.0f}" in words(at)
    threads = drawn["paths"]["threads"]
    assert {(t["block"], t["head"]) for t in threads} >= {(strongest["block"], strongest["head"])}
    for thread in threads:  # each at its token
        at_token = mini.path_patching(
            BARN, PAIRS[0].text, (barn, mill), receivers=receivers, sent_at=thread["position"]
        )
        row = at_token[
            (at_token["block"] == thread["block"]) & (at_token["head"] == thread["head"])
        ]
        assert thread["effect"] == pytest.approx(row["effect"].item(), abs=1e-4)
    stream = floats(drawn["level"]["stream"]["of"]).reshape(13, -1)
    t = mini.trace(PAIRS[0].text)
    assert np.allclose(stream[-1], t["resid_post", 5].norm(dim=-1), rtol=1e-4)
    assert np.allclose(in_numbers(at, "path-patching")["logit"], table["logit"], atol=1e-4)


def test_a_head_whose_tokens_are_out_of_the_picture_has_no_thread_and_that_is_said(run_page, mini):
    """What differs stands more than a window before the selected token."""
    more = " and the wind blew over the hills, and the rain fell on the roofs of the town" * 2
    text = PAIRS[0].text.replace(" mill.", f" mill{more}.")
    other = text.replace(" mill", " barn")
    waits = {"patch_go": "on", "path_go": "on", "patch_way": "denoising"}
    at = run_page("patching", text=text, other=other, path_into="v5.4", **waits)
    drawn = given(at, "path_map")
    rows = drawn["level"]["rows"]
    assert len(mini.encode(text)) - len(rows) > 10
    assert all(thread["position"] in rows for thread in drawn["paths"]["threads"])
    words_of_both = tuple(mini.encode(word)[0] for word in (" barn", " mill"))
    table = mini.path_patching(other, text, words_of_both, receivers=[("v", 5, 4)])
    block, head, effect = table.loc[table["effect"].abs().idxmax(), ["block", "head", "effect"]]
    assert abs(effect) > 0.02
    assert (block, head) not in {(t["block"], t["head"]) for t in drawn["paths"]["threads"]}
    (note,) = [one.value for one in at.caption if "none of the tokens drawn here" in one.value]
    assert f"No thread for head {block:.0f}·{head:.0f}" in note


def test_a_click_on_a_head_reads_from_it_alone_or_also(monkeypatch):
    monkeypatch.setattr(st, "session_state", {})
    through.read_by(5, 1, 0)
    assert through.INTO.value == "q5.1"
    through.choose(("v", 5, 1), False)
    assert through.INTO.value == "v5.1"
    through.read_by(3, 2, 1)
    assert through.INTO.value == "v5.1,v3.2"
    through.choose(("k", 3, 2), True)
    through.choose(("v", 5, 1), True)
    assert through.INTO.value == "v3.2,k3.2"
    through.read_by(0, 2, 0)  # which no head stands before
    assert through.INTO.value == "v3.2,k3.2"
    through.read_by(3, 2, 1)
    assert through.INTO.value == "logits"
    through.read_by(3, 2, 0)
    through.read_by(-1, 0, 0)
    assert through.INTO.value == "logits"


def test_a_path_to_a_changed_model_has_the_unchanged_one_beside_it(run_page, mini):
    edits = "mlp_out.1=zero"
    at = run_page("patching", text=TEXT, other=OTHER, edits=edits, patch_way="denoising")
    rows = in_numbers(at, "path-patching")
    target = (
        mini.edited(edits).trace(OTHER, keep=[]).next_tokens(1)["id"][0],
        mini.edited(edits).trace(TEXT, keep=[]).next_tokens(1)["id"][0],
    )
    for lm, column in ((mini.edited(edits), "logit"), (mini, "unchanged logit")):
        assert np.allclose(rows[column], lm.path_patching(OTHER, TEXT, target)["logit"], atol=1e-4)


def test_a_path_that_pushes_the_answer_away_is_not_said_to_pass_it_on(run_page, mini):
    how = {"path_into": "q5.1", "patch_way": "denoising"}
    at = run_page("patching", text=TEXT, other=OTHER, **how)
    his, her = (mini.encode(word)[0] for word in (" his", " her"))
    table = mini.path_patching(OTHER, TEXT, (her, his), receivers=[("q", 5, 1)])
    row = table.loc[table["effect"].abs().idxmax()]
    assert row["effect"] < -0.02
    share = significant(-100 * row["effect"], 2)
    sizes = table["effect"].abs().nlargest(3)
    assert sizes.iloc[2] < 0.02 <= sizes.iloc[1]
    sentence = (
        f"By its path to the queries of head 5·1, head {row['block']:.0f}·{row['head']:.0f} moves the answer "
        f"most, the other way ({share} %)."
    )
    (line,) = [line for line in words(at).splitlines() if "By its path" in line]
    named = [significant(100 * effect, 2) for effect in sizes if effect >= 0.02]
    assert line.startswith(sentence) and len(re.findall(r"head \d·\d \(", line)) == len(named) - 1
    assert all(f"({share} %" in line for share in named[1:])


def test_paths_that_take_long_wait_for_a_click_of_their_own(run_page, mini, monkeypatch):
    monkeypatch.setattr(slow, "UNASKED", 0)
    edits = "mlp_out.1=zero"
    at = run_page("patching", text=TEXT, other=OTHER, edits=edits, patch_go="on")
    assert at.button(key="path_start").label == "Patch every path (96 passes)"  # of both models
    at.button(key="path_start").click().run()
    assert "path_start" not in keys(at) and "path_logits" in keys(at)
    put(at, path_into="q3.1")
    assert at.button(key="path_start").label == "Patch every path (96 passes)"  # two for each of 24
    put(at, path_into="k1.1")
    assert at.button(key="path_start").label == "Patch every path (32 passes)"
