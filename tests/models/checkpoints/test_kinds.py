"""The table of what people bring: each kind loads, or all doors say one sentence; the document has it."""

import io
import re
import tempfile
from pathlib import Path

import pytest
import torch

import gptviz
from gptviz import cli
from gptviz.models.checkpoints import CheckpointError, HeadsMissing
from gptviz.models.checkpoints.errors import without_code
from gptviz.models.checkpoints.kinds import KINDS
from gptviz.models.convert import convert
from gptviz.ui.models.apart import converted
from gptviz.ui.models.uploads import Uploads
from tests.models.checkpoints import brought, makers
from tests.models.checkpoints.test_readers import IDS

KIND = {kind.name: kind for kind in KINDS}
CASES = [(name, number) for name, cases in brought.REFUSED.items() for number in range(len(cases))]
ROOT = Path(__file__).parents[3]


def test_every_kind_is_made_here_and_nothing_else():
    assert [kind.name for kind in KINDS if kind.loads] == list(brought.LOADS)
    assert {kind.name for kind in KINDS if not kind.loads} == set(brought.REFUSED)


class Sent(io.BytesIO):
    """A file as the upload box gives it."""

    def __init__(self, path):
        super().__init__(path.read_bytes())
        self.name = path.name
        self.size = path.stat().st_size


BOX = Uploads(2**30, lambda number: None)


def upload(path):
    """What is kept of the file, or of a folder's files, when they are sent."""
    files = [path] if path.is_file() else [file for file in path.iterdir() if file.is_file()]
    return BOX.keep([Sent(file) for file in files])


def read_like_an_upload(path, n_heads=None, tokenizer=None):
    with tempfile.TemporaryDirectory() as out:
        convert(path, Path(out), n_heads=n_heads, tokenizer=tokenizer)
        return gptviz.load(out)


def is_truth(lm, truth):
    with torch.no_grad():
        expected = truth(torch.tensor([IDS])).logits[0]
    torch.testing.assert_close(lm.trace(IDS).logits(), expected, atol=1e-4, rtol=0)


@pytest.mark.parametrize("name", brought.LOADS)
def test_a_kind_that_loads(name, tmp_path, capsys):
    place = tmp_path / "brought"
    place.mkdir()
    path, truth, heads = brought.LOADS[name](place)
    characters = str(makers.save_meta(tmp_path / "characters.pkl", makers.character_meta(61)))
    if heads is not None:
        with pytest.raises(HeadsMissing):
            gptviz.load(path)
    is_truth(gptviz.load(path, n_heads=heads, tokenizer=characters), truth)
    if path.is_file():
        is_truth(gptviz.load(place, n_heads=heads, tokenizer=characters), truth)
    is_truth(read_like_an_upload(path, heads, characters), truth)
    options = ["--tokenizer", characters, *([] if heads is None else ["--n-heads", str(heads)])]
    assert cli.main(["info", str(path), *options]) == 0
    assert "yes, in" in capsys.readouterr().out


def said_of(error):
    """What an error says after the name of the file, without a detail."""
    return re.sub(r" \([\w.]+\)\. ", ". ", str(error).partition(" is ")[2], count=1)


@pytest.mark.parametrize(("name", "number"), CASES)
def test_a_kind_that_is_not_read(name, number, tmp_path, capsys):
    """The same sentence from Python, the command line, the folder around it and the upload box, before
    anything is asked.
    """
    kind = KIND[name]
    path = brought.REFUSED[name][number](tmp_path)
    expected = said_of(kind.error(path))
    with pytest.raises(CheckpointError) as refused:
        gptviz.load(path)
    assert said_of(refused.value) == expected and type(refused.value) is CheckpointError
    capsys.readouterr()
    assert cli.main(["info", str(path)]) == 1
    assert capsys.readouterr().err == f"gptviz: {refused.value}\n"
    if path.is_file() and name != "settings or a tokenizer, without weights":
        with pytest.raises(CheckpointError) as of_folder:
            gptviz.load(path.parent)
        assert said_of(of_folder.value).split(". ")[0] == expected.split(". ")[0]
    with pytest.raises(CheckpointError) as of_upload, tempfile.TemporaryDirectory() as out:
        convert(upload(path).path, Path(out))
    if name != "settings or a tokenizer, without weights":
        assert said_of(of_upload.value).split("\n")[0] == expected.split("\n")[0]


@pytest.mark.parametrize(
    "name", ["a model of the book with LoRA layers", "a classifier of the book"]
)
def test_the_process_that_reads_for_the_app_says_it(name, tmp_path):
    path = brought.REFUSED[name][0](tmp_path)
    with (
        pytest.raises(CheckpointError) as refused,
        converted(upload(path).path, lambda: None, "float32"),
    ):
        pytest.fail("it was read")
    assert said_of(refused.value) == said_of(KIND[name].error(path))


