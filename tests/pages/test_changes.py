"""A changed model on the pages, through AppTest: the strip, the sheet of heads, the menu, wrong addresses."""

import math

import pytest
import streamlit as st

from gptviz import Edit, Run
from gptviz.ui.sheet import SEEN
from gptviz.ui.shell import address, strip
from gptviz.ui.shell.state import UNSAID_TEXT
from tests.specs import given, opened, prose, put

STORY = ("z.4.3=zero", "z.5.0+3+4+5+7=zero")


@pytest.mark.parametrize(("edit", "after"), [*zip(STORY, (0.183, 0.0004), strict=True)])
def test_the_strip_has_both_models_numbers(run_page, mini, edit, after):
    bar = given(run_page("overview", edits=edit), "changes")
    before, now = (
        mini.trace(UNSAID_TEXT, keep=[], edits=edits).logits(-1).double().log_softmax(-1)
        for edits in ([], [edit])
    )
    effect = bar["effect"]
    assert effect["token"] == "·mill" and round(effect["before"], 3) == 0.952
    assert effect["now"] == pytest.approx(after, abs=5e-4)
    assert effect["before"] == pytest.approx(before.max().exp().item())
    assert effect["kl"] == pytest.approx(float((before.exp() * (before - now)).sum()) / math.log(2))
    assert [chip["state"] for chip in bar["chips"]] == ["made"] and not bar["notes"]


def test_a_change_that_did_nothing_is_reported_or_offered(run_page, mini, monkeypatch):
    # the first row of a pattern is its only key's, however it is spread; the last needs no pass to be known
    edits = "attn.0.0@0=uniform,z.4.3=zero,z.5.0=zero,z.5.1@0=zero"
    monkeypatch.setattr(strip, "PASSES_OF", 0)
    at = run_page("overview", edits=edits)
    bar = given(at, "changes")
    assert "takes 3 more passes" in bar["ask"][0]
    assert [bool(chip["note"]) for chip in bar["chips"]] == [False, False, False, True]
    # it is the unchanged model
    assert strip._passes(Run("mini", (1, 2), (Edit("z", 0),)), 1, mini) == 0
    bar = given(opened(at, strip._TRY), "changes")
    assert [bool(chip["note"]) for chip in bar["chips"]] == [True, False, False, True] and bar[
        "ask"
    ] is None
    monkeypatch.undo()
    assert given(run_page("overview", edits=edits), "changes")["notes"] == bar["notes"]
    twice = given(run_page("overview", edits="z.4.3=zero,z.4.3=zero"), "changes")
    assert len(twice["notes"]) == 2 and round(twice["effect"]["now"], 3) == 0.183


def test_a_click_switches_a_head_off_and_on_again(run_page, mini):
    at = run_page("attention", block=4, head=3)
    assert given(at, "changes") is None
    at.button(key="change_attention_quick").click().run()
    assert at.query_params["edits"] == "z.4.3=zero"
    sheet = given(at, "heads")["roles"]
    changed = mini.trace(UNSAID_TEXT, keep=["attn"], edits=["z.4.3=zero"])
    plain = mini.trace(UNSAID_TEXT, keep=["attn"])
    for b, row in enumerate(sheet):
        rows = (plain["attn", b] - changed["attn", b]).abs().sum(-1) / 2  # (H, T)
        assert [head["moved"] for head in row] == pytest.approx(
            rows[:, 1:].mean(-1).tolist(), abs=1e-6
        )
        assert [head["changed"] for head in row] == [(b, h) == (4, 3) for h in range(len(row))]
    # what is not downstream stays
    assert max(head["moved"] for row in sheet[:5] for head in row) == 0
    at.button(key="change_attention_quick").click().run()
    assert at.query_params.get("edits", "") == "" and given(at, "changes") is None


@pytest.mark.parametrize("page", ["attention", "heads"])
def test_a_heads_own_view_switches_it_off_before_anybody_scrolls(run_page, page):
    """The button says which head it is about, and when that is off, how it comes back."""
    at = run_page(page, {SEEN: set()}, block=4, head=3)
    assert "counted from 0" in at.number_input(key="head").help
    key = f"change_{page}_quick"
    assert at.button(key=key).label.startswith("Switch off") and "4·3" in at.button(key=key).label
    at.button(key=key).click().run()
    assert at.query_params["edits"] == "z.4.3=zero"
    assert at.button(key=key).label.startswith("Switch on again")
    at.button(key=key).click().run()
    assert not at.query_params.get("edits") and at.button(key=key).label.startswith("Switch off")


