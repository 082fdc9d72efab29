"""The unchanged values beside the changed ones: what is drawn is what is given, and it can be seen."""

import pytest

from gptviz.figures.theme import palette
from tests.colors import contrast

MODES = pytest.mark.parametrize("mode", ["light", "dark"])


@MODES
def test_a_ghost_is_seen_on_paper_and_panel_and_is_no_ink(mode):
    """WCAG 2: a contrast of 3 for what is no text; and it must not be taken for a value of the model's."""
    colors = palette(mode)
    assert min(contrast(colors.ghost, ground) for ground in (colors.paper, colors.panel)) >= 3
    assert contrast(colors.ink, colors.paper) > 2 * contrast(colors.ghost, colors.paper)
