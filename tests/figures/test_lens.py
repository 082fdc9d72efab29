"""The lens' colours: a measure's place on its scale, and what stands at the ends."""

import numpy as np
import pytest

from gptviz.figures.lens import MEASURES, colors_of, ends_of, scale_of
from gptviz.figures.theme import palette


def test_a_measures_place_on_its_scale():
    assert colors_of("probability", np.array([0.0, 0.25, 1.0]), 8).tolist() == [0, 0.25, 1]
    assert np.allclose(colors_of("rank", np.array([1, 8, 2]), 8), [1, 0, 2 / 3])
    for measure in ("entropy", "kl"):
        assert np.allclose(colors_of(measure, np.array([0, 1.5, 3, 30]), 8), [0, 0.5, 1, 1])
    assert colors_of("rank", np.array([1]), 1).tolist() == [1]
    with pytest.raises(ValueError, match="measure is 'logit'"):
        colors_of("logit", np.array([1]), 8)


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_nothing_to_tell_is_paper(mode):
    for measure in MEASURES:
        assert scale_of(measure, mode)[0][1] == palette(mode).paper
        assert all(ends_of(measure, 8192))
    assert ends_of("entropy", 8192)[1].startswith("13.0 bits")
