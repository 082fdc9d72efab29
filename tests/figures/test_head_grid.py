"""The grid of heads read back pixel by pixel: each colour must be that of the weight that lies under it."""

import io

import numpy as np
import pytest
from PIL import Image

from gptviz.analysis.head_roles import HeadRole
from gptviz.figures import head_grid
from gptviz.figures.theme import palette


def weights(blocks, heads, n_tokens, seed=0):
    """(blocks, heads, T, T) causal attention weights."""
    scores = np.tril(np.random.default_rng(seed).random((blocks, heads, n_tokens, n_tokens)))
    return (scores / scores.sum(-1, keepdims=True)).astype(np.float32)


def pixels(png):
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).astype(int)


def rgb(color):
    return [int(color[i : i + 2], 16) for i in (1, 3, 5)]


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_every_weight_has_its_colour_and_the_mask_is_grey(mode):
    attn = weights(2, 3, 5)
    png, side = head_grid.thumbnails(iter(attn), mode)  # blocks may come one by one
    picture = pixels(png)
    assert side == 5 and picture.shape == (10, 15, 3)
    scale = palette(mode).attention
    for b, h, q, k in np.ndindex(2, 3, 5, 5):
        pixel = picture[5 * b + q, 5 * h + k]
        if k > q:
            assert pixel.tolist() == rgb(palette(mode).masked)
            continue
        stops = [stop for stop, _ in scale]
        expected = [
            np.interp(attn[b, h, q, k], stops, [rgb(c)[i] for _, c in scale]) for i in range(3)
        ]
        assert np.abs(pixel - expected).max() <= 3  # 254 colours between paper and purple


def test_a_long_text_is_pooled_weighs_little_and_its_diagonal_stays_visible():
    attn = np.eye(300, dtype=np.float32)[None, None]
    png, side = head_grid.thumbnails(attn, "light")
    picture = pixels(png)
    assert side == head_grid.THUMBNAIL_PX and picture.shape == (side, side, 3)
    assert (picture[range(side), range(side)] == rgb(palette("light").attention[-1][1])).all()
    assert len(head_grid.thumbnails(weights(6, 8, 256), "light")[0]) < 200_000


def test_a_pixel_of_a_long_text_is_the_largest_weight_below_it():
    attn = weights(1, 2, 2 * head_grid.THUMBNAIL_PX)[0]  # so two by two weights are a pixel
    corners = [attn[:, row::2, column::2] for row in (0, 1) for column in (0, 1)]
    assert np.array_equal(head_grid.pool(attn), np.stack(corners).max(axis=0))


def test_a_head_that_looks_at_nothing_does_so_over_no_tokens():
    role = HeadRole(0, 0, "nothing", {"first": 0.0}, {}, None, 1.0)
    assert (
        head_grid.words_of(role, 0.0, 2.0)["says"]
        == "nothing. Bar: how much it adds to a token, a norm of 0.0 on average (the largest: 2.0)."
    )
