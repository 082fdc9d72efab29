"""What the pages of a text show of a Llama and of a Qwen3, against transformers and hooks on every module.

Nine heads in three groups; the first has a beginning of text, the second query and key norms.
"""

import numpy as np
import pytest
import torch

import gptviz
from tests import llamas
from tests.llama_models import TEXT, both
from tests.pages.conftest import open_all
from tests.pages.test_any_model import use
from tests.specs import floats, given, left_by_program, prose

FAMILIES = ("llama", "qwen3")
CLOSE = {"atol": 1e-4, "rtol": 1e-4}
BLOCK, HEAD, GROUP = 1, 4, 1


@pytest.fixture(params=FAMILIES)
def family(request, monkeypatch):
    """The family of the model that the app shows in this test, and that a page's program loads."""
    lm, _ = both(request.param)
    use(lm, request.param, monkeypatch)
    monkeypatch.setattr(gptviz, "load", lambda *_, **__: lm)
    return request.param


@pytest.fixture
def passed(family):
    """Our model, the ids of the text, every site by hooks, and what transformers' model gives."""
    lm, theirs = both(family)
    ids = lm.encode(TEXT)
    with torch.no_grad():
        out = theirs(torch.tensor([ids]), output_attentions=True, output_hidden_states=True)
    return lm, ids, llamas.sites_of(lm.model, ids), out


def matrix(sent):
    """A matrix as the browser decodes it; the future of a triangle is 0."""
    numbers = floats(sent["base64"])
    if not sent["triangle"]:
        return numbers.reshape(-1, sent["columns"])
    whole = np.zeros((sent["columns"], sent["columns"]), dtype=numbers.dtype)
    whole[np.tril_indices(sent["columns"])] = numbers
    return whole


def test_attention_has_the_turned_query_and_key_and_those_of_the_group(run_page, family, passed):
    lm, ids, sites, out = passed
    at = open_all(run_page("attention", text=TEXT, block=BLOCK, head=HEAD, token=9, key=4))
    arrays = given(at, "matrix_steps")["arrays"]
    d = lm.config.head_dim
    value = sites["v", BLOCK].unflatten(1, (-1, d))[:, GROUP]  # (T, d)
    output = sites["z", BLOCK].unflatten(1, (-1, d))[:, HEAD]
    expected = {"q": sites["q_rot", BLOCK][HEAD], "k": sites["k_rot", BLOCK][GROUP]}
    for name, numbers in (expected | {"v": value, "z": output}).items():
        np.testing.assert_allclose(matrix(arrays[name]), numbers, **CLOSE)
    weights = out.attentions[BLOCK][0, HEAD].numpy()
    np.testing.assert_allclose(matrix(arrays["weights"]), weights, **CLOSE)
    # softmax of the scores that the browser works out is what transformers' head gives
    scores = torch.from_numpy(matrix(arrays["q"]) @ matrix(arrays["k"]).T) / d**0.5
    own = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -torch.inf)
    np.testing.assert_allclose(own.softmax(-1), weights, **CLOSE)
    said = prose(at)
    assert "Head 4 is in **group 1**: heads 3 to 5 share its" in said
    assert ("normalised, then turned by their positions (RoPE)" in said) == (family == "qwen3")
    cell = left_by_program(at, "in_code_cell")["picture"]
    np.testing.assert_allclose(cell.weight, weights[9, 4], **CLOSE)
    assert len(ids) > 9
