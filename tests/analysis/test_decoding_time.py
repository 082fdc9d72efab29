"""Both ways of writing again give the logits of a whole pass, for every step; what they take is no test."""

import pytest
import torch

from gptviz.analysis.decoding_time import written_again
from tests.conftest import random_lm

PROMPT, NEW = [5, 70, 300], [12, 12, 4000, 9, 811, 7, 8]


@pytest.mark.parametrize("context", [5, 64])
@pytest.mark.parametrize("first", [0, 2])
@pytest.mark.parametrize("cached", [True, False])
def test_the_logits_are_those_of_a_whole_pass(context, first, cached):
    lm = random_lm(context_length=context)
    found = list(written_again(lm, PROMPT, NEW, cached, first))
    assert len(found) == len(NEW) - first
    for step, (took, logits) in enumerate(found, start=first):
        known = [*PROMPT, *NEW][: len(PROMPT) + step][-context:]
        torch.testing.assert_close(logits, lm.trace(known).logits(-1), rtol=1e-3, atol=1e-3)
        assert took > 0


def test_nothing_is_written_again(lm):
    assert list(written_again(lm, PROMPT, [], cached=True)) == []
