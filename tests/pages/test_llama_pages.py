"""Every page with a random Llama, Qwen3 and SmolLM2, and numbers that are transformers'."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import gptviz
from gptviz.digits import fixed
from gptviz.ui.models.in_use import ALLOW_PATHS
from gptviz.ui.shell.navigation import PAGES
from tests.models.test_llamas import made, save
from tests.pages.conftest import open_all
from tests.pages.test_any_model import use
from tests.specs import charts, given, prose
from tests.tokenizer.families import FAMILIES

TEXT = "The cat sat on the mat. The cat sat on"
# each page with one of the families, in turn
EACH = [(name, FAMILIES[number % len(FAMILIES)]) for number, name in enumerate(PAGES)]


@pytest.fixture(scope="module")
def models():
    """Of each family: transformers' model, its tokenizer and ours."""
    found = {}
    for family in FAMILIES:
        model, tokenizer = made(family, max_position_embeddings=64)
        found[family] = (model, tokenizer, gptviz.wrap(model, tokenizer, name=f"tiny-{family}"))
    return found


@pytest.mark.parametrize(("name", "family"), EACH)
def test_a_page_shows_numbers(run_page, monkeypatch, models, name, family):
    _, _, lm = models[family]
    use(lm, f"tiny {family}", monkeypatch)
    at = run_page(name, text=TEXT, base_steps=50, base_measure="off")
    assert at.title[0].value == PAGES[name].question
    open_all(at)
    assert not at.error
    assert any(character.isdigit() for character in prose(at)), "no numbers"


@pytest.fixture
def logits(models):
    """(T, V) of transformers for the text, by family."""
    found = {}
    for family, (model, tokenizer, _) in models.items():
        with torch.no_grad():
            found[family] = model(torch.tensor([tokenizer(TEXT)["input_ids"]])).logits[0]
    return found


@pytest.mark.parametrize("family", FAMILIES)
def test_the_next_token_is_that_of_transformers(run_page, monkeypatch, models, logits, family):
    _, tokenizer, lm = models[family]
    use(lm, f"tiny {family}", monkeypatch)
    at = run_page("next_token", text=TEXT)
    rows = given(at, "candidates")["rows"]
    expected = logits[family][-1].softmax(-1)
    assert [row["id"] for row in rows] == expected.topk(len(rows)).indices.tolist()
    shown = [row["model_probability"] for row in rows]
    assert np.allclose(shown, expected.topk(len(rows)).values, atol=1e-4)
    chips = given(at, "chips")["tokens"]
    assert [chip["id"] for chip in chips] == tokenizer(TEXT)["input_ids"]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_loss_is_that_of_transformers(run_page, monkeypatch, models, logits, family):
    _, tokenizer, lm = models[family]
    use(lm, f"tiny {family}", monkeypatch)
    ids = torch.tensor(tokenizer(TEXT)["input_ids"])
    mean = F.cross_entropy(logits[family][:-1], ids[1:]).item()
    assert f"**{fixed(mean, 4)} nats**" in prose(run_page("loss", text=TEXT))


@pytest.mark.parametrize("family", FAMILIES)
def test_it_writes_what_transformers_writes(run_page, monkeypatch, models, family):
    model, tokenizer, lm = models[family]
    use(lm, f"tiny {family}", monkeypatch)
    at = run_page("generate", text=TEXT, written=8, temperature=0.0)
    ids = torch.tensor([tokenizer(TEXT)["input_ids"]])
    expected = model.generate(ids, max_new_tokens=8, do_sample=False, eos_token_id=None)
    written = [token["id"] for token in given(at, "writing")["tokens"]]
    assert written == expected[0, ids.shape[1] :].tolist()[: len(written)]
    assert len(written) == 8 or "ended" in prose(at)


@pytest.mark.parametrize("family", FAMILIES)
def test_without_a_head_is_without_it_in_transformers(
    run_page, monkeypatch, models, logits, family
):
    model, tokenizer, lm = models[family]
    use(lm, f"tiny {family}", monkeypatch)
    at = run_page("knock_out", text=TEXT)
    drawn = np.array(charts(at)[0]["data"][0]["z"], float)  # how much of the probability is lost
    ids = torch.tensor([tokenizer(TEXT)["input_ids"]])
    token = int(logits[family][-1].argmax())
    own = float(logits[family][-1].softmax(-1)[token])
    heads = lm.config.n_heads
    for block in range(lm.config.n_layers):
        for head in range(heads):

            def mute(module, inputs, head=head):
                (z,) = inputs  # (1, T, H * d) -> (1, T, H, d)
                muted = z.clone().view(*z.shape[:2], heads, -1)
                muted[:, :, head] = 0
                return (muted.reshape(z.shape),)

            out = model.model.layers[block].self_attn.o_proj
            handle = out.register_forward_pre_hook(mute)
            with torch.no_grad():
                left = float(model(ids).logits[0, -1].softmax(-1)[token])
            handle.remove()
            assert drawn[block][head] == pytest.approx(own - left, abs=1e-4)


def test_a_folder_is_opened_by_its_path(run_page, monkeypatch, tmp_path):
    """As an upload is: read in a process of its own, and written again as ours."""
    monkeypatch.setenv(ALLOW_PATHS, "1")
    model, tokenizer = save(tmp_path / "tiny", "qwen2", max_position_embeddings=64)
    at = run_page("next_token", model=f"path:{tmp_path / 'tiny'}", text=TEXT)
    assert "you see" not in at.sidebar.caption[0].value
    assert "3 blocks × 9 heads" in at.sidebar.caption[0].value
    with torch.no_grad():
        expected = model(torch.tensor([tokenizer(TEXT)["input_ids"]])).logits[0, -1]
    assert given(at, "candidates")["rows"][0]["id"] == int(expected.argmax())
