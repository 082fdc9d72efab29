"""`gptviz`: what it prints, and how it fails."""

import json
import os
import re
import sys
from pathlib import Path

import pytest
import torch
from huggingface_hub import constants
from safetensors.torch import save_file

import gptviz
from gptviz import cli
from gptviz.analysis import jacobian_lens
from gptviz.teach import handout
from tests.analysis.test_anatomy import KNOWN
from tests.models.checkpoints import makers
from tests.models.checkpoints.hub_server import Hub
from tests.tokenizer.test_files import padded


@pytest.fixture(autouse=True)
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)


def run(capsys, *arguments):
    status = cli.main(list(arguments))
    out, err = capsys.readouterr()
    return status, out, err


def test_models(capsys):
    status, out, _ = run(capsys, "models")
    rows = {line.split()[0]: line for line in out.splitlines()}
    assert status == 0
    named = "name mini mini-world mini-untrained gpt2-untrained gpt2 gpt2-medium gpt2-large gpt2-xl distilgpt2"
    stories = [f"tinystories-{size}m" for size in (1, 8, 33)]
    assert list(rows) == [*named.split(), *stories, "smollm2-135m", "qwen3-0.6b"]
    for name, parameters in (KNOWN | {"gpt2-untrained": 163_009_536}).items():
        assert f"{parameters:,}" in rows[name]
    assert "no: 548 MB to fetch" in rows["gpt2"]


def test_trace_as_data(capsys, mini):
    text = "The cat sat on the <|endoftext|> \n mat"
    status, out, _ = run(capsys, "trace", text, "--json", "--top", "4", "--model", "mini")
    data = json.loads(out)
    trace = mini.trace(text)
    assert status == 0 and data["model"] == "mini" and data["config"]["n_layers"] == 6
    assert b"".join(bytes.fromhex(token["bytes"]) for token in data["tokens"]).decode() == text
    assert [token["id"] for token in data["tokens"]] == mini.encode(text)
    expected = trace.next_tokens(4)
    assert [row["id"] for row in data["next_tokens"]] == expected["id"].tolist()
    said = [row["probability"] for row in data["next_tokens"]]
    assert said == pytest.approx(expected["probability"].tolist(), abs=1e-5)
    assert len(data["norms"]) == 13 * len(trace.tokens)
    assert data["norms"][-1]["block"] is None and data["norms"][0]["block"] == 0


def test_trace_in_words(capsys):
    status, out, _ = run(capsys, "trace", "The cat")
    assert status == 0 and "·cat" in out and "%" in out


def test_a_lens_is_fitted_and_written(capsys, tmp_path):
    file = tmp_path / "model.pth"
    makers.save_book(file, vocab_size=50257, n_positions=32, n_embd=8, n_head=2, n_layer=1)
    out = tmp_path / "lens.safetensors"
    asked = ("lens", str(file), "--n-heads", "2", "--texts", "2", "--out", str(out))
    status, said, err = run(capsys, *asked)
    assert status == 0 and f"{out}: {out.stat().st_size:,} bytes; fitted to 2 texts" in said
    assert "2 of 2 texts" in err
    lm = gptviz.load(file, n_heads=2)
    fitted = jacobian_lens.fit(lm, jacobian_lens.texts_of(lm, 2))
    read = jacobian_lens.load(lm, out)
    assert all(torch.equal(read.maps[row], fitted.maps[row].half().float()) for row in fitted.maps)
    assert jacobian_lens.known(lm) is None  # it lies elsewhere
    status, said, _ = run(capsys, *asked[:-2])
    assert status == 0 and jacobian_lens.known(lm) is not None
    status, said, err = run(capsys, *asked[:-3], "0")
    assert (status, said) == (1, "") and "texts" in err


def test_info(capsys, tmp_path):
    truth = makers.save_book(
        tmp_path / "model.pth", vocab_size=50257, n_embd=8, n_head=2, n_layer=1
    )
    status, out, err = run(capsys, "info", str(tmp_path / "model.pth"))
    assert (status, out) == (1, "") and "1, 2, 4, 8 heads" in err and "Traceback" not in err
    status, out, _ = run(capsys, "info", str(tmp_path / "model.pth"), "--n-heads", "2")
    parameters = sum(tensor.numel() for tensor in makers.book_state(truth, masks=False).values())
    told = ("the book's state dict", "gpt2, 50,257 tokens", "yes, in", f"{parameters:,}")
    assert status == 0 and all(words in out for words in told)


