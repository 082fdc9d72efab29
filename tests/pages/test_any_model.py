"""Every page on models unlike the bundled one: no biases, one head, a handful of tokens, bfloat16.

And with a model whose vocabulary is padded: rows that its tokenizer has no token for.
"""

import re

import pytest
import torch

from gptviz.engine.language_model import LanguageModel
from gptviz.ui import runs
from gptviz.ui.models import in_use as models
from gptviz.ui.models.choice import Choice
from gptviz.ui.models.in_use import ALLOW_PATHS, InUse
from gptviz.ui.shell.navigation import PAGES
from tests.conftest import WITHOUT_TEXT, random_lm
from tests.models.checkpoints import makers
from tests.pages.conftest import open_all
from tests.pages.test_snapshots import written
from tests.specs import given, prose, table


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
    return {
        "model": f"path:{file}",
        "n_heads": 1,
        "text": "a text longer than that",
        "dtype": "bfloat16",
    }


@pytest.mark.parametrize("kind", ["characters", "narrow"])
@pytest.mark.parametrize("name", PAGES)
def test_every_page_is_drawn_with_all_its_details(run_page, request, monkeypatch, name, kind):
    monkeypatch.setenv(ALLOW_PATHS, "1")
    at = run_page(name, base_steps=50, base_measure="off", **request.getfixturevalue(kind))
    assert "you see" not in at.sidebar.caption[0].value, "it was not this model that was shown"
    open_all(at)
    assert not at.error, [error.value for error in at.error]


@pytest.mark.parametrize("text", ["ABBA! é 中", "! 1"])
def test_tokens_shows_no_id_that_a_model_of_characters_has_not(
    run_page, monkeypatch, characters, text
):
    monkeypatch.setenv(ALLOW_PATHS, "1")
    at = run_page("tokens", **characters | {"text": text})
    own = given(at, "tokenizer_rows")["rows"][2]  # after mini's and gpt2's
    assert own["about"] == "61 in its vocabulary"
    assert "pieces of a character" not in "".join(element.proto.body for element in at.get("html"))
    ids = [int(id) for row in table(at, "spellings") for id in row[2].split(", ")]
    assert ids and max(ids) < 61


# ---- a padded vocabulary ----

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


@pytest.fixture
def padded_page(run_page, monkeypatch, padded):
    """`run_page` where the app's model is the padded one."""
    use(padded, "padded", monkeypatch)
    return run_page


def use(lm, key, monkeypatch):
    choice = Choice()
    monkeypatch.setattr(models, "in_use", lambda _: InUse(lm, key, choice, choice, None))
    monkeypatch.setattr(runs.models, "find", {key: lm}.get)


def test_a_head_whose_weights_write_nothing_was_switched_off_by_nobody(run_page, monkeypatch):
    lm = random_lm()
    with torch.no_grad():
        lm.model.trf_blocks[0].att.out_proj.weight.zero_()
    use(lm, "a silent head", monkeypatch)
    for edits in ("", "z.1.0=zero", "z.0.0=zero"):  # nowhere, elsewhere, of this head
        said = prose(run_page("why", text=TEXT, block=0, head=0, edits=edits))
        assert ("Your change leaves the head nothing" in said) == (edits == "z.0.0=zero")


def test_of_one_head_all_is_said_in_the_singular(run_page, monkeypatch):
    use(random_lm(n_layers=1, n_heads=1), "one head", monkeypatch)
    for page, sentence in (
        ("circuit", "The one head is in: this"),
        ("knock_out", "of the 1 head can go"),
    ):
        assert sentence in re.sub("<.*?>", "", prose(run_page(page, text=TEXT)))


@pytest.mark.parametrize(
    ("width", "cosines"),
    [(4, "is the cosine of this angle:"), (7, "the angles of all 3 pairs:")],
)
def test_of_few_dimensions_there_are_fewer_pairs_to_turn(run_page, monkeypatch, width, cosines):
    """One is drawn of the three as well: the others do not go round within 64 tokens."""
    use(random_lm(emb_dim=width, n_heads=1 + (width == 4)), f"{width} wide", monkeypatch)
    at = run_page("positions", text=TEXT)
    said = re.sub("<.*?>", "", prose(at))
    assert " 1 pair of a head" in said and cosines in said
    assert ("not even the distance" in said) == ("With RoPE" in said) == (width == 4)


@pytest.mark.parametrize("name", PAGES)
def test_of_one_of_anything_there_is_no_plural(run_page, monkeypatch, name):
    use(random_lm(n_layers=1, n_heads=1), "one of each", monkeypatch)
    at = open_all(run_page(name, text="a", base_steps=50, base_measure="off", ff_unit=3))
    said = [at.sidebar.caption[0].value, *(line for line in written(at) if "(table)" not in line)]
    plural = r"(?<![-.,\d])(?<!× )1(?:\*\*)? (tokens|heads|blocks|rows|windows|times|pairs|steps|positions)\b"
    assert not [line for line in said if re.search(plural, line)]


def drawn_text(at):
    return at.session_state["text"]


def test_the_model_does_expect_a_row_without_a_token(padded):
    assert padded.trace(TEXT, keep=[]).next_tokens(1)["id"].tolist() == [NAMELESS]


@pytest.mark.parametrize("name", PAGES)
def test_every_page_is_drawn_with_rows_that_have_no_token(padded_page, name):
    at = padded_page(name, text=TEXT, token=2, base_steps=50)
    if name not in WITHOUT_TEXT:
        assert given(at, "chips")["next"]["shown"] == f"<id {NAMELESS}>"
    open_all(at)


def test_a_row_without_a_token_is_named_and_has_no_button(padded_page):
    rows = given(padded_page("next_token", text=TEXT), "candidates")["rows"]
    assert (rows[0]["id"], rows[0]["token"], rows[0]["whole"]) == (
        NAMELESS,
        f"<id {NAMELESS}>",
        False,
    )
    assert any(row["whole"] for row in rows[1:])


def test_it_is_drawn_and_refused_in_a_sentence(padded_page):
    at = padded_page("next_token", text=TEXT, temperature=0.0, seed=3)
    at.button(key="next_sample").click().run()
    said = next(element.value for element in at.markdown if element.value.startswith("Seed 3 drew"))
    assert f"drew `<id {NAMELESS}>`" in said and "its tokenizer has no token for" in said
    assert drawn_text(at) == TEXT and at.number_input(key="seed").value == 4


def test_what_was_written_with_it_stays_when_it_cannot_be_put_into_the_prompt(padded_page):
    at = padded_page("generate", text=TEXT, temperature=0.0, written=3)
    written = [token["id"] for token in given(at, "writing")["tokens"]]
    assert len(written) == 3 and NAMELESS in written
    at.button(key="generate_keep").click().run()
    assert any("A text cannot contain it" in element.value for element in at.warning)
    assert drawn_text(at) == TEXT
    assert [token["id"] for token in given(at, "writing")["tokens"]] == written
