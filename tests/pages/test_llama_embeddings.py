"""The page Embeddings of a Llama, Qwen2 and Qwen3: a token's row alone, as it enters block 0."""

import re

import numpy as np
import pytest

from gptviz.digits import fixed, significant
from tests.llama_models import FAMILIES, TEXT, both
from tests.llamas import sites_of
from tests.pages.conftest import open_all
from tests.pages.test_any_model import use
from tests.specs import charts, in_numbers, links, opened, prose

TOKEN = 5
DIMENSION = 7
CLOSE = {"atol": 1e-4, "rtol": 1e-4}


@pytest.fixture(params=FAMILIES)
def model(request, monkeypatch):
    """Our model, in use, the ids of the text, and its table as transformers has it."""
    lm, theirs = both(request.param)
    use(lm, request.param, monkeypatch)
    return lm, lm.encode(TEXT), theirs.model.embed_tokens.weight.detach().numpy()


def test_the_tokens_row_is_what_enters_block_0(run_page, model):
    lm, ids, table = model
    at = run_page("embeddings", text=TEXT, token=TOKEN, emb_dim=DIMENSION)
    enters = sites_of(lm.model, ids)["resid_pre", 0].numpy()
    np.testing.assert_allclose(enters, table[ids], **CLOSE)
    shown = charts(at)[1]["data"][0]["z"]
    np.testing.assert_allclose(shown, enters[[TOKEN]], **CLOSE)
    said = re.sub("<.*?>", "", prose(at))
    value = float(table[ids[TOKEN], DIMENSION])
    assert f"In dimension {DIMENSION} it is **{fixed(value, 4)}**" in said
    norm = significant(float(np.linalg.norm(table[ids[TOKEN]])))
    assert f"Its norm is {norm}. It is what block 0 is given." in said
    assert "Nothing is added for its position" in said and "pos_emb" not in said
    assert any(link.page.endswith("positions") for link in links(at).values())
    np.testing.assert_allclose(in_numbers(at, "embedding")["token"], enters[TOKEN], **CLOSE)


def test_the_neighbours_are_those_of_the_table(run_page, model):
    _, ids, table = model
    at = run_page("embeddings", text=TEXT, token=TOKEN)
    own = table[ids[TOKEN]]
    cosines = table @ own / np.linalg.norm(table, axis=1) / np.linalg.norm(own)
    cosines[ids[TOKEN]] = -2
    np.testing.assert_allclose(charts(at)[0]["data"][0]["x"], np.sort(cosines)[:-11:-1], **CLOSE)


def test_every_token_has_one_row_and_one_norm(run_page, model):
    _, ids, table = model
    at = opened(run_page("embeddings", text=TEXT, token=TOKEN), "emb_rows")
    cells, norms = charts(at)[2:4]
    np.testing.assert_allclose(cells["data"][0]["z"], table[ids].T, **CLOSE)
    (line,) = norms["data"]
    np.testing.assert_allclose(line["y"], np.linalg.norm(table[ids], axis=1), **CLOSE)


def test_a_changed_row_is_said_and_all_opens(run_page, model):
    at = run_page("embeddings", text=TEXT, token=TOKEN, edits=f"tok_emb@{TOKEN}=zero")
    said = re.sub("<.*?>", "", prose(open_all(at)))
    assert "**Your change affects the token vector**" in said
    assert "Without your change, the list would be row" in said
    assert not at.error
