"""A set of texts on "Switch parts off", "Why this token?" and "Patching": what is said is the mean of Python."""

import re
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import streamlit as st

from gptviz.analysis import circuit_texts
from gptviz.analysis.activation_patching import patching
from gptviz.analysis.answer_looks import LOOKS, NAMES, answer_looks, attention_and_projection
from gptviz.analysis.circuit_search import parse
from gptviz.analysis.circuit_texts import (
    KEPT_AT_ROLES,
    circuit_on,
    heads_by_role,
    strongest_roles,
)
from gptviz.analysis.patched_paths import path_patching
from gptviz.analysis.ready_made import ready_made
from gptviz.analysis.role_patches import ROLES, role_patching
from gptviz.analysis.templates import filled, read_lists
from gptviz.both import Both
from gptviz.digits import percent, plus_minus, significant
from gptviz.figures.theme import palette
from gptviz.jobs import Queue
from gptviz.ui.many import sets
from gptviz.ui.many.said import Found, of_scale
from gptviz.ui.parts.circuit import at_roles
from gptviz.ui.parts.heads import looking, written
from gptviz.ui.shell import slow
from tests.pages.conftest import run_page
from tests.specs import charts, given, keys, left_by_program, opened, prose, put, words

TEXTS = ["The cat sat on the", "Once upon a time there", "He said to"]
PAIRS = [
    ("The man took off", "The girl took off"),
    ("Here the king loved his", "Here the king loved her"),
]
LINES = {
    "knock_out": (*TEXTS[:2], f"{TEXTS[2]}\t\t·her\t·him", "A text\t\tno token", "word " * 300),
    "why": (*TEXTS[:2], f"{TEXTS[2]}\t\t·her\t·him", "A text\t\tno token", "word " * 300),
    "patching": (*map("\t".join, PAIRS), "no other text", "The man\tThe old man\t·a\t·b"),
}
REASONS = (
    ("no token", "tokens; mini reads at most"),
    ("no other text", "the clean text has 2 tokens"),
)
QUERY = {"knock_out": {"measure": "logit"}, "why": {}, "patching": {"other": "The girl took off"}}


def of_set(page, lines, **query):
    """The page with a file of these lines; `run_page` has no session of before."""
    at = run_page(page, text="The man took off", **query)
    return put(at, gptviz_many_lines=lines, many="file")


@pytest.mark.parametrize(
    ("page", "edits"),
    [*zip(LINES, [""] * 3, strict=True), ("knock_out", "z.4.3=x0.5"), ("patching", "mlp_out")],
)
def test_the_means_are_those_of_python(mini, page, edits, monkeypatch):
    site, edits = (edits or "z", "") if page == "patching" else ("", edits)
    monkeypatch.setattr(slow, "UNASKED", 10**15)
    lm = mini.edited(edits) if edits else mini
    targets = [None, None, tuple(mini.encode(" her him"))]
    asked = {"edits": edits, "patch_many": site}
    at = of_set(
        page, LINES[page], **QUERY[page], **{name: value for name, value in asked.items() if value}
    )
    if page == "knock_out":
        table = lm.knock_out(TEXTS, targets)
        column = "effect"
        sign = -1
    elif page == "why":
        table = lm.attribution(TEXTS, targets)
        column = "contribution"
        sign = 1
    else:
        table = lm.patching(*zip(*PAIRS, strict=True), sites=site, direction="noising", last=True)
        column = "change"
        sign = 1
    mean = sign * table[column].to_numpy(float)
    error = table[f"{column}_se"].to_numpy(float)
    order = np.argsort(-np.abs(mean), kind="stable")[:12]
    n = table["n"].iloc[0]
    bars, *unchanged = charts(at)[-1]["data"]
    assert len(unchanged) == bool(edits)
    for one in unchanged:  # at the first choice of the unchanged model, where a line names no token
        was = mini.knock_out(TEXTS, targets)["effect"].to_numpy(float)
        assert np.allclose(one["x"], -was[np.argsort(-np.abs(mean), kind="stable")[:12]], atol=2e-5)
    assert np.allclose(bars["x"], mean[order], atol=2e-5)
    assert np.allclose(bars["error_x"]["array"], error[order], atol=2e-5)
    if site != "mlp_out":  # which has no heads: there is no map
        cells = charts(at)[-2]["data"][0]
        in_map = np.flatnonzero(table["block"].notna())
        shape = (mini.config.n_layers, -1)
        assert np.allclose(cells["z"], mean[in_map].reshape(shape), atol=2e-5)
        errors = np.array(cells["customdata"])[..., 2 + bool(edits)]
        assert np.allclose(errors, error[in_map].reshape(shape), atol=2e-5)
    said = words(at)
    first = order[0]
    shown = mean[first]
    if page == "knock_out":  # nothing is taken away that is below 0
        assert ("rises without" in said) == (shown < 0)
        assert (" takes away: **" in said) == (shown > 0)
        shown = abs(shown)
    assert f"**{plus_minus(shown, error[first])}**" in said and f"n = {n})" in said
    texts = [pair[0] for pair in PAIRS] if page == "patching" else TEXTS
    rows = [lm.trace(text, keep=[]).logits(-1).double() for text in texts]
    if page == "patching":
        assert "Means more than" not in said and "With fewer than 10 texts" in said
        firsts = [lm.trace(pair[1], keep=[]).logits(-1).argmax() for pair in PAIRS]
        own = [float(row.max() - row[first]) for row, first in zip(rows, firsts, strict=True)]
        whole = plus_minus(np.mean(own), np.std(own, ddof=1) / 2**0.5)
        assert (
            f"itself is {whole} on average, and above 0 in 2 of 2 texts" in said
        )  # as it is patched
    else:
        own = [float(row.max() - row.mean()) for row in rows[:2]]
        own.append(float(rows[2][list(targets[2])].diff() * -1))
        whole = plus_minus(np.mean(own), np.std(own, ddof=1) / 3**0.5)
        above = sum(x > 0 for x in own)
        assert f"itself is {whole} on average, and above 0 in {above} of 3 texts" in said
    (out,) = [one.value for one in at.warning if "2 texts left out: " in one.value]
    assert all(reason in out for reason in REASONS[page == "patching"])
    monkeypatch.setattr(Queue, "start", lambda *_: pytest.fail("it is worked out again"))
    opened(at, "numbers_many", "numbers_many-texts")
    assert at.dataframe[0].value["n"].eq(n).all()
    assert np.allclose(at.dataframe[1].value["logit difference"], own, atol=1e-4)
    if page == "patching":
        last = [lm.trace(pair[1], keep=[]).logits(-1).double() for pair in PAIRS]
        theirs = [
            float(row[mine.argmax()] - row.max()) for row, mine in zip(last, rows, strict=True)
        ]
        assert np.allclose(at.dataframe[1].value["of the corrupt text"], theirs, atol=1e-4)
    picture = left_by_program(at, "in_code_many")["picture"]
    assert np.allclose(sign * picture[column].to_numpy(float), mean, atol=2e-5)


