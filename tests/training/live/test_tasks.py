"""Repeated random passages: how windows are made, and the loss below which nobody can get."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from gptviz.training.live.tasks import (
    SHORTEST,
    RepeatedPassages,
    draw_windows,
    floor,
    longest_passage,
)


def best_nats(window, vocab_size, max_length):
    """-log P of window[1:] for one who knows how windows are made: (max_length + 1,) -> (max_length,).

    Bayes' rule over the lengths: a passage of length n explains the first t tokens with V^-min(n, t) if they
    repeat after n, and not at all if they do not.
    """
    lengths = np.arange(SHORTEST, longest_passage(max_length) + 1)
    logs = np.full((len(window), len(lengths)), -np.inf)  # [t, n]: of the first t + 1 tokens
    for column, length in enumerate(lengths):
        repeats = np.flatnonzero(window[length:] != window[:-length])
        fits = len(window) if not len(repeats) else length + int(repeats[0])
        shown = np.minimum(np.arange(1, len(window) + 1), length)
        logs[:fits, column] = -shown[:fits] * math.log(vocab_size)
    known = np.logaddexp.reduce(logs - math.log(len(lengths)), axis=1)  # (max_length + 1,)
    return known[:-1] - known[1:]


def shortest_period(row):
    return next(n for n in range(1, len(row)) if (row[n:] == row[:-n]).all())


def test_windows_repeat_passages_of_every_length():
    windows = draw_windows(64, 64, 400, np.random.default_rng(0)).numpy()
    assert windows.shape == (400, 65) and windows.min() == 0 and windows.max() == 63
    periods = [shortest_period(row) for row in windows]
    assert set(periods) == set(range(SHORTEST, 33))
    assert np.mean(periods) == pytest.approx(18, abs=3 * 8.4 / 20)  # its deviation is 8.4


def test_a_batch_is_a_function_of_seed_and_step():
    batches = RepeatedPassages(64, 16, 4, seed=1)
    inputs, targets = batches[7]
    assert inputs.shape == targets.shape == (4, 16) and torch.equal(inputs[:, 1:], targets[:, :-1])
    assert torch.equal(batches[7][0], RepeatedPassages(64, 16, 4, seed=1)[7][0])
    others = (batches[8], RepeatedPassages(64, 16, 4, seed=2)[7])
    assert not any(torch.equal(inputs, other[0]) for other in others)


@pytest.mark.parametrize(("vocab_size", "max_length"), [(64, 64), (30, 16), (5, 24)])
def test_the_floor_is_what_who_knows_everything_loses(vocab_size, max_length):
    windows = draw_windows(vocab_size, max_length, 3000, np.random.default_rng(3)).numpy()
    losses = np.array([best_nats(row, vocab_size, max_length).mean() for row in windows])
    error = losses.std() / math.sqrt(len(losses))
    assert floor(vocab_size, max_length) == pytest.approx(losses.mean(), abs=4 * error)


def test_the_floor_of_the_usual_run():
    by_hand = (17 * math.log(64) + math.log(29)) / 64  # passages of 4 to 32, 18 on average
    assert floor(64, 64) == pytest.approx(by_hand) == pytest.approx(1.157, abs=5e-4)


@given(st.integers(2, 100), st.integers(16, 128))
def test_the_floor_is_below_an_even_guess(vocab_size, max_length):
    assert floor(vocab_size, max_length) > 0
    assert floor(vocab_size, max_length) < math.log(vocab_size) + math.log(61) / max_length
    assert longest_passage(max_length) * 2 <= max_length
