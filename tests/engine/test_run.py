"""Run: one name for one pass."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
import torch

from gptviz import Edit, Run
from gptviz.engine.run import common_prefix


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


def test_how_much_two_texts_have_in_common_from_the_beginning():
    one = (1, 2, 3, 4)
    for ids, common in (
        ((1, 2, 3, 4), 4),
        ((1, 2), 2),
        ((1, 2, 9, 4), 2),
        ((9, 2), 0),
        ((1, 2, 3, 4, 5), 4),
    ):
        assert common_prefix(one, ids) == common_prefix(ids, one) == common
