"""Writing on against `lm.generate`, and a token's stretch of the bar against sums by hand."""

import math

import numpy as np
import pytest

from gptviz.analysis.writing import WrittenStep, next_step, write_on
from gptviz.engine.sampling import Sampling


@pytest.mark.parametrize(
    "sampling", [Sampling(seed=3), Sampling(0.7, 40, 0.9, seed=5), Sampling(0.0, seed=1)]
)
@pytest.mark.parametrize(
    "text", ["The cat sat on the mat. The", "word " * 254], ids=["short", "full"]
)
def test_what_generate_writes(mini, text, sampling):
    table = write_on(mini, text, 6, sampling)
    options = sampling.temperature, sampling.top_k, sampling.top_p, sampling.seed
    steps = list(mini.generate(text, 6, *options))
    assert table["id"].tolist() == [step.id for step in steps]
    assert np.allclose(table["probability"], [step.probability for step in steps], atol=1e-6)
    assert np.allclose(
        table["model_probability"], [step.model_probability for step in steps], atol=1e-6
    )
    assert np.allclose(table["ln p"], np.log(table["model_probability"]))
    points = [math.nan if step.point is None else step.point for step in steps]
    assert np.array_equal(table["point"], points, equal_nan=True) and set(table["by"]) == {
        "the model"
    }


def test_a_token_that_a_person_puts_there(mini):
    table = write_on(mini, "The cat", 3, Sampling(seed=3, top_k=5), {1: 42})
    logits = mini.trace([*mini.encode("The cat"), int(table["id"][0])], keep=()).logits(-1).double()
    row = table.iloc[1]
    assert (row["id"], row["by"], row["probability"]) == (42, "you", 0.0) and math.isnan(
        row["point"]
    )
    assert row["model_probability"] == pytest.approx(float(logits.softmax(0)[42]), abs=1e-7)
    assert row["rank"] == int((logits > logits[42]).sum()) + 1


@pytest.mark.parametrize("point", [0.0, 0.3, 0.9999])
def test_the_number_falls_into_the_stretch(mini, point):
    logits = mini.trace("The cat sat", keep=()).logits(-1)
    step = next_step(logits, Sampling(0.9), point)
    p = (logits.double() / 0.9).softmax(0).sort(descending=True).values
    assert step.start <= point < step.stop and step.stop - step.start == pytest.approx(
        step.probability
    )
    assert step.stop == pytest.approx(float(p[: step.rank].sum()))


def test_what_the_model_thought_impossible_has_a_logarithm():
    assert WrittenStep(7, 0.0, 0.0, 90, None, 0.0, 0.0, forced=True).ln == -math.inf
