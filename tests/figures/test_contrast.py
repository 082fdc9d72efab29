"""Whatever is written can be read: 4.5 to 1 (WCAG AA), in light and dark."""

from itertools import combinations

import numpy as np
import pytest

from gptviz.both import Both
from gptviz.figures.heads import GROUND
from gptviz.figures.maps import Map, maps
from gptviz.figures.marks import role_colors, signed_axis
from gptviz.figures.next_token import surprise_color
from gptviz.figures.theme import PALETTES, color_at, contrast, mixed, palette, rgb, text_on

READABLE = 4.5
# colours that words are written in, each for one thing
MEANINGS = ("query", "key", "value", "output", "feed_forward", "probability", "loss")
STEPS = np.linspace(0, 1, 1001)


def test_contrast_is_that_of_wcag():
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    # the grey that just fails
    assert contrast("#777777", "#ffffff") == pytest.approx(4.478, abs=0.001)
    of_red_green_blue = [contrast(color, "#ffffff") for color in ("#ff0000", "#00ff00", "#0000ff")]
    assert of_red_green_blue == pytest.approx([3.998, 1.372, 8.592], abs=0.001)


@pytest.mark.parametrize("mode", PALETTES)
def test_numbers_in_cells_can_be_read_on_every_colour_of_a_scale(mode):
    colors = palette(mode)
    for scale in (colors.attention, colors.signed, colors.probabilities):
        assert [color_at(scale, stop) for stop, _ in scale] == [color for _, color in scale]
        for ground in (color_at(scale, share) for share in STEPS):
            assert contrast(ground, text_on(ground)) >= READABLE, ground


@pytest.mark.parametrize("mode", PALETTES)
def test_a_maps_numbers_have_the_colour_that_their_cells_need(mode):
    values = np.linspace(-1, 1, 81).reshape(9, 9)
    names = [str(i) for i in range(9)]
    _, numbers = maps([Map("x", Both(values), written=True)], names, names, None, mode).data
    scale = signed_axis(1, mode, 1)["colorscale"]
    grounds = [color_at(scale, (value + 1) / 2) for value in values.flat]
    assert min(map(contrast, grounds, numbers.textfont.color)) >= READABLE
    assert {"#000000", "#ffffff"} == set(numbers.textfont.color)


@pytest.mark.parametrize("mode", PALETTES)
def test_words_can_be_read_on_what_they_stand_on(mode):
    colors = palette(mode)
    pairs = {
        ("paper", "on accent"): (colors.paper, colors.accent),
        ("ink", "masked"): (colors.ink, colors.masked),
    }
    for ground in ("paper", "panel"):
        for text in ("ink", "quiet", "accent", *MEANINGS):
            pairs[text, ground] = getattr(colors, text), getattr(colors, ground)
    pairs |= {("head", color): (color, colors.paper) for color in colors.heads}
    grounds = [*colors.positions, *(surprise_color(share, 1, mode) for share in STEPS)]
    grounds += [mixed(colors.paper, color, GROUND) for color in role_colors(mode).values()]
    pairs |= {("ink", ground): (colors.ink, ground) for ground in grounds}
    found = {name: contrast(*pair) for name, pair in pairs.items()}
    assert {name: round(value, 2) for name, value in found.items() if value < READABLE} == {}


@pytest.mark.parametrize("mode", PALETTES)
def test_a_ghost_is_seen_on_paper_and_panel_and_is_no_ink(mode):
    """WCAG 2: a contrast of 3 for what is no text; and it must not be taken for a value of the model's."""
    colors = palette(mode)
    assert min(contrast(colors.ghost, ground) for ground in (colors.paper, colors.panel)) >= 3
    assert contrast(colors.ink, colors.paper) > 2 * contrast(colors.ghost, colors.paper)


@pytest.mark.parametrize("mode", PALETTES)
def test_no_two_meanings_have_one_colour(mode):
    """What is chosen, what is read off, and what is above zero are told apart on every page."""
    colors = palette(mode)
    names = ("accent", "output", "feed_forward", "probability", "loss", "positive", "negative")
    values = [getattr(colors, name) for name in names]
    pairs = combinations(values, 2)
    assert min(np.abs(np.subtract(rgb(one), rgb(other))).max() for one, other in pairs) > 40
