"""Shapes taken down from running code."""

import sys

import numpy as np
import pytest
import torch

from gptviz.analysis.shapes import record_shapes, run_first_block
from gptviz.model import GPTModel, LayerNorm, MultiHeadAttention


def twice(x):
    x = x.reshape(3, 2)
    y = np.zeros(4)
    for _ in range(2):
        y = y[1:]
    return x, y, "no tensor"


def test_a_variable_has_every_shape_it_had():
    found = record_shapes([twice], lambda: (twice(torch.zeros(6)), twice(torch.zeros(2, 3))))
    assert found == {"twice": {"x": ((6,), (3, 2)), "y": ((4,), (3,), (2,))}}


def test_the_shapes_are_those_of_the_whole_model(lm):
    ids = lm.encode("the cat sat on")
    functions = [GPTModel.final_hidden, MultiHeadAttention.forward, LayerNorm.forward]
    whole = record_shapes(functions, lambda: lm.model.final_hidden(torch.tensor([ids])))
    assert record_shapes(functions, lambda: run_first_block(lm, ids)) == whole
    assert len(lm.model.trf_blocks) == lm.config.n_layers


def test_whoever_traced_before_goes_on_after():
    def watcher(frame, event, arg):
        return None

    before = sys.gettrace()
    sys.settrace(watcher)
    try:
        with pytest.raises(ZeroDivisionError):
            record_shapes([twice], lambda: 1 // 0)
        assert sys.gettrace() is watcher
    finally:
        sys.settrace(before)
