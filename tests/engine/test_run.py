"""Run: one name for one pass."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
import torch

from gptviz import Edit, Run
from gptviz.engine.run import alike


def test_equal_runs_are_one_key_however_their_parts_were_given():
    run = Run("mini", (5, 6), (Edit("z", 1, heads=(0, 2)),))
    same = Run("mini", torch.tensor([5, 6]), [Edit.parse("z.1.2+0=zero")])
    assert run == same and len({run, same, Run("mini", np.array([5, 6]), list(run.edits))}) == 1
    assert same.ids == (5, 6) and all(type(i) is int for i in same.ids) and len(same) == 2


def test_runs_that_differ_in_anything_are_different_keys():
    runs = [
        Run("mini", [5, 6]),
        Run("gpt2", [5, 6]),
        Run("mini", [6, 5]),
        Run("mini", [5, 6], [Edit("z", 1)]),
        Run("mini", [5, 6], [Edit("z", 1, "mean")]),
        Run("mini", [5, 6], [Edit("z", 1, "mean"), Edit("z", 1)]),
        Run("mini", [5, 6], [Edit("z", 1), Edit("z", 1, "mean")]),  # edits follow each other
    ]
    assert len(set(runs)) == len(runs)


def test_an_edited_run_and_back():
    run = Run("mini", [5, 6])
    edited = run.edited(Edit("z", 1)).edited(Edit("embed"))
    assert edited == Run("mini", [5, 6], [Edit("z", 1), Edit("embed")])
    assert edited.plain == run == run.plain
    with pytest.raises(FrozenInstanceError):
        run.ids = (7,)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (("", [1]), "model is ''"),
        ((None, [1]), "model is None"),
        (("mini", "text"), r"'text' given; give a text, or a list of token ids such as lm.encode\(text\)"),
        (("mini", []), r"ids are \[\]: give at least one"),
        (("mini", [1, -2]), "whole numbers from 0 on"),
        (("mini", [1, 2.0]), "among the ids is 2.0, which is no whole number"),
        (("mini", [1], "z.4.3=zero"), "give a list of them"),
        (("mini", [1], [Edit("z")]), "needs a block"),
        (("mini", [1], [Edit("z", 0, "nought")]), "'nought'"),
        (("mini", [1], [Edit("z", 0, lambda z: z)]), r"by a Python function.*lm.trace\(ids, edits="),
    ],
)
def test_what_is_no_run_is_a_sentence(given, sentence):
    with pytest.raises(ValueError, match=sentence):
        Run(*given)


def test_how_much_two_texts_have_in_common_from_the_beginning():
    one = (1, 2, 3, 4)
    for ids, common in (((1, 2, 3, 4), 4), ((1, 2), 2), ((1, 2, 9, 4), 2), ((9, 2), 0), ((1, 2, 3, 4, 5), 4)):
        assert alike(one, ids) == alike(ids, one) == common
