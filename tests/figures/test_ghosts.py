"""The unchanged values beside the changed ones: what is drawn is what is given, and it can be seen."""

import numpy as np
import pytest

from gptviz.figures.marks import CHANGED, GHOSTED, UNCHANGED, ghost_bars, ghost_curve, ghost_stroke
from gptviz.figures.theme import figure, palette
from tests.colors import contrast

MODES = pytest.mark.parametrize("mode", ["light", "dark"])


@MODES
def test_a_ghost_is_seen_on_paper_and_panel_and_is_no_ink(mode):
    """WCAG 2: a contrast of 3 for what is no text; and it must not be taken for a value of the model's."""
    colors = palette(mode)
    assert min(contrast(colors.ghost, ground) for ground in (colors.paper, colors.panel)) >= 3
    assert contrast(colors.ink, colors.paper) > 2 * contrast(colors.ghost, colors.paper)


@MODES
def test_ghosts_are_drawn_where_their_numbers_are(mode):
    x, before, after = np.arange(3), np.array([0.9, 0.05, 0.0]), np.array([0.2, 0.3, 0.1])
    says = ["`<b>` has 0.9", "", "x"]
    fig = figure(
        [
            ghost_curve(x, before, mode, says, yaxis="y2"),
            {"type": "bar", "name": CHANGED, "x": x, "y": after},
            ghost_bars(before, x, mode, orientation="h"),
        ],
        GHOSTED | {"yaxis2": {"overlaying": "y"}, "shapes": [{"type": "line", "line": ghost_stroke(mode)}]},
        mode,
        height=200,
    )
    curve, _, bars = fig.data
    assert np.array_equal(curve.x, x) and np.array_equal(curve.y, before) and curve.yaxis == "y2"
    across = fig.layout.shapes[0].line
    assert curve.line.color == bars.marker.line.color == across.color == palette(mode).ghost
    assert curve.line.dash == across.dash == "dash"
    assert curve.hovertext[0] == "`&lt;b&gt;` has 0.9" and bars.hoverinfo == "skip"
    assert np.array_equal(bars.x, before) and bars.orientation == "h" and bars.marker.color == "rgba(0,0,0,0)"
    assert curve.name == bars.name == UNCHANGED
    assert fig.layout.barmode == "overlay" and fig.layout.showlegend