def test_which_gelu_is_assumed_is_said_and_can_be_said(capsys, tmp_path):
    file = str(makers.save_characters(tmp_path) / "ckpt.pt")
    assumed = "ckpt.pt does not say which GELU it was trained with, and the exact one is assumed"
    status, out, err = run(capsys, "info", file)
    assert status == 0 and "gelu, which is assumed" in out and assumed in out and err == ""
    status, out, _ = run(capsys, "info", file, "--activation", "gelu_tanh")
    assert status == 0 and "gelu_tanh\n" in out and "is assumed" not in out
    seen = {}
    for given in ((), ("--activation", "gelu"), ("--activation", "gelu_tanh")):
        status, out, err = run(capsys, "trace", "!", "--json", "--model", file, *given)
        told = json.loads(out)
        seen[given] = told["config"]["activation"], told["next_tokens"][0]["logit"]
        assert status == 0 and (assumed in err) == (given == ())
    exact, same, tanh = seen.values()
    assert exact == same and exact[0] == "gelu" and tanh[0] == "gelu_tanh" and exact[1] != tanh[1]


def test_tokens_without_a_row_are_gone_without_where_that_is_asked(capsys, tmp_path):
    folder = padded(tmp_path)
    status, _, err = run(capsys, "info", str(folder))
    assert status == 1 and "'[PAD]' (330)" in err and "--drop-surplus" in err
    for command in (["info", str(folder)], ["trace", "a [PAD]", "--model", str(folder)]):
        status, out, err = run(capsys, *command, "--drop-surplus")
        assert status == 0 and out and not err


def test_errors_are_sentences(capsys):
    for arguments in (
        ("trace", ""),
        ("trace", "x", "--model", "no-such-model"),
        ("trace", "x", "--model", ""),
        ("trace", "x", "--model", 300 * "x"),
        ("trace", "x", "--top", "-1"),
        ("info", "nothing-here"),
        ("trace", "x", "--model", "gpt2"),
        ("download", "gpt2", "--no-encodings"),
        ("verify", str(cli.Path(handout.__file__).parents[2] / "assets/mini/model.safetensors")),
        ("verify", "/proc/self/mem"),  # a file that cannot be read
    ):
        status, out, err = run(capsys, *arguments)
        assert status == 1 and out == "" and err.startswith("gptviz: ") and err.count("\n") == 1


def test_a_strangers_file_does_not_steer_the_terminal(capsys, tmp_path):
    save_file({"\x1b[31mred\x9b2J": torch.zeros(2)}, tmp_path / "evil.safetensors")
    status, _, err = run(capsys, "info", str(tmp_path / "evil.safetensors"))
    assert status == 1 and r"\x1b[31mred\x9b2J" in err and err.strip().isprintable()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with a name")
def test_a_pipe_is_not_waited_for(capsys, tmp_path):
    os.mkfifo(tmp_path / "model.pth")
    for path in (tmp_path, tmp_path / "model.pth"):
        status, _, err = run(capsys, "info", str(path))
        assert status == 1 and "is no file that could be read as a checkpoint" in err


def test_without_a_network_the_encodings_say_so_once(capsys, monkeypatch):
    def fetch(name):
        raise ValueError(f"{name} cannot be reached")

    monkeypatch.setattr(cli, "get_encoding", fetch)
    status, _, err = run(capsys, "download", "mini")
    assert status == 1 and err.count("cannot be reached") == 1


def test_download(capsys, tmp_path, monkeypatch):
    folder = makers.save_hf(makers.hf_model(), tmp_path / "tiny")
    server = Hub(folder)
    server.stands_for_hugging_face(monkeypatch, tmp_path / "cache")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    asked = []
    monkeypatch.setattr(cli, "get_encoding", asked.append)
    status, out, err = run(capsys, "download", "someone/tiny", "someone/missing", "mini")
    server.close()
    assert "mini: comes with gptviz" in out and "mini is not on" not in err
    assert status == 1 and "someone/tiny: " in out and "no repository someone/missing" in err
    assert "100% of " in err
    assert "cl100k_base" in asked


