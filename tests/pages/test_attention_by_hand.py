"""The Attention by hand page through AppTest: what the seeds and the book print, and whatever is typed."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given as tried, settings, strategies as st

from gptviz.digits import significant
from gptviz.lessons import scaling as lesson
from gptviz.lessons.attention import (
    NOTEBOOK,
    NOTEBOOK_AVERAGES,
    SLIDE_EXPONENTIALS,
    SLIDE_WEIGHTS,
    by_hand,
)
from gptviz.lessons.sentences import SENTENCES, linear_weights
from gptviz.ui.parts.attention_by_hand import given as hand
from gptviz.ui.parts.attention_by_hand.sheets import four, vector
from tests.lessons.test_dropout import JOURNEY, ONES
from tests.specs import (
    charts,
    given,
    in_numbers,
    left_by_program,
    opened,
    paragraph,
    prose,
    put,
    table,
)


def sheets(at, of="by_hand"):
    """The matrices of one of the two worksheets, by name."""
    items = [item for line in given(at, f"worksheet_{of}")["lines"] for item in line["items"]]
    return {item["name"]: item for item in items if "cells" in item}


def texts(at, sheet, of="by_hand"):
    return [[cell["text"] for cell in row] for row in sheets(at, of)[sheet]["cells"]]


def as_printed(rows):
    return [[four(value) for value in row] for row in rows]


WAYS = ("simple", "weights", "causal", "heads")
# what the seeds' texts print for the word that they work out
PRINTED = [
    ("hello", "simple", None, (0.3992, 0.3858, 0.8610)),
    ("journey", "simple", None, (0.4419, 0.6515, 0.5683)),
    ("journey", "weights", "rand-123", (0.3061, 0.8210)),
    ("journey", "weights", "linear-789", (-0.0748, 0.0703)),
    ("journey", "causal", "linear-123", (-0.5874, 0.0058)),
    ("journey", "heads", "linear-123", (-0.5874, 0.0058, 0.5891, 0.3257)),
]


@pytest.mark.parametrize(("example", "way", "drawing", "printed"), PRINTED)
def test_every_number_that_is_said_to_be_printed(run_page, example, way, drawing, printed):
    drawn = {"hand_weights": drawing} if drawing else {}
    at = run_page("attention_by_hand", hand=example, hand_way=way, **drawn)
    assert vector(printed) in prose(at)
    assert ("book prints the same" in prose(at)) == (example == "journey")
    if example == "hello":  # softmax in two steps, on slides
        shown = table(at, "softmax")
        assert [row[2] for row in shown[:-1]] == [four(weight) for weight in SLIDE_WEIGHTS]
        said = paragraph(at, "Rounding: the slides")
        # what is another, is said
        for row, exponential in zip(shown, SLIDE_EXPONENTIALS, strict=False):
            assert (
                row[1] == four(exponential) or f"{four(exponential)} where this is {row[1]}" in said
            )


def test_a_number_of_a_link_moves_all_that_comes_after_it(run_page):
    at = run_page("attention_by_hand", hand_changed="x12_0,t0_%E7%8C%AB,n3")
    x = torch.tensor(SENTENCES["Hello shiny sun!"].vectors, dtype=torch.float64)
    x[1, 2] = 0
    weights = (x @ x.T).softmax(dim=-1)
    assert texts(at, "weights0") == as_printed(weights.tolist())
    assert texts(at, "context0") == as_printed((weights @ x).tolist())
    assert texts(at, "x")[1] == ["0.53", "0.34", "0"] and sheets(at)["x"]["rows"][0] == "猫"
    assert not any("prints" in m.value for m in at.markdown if "mixes" in m.value)
    assert table(at, "worked row")[-1][-1] == vector((weights @ x)[1].tolist())


def test_what_is_typed_is_kept_or_refused_with_a_sentence(run_page):
    at = run_page("attention_by_hand", hand_way="heads")
    for typed in ("nan", "inf", "red <b>", "", "1e9", "٣x"):
        at.session_state["hand_changed"] = ""
        assert hand.number(typed) is None, typed
    assert hand.number("0,5") == 0.5 and hand.number("−2") == -2.0
    at.button(key="word_more").click().run()
    assert at.session_state["hand_changed"] == "n4"
    assert sheets(at)["x"]["rows"][3] == "?" and texts(at, "x")[3] == ["0", "0", "0"]
    at.button(key="by_hand_back").click().run()
    assert at.session_state["hand_changed"] == "" and len(sheets(at)["x"]["rows"]) == 3


def test_steps_show_one_more_each(run_page):
    at = run_page("attention_by_hand", hand_way="causal", hand="journey", hand_step="vectors")
    seen = []
    for _ in range(6):
        seen.append(sum(not sheet["later"] for sheet in sheets(at).values()))
        begins = "You see the steps", "The new vector"
        said = next(m.value for m in at.markdown if m.value.startswith(begins))
        assert ("Mixed like that" in said) == (
            len(seen) == 6
        )  # nothing is given away before its step
        if len(seen) == 5:
            assert texts(at, "weights0")[1][:2] == ["0.4833", "0.5167"]
        if len(seen) < 6:
            at.button(key="step_on").click().run()
    # scaled scores take the place of the scores: six words have no room
    assert seen == [4, 7, 8, 8, 9, 10]
    assert at.button(key="step_on").disabled


def test_averages_three_times_as_the_notebook_prints_them(run_page):
    at = run_page("attention_by_hand", hand_averages="notebook")
    results = [texts(at, name, "averages") for name in ("loop", "by_matrix", "by_softmax")]
    assert results[0] == results[1] == results[2]
    said = paragraph(at, "The notebook prints the same")
    for row, expected in zip(results[0], as_printed(NOTEBOOK_AVERAGES), strict=True):
        for cell, printed in zip(row, expected, strict=True):  # what is another, is said
            assert cell == printed or f"{printed} where this is {cell}" in said
    assert texts(at, "vectors", "averages") == as_printed(NOTEBOOK)
    assert texts(at, "ones", "averages")[2][:3] == ["0.3333"] * 3
    assert texts(at, "zeros", "averages")[1] == ["0", "0", *["−∞"] * 6]


@pytest.mark.parametrize("way", WAYS)
def test_in_code_and_in_numbers_are_the_picture_and_one_word_gives_itself_everything(run_page, way):
    at = opened(run_page("attention_by_hand", hand_way=way), "numbers_by_hand_pairs")
    shown = [four(w) if w == w else None for w in at.dataframe[0].value["weight"]]
    heads = 2 if way == "heads" else 1
    assert shown == [cell for n in range(heads) for row in texts(at, f"weights{n}") for cell in row]
    expected = texts(at, "both" if way == "heads" else "context0")
    assert as_printed(left_by_program(at)["picture"].context.tolist()) == expected
    vectors = opened(at, "numbers_by_hand_vectors").dataframe[-1].value
    assert as_printed(vectors.filter(like="context").to_numpy().tolist()) == expected
    put(at, hand_changed="n1", hand_query=5)
    assert texts(at, "weights0") == [["1.0000"]]
    assert given(at, "worksheet_by_hand")["selected"] == 0


# ---- what stands in the address ----

matrices = st.sampled_from(["x", "q0", "k1", "v0"])
places = st.builds("{}{}{}".format, matrices, st.integers(0, 7), st.integers(0, 2))
rows = st.builds("t{}".format, st.integers(0, 7))
counts = st.just({}) | st.fixed_dictionaries({"n": st.integers(1, 8)})


@settings(max_examples=50)
@tried(
    counts,
    st.dictionaries(places, st.floats(-100, 100).map(lambda v: hand.number(repr(v))), max_size=5),
    st.dictionaries(rows, st.text(max_size=40).map(hand.word), max_size=4),
)
def test_changes_survive_the_address(count, numbers, named):
    made = count | numbers | named
    assert hand.read(hand.written(made)) == made


@settings(max_examples=50)
@tried(
    st.text(max_size=60)
    | st.from_regex(r"([nxqt][0-9]{1,3}_[-+.0-9e]{1,9},?){1,4}", fullmatch=True)
)
def test_any_address_gives_a_calculation(text):
    start = hand.apply(hand.read(text), SENTENCES["Hello shiny sun!"], linear_weights(123, 2))
    assert 1 <= len(start.words) <= hand.MOST_WORDS and len(start.heads) == 2
    for heads in ((), start.heads[:1], start.heads):
        assert torch.isfinite(by_hand(start.x, heads, causal=True).context).all()


# ---- its last steps: why √d, and dropout, as printed and in this model ----

TEXT = "Sam and the dog and the cat"


def root(run_page, **query):
    return run_page("attention_by_hand", text=TEXT, hand_way="root", **query)


def drawn(at):
    """The charts of why √d by what they are: three over d, two of a query, softmax, two of heads."""
    names = (
        "variance",
        "largest",
        "gradient",
        "scores",
        "weights",
        "sharper",
        "divided",
        "undivided",
    )
    return dict(zip(names, charts(at), strict=True))


def test_the_charts_over_d_and_one_query(run_page):
    at = root(run_page, sc_d=256, sc_query=7)
    found = drawn(at)
    table = lesson.by_size()
    for name in ("variance", "largest", "gradient"):
        raw, scaled = found[name]["data"]
        assert np.allclose(raw["y"], table[name]) and np.allclose(
            scaled["y"], table[f"{name}_scaled"]
        )
    raw = lesson.scores()[256][7]
    for trace, scores in zip(found["weights"]["data"], (raw / 16, raw), strict=True):
        assert np.allclose(trace["y"], torch.softmax(torch.from_numpy(scores), -1))
    assert [trace["name"] for trace in found["weights"]["data"]] == ["q · k ÷ √d", "q · k"]


def test_a_changed_models_heads_stand_beside_the_unchanged_models(run_page, mini):
    """Both from their own scores: softmax of q · k, divided and not; and where nothing can differ, why."""
    edits = ["mlp_out.0=zero", "attn.3.2=uniform"]
    at = root(run_page, block=3, edits=",".join(edits))
    found = drawn(at)
    bars = {
        name: {bar["name"]: bar["y"] for bar in found[name]["data"]}
        for name in ("undivided", "divided")
    }
    means = []
    for lm, name in ((mini.edited(*edits), "changed"), (mini, "unchanged")):
        t = lm.trace(TEXT)
        scores = (t["q", 3] @ t["k", 3].mT).double()
        hidden = torch.ones_like(scores).triu(1).bool()
        for which, values in (("undivided", scores), ("divided", scores / math.sqrt(32))):
            weights = values.masked_fill(hidden, -torch.inf).softmax(-1)
            expected = weights[:, 1:].max(-1).values.mean(-1)
            assert np.allclose(bars[which][name], expected, atol=1e-5)
            means.append(expected.mean().item())
    said = paragraph(at, "A query's largest weight")
    now_raw, now, was_raw, was = (significant(mean, 2) for mean in means)
    assert f"is {was} → {now}" in said and f"would be {was_raw} → {now_raw}" in said
    assert "The weights of head 2 are replaced" in prose(at)
    table = in_numbers(at, "scaling_heads")
    assert np.allclose(table["largest_scaled"], bars["divided"]["changed"])
    assert np.allclose(table["unchanged largest_scaled"], bars["divided"]["unchanged"])
    at = root(run_page, block=3, edits="z.3.2=zero")
    assert "cannot affect the scores of block 3" in prose(at)


def test_the_softmax_that_the_slide_prints(run_page):
    printed = "tensor([1.7128e-02, 8.5274e-04, 3.1371e-04, 4.6558e-02, 9.3515e-01])"
    assert printed in root(run_page, sc_factor=10).code[0].value


def dropout(run_page, **query):
    """The page, and what its three squares hold."""
    at = run_page("attention_by_hand", text=TEXT, hand_way="dropout", **query)
    return at, [chart["data"][0]["z"] for chart in charts(at)]


@pytest.mark.parametrize(("weights", "printed"), [("ones", ONES), ("journey", JOURNEY)])
def test_the_dropout_that_the_book_prints(run_page, weights, printed):
    at, (_, _, after) = dropout(run_page, sc_weights=weights)
    assert np.allclose(after, printed, atol=5e-5)
    assert "The book prints them" in prose(at)


def test_dropout_on_this_texts_attention(run_page, mini):
    at, (before, _, after) = dropout(
        run_page, sc_weights="text", sc_p=0.2, sc_seed=5, block=2, head=6
    )
    attn = mini.trace(TEXT)["attn", 2][6]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        expected = torch.nn.functional.dropout(attn, 0.2)
    assert np.allclose(after, expected, atol=1e-5) and np.allclose(before, attn, atol=1e-5)
    assert np.allclose(left_by_program(at)["picture"].after, expected, atol=1e-5)
    at, _ = dropout(run_page, sc_weights="text", block=2, edits="z.1.2=zero")
    assert "of the changed model" in prose(at)