@pytest.mark.parametrize("page", ["knock_out", "why", "heads"])
def test_lines_without_an_answer_are_asked_for_the_one_that_was_chosen_in_the_bar(mini, page):
    """Of the two that name none; the third line's own goes before it."""
    lines = (*TEXTS[:2], f"{TEXTS[2]}\t\t·her\t·him")
    asked = tuple(mini.encode(" it she"))
    at = of_set(page, lines, **QUERY.get(page, {}), target=asked[0], against=asked[1], whole="on")
    targets = [asked, asked, tuple(mini.encode(" her him"))]
    table, column = {
        "knock_out": (mini.knock_out(TEXTS, targets), "effect"),
        "why": (mini.attribution(TEXTS, targets), "contribution"),
        "heads": (answer_looks(mini, TEXTS, targets), "to_answer"),
    }[page]
    mean = table[column].to_numpy(float)
    order = np.argsort(-np.abs(mean), kind="stable")[:12]
    sign = -1 if page == "knock_out" else 1
    bars = next(c for c in charts(at) if "error_x" in c["data"][0])["data"][0]
    assert np.allclose(bars["x"], sign * mean[order], atol=2e-5)
    assert "1 of 3 lines have their own answer; in the others the bar’s is measured, " in prose(at)
    assert "`·it` instead of `·she`" in prose(at)
    at = of_set(page, TEXTS, **QUERY.get(page, {}), whole="on")
    assert "No line names its answer: the model’s first choice is measured, or " in prose(at)


def test_pairs_without_an_answer_are_asked_for_the_one_that_was_chosen_in_the_bar(mini):
    asked = tuple(mini.encode(" his her"))
    lines = tuple(map("\t".join, PAIRS))
    at = of_set("patching", lines, other="The girl took off", target=asked[0], against=asked[1])
    table = mini.patching(
        *zip(*PAIRS, strict=True), [asked, asked], sites="z", direction="noising", last=True
    )
    mean = table["change"].to_numpy(float)
    order = np.argsort(-np.abs(mean), kind="stable")[:12]
    assert np.allclose(charts(at)[-1]["data"][0]["x"], mean[order], atol=2e-5)
    assert "the bar’s is measured, `·his` instead of `·her`" in prose(at)


def test_a_set_that_has_its_own_answers_is_not_asked_for_that_of_the_bar(mini):
    it, she = mini.encode(" it she")
    at = run_page("why", text="The man took off", many="pronoun", target=it, against=she)
    prompts = ready_made(mini, "pronoun")
    table = mini.attribution([p.text for p in prompts], [p.target for p in prompts])
    mean = table["contribution"].to_numpy(float)
    order = np.argsort(-np.abs(mean), kind="stable")[:12]
    assert np.allclose(charts(at)[-1]["data"][0]["x"], mean[order], atol=2e-5)
    said = "Each sentence has its own answer; the bar’s, `·it`, is that of the text above alone."
    assert said in prose(at)


def test_sentences_with_names_wait_for_a_click_where_they_take_long(monkeypatch):
    monkeypatch.setattr(slow, "UNASKED", 10**9)
    at = run_page("why", text="The man took off", many="names")
    assert (
        "Left out, because this model splits them into several tokens: Anna (2), Sarah (3)"
        in prose(at)
    )
    assert not any("standard error" in one.value for one in at.markdown)
    at.button(key="many_go").click().run()
    assert "Over <" not in prose(at) and "n = 24)" in prose(at)
    assert "Means more than 3 standard errors away from 0: " in prose(at)
    at.button(key="many_names").click().run()
    assert not at.query_params.get("many") and "n = 24)" not in prose(at)