def test_other_formats_beside_the_weights_are_left_out(tmp_path):
    makers.save_hf(makers.hf_model(), tmp_path / "gpt2")
    for name in ("tf_model.h5", "flax_model.msgpack", "64.tflite"):
        brought.written(tmp_path / "gpt2", name)
    gptviz.load(
        tmp_path / "gpt2", tokenizer=makers.save_meta(tmp_path / "m.pkl", makers.character_meta(61))
    )
    assert (
        "model.safetensors" in (kept := upload(tmp_path / "gpt2").files)
        and "tf_model.h5" not in kept
    )


def test_a_trainers_newest_checkpoint_names_the_model(tmp_path):
    path, _, _ = brought.trainer(tmp_path)
    lm = gptviz.load(
        path, tokenizer=makers.save_meta(tmp_path / "m.pkl", makers.character_meta(61))
    )
    assert lm.name == f"{tmp_path.name}/checkpoint-1000"


# ---- the lines of Python ----


def run(kind, path, monkeypatch, **names):
    """Run the lines that the error about `path` gives, in its folder."""
    with pytest.raises(CheckpointError) as refused:
        gptviz.load(path)
    _, code = without_code(str(refused.value))
    assert code == KIND[kind].lines(path.name).strip()
    monkeypatch.chdir(path.parent)
    exec(compile(code, kind, "exec"), {"torch": torch} | names)


def characters(folder):
    return makers.save_meta(folder / "characters.pkl", makers.character_meta(61))


def test_lora_layers_are_merged(tmp_path, monkeypatch):
    model = brought.lora_model()
    with torch.no_grad():
        expected = model(torch.tensor([IDS]))[0]
    run("a model of the book with LoRA layers", brought.lora(tmp_path), monkeypatch, model=model)
    lm = gptviz.load("merged.pth", n_heads=4, tokenizer=characters(tmp_path))
    torch.testing.assert_close(lm.trace(IDS).logits(), expected, atol=1e-4, rtol=1e-4)


def test_lora_layers_in_memory_are_refused():
    with pytest.raises(
        CheckpointError, match=r"GPTModel is a model of the book with LoRA layers\. Merge"
    ):
        gptviz.wrap(brought.lora_model())


def test_a_classifiers_body_loads(tmp_path, monkeypatch):
    run("a classifier of the book", brought.classifier(tmp_path), monkeypatch)
    is_truth(
        gptviz.load("body.pth", n_heads=4, tokenizer=characters(tmp_path)), makers.hf_model(10)
    )


def test_a_classifier_in_memory_is_refused():
    model = gptviz.load("mini").model
    head = model.out_head
    try:
        model.out_head = torch.nn.Linear(head.in_features, 2)
        with pytest.raises(CheckpointError, match="GPTModel is a classifier of the book"):
            gptviz.wrap(model, "mini")
    finally:
        model.out_head = head


def test_a_whole_models_weights_are_saved_alone(tmp_path, monkeypatch):
    run("a pickle that would run code", brought.whole_model(tmp_path), monkeypatch)
    weights = gptviz.load(
        "weights.pth", n_heads=4, tokenizer=characters(tmp_path)
    ).model.state_dict()
    assert all(
        torch.equal(weights[name], tensor)
        for name, tensor in brought.plain_model().state_dict().items()
    )


def test_weights_come_out_of_torchscript(tmp_path, monkeypatch):
    run("a program of TorchScript", brought.torchscript(tmp_path), monkeypatch)
    assert torch.load("weights.pth", weights_only=True).keys() == {"weight", "bias"}


def test_torch_distributeds_folder_becomes_one_file(tmp_path, monkeypatch):
    run("a folder of torch.distributed's checkpoints", brought.distributed(tmp_path), monkeypatch)
    is_truth(
        gptviz.load("weights.pth", n_heads=4, tokenizer=characters(tmp_path)), makers.hf_model(12)
    )


# ---- the document ----


def table():
    """The section of docs/models.md, made of the table."""
    rows = ["| What it is | How it is recognised | What to do |", "|---|---|---|"]
    rows += [f"| {kind.name} | {kind.recognised} | {kind.says} |" for kind in KINDS]
    blocks = [
        f"{kind.name[0].upper()}{kind.name[1:]}:\n\n```py\n{kind.code.strip()}\n```"
        for kind in KINDS
        if kind.code
    ]
    return "\n".join(rows), blocks


def test_the_document_has_the_table_and_its_lines():
    text = (ROOT / "docs" / "models.md").read_text("utf-8")
    section = re.split(r"^## ", text.partition("## What a file is\n")[2], flags=re.MULTILINE)[0]
    rows, blocks = table()
    assert rows in section, rows
    for block in blocks:
        assert block in section, block


def test_sentences_are_short_and_end():
    for kind in KINDS:
        for sentence in re.split(r"(?<=\.)\s+(?=[A-Z])", kind.says):
            assert len(sentence.split()) <= 21, sentence
        assert kind.says.endswith((".", "bin")), kind.says
        assert len(str(kind.error(Path("x" * 100)))) < 1000
