"""Every page on models unlike the bundled one: no biases, one head, a handful of tokens, bfloat16."""

import pytest
import torch

from gptviz.ui.models.in_use import ALLOW_PATHS
from gptviz.ui.shell.navigation import PAGES
from tests.checkpoints import makers
from tests.pages.conftest import open_all


@pytest.fixture(scope="module")
def characters(tmp_path_factory):
    folder = makers.save_characters(tmp_path_factory.mktemp("nanogpt"))
    return {"model": f"path:{folder}", "text": "ABBA! é 中"}


@pytest.fixture(scope="module")
def narrow(tmp_path_factory):
    """The book's file: one block, one head, four numbers a token, a context of two."""
    file = tmp_path_factory.mktemp("book") / "model.pth"
    truth = makers.hf_model(vocab_size=50257, n_embd=4, n_head=1, n_layer=1, n_positions=2)
    torch.save(makers.book_state(truth), file)
    return {"model": f"path:{file}", "n_heads": 1, "text": "a text longer than that", "dtype": "bfloat16"}


@pytest.mark.parametrize("kind", ["characters", "narrow"])
@pytest.mark.parametrize("name", PAGES)
def test_every_page_is_drawn_with_all_its_details(run_page, request, monkeypatch, name, kind):
    monkeypatch.setenv(ALLOW_PATHS, "1")
    at = run_page(name, base_steps=50, base_measure="off", **request.getfixturevalue(kind))
    assert "you see" not in at.sidebar.caption[0].value, "it was not this model that was shown"
    open_all(at)
    assert not at.error, [error.value for error in at.error]