def test_what_stands_beside_the_heads_labels_does_not_wait_for_a_reader_to_scroll(run_page):
    first, all_of_it = (
        prose(run_page("heads", {SEEN: seen}, block=4, head=3))
        for seen in (set(), {"heads_in_general"})
    )
    for part in (
        "is labelled by where it looks",
        "**On this text**",
        "**For this answer:**",
        "**Without it",
    ):
        assert first.count(part) == all_of_it.count(part) == 1
    assert "Which heads stand out?" not in first


def test_the_popover_has_every_change_and_closes_after_one(run_page, monkeypatch):
    at = opened(run_page("attention", block=4, head=3), "change_attention_open")
    at.button(key="change_attention_4").click().run()
    assert at.query_params["edits"] == "attn.4.3=first"
    assert at.session_state["change_attention_open"] is False
    assert given(at, "matrix_head")["panels"][0]["scale"] == "signed"  # the difference
    put(at, shown="changed", change_attention_open=True)
    assert given(at, "matrix_head")["panels"][0]["scale"] == "attention"
    asked = []  # in a fragment it asks for the whole page
    monkeypatch.setattr(address, "is_fragment_run", lambda: True)
    monkeypatch.setattr(st, "rerun", lambda: asked.append(1))
    at.button(key="change_attention_1").click().run()
    assert asked == [1]


def test_the_stream_is_pushed_towards_a_word_and_away_from_another(run_page, mini):
    at = opened(run_page("residual_stream", block=3), "change_stream_open")
    at.text_input(key="change_stream_Push it towards").set_value("·love").run()
    at.text_input(key="change_stream_away from").set_value("nonsense!").run()
    assert "nonsense!" in prose(at)
    at.text_input(key="change_stream_away from").set_value("·hate").run()
    at.button(key="change_stream_push").click().run()
    love, hate = mini.encode(" love hate")
    edit = at.query_params["edits"]
    assert edit.startswith("attn_out.3@") and edit.endswith(f"=+20*out{love}-20*out{hate}")
    (chip,) = given(at, "changes")["chips"]
    assert (
        "plus 20 × the output row of “·love” minus 20 × the output row of “·hate”" in chip["says"]
    )


def test_switched_off_is_the_model_as_it_is(run_page, mini):
    at = run_page("attention", edits="z.4.3=zero", edits_off="on")
    bar = given(at, "changes")
    assert bar["off"] and bar["effect"] is None and bar["chips"][0]["state"] == "off"
    assert "moved" not in given(at, "heads")["roles"][0][0]
    assert given(at, "chips")["next"]["probability"] == pytest.approx(
        float(mini.trace(UNSAID_TEXT, keep=[]).next_tokens(1)["probability"][0])
    )


WRONG = (
    "z.9.3=zero,z.4.99=zero,z.4.3@400=zero,attn.*=hide99,resid_pre.1@3=ids99999999,z.4.3=,=zero,é漢\x00,"
    "<script>=zero,z.4.3=zero=zero,mlp_out.2=first,attn.1=zero,z.0=ids"
    + "1+" * 30
    + "1,,,embed@-1=sample"
)


def test_however_wrong_the_address_there_is_a_sentence_and_no_trace_of_a_stack(run_page):
    at = run_page("overview", edits=WRONG, edits_off="perhaps")
    strip = given(at, "changes")
    written = [part for part in WRONG.split(",") if part.strip()]
    assert [chip["text"] for chip in strip["chips"]] == [part.strip() for part in written]
    refused = [chip for chip in strip["chips"] if chip["state"] == "refused"]
    assert len(refused) >= 9 and all(chip["note"] for chip in refused)
    assert not at.error


def test_what_cannot_matter_and_what_changed_nothing_is_said(run_page):
    # the last block's output elsewhere; a later token; attention of a row that can only look at itself
    edits = "z.5.1@3=zero,mlp_out.2@9=zero,attn.2.0@0=uniform"
    at = run_page("attention", text="one two three four five six seven", token=4, edits=edits)
    bar = given(at, "changes")
    assert bar["effect"]["nothing"] and bar["effect"]["kl"] == pytest.approx(0, abs=1e-9)
    assert [bool(chip["note"]) for chip in bar["chips"]] == [True] * 3 and len(bar["notes"]) == 3