@pytest.mark.parametrize("kind", ["copied", "pronoun", "fact", "sequence"])
def test_each_ready_made_set_is_averaged(mini, kind):
    at = run_page("why", text="The man took off", many=kind)
    prompts = ready_made(mini, kind)
    table = mini.attribution([p.text for p in prompts], [p.target for p in prompts])
    mean = table["contribution"].to_numpy(float)
    order = np.argsort(-np.abs(mean), kind="stable")[:12]
    assert np.allclose(charts(at)[-1]["data"][0]["x"], mean[order], atol=2e-5)
    assert f"n = {len(prompts)})" in prose(at) and prompts[0].other in prose(at)
    assert ("has the two words exchanged, so that a word" in prose(at)) == (kind == "copied")


def error_over_pairs(values, prompts):
    """The standard error of a mean of some texts, two of which are of one pair or a single one: by sums."""
    pairs = {}
    for value, prompt in zip(values, prompts, strict=True):
        key = (
            frozenset(prompt.target),
            *(w for w in prompt.text.split() if f" {w}" not in prompt.target),
        )
        pairs.setdefault((key, prompt.order), []).append(value - np.mean(values))
    off = [sum(own) ** 2 for own in pairs.values()]
    return (sum(off) * len(off) / (len(off) - 1)) ** 0.5 / len(values)


def test_the_errors_of_names_are_over_pairs(mini, monkeypatch):
    monkeypatch.setattr(slow, "UNASKED", 10**15)
    at = run_page("why", text="The man took off", many="names")
    prompts = ready_made(mini, "names")
    said = words(at)
    assert "(mean ± standard error over 12 exchanged pairs, n = 24)" in said
    reason = "two names exchanged, so that a name the model likes to say does not count."
    assert f"Every second sentence has the {reason}" in said
    ids = [[mini.encode(word)[0] for word in one.target] for one in prompts]
    logits = [mini.trace(one.text, keep=[]).logits(-1).double() for one in prompts]
    ahead = [float(row[a] - row[b]) for row, (a, b) in zip(logits, ids, strict=True)]
    error = error_over_pairs(ahead, prompts)
    assert error < 0.7 * np.std(ahead, ddof=1) / 24**0.5  # which the names themselves make large
    assert f"difference itself is {plus_minus(np.mean(ahead), error)} on average" in said
    opened(at, "numbers_many")
    table = mini.attribution([one.text for one in prompts], [one.target for one in prompts])
    assert np.allclose(
        at.dataframe[0].value["contribution_se"], table["contribution_se"], atol=2e-5
    )
    of_each = [mini.attribution(one.text, one.target)["contribution"][5] for one in prompts]
    assert table["contribution_se"][5] == pytest.approx(
        error_over_pairs(of_each, prompts), rel=1e-5
    )


@pytest.mark.parametrize("page", ["why", "knock_out"])
def test_the_two_orders_of_names_stand_apart(mini, page, monkeypatch):
    """Said of a file with some of the ready-made sentences, and of a part of a changed set as well."""
    monkeypatch.setattr(slow, "UNASKED", 10**15)
    prompts = [p for number, p in enumerate(ready_made(mini, "names")) if number % 5]
    lines = ["\t".join([p.text, "", *(f"·{word[1:]}" for word in p.target)]) for p in prompts]
    at = of_set(page, (*lines, "The man took off"), **QUERY[page])
    function = mini.attribution
    column = "contribution"
    sign = 1
    if page == "knock_out":
        function = mini.knock_out
        column = "effect"
        sign = -1
    texts = [*(p.text for p in prompts), "The man took off"]
    of_all = function(texts, [*(p.target for p in prompts), None])
    largest = int(of_all[column].abs().argmax())
    said = 1
    if page == "knock_out" and of_all[column][largest] > 0:  # the difference rises without it
        said = -1
    apart = []
    for place in (0, 1):  # whether the answer, or the other name, is the second word
        own = [p for p in prompts if p.text.split()[1] == p.target[place][1:]]
        row = function([p.text for p in own], [p.target for p in own]).iloc[largest]
        ids = [[mini.encode(word)[0] for word in p.target] for p in own]
        logits = [mini.trace(p.text, keep=[]).logits(-1).double() for p in own]
        pairs = zip(logits, ids, strict=True)
        ahead = [float(row[answer] - row[instead]) for row, (answer, instead) in pairs]
        itself = plus_minus(np.mean(ahead), error_over_pairs(ahead, own))
        order = ("ABBA", "BABA")[place]
        first = ("the answer is named first", "the other name is")[place]
        mean = plus_minus(said * sign * row[column], row[f"{column}_se"])
        apart.append(
            f"**{mean}** where {first} ({order}, n = {len(own)}; logit difference {itself})"
        )
    assert "standard error over 13 exchanged pairs and single texts, n = 20)" in words(at)
    assert f"The two orders of names apart: {', '.join(apart)}." in words(at)
    opened(at, "numbers_many", "numbers_many-texts")
    table, of_texts = (at.dataframe[i].value for i in (0, 1))
    assert (table["n_ABBA"] + table["n_BABA"] == len(prompts)).all()
    assert of_texts["order"].fillna("").tolist() == [*(p.order for p in prompts), ""]


def test_a_set_of_one_order_has_no_two_means():
    written = {
        "many_template": "When {A} and {B} left, {B} spoke to",
        "many_lists": "A, B: Tom, Mary",
    }
    at = run_page("why", text="The man took off", many="template", **written)
    assert "n = 2)" in prose(at) and "ABBA" not in prose(at)
    at = run_page("why", text="The man took off", many="pronoun")
    assert "n = 24)" in prose(at) and "ABBA" not in prose(at)


