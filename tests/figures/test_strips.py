"""The Overview's small pictures, read back pixel by pixel and point by point."""

import io
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from PIL import Image

from gptviz.both import Both
from gptviz.figures.strips import BOTTOM, HEIGHT, TOP, WIDTH, norm_lines, strip
from gptviz.figures.theme import PALETTES

SVG = "{http://www.w3.org/2000/svg}"


def rgb(color):
    return tuple(int(color[i : i + 2], 16) for i in (1, 3, 5))


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_zero_is_paper_and_the_ends_are_the_ends(mode):
    signed = dict(PALETTES[mode].signed)
    pixels = np.asarray(
        Image.open(io.BytesIO(strip(np.array([[-2.0, -9.0, 0.0], [2.0, 9.0, 1.0]]), 2.0, mode)))
    )
    assert pixels.shape == (2, 3, 3)
    assert tuple(pixels[0, 0]) == tuple(pixels[0, 1]) == rgb(signed[0.0])
    assert tuple(pixels[0, 2]) == rgb(signed[0.5]) == rgb(PALETTES[mode].paper)
    assert tuple(pixels[1, 0]) == tuple(pixels[1, 1]) == rgb(signed[1.0])
    assert tuple(pixels[1, 2]) == rgb(signed[0.75])


@pytest.mark.parametrize("limit", [0, -1, float("nan")])
def test_a_scale_has_a_width(limit):
    with pytest.raises(ValueError, match="limit"):
        strip(np.zeros((1, 1)), limit, "light")


def points(svg, line):
    polyline = ET.fromstring(svg).findall(f".//{SVG}polyline")[line]
    return np.array([[float(n) for n in point.split(",")] for point in polyline.get("points").split()])


BEFORE, AFTER = np.array([0.1, 1.0, 10.0]), np.array([1.0, 1.0, 1.0])


def test_lines_stand_at_their_logarithms():
    svg = norm_lines(Both(np.stack([BEFORE, AFTER])), "light")
    first, second = points(svg, 0), points(svg, 1)
    assert first[:, 1].tolist() == [BOTTOM, (BOTTOM + TOP) / 2, TOP]
    assert (second[:, 1] == first[1, 1]).all()
    assert (np.diff(first[:, 0]) > 0).all()
    labels = [node.text for node in ET.fromstring(svg).iter(f"{SVG}text")]
    assert {"0.10", "10", "1.0", "before", "after"} <= set(labels)


@pytest.mark.parametrize("values", [[1.0], [0.0, 0.0], [0.0, 3.0], [1e-30, 1e30]])
def test_whatever_the_numbers_the_lines_stay_in_the_picture(values):
    svg = norm_lines(Both(np.array([values, values])), "dark")
    for line in (0, 1):
        xs, ys = points(svg, line).T
        assert ((xs >= 0) & (xs <= WIDTH)).all() and ((ys >= 0) & (ys <= HEIGHT)).all()


def test_the_unchanged_lines_lie_below_the_others_on_the_same_scale():
    was = np.stack([np.array([0.01, 1.0, 10.0]), AFTER])
    svg = norm_lines(Both(np.stack([BEFORE, AFTER]), was), "light")
    old, same, first, second = (points(svg, line) for line in range(4))
    assert old[:, 1].tolist() == [BOTTOM, pytest.approx(TOP + (BOTTOM - TOP) / 3, abs=0.1), TOP]
    assert (old[1:] == first[1:]).all() and (same == second).all() and first[0, 1] < old[0, 1]
    drawn = ET.fromstring(svg).findall(f".//{SVG}polyline")
    assert [line.get("stroke") == PALETTES["light"].ghost for line in drawn] == [True, True, False, False]