SAM = {"text": "Sam and the dog and the cat", "token": 3}


@pytest.mark.parametrize(
    ("page", "query", "button", "edit"),
    [
        ("residual_stream", {"block": 2}, "stream", "attn_out.2@3=zero"),
        ("feed_forward", {"block": 2}, "ff", "mlp_out.2=zero"),
        ("knock_out", {"block": 4, "head": 3}, "knock_out", "z.4.3=zero"),
        ("why", {"block": 4, "head": 3, "why_part": "head"}, "why", "z.4.3=zero"),
        ("why", {"block": 4, "head": 3, "why_part": "feed-forward"}, "why", "mlp_out.4=zero"),
        ("why", {"block": 4, "head": 3, "why_part": "attention"}, "why", "attn_out.4=zero"),
    ],
)
def test_what_is_looked_at_is_switched_off_for_the_whole_app(run_page, page, query, button, edit):
    at = run_page(page, **SAM, **query)
    at.button(key=f"change_{button}_quick").click().run()
    assert at.query_params["edits"] == edit


@pytest.mark.parametrize(
    ("page", "query", "said"),
    [
        (
            "layernorm",
            {"edits": "z.4.3=zero", "ln_norm": "block 2 · norm1"},
            "cannot affect block 2",
        ),
        (
            "layernorm",
            {"edits": "mlp_out.0@5=zero", "ln_norm": "final"},
            "cannot affect the final norm",
        ),
        ("layernorm", {"edits": "final=zero"}, "cannot affect what the LayerNorms are given"),
        (
            "layernorm",
            {"edits": "attn.0=uniform", "token": 0, "ln_norm": "final"},
            "has no effect on",
        ),
        (
            "residual_stream",
            {"edits": "z.4.3=zero", "block": 2},
            "cannot affect what block 2 adds",
        ),
        (
            "residual_stream",
            {"edits": "mlp_out.0@5=zero"},
            "cannot affect the residual stream of",
        ),
        (
            "residual_stream",
            {"edits": "resid_mid.2=zero"},
            "put something else into the stream itself",
        ),
        ("feed_forward", {"edits": "z.4.3=zero", "block": 2}, "cannot affect what the feed"),
        (
            "feed_forward",
            {"edits": "mlp_out.3=zero"},
            "replaces what all units contribute together: a vector of norm",
        ),
        ("why", {"edits": "z.4.3@5=zero"}, "cannot affect the logit of"),
        # a part of its own, of 0
        ("why", {"edits": "resid_mid.2@5=zero"}, "cannot affect the logit of"),
    ],
)
def test_what_a_change_cannot_move_or_breaks_is_said(run_page, page, query, said):
    assert said in prose(run_page(page, **SAM | {"block": 3} | query))


@pytest.mark.parametrize(
    ("page", "query", "shown"),
    [
        (
            "why",
            {"block": 99, "head": 99, "target": 10**5, "against": "x"},
            {"block": 5, "head": 7},
        ),
        ("embeddings", {"emb_dim": "256"}, {"emb_dim": None}),
        (
            "layernorm",
            {"ln_norm": "block 11 · norm2", "ln_dim": 700},
            {"ln_norm": "block 0 · norm1"},
        ),
    ],
)
def test_what_another_model_has_is_the_last_or_as_if_not_given(run_page, page, query, shown):
    at = run_page(page, **SAM, **query)
    found = {widget.key: widget.value for widget in (*at.number_input, *at.selectbox)}
    assert found.items() >= shown.items()


@pytest.mark.parametrize("site", ["resid_post.2", "resid_post.5", "final"])
@pytest.mark.parametrize("times", [4, 8, 12])
def test_changes_after_which_no_numbers_are_left_can_be_taken_back(run_page, site, times):
    """On any page they would follow to the next; 9,999 ^ 8 of a stream is beyond what float32 can square."""
    for page in ("loss", "residual_stream", "layernorm"):
        at = run_page(page, edits=",".join([f"{site}=x9999"] * times))
        assert not at.exception
        if at.error:
            at.button(key="changes_undo_all").click().run()
            assert not at.error and not at.exception and not at.session_state["edits"]
            assert given(at, "changes") is None