def test_a_package_without_its_app_says_so(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(cli, "APP", tmp_path / "gptviz" / "app.py")
    status, _, err = run(capsys)
    assert status == 1 and "install gptviz again" in err and str(tmp_path) in err


def test_who_has_read_enough_of_it_sees_no_stack(monkeypatch):
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        assert cli.main(["models"]) == 1
    monkeypatch.setattr(sys, "stdout", None)  # as Python has it where nobody reads from the start
    assert cli.main(["models"]) == 0


def test_what_goes_into_a_file_is_utf_8_where_the_system_has_another_encoding(
    monkeypatch, tmp_path
):
    with (tmp_path / "trace.json").open("w", encoding="cp1252") as out:
        monkeypatch.setattr(sys, "stdout", out)
        assert cli.main(["trace", "Été – \u4e2d", "--json"]) == 0
    told = json.loads((tmp_path / "trace.json").read_text("utf-8"))
    assert (
        bytes.fromhex("".join(token["bytes"] for token in told["tokens"])).decode()
        == "Été – \u4e2d"
    )


def test_what_is_missing_is_said_of_the_command(capsys):
    with pytest.raises(SystemExit, match="2"):
        cli.main(["trace"])
    assert "usage: gptviz trace [-h]" in capsys.readouterr().err


def test_help_reads_like_a_manual_page(capsys):
    with pytest.raises(SystemExit, match="0"):
        cli.main(["--help"])
    said = capsys.readouterr().out
    words = (
        "commands:",
        "app ",
        "models ",
        "download NAME",
        "trace TEXT",
        "info PATH",
        "verify LINK",
    )
    words += ("export FILE", "guide check GUIDE", "help COMMAND")
    assert all(word in said for word in (*words, "examples:", "environment:"))
    assert all(len(line) <= 110 for line in said.splitlines())


def asked(capsys, *arguments):
    """What is said before the program ends by itself, as argparse does."""
    with pytest.raises(SystemExit) as ended:
        cli.main([*arguments])
    out, err = capsys.readouterr()
    return ended.value.code, out, err


def test_it_says_which_version_it_is(capsys):
    assert asked(capsys, "--version") == (0, f"gptviz {gptviz.__version__}\n", "")


def test_help_is_a_command_too(capsys):
    _, manual, _ = asked(capsys, "--help")
    assert run(capsys, "help") == (0, manual, "")
    commands = re.findall(r"^  ([a-z]+) ", manual.partition("examples:")[0], re.MULTILINE)
    assert {"app", "models", "guide", "help"} <= {*commands}
    for command in {*commands} - {"app"}:
        assert run(capsys, "help", command) == (0, asked(capsys, command, "--help")[1], "")
    status, out, _ = run(capsys, "help", "app")
    assert status == 0 and "--server.port" in out


def test_another_word_is_asked_for_where_it_was_meant(capsys, tmp_path):
    """Of every kind of name that the command line takes; what argparse reads ends the program by itself."""
    file = str(tmp_path / "a.html")
    for arguments, meant in (
        (("trac", "x"), "trace"),
        (("help", "dowload"), "download"),
        (("guide", "chek", "tour"), "check"),
    ):
        status, out, err = asked(capsys, *arguments)
        assert (status, out) == (2, "") and f"(did you mean {meant}?); there are " in err
    for arguments, meant in (
        (("trace", "x", "--model", "gtp2"), "gpt2"),
        (("download", "GTP2-medium", "--no-encodings"), "gpt2-medium"),
        (("export", file, "--page", "next token"), "next_token"),
        (("export", file, "--guide", "tuor"), "tour"),
        (("guide", "check", "leson2"), "lesson2"),
        (("export", file, "--edits", "atn.2=uniform"), "attn"),
    ):
        status, out, err = run(capsys, *arguments)
        assert (status, out) == (1, "") and f"(did you mean {meant}?)" in err, err
    assert "did you mean" not in run(capsys, "trace", "x", "--model", "something-else")[2]


def test_errors_name_the_commands_own_options(capsys, tmp_path):
    """An error of `gptviz.load` says what to give to it; on the command line that is an option."""
    makers.save_book(tmp_path / "model.pth", vocab_size=50257, n_embd=8, n_head=2, n_layer=1)
    makers.save_book(tmp_path / "odd.pth", vocab_size=77, n_embd=8, n_head=2, n_layer=1)
    model = str(tmp_path / "model.pth")
    odd = str(tmp_path / "odd.pth")
    for arguments, flags in (
        (("info", model), ["--n-heads N"]),
        (("trace", "x", "--model", model), ["--n-heads N"]),
        (("info", odd, "--n-heads", "2"), ["--tokenizer T"]),
        (
            ("trace", "x", "--model", "mini", "--n-heads", "3"),
            ["leave --n-heads", "--tokenizer out"],
        ),
    ):
        status, _, err = run(capsys, *arguments)
        assert status == 1 and all(flag in err for flag in flags), err
        assert not re.search(r"n_heads|\w=|gptviz\.load", err), err


GUIDE = """---
title: Mine
---
## One

```step
page: loss
place: {text: one two three, token: 1}
look: loss_bars
ask: {kind: token, question: "Which?", key: dearest}
```

It cost {loss}.
"""
WRONG_GUIDES = {
    "page: loss": ("page: lost", "line 4: there is no page 'lost'"),
    "loss_bars": ("loss_bar", "line 4: the page loss has nothing called 'loss_bar' here"),
    "token: 1": ("tokens: 1", "line 4: the page loss has no choice 'tokens'"),
    "token: 1}": ("edits: nonsense}", "line 4: 'nonsense' is no edit"),
    "key: dearest": ("key: cheapest", "line 4: there is no key 'cheapest'"),
    "{loss}": ("{los}", "line 4: los is not a fact of dearest"),
    "## One": ("One", "before the first step"),
}


def checked(capsys, file, text, what="check"):
    file.write_text(text)
    return run(capsys, "guide", what, str(file))


def test_a_guide_is_tried(capsys, tmp_path):
    """On the model that the app opens with."""
    mine = tmp_path / "mine.md"
    lm = gptviz.load()
    ids = lm.encode("one two three")[1:]
    costs = -lm.trace("one two three").logits().log_softmax(-1)[range(len(ids)), ids]
    worst = int(costs.argmax())
    status, out, _ = checked(capsys, mine, GUIDE)
    assert status == 0 and f"(position {worst + 1})" in out
    _, handout, _ = checked(capsys, mine, GUIDE, "handout")
    _, notes, _ = checked(capsys, mine, GUIDE, "notes")
    loss = f"It cost {float(costs[worst]):.2f}."
    assert "Which?" in handout and loss not in handout and "Which?" in notes and loss in notes
    for old, (new, said) in WRONG_GUIDES.items():
        status, _, err = checked(capsys, mine, GUIDE.replace(old, new))
        assert status == 1 and said in err, err
    asked = GUIDE.replace("key: dearest", "key: looked_at, with: {block: 40, head: 0}").replace(
        "{loss}", "x"
    )
    status, out, _ = checked(capsys, mine, asked.replace("token: 1", "token: many"))
    assert status == 0 and "cannot be asked of mini-world: this model has no head 40.0" in out
    assert run(capsys, "guide", "check", str(tmp_path / "none.md"))[0] == 1


def test_a_guide_that_comes_with_gptviz_is_known_by_its_name(capsys, monkeypatch, tmp_path):
    (tmp_path / "mine.md").write_text(GUIDE)
    monkeypatch.setenv("GPTVIZ_GUIDES", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    status, out, _ = run(capsys, "guide", "check", "mine")
    assert status == 0 and "Which?" in out
    tour = cli._guide_file("tour")
    assert (
        tour == Path(gptviz.__file__).parent / "teach" / "guides" / "texts" / "tour.md"
        and tour.is_file()
    )


def test_export_writes_a_file_or_says_why_not(capsys, tmp_path, monkeypatch):
    """What is in the file, a browser says: tests/browser/test_handout.py."""
    for more, why in (
        (["--edits", "z.4.3=sample"], "cannot make all of z.4.3=sample"),
        (["--edits", "z.9.3=zero"], "block"),
        (["--page", "why"], "no page 'why'"),
        (["--guide", "lesson2"], "the guide 'Lesson 2"),
        (["--guide", "nobody"], "there is no guide 'nobody'"),
    ):
        status, _, err = run(capsys, "export", str(tmp_path / "no.html"), *more)
        assert (status, [*tmp_path.iterdir()]) == (1, []) and why in err
    hostile = ["--text", "</script><b>", "--page", "tokens"]
    status, out, _ = run(capsys, "export", str(tmp_path / "a.html"), *hostile)
    assert status == 0 and " MB; open it" in out
    held = (tmp_path / "a.html").read_text("utf-8")
    assert held.count("</script>") == held.count("<script") == 3 and "<b>" not in held
    monkeypatch.setattr(handout, "LARGEST", 4_000_000)
    status, _, err = run(capsys, "export", str(tmp_path / "b.html"))
    assert status == 1 and "too large for a hand-out: it would be 7 million numbers" in err
