"""What a session may see of the models, apart from what AppTest and the browser try."""

import pytest

from gptviz.loading import HUB_MODELS
from gptviz.ui.models import in_use as models
from gptviz.ui.models.choice import Choice


def test_what_is_computed_differently_is_another_model(tmp_path):
    choice = Choice(f"path:{tmp_path}")
    keys = {
        models.key_of(choice)
        for choice in (
            Choice(),
            Choice("gpt2"),
            Choice(dtype="bfloat16"),
            Choice("gpt2", n_heads=3),
            Choice("gpt2", tokenizer="gpt2"),
            choice,
        )
    }
    assert len(keys) == 6
    before = models.key_of(choice)
    (tmp_path / "model.safetensors").write_bytes(b"1")
    assert models.key_of(choice) != before  # a file that is written anew is another model


def test_the_device_of_the_server(monkeypatch):
    monkeypatch.delenv(models.DEVICE, raising=False)
    assert models.default_device() == "cpu"
    monkeypatch.setenv(models.DEVICE, "abacus")
    with pytest.raises(ValueError, match="GPTVIZ_DEVICE is 'abacus'; this machine has cpu"):
        models.default_device()


@pytest.mark.parametrize("name", HUB_MODELS)
def test_names_of_the_hub(name):
    assert models.is_from_hub(name) and models.is_from_hub("owner/name")
    assert not models.is_from_hub("mini") and not models.is_from_hub("path:/a/b")