@pytest.mark.parametrize("page", ["knock_out", "circuit"])
def test_muted_parts_give_their_abc_means(mini, page, monkeypatch):
    """On a set with names alone; the text above is measured in another way, and is not said beside them."""
    monkeypatch.setattr(slow, "UNASKED", 10**15)
    written = {
        "many_template": "When {A} and {B} left, {B} spoke to",
        "many_lists": "A, B: Tom, Mary",
    }
    query = {"text": "The man took off", "many_abc": "on", "measure": "logit"}
    asked = {"knock_out": {}, "circuit": {"circuit": "0.1+3.7"}}[page]
    at = run_page(page, **query, **asked, **written, many="template", whole="on")
    prompts = filled(mini, written["many_template"], read_lists(written["many_lists"])).prompts
    texts = [p.text for p in prompts]
    targets = [p.target for p in prompts]
    if page == "knock_out":
        values = -mini.knock_out(texts, targets, baseline="abc")["effect"].to_numpy(float)
    else:
        table = circuit_on(mini, texts, targets, parse("0.1+3.7", mini), baseline="abc")
        values = table["logit"].to_numpy(float)
    order = np.argsort(-np.abs(values), kind="stable")[:12]
    assert np.allclose(charts(at)[-1]["data"][0]["x"], values[order], atol=2e-5)
    assert "three different names (ABC), position by position." in prose(at)
    assert "In the text above it is" not in prose(at) and at.toggle(key="many_abc").value
    assert "The other text:" not in prose(at)  # which plays no part
    at = run_page(page, **query, **asked, many="fact", whole="on")
    assert "In the text above it is" in prose(at) and "(ABC)" not in prose(at)
    assert "The other text:" in prose(at)


OF_NAMES = [
    ("When Mary and Tom left, Tom spoke to", "When Mary and Tom left, Mary spoke to"),
    ("Then Tom met Mary, and Tom gave a key to", "Then Tom met Mary, and Mary gave a key to"),
]
NAMED = ["\t".join([*pair, "·Mary", "·Tom"]) for pair in OF_NAMES]


@pytest.mark.parametrize("into", ["logits", "q5.4,k5.4", "v.3.1"])
def test_paths_are_a_map_of_the_heads_before_the_reader(mini, into, monkeypatch):
    """The reader is that of the two texts above, beside which theirs stands; a click on a head is one more."""
    monkeypatch.setattr(slow, "UNASKED", 10**15)
    receivers = {
        "logits": "logits",
        "q5.4,k5.4": [("q", 5, 4), ("k", 5, 4)],
        "v.3.1": [("v", 3, 1)],
    }[into]
    query = {"other": "The girl took off", "patch_many": "paths", "path_into": into}
    at = of_set("patching", NAMED, **query)
    clean, corrupt = (list(texts) for texts in zip(*OF_NAMES, strict=True))
    table = path_patching(mini, clean, corrupt, (" Mary", " Tom"), receivers, "noising")
    change = table["change"].to_numpy(float)
    error = table["change_se"].to_numpy(float)
    cells = charts(at)[-1]["data"][0]
    shape = (-1, mini.config.n_heads)
    assert np.allclose(cells["z"], change.reshape(shape), atol=2e-5)
    assert np.allclose(np.array(cells["customdata"])[..., 2], error.reshape(shape), atol=2e-5)
    assert given(at, "many_map_clicks") is not None
    largest = int(np.abs(change).argmax())
    block, head = divmod(largest, mini.config.n_heads)
    said = words(at)
    mean = plus_minus(change[largest], error[largest])
    reader = {
        "logits": "the model’s guess",
        "q5.4,k5.4": "the queries of head 5·4 and the keys of head 5·4",
        "v.3.1": "the values of head 3·1",
    }[into]
    assert f"is what head {block}·{head} passes to {reader}: **{mean}** logits" in said
    own = in_paths_above(mini, receivers)
    assert f"In the two texts above it is {significant(own[largest])} " in said
    opened(at, "numbers_many")
    picture = left_by_program(at, "in_code_many")["picture"]
    assert np.allclose(picture["change"].to_numpy(float), change, atol=2e-5)


@pytest.mark.parametrize("what", ["paths", "roles", "z"])
def test_a_share_is_the_ratio_of_means_of_python(mini, what, monkeypatch):
    monkeypatch.setattr(slow, "UNASKED", 10**15)
    query = {"other": "The girl took off", "patch_many": what, "many_shares": "on"}
    at = of_set("patching", NAMED, **query)
    clean, corrupt = (list(texts) for texts in zip(*OF_NAMES, strict=True))
    both = (" Mary", " Tom")
    table = {
        "paths": partial(path_patching, receivers="logits"),
        "roles": role_patching,
        "z": partial(patching, sites="z"),
    }[what](mini, clean, corrupt, both, direction="noising")
    effect = table["effect"].to_numpy(float)
    error = table["effect_se"].to_numpy(float)
    place = -1
    if what == "z":  # there are bars below the map
        place = -2
    cells = charts(at)[place]["data"][0]
    shape = (mini.config.n_layers, -1)
    assert np.allclose(cells["z"], effect.reshape(shape), atol=2e-5)
    assert np.allclose(np.array(cells["customdata"])[..., 2], error.reshape(shape), atol=2e-5)
    largest = int(np.abs(effect).argmax())
    said = words(at)
    assert f"**{plus_minus(effect[largest], error[largest])}** of clean − corrupt" in said
    ids = [mini.encode(word)[0] for word in both]
    ends = []
    for texts in (clean, corrupt):
        rows = [mini.trace(text, keep=[]).logits(-1).double() for text in texts]
        ends.append(np.array([float(row[ids[0]] - row[ids[1]]) for row in rows]))
    far = ends[0] - ends[1]
    scale = plus_minus(far.mean(), far.std(ddof=1) / 2**0.5)
    assert f"Clean − corrupt is {scale} logits." in said
    opened(at, "numbers_many")
    picture = left_by_program(at, "in_code_many")["picture"]
    assert np.allclose(picture["effect"].to_numpy(float), effect, atol=2e-5)


