"""The grid of heads read back pixel by pixel: each colour must be that of the weight that lies under it."""

import io

import numpy as np
import pytest
from PIL import Image

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
    cell, gap = 4, head_grid.GAP_PX
    picture = pixels(head_grid.mosaic(attn, mode, cell_px=cell))
    assert picture.shape == (2 * 20 + gap, 3 * 20 + 2 * gap, 3)
    scale = palette(mode).attention
    for b, h, q, k in np.ndindex(2, 3, 5, 5):
        top, left = b * (20 + gap) + q * cell, h * (20 + gap) + k * cell
        square = picture[top : top + cell, left : left + cell].reshape(-1, 3)
        assert (square == square[0]).all()
        if k > q:
            assert square[0].tolist() == rgb(palette(mode).masked)
            continue
        stops = [stop for stop, _ in scale]
        expected = [np.interp(attn[b, h, q, k], stops, [rgb(c)[i] for _, c in scale]) for i in range(3)]
        assert np.abs(square[0] - expected).max() <= 3  # 254 colours between paper and purple
    assert picture[20:26, 0].tolist() == [rgb(palette(mode).paper)] * gap


def test_a_long_text_is_pooled_and_its_diagonal_stays_visible():
    attn = np.eye(300, dtype=np.float32)[None, None]
    png, side = head_grid.thumbnails(attn, "light")
    picture = pixels(png)
    assert side == head_grid.THUMBNAIL_PX and picture.shape == (side, side, 3)
    assert (picture[range(side), range(side)] == rgb(palette("light").attention[-1][1])).all()


def test_blocks_may_come_one_by_one():
    attn = weights(3, 2, 7)
    assert head_grid.mosaic(iter(attn), "light") == head_grid.mosaic(attn, "light")


def test_thumbnails_are_the_grid_without_gaps():
    attn = weights(2, 3, 5)
    png, side = head_grid.thumbnails(attn, "light")
    assert side == 5
    loose = pixels(head_grid.mosaic(attn, "light", cell_px=1))
    tight = pixels(png)
    assert tight.shape == (10, 15, 3)
    assert (tight[5:, 10:] == loose[5 + head_grid.GAP_PX :, 10 + 2 * head_grid.GAP_PX :]).all()


def test_one_token_is_one_dark_square():
    picture = pixels(head_grid.mosaic(np.ones((1, 1, 1, 1), dtype=np.float32), "light"))
    assert picture.shape == (96, 96, 3)
    assert (picture == rgb(palette("light").attention[-1][1])).all()


def test_a_long_text_weighs_little():
    assert len(head_grid.mosaic(weights(6, 8, 256), "light")) < 200_000
