"""The examination: its files are whole, and an answer is judged as a reader would."""

from collections import Counter
from pathlib import Path

import pytest
import torch

import gptviz
from gptviz.training.examine import (
    Prompt,
    by_kind,
    examine,
    is_correct,
    names_right,
    read_names,
    read_prompts,
)

EXAM = Path(__file__).parent / "exam"


def test_the_examination_has_two_hundred_prompts_and_more_in_ten_kinds_and_more():
    prompts = read_prompts(EXAM / "prompts.tsv")
    kinds = Counter(prompt.kind for prompt in prompts)
    assert len(prompts) >= 200 and len(kinds) >= 10 and min(kinds.values()) >= 20
    assert len({prompt.text for prompt in prompts}) == len(prompts)
    assert all(prompt.right and prompt.text == prompt.text.strip() for prompt in prompts)


def test_of_each_sentence_with_two_names_one_is_right_and_both_stand_in_it():
    sentences = read_names(EXAM / "names.tsv")
    assert len(sentences) == 100
    for sentence, right, wrong in sentences:
        assert right in sentence and wrong in sentence and right != wrong
        assert sentence.rsplit(" ", 1)[1] not in (right, wrong)


@pytest.mark.parametrize(
    ("text", "said", "correct"),
    [
        ("The capital of France is", " Paris, of course", True),
        ("The capital of France is", " Parisian", False),
        ("The capital of France is", " the town of Paris", False),
        ("The capital of France is", ' "Paris', True),
        ("What is the capital of France?", " It is Paris.", True),
        ("What is the capital of France?", " I do not know. Paris?", False),
        ("What is the capital of France?", "", False),
    ],
)
def test_an_answer_is_judged(text, said, correct):
    assert is_correct(Prompt("capitals", text, ("Paris",), ()), said) is correct


def test_the_answers_are_the_models_own():
    lm = gptviz.load("mini")
    prompts = [
        Prompt("one", "Once upon a", ("time",), ()),
        Prompt("two", "Once upon a", ("tortoise",), ()),
        Prompt("two", "Who is it?", ("xylophone",), ()),
    ]
    results = examine(lm, prompts)
    with torch.inference_mode():
        next_id = int(lm.model(lm.batch(lm.encode("Once upon a")))[0, -1].argmax())
    assert results["said"][0].startswith(lm.decode([next_id]))
    table = by_kind(results).set_index("kind")
    assert table.loc["all", "prompts"] == 3 and table.loc["two", "prompts"] == 2
    assert table.loc["all", "correct"] == results["correct"].sum() == table.loc["one", "correct"]


def test_the_names_are_compared_by_their_logits():
    lm = gptviz.load("mini")
    sentence = "Tom and Anna went out, and Tom saw"
    with torch.inference_mode():
        logits = lm.model(lm.batch(lm.encode(sentence)))[0, -1]
    higher = bool(logits[lm.encode(" Anna")[0]] > logits[lm.encode(" Tom")[0]])
    assert names_right(lm, [(sentence, "Anna", "Tom")]) == float(higher)
    assert names_right(lm, [(sentence, "Anna", "Tom"), (sentence, "Tom", "Anna")]) == 0.5
