"""A token against another, or against the mean of all: in logits, and as a direction of the stream."""

import pytest
import torch

from gptviz.analysis import against
from gptviz.tokenizer.one import both_ids


@pytest.mark.parametrize(("other", "share"), [(None, 1 / 8192), (7, None)])
def test_the_direction_gives_the_difference_of_logits(lm, other, share):
    trace = lm.trace("The cat sat")
    logits = trace.logits(-1).double()
    subtracted = logits.sum() * share if other is None else logits[other]
    by_logits = against.difference(trace.logits(-1), 5, other)
    assert by_logits == pytest.approx(float(logits[5] - subtracted), abs=1e-9)
    by_direction = trace["final"][-1].double() @ against.direction(lm.model, 5, other)
    torch.testing.assert_close(by_direction, by_logits, rtol=0, atol=1e-5)


def test_ids_of_a_pair_and_of_a_token_against_the_mean():
    def id_of(token, what):
        return f"{what} {token}"

    assert both_ids(id_of, "a", "b") == ("token a", "against b")
    assert both_ids(id_of, "a") == both_ids(id_of, "a", None) == ("token a", None)