@pytest.mark.parametrize(
    ("clean", "corrupt", "says"),
    [
        ([3.0, 4.0, 5.0], [-1.0, 0.0, -1.0], None),
        ([-3.0, -4.0, -5.0], [1.0, 0.0, 1.0], "nothing of a right answer:"),
        ([0.1, -1.0, 1.2], [-4.0, -5.0, -4.5], "nothing of a right answer:"),
        ([3.0, 4.0, 5.0], [5.0, 2.5, 4.4], "nothing:"),
        ([-3.0], [1.0], "nothing of a right answer:"),
        ([3.0], [1.0], None),
    ],
)
def test_shares_say_nothing_without_a_scale_or_a_right_answer(clean, corrupt, says):
    measured = [(pd.DataFrame(), ends) for ends in zip(clean, corrupt, strict=True)]
    told = of_scale(Found([], Both(measured), []))
    assert ("These shares say" in told) == (says is not None)
    assert says is None or f"**These shares say {says}" in told


def in_paths_above(lm, receivers):
    """What each path moves in the page's own two texts, as long as nobody chose another answer."""
    texts = ("The man took off", "The girl took off")
    firsts = [int(lm.trace(text, keep=()).logits(-1).argmax()) for text in texts]
    found = path_patching(lm, *texts, tuple(firsts), receivers, "noising")
    return found["change"].to_numpy(float)


@pytest.mark.parametrize("site", ["attn_out", "mlp_out"])
def test_what_a_block_adds_is_patched_by_role_as_well(mini, site, monkeypatch):
    """With the names exchanged, which IO, S1 and S2 read, something moves at each role."""
    monkeypatch.setattr(slow, "UNASKED", 10**15)
    pairs = [
        ("When Mary and Tom left, Tom spoke to", "When Tom and Mary left, Mary spoke to"),
        ("Then Tom met Mary, and Tom gave a key to", "Then Mary met Tom, and Mary gave a key to"),
    ]
    lines = ["\t".join([*pair, "·Mary", "·Tom"]) for pair in pairs]
    query = {"other": "The girl took off", "patch_many": f"roles_{site}"}
    at = of_set("patching", lines, **query)
    texts = map(list, zip(*pairs, strict=True))
    table = role_patching(mini, *texts, (" Mary", " Tom"), site, "noising")
    change = table["change"].to_numpy(float).reshape(-1, len(ROLES))
    assert np.allclose(charts(at)[-1]["data"][0]["z"], change, atol=2e-5)
    assert "Nothing moves at" not in words(at)


def test_patches_by_role_are_a_map_over_sentences_of_any_length(mini, monkeypatch):
    """Two of a file have other lengths, and a third one has no roles; the text above has none either."""
    monkeypatch.setattr(slow, "UNASKED", 10**15)
    pairs = OF_NAMES
    query = {"other": "The girl took off", "patch_many": "roles"}
    at = of_set("patching", (*NAMED, "\t".join([*PAIRS[0], "·Mary", "·Tom"])), **query)
    both = (" Mary", " Tom")
    table = role_patching(mini, *map(list, zip(*pairs, strict=True)), both, direction="noising")
    change = table["change"].to_numpy(float)
    error = table["change_se"].to_numpy(float)
    shape = (mini.config.n_layers, len(ROLES))
    cells = charts(at)[-1]["data"][0]
    assert np.allclose(cells["z"], change.reshape(shape), atol=2e-5)
    assert np.allclose(np.array(cells["customdata"])[..., 2], error.reshape(shape), atol=2e-5)
    assert cells["y"] == [f"into {block}" for block in range(mini.config.n_layers)]
    largest = int(np.abs(change).argmax())
    name = f"block {largest // len(ROLES)} at {[*ROLES][largest % len(ROLES)]}"
    mean = f"**{plus_minus(change[largest], error[largest])}** logits"
    assert f"a patch of the residual stream into {name} moves: {mean}" in words(at)
    assert "In the two texts above it is" not in words(at)
    assert "Nothing moves at IO, S1 and S1+1: up to there the two texts of a pair are" in words(at)
    assert "the text has ·Mary 0 times and ·Tom 0 times" in at.warning[-1].value
    opened(at, "numbers_many")
    assert "position" not in at.dataframe[0].value  # another one in each text
    picture = left_by_program(at, "in_code_many")["picture"]
    assert np.allclose(picture["change"].to_numpy(float), change, atol=2e-5)


def test_the_roles_of_the_text_above_stand_beside_those_of_the_set(mini, monkeypatch):
    monkeypatch.setattr(slow, "UNASKED", 10**15)
    text = "When Tom and Mary left the garden, Tom gave the flowers to"
    at = run_page("patching", text=text, many="names", patch_many="roles", whole="on")
    prompts = ready_made(mini, "names")
    lists = ([getattr(p, name) for p in prompts] for name in ("text", "other", "target"))
    table = role_patching(mini, *lists, direction="noising")
    largest = int(table["change"].abs().argmax())
    again = text.replace(", Tom", ", Mary")
    here = role_patching(mini, text, again, (" Mary", " Tom"), direction="noising")["change"]
    assert f"In the two texts above it is {significant(here[largest])} " in words(at)
    assert "n = 24)" in prose(at) and "(ABBA, n = 12; logit difference" in prose(at)


