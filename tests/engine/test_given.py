"""A text as callers give it: whole numbers that the model has, in any form; all else is a sentence."""

import numpy as np
import pytest
import torch

from gptviz.engine.given import ids_of

LAST = 8191


@pytest.mark.parametrize(
    "form", [list, tuple, iter, np.array, torch.tensor], ids=lambda f: f.__name__
)
def test_ids_come_in_any_form_from_the_first_to_the_last(lm, form):
    found = ids_of(lm, form([0, 7, LAST]))
    assert found == [0, 7, LAST] and {type(one) for one in found} == {int}


def test_a_text_is_cut_as_the_model_does(lm):
    end = "<|endoftext|>"
    assert ids_of(lm, f"a {end}") == lm.encode(f"a {end}")
    assert ids_of(lm, f"a{end}", special_tokens=True) == [*lm.encode("a"), lm.tokenizer.eot_token]
    assert ids_of(lm, "") == ids_of(lm, []) == []
