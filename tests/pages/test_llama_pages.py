"""The pages on models of today: a random Llama with grouped heads, and a Qwen3 with query and key norms."""

import pytest

from gptviz.ui import runs
from gptviz.ui.models import in_use as models
from gptviz.ui.models.choice import Choice
from gptviz.ui.models.in_use import InUse
from gptviz.ui.shell.navigation import PAGES
from tests.llama_models import TEXT, both
from tests.pages.conftest import open_all

FAMILIES = ("llama", "qwen3")


@pytest.fixture(params=FAMILIES)
def family(request, monkeypatch):
    """The family of the model that the app shows in this test."""
    lm, _ = both(request.param)
    choice = Choice()
    monkeypatch.setattr(models, "in_use", lambda _: InUse(lm, request.param, choice, choice, None))
    monkeypatch.setattr(runs.models, "find", {request.param: lm}.get)
    return request.param


@pytest.mark.parametrize("name", PAGES)
def test_every_page_is_drawn(run_page, family, name):
    at = open_all(run_page(name, text=TEXT, base_steps=50, base_measure="off"))
    assert not at.error, [error.value for error in at.error]
