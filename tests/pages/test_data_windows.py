"""The Data windows page through AppTest: the seeds' printed batches, and the model's own losses."""

import math
import re

import numpy as np
import pytest
import torch

from gptviz.analysis.tokens import chapter
from gptviz.lessons import Windows
from gptviz.lessons.windows import VERDICT
from gptviz.tokenizer import get_encoding
from tests.lessons.test_windows import STRIDE_1, STRIDE_4
from tests.specs import charts, in_numbers, left_by_program, opened, table

TEXT = "Sam and the dog and the cat and the mouse"


def printed(at):
    """The two tensors as they stand on the page."""
    return [eval_tensor(block.value) for block in at.code if block.value.startswith("tensor(")]


def eval_tensor(text):
    rows = re.findall(r"\[([\d,\s]+)\]", text)
    return [[int(n) for n in row.split(",")] for row in rows]


@pytest.mark.parametrize(("stride", "expected"), [(1, STRIDE_1), (4, STRIDE_4)])
def test_the_books_sentence_gives_the_books_batches(run_page, stride, expected):
    at = run_page("data_windows", dw_text="book", dw_stride=stride)
    assert printed(at) == expected
    assert len(table(at, "examples")[0]) == 3  # this model has other tokens: no probabilities


def test_the_prompts_windows_and_what_the_model_loses_on_them(run_page, mini):
    ids = mini.encode(TEXT)
    windows = Windows(tuple(ids), 3, 2, 2)
    last = len(windows) - 1  # of the windows, and its first token
    first = 2 * len(windows) - 2
    at = run_page("data_windows", text=TEXT, dw_length=3, dw_stride=2, dw_batch=2, dw_window=last)
    assert printed(at) == [part.tolist() for part in windows.batch(last // 2)]
    context = ids[first : first + 3]
    targets = ids[first + 1 : first + 4]
    for i, row in enumerate(table(at, "examples")):
        alone = torch.softmax(mini.trace(context[: i + 1]).logits(-1).double(), -1)[
            targets[i]
        ].item()
        assert float(row[4]) == pytest.approx(-math.log(alone), rel=5e-3)
    assert len(table(at, "examples")) == 3


def test_a_changed_model_has_the_unchanged_losses_beside_its_own(run_page, mini):
    query = {"text": TEXT, "dw_length": 8, "dw_window": 1, "edits": "z.4.3=zero,mlp_out.0@1=zero"}
    at = run_page("data_windows", **query)
    ids = mini.encode(TEXT)
    found = []
    for edits in ([], ["z.4.3=zero"]):  # the other one is of a place of the prompt: that is said
        logits = torch.stack(
            [mini.trace(ids[1 : end + 1], edits=edits).logits(-1) for end in range(1, 9)]
        )
        found.append(logits.double().softmax(-1)[range(8), ids[2:10]].numpy())
    assert not np.allclose(*found, rtol=1e-2)
    for row, old, new in zip(table(at, "examples"), *found, strict=True):
        told = [float(nats) for nats in re.findall(r"[\d.]+", row[4])]  # "6.13 (unchanged 5.2)"
        assert told == pytest.approx([-np.log(new), -np.log(old)][: len(told)], rel=6e-3)
    assert any("tied to a place of your text" in caption.value for caption in at.caption)
    frame = in_numbers(at, "examples")
    assert np.allclose(frame["unchanged probability"], found[0], rtol=1e-4)
    assert np.allclose(frame["probability"], found[1], rtol=1e-4)
    assert np.allclose(np.exp(-frame["unchanged loss"]), found[0], rtol=1e-4)


def test_a_chapter_in_long_windows_and_all_that_opens(run_page, mini):
    at = run_page(
        "data_windows", text="x", dw_text="chapter", dw_length=64, dw_stride=32, dw_window=10
    )
    opened(at, "dw_times", "numbers_windows", "numbers_examples")
    windows = Windows(tuple(mini.encode(chapter())), 64, 32, 8)
    (times,) = charts(at)
    assert np.array_equal(times["data"][0]["y"], windows.times_target())
    every, found = (frame.value for frame in at.dataframe)
    assert len(every) == len(windows) and every["dropped"].sum() == windows.dropped
    assert len(found) == 64 and len(table(at, "examples")) == 16
    assert found["target"].tolist() == windows.dataset[10][1].tolist()
    assert np.allclose(np.exp(-found["loss"]), found["probability"])


def test_impossible_sizes_become_possible_and_of_a_text_that_is_too_short_the_chapter_opens(
    run_page,
):
    at = run_page("data_windows", text="one two three", dw_length=500, dw_batch=900, dw_window=77)
    assert at.number_input(key="dw_batch").value == 64
    assert len(printed(at)[0]) == 1  # the longest window there is
    at = run_page("data_windows", text="a")
    assert not printed(at)
    at.segmented_control(key="dw_text").set_value("chapter").run()
    assert len(printed(at)) == 2 and at.query_params["dw_text"] == "chapter"


@pytest.mark.parametrize(
    ("text", "length", "most"), [("The cat sat on the mat", 4, 2), (TEXT, 4, 4)]
)
def test_no_token_is_in_more_windows_than_there_are(run_page, mini, text, length, most):
    at = run_page("data_windows", text=text, dw_length=length)
    count = len(mini.encode(text))
    starts = range(count - length)  # stride 1
    assert most == max(sum(start <= i < start + length for start in starts) for i in range(count))
    assert f"a token is in up to {most} windows" in " ".join(one.value for one in at.markdown)


@pytest.mark.parametrize("text", ["book", "chapter"])
def test_the_books_own_lines_give_the_batches_of_the_page(run_page, mini, text):
    query = {"dw_text": text, "dw_length": 5, "dw_stride": 3, "dw_batch": 4, "dw_window": 6}
    at = run_page("data_windows", text="x", **query)
    left = left_by_program(at)
    assert [part.tolist() for part in [*left["dataloader"]][1]] == printed(at)
    ids = mini.encode(chapter()) if text == "chapter" else get_encoding("gpt2").encode(VERDICT)
    assert len(left["dataloader"]) == Windows(tuple(ids), 5, 3, 4).n_batches
