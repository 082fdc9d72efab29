"""The value that the Generate page shares with its panels; what it holds: tests/pages/test_generate.py."""

import pytest

from gptviz import Run
from gptviz.engine.sampling import Sampling
from gptviz.ui.pages.generate.written import Written, log_probability, perplexity


def test_nothing_has_no_perplexity_and_a_step_that_is_not_there_is_refused():
    assert (log_probability(()), perplexity(0, 0)) == (0, None)
    with pytest.raises(ValueError, match="step 3"):
        Written(Run("mini", (7, 8, 9)), (), 3, Sampling(seed=0), context=5)
