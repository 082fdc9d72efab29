"""What a session may see of the models, apart from what AppTest and the browser try."""

import pytest

from gptviz.models.checkpoints import CheckpointError
from gptviz.models.loading import HUB_MODELS
from gptviz.ui.models import in_use as models
from gptviz.ui.models.choice import Choice, choice_from


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
            Choice("gpt2", activation="gelu"),
            Choice("gpt2", activation="gelu_tanh"),
            Choice("gpt2", drop_surplus=True),
            choice,
        )
    }
    assert len(keys) == 9
    before = models.key_of(choice)
    (tmp_path / "model.safetensors").write_bytes(b"1")
    assert models.key_of(choice) != before  # a file that is written anew is another model


def test_an_address_tells_only_files_their_heads_and_tokenizer():
    said = {"n_heads": "2", "activation": "gelu", "tokenizer": "gpt2", "drop_surplus": "on"}
    # else each number is one more copy in memory
    assert choice_from({"model": "mini", **said}) == Choice("mini")
    full = Choice("upload:1", 2, "gelu", "gpt2", drop_surplus=True)
    assert choice_from({"model": "upload:1", **said}) == full
    assert choice_from({"model": "upload:1", "activation": "relu"}) == Choice("upload:1")
    assert choice_from({"model": "owner/name", **said}) == Choice("owner/name", drop_surplus=True)
    assert choice_from({"model": "gpt2", **said}) == Choice("gpt2")
    assert not choice_from({"model": "upload:1", "drop_surplus": "yes"}).drop_surplus


@pytest.mark.parametrize(
    "name", ["/etc/passwd", "/tmp", "/no/such", "/proc/1/cwd", "mini ", "a\0", "~root"]
)
def test_an_address_never_has_a_file_of_the_server_read(monkeypatch, name):
    """The same sentence for a file, a folder and nothing at all, and nothing is looked at."""
    monkeypatch.delenv(models.ALLOW_PATHS, raising=False)
    monkeypatch.setattr(models, "upload_of", lambda choice: None)  # which there is
    monkeypatch.setattr(models, "plan_of", lambda choice: pytest.fail(f"{choice} was read"))
    with pytest.raises(
        CheckpointError, match=r"is not the name of a tokenizer; choose one of mini, gpt2, "
    ):
        models.load(Choice("upload:1", tokenizer=name))
    models.check_right(Choice("upload:1", tokenizer="gpt2"))


@pytest.mark.parametrize("name", HUB_MODELS)
def test_names_of_the_hub(name):
    assert models.is_from_hub(name) and models.is_from_hub("owner/name")
    assert not models.is_from_hub("mini") and not models.is_from_hub("path:/a/b")
