"""A Llama, a Qwen3 and a SmolLM2 as transformers saves them, uploaded: every page opens, in that model's words."""

import io
import re

import pytest
import torch

from gptviz.digits import fixed
from gptviz.ui.models import in_use as models
from gptviz.ui.models.uploads import Uploads
from gptviz.ui.shell.navigation import PAGES
from tests.models.test_llamas import save
from tests.specs import prose, words
from tests.tokenizer.families import FAMILIES

TEXT = "The cat sat on the mat. The cat sat on"
PARTS_OF_GPT2 = re.compile(
    r"LayerNorm|GELU|pos_emb|position embedding|mlp_pre|12 D|own keys and values"
)
# they explain a network of their own or compare with GPT-2, and Anatomy says what it explains instead
OF_OTHERS = ("anatomy", "attention_by_hand", "baselines", "class", "layernorm", "training")


@pytest.fixture(scope="module")
def uploaded(tmp_path_factory):
    """Of each family: transformers' model and tokenizer, and its upload; with what finds an upload."""
    store = Uploads(10**9, lambda number: None)
    found = {}
    for family in FAMILIES:
        folder = tmp_path_factory.mktemp(family)
        model, tokenizer = save(folder, family, max_position_embeddings=64)
        files = []
        for path in sorted(folder.iterdir()):
            file = io.BytesIO(path.read_bytes())
            file.name = path.name
            file.size = len(file.getvalue())
            files.append(file)
        found[family] = (model, tokenizer, store.keep(files))
    yield found, store.find
    store.clear()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", PAGES)
def test_every_page_opens_and_names_no_part_that_the_model_lacks(
    run_page, monkeypatch, uploaded, name, family
):
    found, find = uploaded
    model, tokenizer, upload = found[family]
    monkeypatch.setattr(models, "find_upload", find)
    number = f"upload:{upload.number}"
    at = run_page(name, model=number, text=TEXT, base_steps=50, base_measure="off")
    facts = at.sidebar.caption[0].value
    assert "you see" not in facts and "3 blocks × 9 heads in 3 groups, 72 dimensions" in facts
    assert not at.error
    said = [
        sentence for sentence in (*words(at).split("\n"), *(i.value for i in at.info)) if sentence
    ]
    assert len(" ".join(said).split()) > 12
    if name not in OF_OTHERS:
        assert not [sentence for sentence in said if PARTS_OF_GPT2.search(sentence)]
    if name == "loss":
        ids = torch.tensor([tokenizer(TEXT)["input_ids"]])
        with torch.no_grad():
            mean = float(model(ids, labels=ids).loss)
        assert f"**{fixed(mean, 4)} nats**" in prose(at)
