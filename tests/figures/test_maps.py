"""The colours of maps: each scale's own."""

import numpy as np

from gptviz.both import Both
from gptviz.figures.maps import Map, maps
from gptviz.figures.theme import palette


def test_a_weight_a_probability_and_a_share_have_colours_of_their_own():
    names = [str(i) for i in range(3)]
    cells = Both(np.eye(3))
    colors = palette("light")
    drawn = {}
    for scale in ("weight", "probability", "share"):
        fig = maps([Map("x", cells, scale)], names, names, None, "light")
        drawn[scale] = [color for _, color in fig.layout.coloraxis.colorscale]
    assert drawn["weight"] == [color for _, color in colors.attention]
    assert drawn["probability"] == [color for _, color in colors.probabilities]
    assert drawn["share"][-1] == colors.signed[-1][1]