def test_a_circuit_is_kept_on_many_texts(mini):
    heads = parse("0.1+3.7+5.4", mini)
    query = {"circuit": "0.1+3.7+5.4", "others": "mean", "many": "pronoun", "whole": "on"}
    at = run_page("circuit", text="The man took off", **query)
    prompts = ready_made(mini, "pronoun")
    table = circuit_on(mini, [p.text for p in prompts], [p.target for p in prompts], heads)
    mean = table["logit"].to_numpy(float)
    order = np.argsort(-np.abs(mean), kind="stable")
    bars = charts(at)[-1]["data"][0]
    assert np.allclose(bars["x"], mean[order], atol=2e-5)
    assert np.allclose(bars["error_x"]["array"], table["logit_se"].to_numpy()[order], atol=2e-5)
    whole, own, _, nobody = mean
    share = (own - nobody) / (whole - nobody)
    assert share < 0  # these three alone make it worse
    assert f"this circuit of 3 heads goes **{percent(-share)}** the other way." in prose(at)
    of_circuit = plus_minus(own, table["logit_se"][1])
    told = f"Over **{len(prompts)} texts**, the logit difference with this circuit is **{of_circuit}** logits"
    assert told in prose(at)
    assert "standard errors away from 0" not in prose(at)  # of four sums that is no test
    opened(at, "numbers_many")
    picture = left_by_program(at, "in_code_many")["picture"]
    assert np.allclose(picture["logit"].to_numpy(float), mean, atol=2e-5)


def test_a_circuit_is_kept_at_roles_that_the_page_measures(mini, monkeypatch):
    """Where each head works, what is left there and everywhere, and the same in Python; not where no names are."""
    monkeypatch.setattr(slow, "UNASKED", 10**15)
    written = {
        "many_template": "When {A} and {B} left, {B} spoke to",
        "many_lists": "A, B: Tom, Mary",
    }
    query = {"circuit": "0.1+5.4", "others": "mean", "many_roles": "on", "whole": "on"}
    at = run_page("circuit", text="The man took off", many="template", **query, **written)
    prompts = filled(mini, written["many_template"], read_lists(written["many_lists"])).prompts
    texts = [p.text for p in prompts]
    targets = [p.target for p in prompts]
    heads = parse("0.1+5.4", mini)
    by_role = heads_by_role(mini, texts, targets, heads)
    strongest = strongest_roles(by_role)
    table = circuit_on(mini, texts, targets, strongest)
    values = table["logit"].to_numpy(float)
    order = np.argsort(-np.abs(values), kind="stable")
    bars = charts(at)[-1]["data"][0]
    assert np.allclose(bars["x"], values[order], atol=2e-5) and len(values) == len(KEPT_AT_ROLES)
    whole, own, _, nobody, everywhere = values
    for left, told in (
        (own, r"goes \*\*{}\*\*( the other way)? with each head at its role alone, and"),
        (everywhere, r"and {}( the other way)? with its heads kept at every position\."),
    ):
        share = (left - nobody) / (whole - nobody)
        found = re.search(told.format(percent(abs(share))), prose(at))
        assert found and (found[1] is not None) == (share < 0)
    for (block, head), (role,) in strongest.items():
        assert re.search(rf"{block}·{head}[^;]* at {re.escape(role)}", words(at))
    assert at.toggle(key="many_roles").value and "S1 and S2 are the two mentions" in prose(at)
    opened(at, "numbers_many-ahead")
    assert any(
        "lost" in frame.value and np.allclose(frame.value["lost"], by_role["lost"], atol=2e-5)
        for frame in at.dataframe
        if len(frame.value) == len(by_role)
    )
    picture = left_by_program(at, "in_code_many")["picture"]
    assert np.allclose(picture["logit"].to_numpy(float), values, atol=2e-5)
    at = run_page("circuit", text="The man took off", many="fact", **query)
    assert "at its role alone" not in prose(at)
    assert "many_roles" not in [toggle.key for toggle in at.toggle]


def test_both_ways_are_said_of_a_circuit_at_its_roles():
    """With little way to go the logit difference alone, and nothing of heads that are at every position anyway."""
    table = pd.DataFrame({"kept": KEPT_AT_ROLES, "logit_se": 0.25})
    heads = ((0, 1), (5, 4))
    for logits, told in (
        ([2.0, 0.5, 0, 0.0, 1.0], "goes **25 %** with each head at its role alone, and 50 % with"),
        ([2.0, -0.5, 0, 0.0, -1.0], "**25 %** the other way with each head at its role alone, and"),
        ([2.0, -0.5, 0, 0.0, -1.0], "and 50 % the other way with its heads kept"),
        ([0.05, 0.5, 0, 0.0, 1.0], " With its heads kept at every position it is +1.00 ± 0.25 log"),
    ):
        assert told in at_roles.shares_over(table.assign(logit=logits), heads)
    everywhere = table.assign(logit=[2.0, 0.5, 0, 0.0, 1.0])[:4]
    assert at_roles.shares_over(everywhere, heads).endswith("circuit of 2 heads goes **25 %**.")
    assert at_roles.shares_over(everywhere.assign(logit=0.0), heads) == ""


