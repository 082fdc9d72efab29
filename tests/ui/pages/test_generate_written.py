"""The value that the Generate page and its panels share."""

import math
from dataclasses import replace

import pytest

from gptviz import Edit, Run
from gptviz.analysis.writing import WrittenStep
from gptviz.engine.sampling import Sampling
from gptviz.ui.pages.generate.written import Written, log_probability, perplexity


def written(n, chosen=None, prompt=(7, 8, 9), context=5):
    steps = tuple(WrittenStep(i, 0.5, 0.25, 1, 0.1 * i, 0.0, 0.5) for i in range(n))
    return Written(Run("mini", prompt), steps, n if chosen is None else chosen, Sampling(seed=0), context)


def test_a_step_read_all_that_stands_before_it_and_no_more_than_fits():
    found = written(4, chosen=1)
    assert found.ids == (7, 8, 9, 0, 1, 2, 3)
    assert [found.read(step).ids for step in range(5)] == [
        *[(7, 8, 9), (7, 8, 9, 0), (7, 8, 9, 0, 1)],
        *[(8, 9, 0, 1, 2), (9, 0, 1, 2, 3)],
    ]
    assert [found.slid(step) for step in range(5)] == [0, 0, 0, 1, 2]
    assert found.run == Run("mini", (7, 8, 9, 0)) and found.step.id == 1
    assert written(4).step is None


def test_a_changed_model_wrote_with_its_changes():
    edits = (Edit("z", 4, heads=[3]),)
    found = replace(written(4, chosen=1), base=Run("mini", (7, 8, 9), edits))
    assert found.run == Run("mini", (7, 8, 9, 0), edits) and found.read(4).edits == edits
    assert found.run.plain == written(4, chosen=1).run


def test_the_sum_of_logarithms_and_the_perplexity():
    ln = log_probability(written(3).steps)
    assert ln == pytest.approx(3 * math.log(0.25)) and perplexity(ln, 3) == pytest.approx(4)
    assert (log_probability(()), perplexity(0, 0)) == (0, None)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="step 3"):
        written(2, chosen=3)
