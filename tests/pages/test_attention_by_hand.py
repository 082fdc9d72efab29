"""The Attention by hand page through AppTest: what the seeds and the book print, and whatever is typed."""

import pytest
import torch
from hypothesis import given as tried
from hypothesis import settings
from hypothesis import strategies as st

from gptviz.lessons.attention import NOTEBOOK, NOTEBOOK_AVERAGES, SLIDE_EXPONENTIALS, SLIDE_WEIGHTS, by_hand
from gptviz.lessons.sentences import SENTENCES, linear_weights
from gptviz.ui.pages.attention_by_hand import given as hand
from gptviz.ui.pages.attention_by_hand.sheets import four, vector
from tests.lessons.test_attention import CONTEXT, LINEAR_789, MASKED_789, TWO_HEADS_123, WEIGHTS
from tests.specs import given, left_by_program, opened, paragraph, prose, put, table


def sheets(at, of="by_hand"):
    """The matrices of one of the two worksheets, by name."""
    items = [item for line in given(at, f"worksheet_{of}")["lines"] for item in line["items"]]
    return {item["name"]: item for item in items if "cells" in item}


def texts(at, sheet, of="by_hand"):
    return [[cell["text"] for cell in row] for row in sheets(at, of)[sheet]["cells"]]


def as_printed(rows):
    return [[four(value) for value in row] for row in rows]


def test_as_the_book_and_the_seeds_print_it(run_page):
    at = run_page("attention_by_hand", hand="journey")
    assert texts(at, "weights0") == as_printed(WEIGHTS)
    assert texts(at, "context0") == as_printed(CONTEXT)
    assert texts(at, "scores0")[1] == ["0.9544", "1.4950", "1.4754", "0.8434", "0.7070", "1.0865"]
    at = run_page("attention_by_hand", hand="journey", hand_way="weights")
    assert texts(at, "context0") == as_printed(LINEAR_789)
    at = run_page("attention_by_hand", hand="journey", hand_way="causal", hand_weights="linear-789")
    shown = texts(at, "weights0")
    assert [[cell or "0.0000" for cell in row] for row in shown] == as_printed(MASKED_789)
    assert [[cell is None for cell in row] for row in shown] == [[j > i for j in range(6)] for i in range(6)]
    at = run_page("attention_by_hand", hand="journey", hand_way="heads")
    assert texts(at, "both") == as_printed(TWO_HEADS_123)


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
        said = paragraph(at, "slides")
        for row, exponential in zip(shown, SLIDE_EXPONENTIALS, strict=False):  # what is another, is said
            assert row[1] == four(exponential) or f"{four(exponential)} where this is {row[1]}" in said


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
        said = next(m.value for m in at.markdown if "So far" in m.value or "mixes" in m.value)
        assert ("mixes" in said) == (len(seen) == 6)  # nothing is given away before its step
        if len(seen) == 5:
            assert texts(at, "weights0")[1][:2] == ["0.4833", "0.5167"]
        if len(seen) < 6:
            at.button(key="step_on").click().run()
    assert seen == [4, 7, 8, 8, 9, 10]  # scaled scores take the place of the scores: six words have no room
    assert at.button(key="step_on").disabled


def test_averages_three_times_as_the_notebook_prints_them(run_page):
    at = run_page("attention_by_hand", hand_averages="notebook")
    results = [texts(at, name, "averages") for name in ("loop", "by_matrix", "by_softmax")]
    assert results[0] == results[1] == results[2]
    said = paragraph(at, "The notebook, whose")
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
@tried(st.text(max_size=60) | st.from_regex(r"([nxqt][0-9]{1,3}_[-+.0-9e]{1,9},?){1,4}", fullmatch=True))
def test_any_address_gives_a_calculation(text):
    start = hand.apply(hand.read(text), SENTENCES["Hello shiny sun!"], linear_weights(123, 2))
    assert 1 <= len(start.words) <= hand.MOST_WORDS and len(start.heads) == 2
    for heads in ((), start.heads[:1], start.heads):
        assert torch.isfinite(by_hand(start.x, heads, causal=True).context).all()