@pytest.mark.parametrize("column", LOOKS)
def test_heads_look_at_the_names_of_many_texts(mini, column):
    at = run_page("heads", text="The man took off", many="names", looks_at=column)
    prompts = ready_made(mini, "names")
    table = answer_looks(mini, [p.text for p in prompts], [p.target for p in prompts])
    mean = table[column].to_numpy(float)
    order = np.argsort(-np.abs(mean), kind="stable")[:12]
    bars = next(c for c in charts(at) if "error_x" in c["data"][0])["data"][0]
    assert np.allclose(bars["x"], mean[order], atol=2e-5) and mean[order[0]] > 0.01
    assert {*bars["marker"]["color"]} == {palette("light").output}  # no sign: a weight
    assert np.allclose(bars["error_x"]["array"], table[f"{column}_se"].to_numpy()[order], atol=2e-5)
    assert "n = 24)" in prose(at)
    assert "standard errors away from 0" not in prose(at)  # no weight is below 0
    cells = charts(at)[-3]["data"][0]
    assert np.allclose(cells["z"], mean.reshape(mini.config.n_layers, -1), atol=2e-5)


@pytest.mark.parametrize("edits", ["", "z.4.5=zero"])
def test_what_a_head_writes_for_a_name_stands_over_its_attention(mini, edits):
    lm = mini.edited(edits) if edits else mini
    query = {"many": "names", "block": 5, "head": 3, "whole": "on"}
    at = run_page("heads", text="The man took off", edits=edits, **query)
    prompts = ready_made(mini, "names")
    texts = [p.text for p in prompts]
    targets = [p.target for p in prompts]
    every = attention_and_projection(lm, texts, targets)
    own = every[(every["block"] == 5) & (every["head"] == 3)]
    drawn = charts(at)[-1]["data"]
    called = {"the answer (IO)": "answer", "the other name (S)": "instead"}
    for shown, name in called.items():
        (points,) = [one for one in drawn if one["name"] == shown]
        expected = own[own["name"] == name]
        assert np.allclose(points["x"], expected["attention"], atol=2e-5)
        assert np.allclose(points["y"], expected["projection"], atol=2e-5)
        number, says = points["customdata"][1]
        row = expected[expected["text"] == 1].iloc[0]
        assert number == 1 and texts[1][:40] in says and row["token"].strip() in says
        assert f"attention {significant(row['attention'])}" in says
        assert f"writes {significant(row['projection'])}" in says
    assert any(one["name"] == "unchanged" for one in drawn) == bool(edits)
    (line,) = [one for one in drawn if one["name"] == "best straight line"]
    slope = own["attention"].cov(own["projection"]) / own["attention"].var()
    assert np.isclose(np.diff(line["y"]) / np.diff(line["x"]), slope, rtol=1e-4)
    r = own[["attention", "projection"]].corr().iloc[0, 1]
    assert r > 0.5 and f"it writes more of it: r = **{r:.2f}" in prose(at)
    apart = [own[own["name"] == n][["attention", "projection"]].corr().iloc[0, 1] for n in NAMES]
    for (shown, name), alone in zip(called.items(), apart, strict=True):
        looks = own[own["name"] == name]["attention"].mean()
        assert f"{alone:.2f} for {shown}, mean attention {looks:.2f}" in words(at)
    opened(at, "numbers_heads-written")
    table = next(one.value for one in at.dataframe if "projection" in one.value)
    assert np.allclose(table["projection"], own["projection"], atol=2e-5)
    picture = left_by_program(at, "in_code_written")["picture"]
    assert np.allclose(picture["projection"], every["projection"], atol=2e-5)


@pytest.mark.parametrize("edits", ["z.5.3=zero", "q.5.3=zero"])
def test_of_a_head_that_writes_nothing_or_looks_alike_there_is_nothing_to_say(edits):
    query = {"many": "names", "block": 5, "head": 3, "whole": "on", "edits": edits}
    at = run_page("heads", text="The man took off", **query)
    assert ("nothing rises or falls" in prose(at)) == edits.startswith("z")


def test_a_head_writes_no_word_that_stands_in_no_text():
    at = run_page("heads", text="The man took off", many="pronoun", whole="on")
    assert "In none of the 24 texts stands one of its two words." in prose(at)
    assert "heads_written" not in keys(at)
    lines = ["The mill was near. They came to the\t\t·mill\t·barn"] * 2
    at = of_set("heads", lines, whole="on")
    assert "over 2 texts: too few to tell" in prose(at) or "nothing rises or falls" in prose(at)
    assert {one["name"] for one in charts(at)[-1]["data"]} == {"the answer"}


@pytest.mark.parametrize(
    ("r", "n", "said"),
    [
        (
            0.8,
            24,
            "Where it looks more at a name, it writes more of it: r = **0.80** over 24 texts.",
        ),
        (-0.8, 24, "Where it looks more at a name, it writes less of it: r = **−0.80** over"),
        (
            0.5,
            24,
            "That it writes more where it looks more is not shown: r = **0.50** over 24 texts.",
        ),
        (1.0, 9, "r = **1.00** over 9 texts: too few to tell"),
        (1.0, 10, "it writes more of it: r = **1.00** over 10 texts."),
    ],
)
def test_what_is_said_of_a_correlation_is_sure(r, n, said):
    """0.5 over 24 texts is 2.5 standard errors of Fisher's z from 0."""
    assert said in written._told(Both(r), n, "name")


