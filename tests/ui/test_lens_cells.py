"""The lens' colours: what stands at the ends of their scale."""

import numpy as np
import pytest

from gptviz.figures.theme import palette
from gptviz.ui.lens_cells import MEASURES, colors_of, legend_of


def test_there_is_one_rank_of_one_token_and_no_such_measure():
    """Each measure's place on its scale: tests/pages/test_logit_lens.py."""
    assert colors_of("rank", np.array([1]), 1).tolist() == [1]
    with pytest.raises(ValueError, match="measure is 'logit'"):
        colors_of("logit", np.array([1]), 8)


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_nothing_to_tell_is_paper(mode):
    for measure in MEASURES:
        legend = legend_of("what it is", measure, 8192, mode)
        assert legend.scale[0][1] == palette(mode).paper and legend.low and legend.high
    assert legend_of("", "entropy", 8192, mode).high.startswith("13.0 bits")
