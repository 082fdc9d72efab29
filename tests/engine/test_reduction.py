"""Reductions: the same numbers as the whole tensors give, without the whole tensors."""

import weakref
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from gptviz import Reduction
from gptviz.engine.sites import SITES
from tests.conftest import random_lm

TEXT = "The cat sat on the mat, and the cat slept."


@dataclass(frozen=True)
class Power:
    """A reduction with a setting, as a page would write one."""

    exponent: int

    def __call__(self, value):
        return float((value**self.exponent).sum())


@pytest.mark.parametrize("name", list(SITES))
def test_a_reduction_sees_what_a_trace_would_hold(lm, name):
    whole = lm.trace(TEXT)
    reduced = lm.trace(TEXT, keep=(), reduce=[Reduction("twice", name, lambda x: (x * 2).numpy())])
    blocks = range(lm.config.n_layers) if SITES[name].per_block else [None]
    found = reduced.reduced("twice")
    assert len(found) == len(blocks)
    for block, result in zip(blocks, found, strict=True):
        assert np.array_equal(result, 2 * whole[name, block].numpy())
    assert reduced.sites() == []


def test_a_block_is_let_go_before_the_next_one_is_made():
    lm = random_lm(n_layers=4)
    given = []
    alive = []

    def look(weights):
        alive.append([ref() is not None for ref in given])
        given.append(weakref.ref(weights))
        return weights[0, :2]  # a view: what is kept must not keep the rest

    trace = lm.trace(TEXT, keep=(), reduce=[Reduction("look", "attn", look)])
    assert alive == [[], [False], [False] * 2, [False] * 3]
    n = len(trace)
    assert trace.nbytes == 4 * 2 * n * 4 + n * lm.config.emb_dim * 4  # the rows, and the final ones
    whole = lm.trace(TEXT, keep=["attn"])
    for block, rows in enumerate(trace.reduced("look")):
        assert torch.equal(rows, whole["attn", block][0, :2])


def test_what_was_reduced_counts_into_the_size(lm):
    nested = Reduction("n", "attn", lambda x: ({"a": [np.zeros(500, np.uint8)]}, torch.zeros(125)))
    more = lm.trace(TEXT, keep=(), reduce=[nested]).nbytes - lm.trace(TEXT, keep=()).nbytes
    assert 2000 <= more < 3200  # a result for each of two blocks


def test_reductions_are_equal_by_what_they_do(lm):
    assert Reduction("p", "attn", Power(2)) == Reduction("p", "attn", Power(2))
    assert Reduction("p", "attn", Power(2)) != Reduction("p", "attn", Power(3))
    trace = lm.trace(TEXT, keep=(), reduce=[Reduction("p", "attn", Power(2))])
    assert trace.holds((), [Reduction("p", "attn", Power(2))])
    assert not trace.holds((), [Reduction("p", "attn", Power(3))])