@pytest.mark.parametrize(("column", "word"), [("to_answer", " Mary"), ("to_against", " Tom")])
def test_of_the_text_above_heads_look_at_the_words_of_the_bar(mini, column, word):
    text = "When Tom and Mary left the garden, Tom gave the flowers to"
    tokens = {word: mini.encode(word)[0] for word in (" Mary", " Tom", " king")}
    query = {"text": text, "many": "names", "looks_at": column}
    at = run_page("heads", **query, target=tokens[" Mary"], against=tokens[" Tom"])
    prompts = ready_made(mini, "names")
    table = answer_looks(mini, [p.text for p in prompts], [p.target for p in prompts])
    largest = int(table[column].abs().idxmax())
    here = answer_looks(mini, text, tokens[word])["to_answer"].iloc[largest]
    assert here > 0 and f"In the text above it is {significant(here)}." in prose(at)
    assert "no head can look at it" not in prose(at)
    at = run_page("heads", **query, target=tokens[" king"], against="mean")
    said = (
        "In the text above it is 0." in prose(at),
        "In the text above there is no `·king`" in prose(at),
    )
    assert said == (True, column == "to_answer")
    assert ("stands against the mean of all tokens" in prose(at)) == (column == "to_against")


@pytest.mark.parametrize(
    ("page", "module", "function"),
    [("heads", looking, "answer_looks"), ("circuit", circuit_texts, "circuit_on")],
)
def test_without_a_set_the_text_above_is_not_measured_for_it(page, module, function, monkeypatch):
    never = partial(pytest.fail, "nobody sees this number")
    monkeypatch.setattr(module, function, lambda *_, **__: never())
    assert not run_page(page, text="The man took off", whole="on").exception


def test_a_template_stands_in_the_address_and_is_averaged(mini):
    written = {
        "many_template": "When {A} and {B} left, {B} spoke to",
        "many_lists": "A, B: Tom, Mary, John",
    }
    at = run_page("why", text="The man took off", many="template", **written)
    assert {name: at.query_params[name] for name in written} == written
    prompts = filled(mini, written["many_template"], read_lists(written["many_lists"])).prompts
    table = mini.attribution([p.text for p in prompts], [p.target for p in prompts])
    mean = table["contribution"].to_numpy(float)
    order = np.argsort(-np.abs(mean), kind="stable")[:12]
    assert np.allclose(charts(at)[-1]["data"][0]["x"], mean[order], atol=2e-5)
    assert len(prompts) == 6 and "n = 6)" in prose(at)
    assert "The answer of each sentence is its {A}, instead of its {B}; the bar’s, " in prose(at)
    at.text_input(key="many_template").set_value("When {A} met {C}, {A} spoke to").run()
    assert "has no list" in at.warning[-1].value and "n = 6)" not in prose(at)
    assert at.query_params["many_template"] == "When {A} met {C}, {A} spoke to"


def test_a_template_is_filled_once_and_its_example_is_short(monkeypatch):
    filler = "The old house stood there and nobody knew why. " * 10
    written = {"many_template": f"{filler}{{A}} saw", "many_lists": "A, B: Tom, John"}
    asked = []
    plain = sets.templates.filled

    def counting(lm, template, lists, **other):
        asked.append(template)
        return plain(lm, template, lists, **other)

    monkeypatch.setattr(sets.templates, "filled", counting)
    monkeypatch.setattr(slow, "UNASKED", 1)
    at = run_page("why", text="The man took off", many="template", **written)
    shown = next(one.value for one in at.caption if "For example" in one.value)
    assert f"`{filler[:200]}…`" in shown and filler[:202] not in shown
    at.run()
    assert asked == [written["many_template"]]
    at.text_area(key="many_lists").set_value("A, B: Tom, Jane").run()
    assert len(asked) == 2


def test_a_text_with_two_names_gives_its_template_in_one_click(mini, monkeypatch):
    monkeypatch.setattr(slow, "UNASKED", 1)
    at = run_page("why", text="When Tom and Anna left the garden, Tom gave the flowers to")
    at.button(key="many_like").click().run()
    template = "When {B} and {A} left the {place}, {B} gave the flowers to"
    assert at.query_params["many"] == "template" and at.query_params["many_template"] == template
    assert at.button(key="many_go").label.startswith("Compute: 100 texts")
    assert "Left out: `Anna` (it is 2 tokens of mini" in prose(at)


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"one\r\n\n two \r\nthree", ("one", " two ", "three")),
        ("\ufeffé\tè\n".encode(), ("é\tè",)),
        (b"\xff\xfe\x00", "not UTF-8 text"),
        (b"\n \n", "contains no text"),
        (b"x\n" * 300, ("x",) * sets.MOST),
    ],
)
def test_a_file_is_read_line_by_line(monkeypatch, content, lines):
    state = {sets.BOX: SimpleNamespace(getvalue=lambda: content)}
    monkeypatch.setattr(st, "session_state", state)
    monkeypatch.setattr(st, "toast", lambda text: None)
    sets._opened()
    found = state[sets.LINES]
    assert found == lines if isinstance(lines, tuple) else lines in found
    assert state["many"] == "file"
    state[sets.BOX] = None  # taken away again
    sets._opened()
    assert state["many"] is None


def test_a_file_that_is_not_here_and_nothing_to_average():
    assert (
        "A link cannot contain a file"
        in run_page("why", text="The man", many="file").warning[-1].value
    )
    at = of_set("why", ("A\t\tno token",))
    assert "1 text left out: " in at.warning[-1].value and "standard error" not in prose(at)
    assert "A single text has no standard error" in prose(of_set("why", ("The cat",)))
    assert "This file is no text" in of_set("why", "This file is no text").warning[-1].value
