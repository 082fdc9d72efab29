"""Bars of one attention weight: the numbers go in and come out, and hovers say them."""

import numpy as np
import pytest

from gptviz.figures import attention as figures
from gptviz.figures.theme import palette


def test_products_are_a_signed_bar_a_dimension() -> None:
    q, k = np.array([1.0, -2.0, 0.5]), np.array([3.0, 1.0, 0.0])
    fig = figures.products(q, k, "·it", "·<b>", "light")
    bar = fig.data[0]
    assert list(bar.y) == [3.0, -2.0, 0.0]
    colors = palette("light")
    assert list(bar.marker.color) == [colors.positive, colors.negative, colors.positive]
    assert bar.hovertext[1] == "dimension 1: −2.00 of ·it × 1.00 of ·&lt;b&gt; = −2.00"


def test_the_softmax_row_has_three_rows_and_one_red_bar() -> None:
    scaled = np.array([0.0, 2.0, 1.0])
    exp = np.exp(scaled - 2)
    weights = exp / exp.sum()
    fig = figures.softmax_row(scaled, exp, weights, ["a", "b", "c"], "c", 1, "dark")
    assert [list(bar.y) for bar in fig.data] == [list(scaled), list(exp), list(weights)]
    colors = palette("dark")
    for bar in fig.data:
        assert list(bar.marker.color) == [colors.output, colors.key, colors.output]
    assert fig.data[2].hovertext[1] == "weight of c for b (position 1): 0.67"
    assert list(fig.layout.xaxis.ticktext) == ["a", "b", "c"]


def test_many_keys_are_positions() -> None:
    values = np.full(100, 0.01)
    fig = figures.softmax_row(values, values, values, ["x"] * 100, "x", 3, "light")
    assert fig.layout.xaxis.ticktext is None


def test_the_output_shows_the_whole_and_the_part() -> None:
    z, part = np.array([1.0, -1.0]), np.array([0.25, 0.5])
    fig = figures.output(part, z, "·it", "·cat", "light")
    assert [list(bar.y) for bar in fig.data] == [list(z), list(part)]
    assert fig.data[1].marker.color == palette("light").value
    assert fig.data[1].hovertext[1] == "dimension 1: 0.500 of it from ·cat"


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_both_themes_draw_on_their_paper(mode) -> None:
    fig = figures.products(np.ones(2), np.ones(2), "a", "b", mode)
    assert fig.layout.paper_bgcolor == palette(mode).paper
