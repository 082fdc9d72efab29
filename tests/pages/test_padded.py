"""Every page with a model whose vocabulary is padded: rows that its tokenizer has no token for."""

import pytest
import torch

from gptviz.engine.language_model import LanguageModel
from gptviz.ui import runs
from gptviz.ui.models import in_use as models
from gptviz.ui.models.choice import Choice
from gptviz.ui.models.in_use import InUse
from gptviz.ui.shell.navigation import PAGES
from tests.conftest import WITHOUT_TEXT, random_lm
from tests.pages.conftest import open_all
from tests.specs import given

TEXT = "The cat sat on the mat"
NAMELESS = 8192 + 5


@pytest.fixture(scope="module")
def padded() -> LanguageModel:
    """64 rows more than tokens; one of them has the largest logit everywhere, as an untrained row may."""
    lm = random_lm(vocab_size=8192 + 64)
    with torch.no_grad():
        shift = lm.model.final_norm.shift
        shift += 3 * shift.sign()
        lm.model.out_head.weight[NAMELESS] = shift
    return lm


@pytest.fixture(autouse=True)
def _use_it(monkeypatch, padded):
    choice = Choice()
    monkeypatch.setattr(models, "in_use", lambda _: InUse(padded, "padded", choice, choice, None))
    monkeypatch.setattr(runs.models, "find", {"padded": padded}.get)


def drawn_text(at):
    return at.session_state["text"]


def test_the_model_does_expect_a_row_without_a_token(padded):
    assert padded.trace(TEXT, keep=[]).next_tokens(1)["id"].tolist() == [NAMELESS]


@pytest.mark.parametrize("name", PAGES)
def test_every_page_is_drawn(run_page, name):
    at = run_page(name, text=TEXT, token=2, base_steps=50)
    if name not in WITHOUT_TEXT:
        assert given(at, "chips")["next"]["shown"] == f"<id {NAMELESS}>"
    open_all(at)


def test_a_row_without_a_token_is_named_and_has_no_button(run_page):
    rows = given(run_page("next_token", text=TEXT), "candidates")["rows"]
    assert (rows[0]["id"], rows[0]["token"], rows[0]["whole"]) == (NAMELESS, f"<id {NAMELESS}>", False)
    assert any(row["whole"] for row in rows[1:])


def test_it_is_drawn_and_refused_in_a_sentence(run_page):
    at = run_page("next_token", text=TEXT, temperature=0.0, seed=3)
    at.button(key="next_sample").click().run()
    said = next(element.value for element in at.markdown if element.value.startswith("Seed 3 drew"))
    assert f"drew `<id {NAMELESS}>`" in said and "its tokenizer has no token for" in said
    assert drawn_text(at) == TEXT and at.number_input(key="seed").value == 4


def test_what_was_written_with_it_stays_when_it_cannot_be_put_into_the_prompt(run_page):
    at = run_page("generate", text=TEXT, temperature=0.0, written=3)
    written = [token["id"] for token in given(at, "writing")["tokens"]]
    assert len(written) == 3 and NAMELESS in written
    at.button(key="generate_keep").click().run()
    assert any("a text cannot hold it" in element.value for element in at.warning)
    assert drawn_text(at) == TEXT
    assert [token["id"] for token in given(at, "writing")["tokens"]] == written
