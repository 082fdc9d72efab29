"""load(): what it loads as, and what it refuses."""

import pytest
import torch

import gptviz
from gptviz.models import loading
from gptviz.models.catalog import catalog
from gptviz.models.checkpoints import CheckpointError, HeadsMissing, TokenizerMissing
from gptviz.tokenizer import get_encoding
from gptviz.training.loop import TrainingRun
from gptviz.training.recipe import Recipe
from tests.models.checkpoints import makers

TEXT = "Seven green parrots"


@pytest.fixture(scope="module")
def half():
    return gptviz.load("mini", dtype="bfloat16")


def test_bfloat16_is_the_same_model_with_fewer_digits(mini, half):
    assert half.dtype == "bfloat16" and mini.dtype == "float32"
    for ours, theirs in zip(half.model.parameters(), mini.model.parameters(), strict=True):
        assert ours.dtype == torch.bfloat16 and torch.equal(ours, theirs.bfloat16())
    a = half.trace(TEXT)
    assert a["attn", 0].dtype == torch.float32  # what a Trace gives is float32, whatever made it
    torch.testing.assert_close(
        a["resid_mid", 0], a["resid_pre", 0] + a["attn_out", 0], atol=0.02, rtol=0.01
    )


def test_bfloat16_takes_half_the_memory(mini, half):
    assert mini.nbytes == 4 * mini.config.parameters
    assert half.nbytes == 2 * mini.config.parameters
    # as torch names them
    plan = loading.plan("mini", dtype=torch.bfloat16, device=torch.device("cpu"))
    assert plan.nbytes == half.nbytes and (plan.dtype, plan.device) == (torch.bfloat16, "cpu")


def test_the_untrained_model_in_bfloat16_is_the_books_rounded():
    half = gptviz.load("gpt2-untrained", dtype="bfloat16")
    whole = gptviz.load("gpt2-untrained")
    assert torch.equal(half.model.tok_emb.weight, whole.model.tok_emb.weight.bfloat16())


def test_a_plan_reads_no_weights(tmp_path):
    makers.save_book(tmp_path / "model.pth", vocab_size=50257, n_embd=8, n_head=2, n_layer=1)
    plan = loading.plan(tmp_path / "model.pth", n_heads=2)
    assert (plan.name, plan.config.n_heads, plan.tokenizer.n_vocab) == ("model", 2, 50257)
    assert plan.nbytes == 4 * plan.config.parameters
    assert loading.plan(tmp_path / "model.pth", n_heads=2, called="mine").name == "mine"
    (tmp_path / "model.pth").unlink()
    with pytest.raises((ValueError, OSError)):  # only now are they asked for
        plan.load()


def test_what_is_missing_says_what_would_do(tmp_path):
    makers.save_book(tmp_path / "model.pth", n_embd=12, n_head=2, n_layer=1)
    with pytest.raises(HeadsMissing) as missing:
        gptviz.load(tmp_path / "model.pth")
    assert missing.value.choices == (1, 2, 3, 4, 6, 12) and missing.value.emb_dim == 12
    with pytest.raises(TokenizerMissing, match="61"):
        gptviz.load(tmp_path / "model.pth", n_heads=2)
    with pytest.raises(CheckpointError, match="tokenizer has 8,192 tokens, the model 61"):
        gptviz.load(tmp_path / "model.pth", n_heads=2, tokenizer=get_encoding("mini"))


def test_what_there_is_not_is_refused():
    with pytest.raises(ValueError, match="dtype is 'float16'; it must be one of float32, bfloat16"):
        gptviz.load("mini", dtype="float16")
    with pytest.raises(ValueError, match="device is 'abacus'; this machine has cpu"):
        gptviz.load("mini", device="abacus")


def test_names_of_the_hub_are_not_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "owner" / "name").mkdir(parents=True)
    assert loading.is_hub_name("gpt2") and loading.is_hub_name("someone/else")
    assert not loading.is_hub_name("owner/name") and not loading.is_hub_name("mini")
    assert loading.on_disk("owner/name") is None


def test_the_bundled_model_before_training_is_what_its_training_begins_with(mini, tmp_path):
    lm = gptviz.load("mini-untrained")
    assert (lm.config, lm.encode(TEXT)) == (mini.config, mini.encode(TEXT))
    begun = TrainingRun.start(mini.config, Recipe(), tmp_path)
    for ours, theirs in zip(lm.model.parameters(), begun.model.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    assert lm.trace(TEXT).next_tokens(k=1)["probability"].item() < 0.01  # it knows nothing


def test_the_catalogue_says_what_is_known():
    entries = {entry.name: entry for entry in catalog()}
    assert set(entries) == {*gptviz.KNOWN_MODELS, *loading.HUB_MODELS}
    assert entries["gpt2-xl"].config.parameters == 1_557_611_200
    assert entries["mini"].config == gptviz.load("mini").config
    assert all(entry.where() and entry.about for entry in entries.values())
    wheres = [entries[name].where() for name in ("mini", "mini-world", "gpt2-untrained")]
    assert wheres == ["in the package", "in the package", "made on the spot"]
    for other in ({"n_heads": 3}, {"tokenizer": "gpt2"}):
        with pytest.raises(CheckpointError, match="has its own heads, activation and tokenizer"):
            gptviz.load("gpt2-untrained", **other)


def test_bfloat16_is_as_far_off_as_is_said(mini, half):
    one, two = (
        lm.trace("Seven green parrots sang behind the old mill. " * 4) for lm in (mini, half)
    )
    off = torch.stack(
        [(one["attn", b] - two["attn", b]).abs() for b in range(mini.config.n_layers)]
    )
    assert 0.001 < off.max() < 0.17 and off.mean() < 1e-3
    assert (one.logits(-1).softmax(0) - two.logits(-1).softmax(0)).abs().max() < 0.1
