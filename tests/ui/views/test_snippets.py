"""What *In code* shows runs as a file, in every precision, and leaves the model as it was."""

import runpy

import pytest
import torch

from gptviz.ui.shell.details import program
from gptviz.ui.shell.navigation import PAGES
from gptviz.ui.views.attention.snippet import weights
from gptviz.ui.views.embeddings.snippet import embedding_rows
from gptviz.ui.views.feed_forward.snippet import writes
from gptviz.ui.views.logit_lens.snippet import says_next
from gptviz.ui.views.next_token.snippet import bars
from gptviz.ui.views.overview.snippet import six_pictures
from gptviz.ui.views.tokens.snippet import merge_rows
from gptviz.ui.views.why.snippet import shares
from tests.pages.conftest import run_page

LOAD, TEXT = "gptviz.load('mini', dtype='bfloat16')", "Seven green parrots"


PROGRAMS = {
    "overview": program(six_pictures, LOAD, text=TEXT, position=2),
    "tokens": program(merge_rows, LOAD, text=TEXT, position=2),
    "embeddings": program(embedding_rows, LOAD, text=TEXT, position=2),
    "attention": program(weights, LOAD, text=TEXT, block=1, head=5, hide_first=True),
    "attention, something changed": program(
        weights,
        f"{LOAD}.edited('attn.0.1=first', 'z.1.5=zero')",
        text=TEXT,
        block=1,
        head=5,
        pattern="difference",
    ),
    "next_token": program(
        bars, LOAD, text=TEXT, position=2, temperature=0.8, top_k=100, top_p=0.95, also=(42,)
    ),
    "feed_forward": program(writes, LOAD, text=TEXT, block=3, position=2),
    "logit_lens": program(says_next, LOAD, text=TEXT, position=2, row=3, follow=(5, 7)),
    "why": program(shares, LOAD, text=TEXT, position=2, token=300, against=17, block=1, head=5, muted=True),
}


def saved(code, tmp_path):
    file = tmp_path / "picture.py"
    file.write_text(code, encoding="utf-8")
    return runpy.run_path(str(file))


@pytest.mark.parametrize("code", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_it_runs_in_bfloat16(code, tmp_path, capsys):
    found = saved(code, tmp_path)  # its own assertions hold
    assert {parameter.dtype for parameter in found["lm"].model.parameters()} == {torch.bfloat16}
    assert found["lm"].dtype == "bfloat16"


@pytest.mark.parametrize("name", PAGES)
def test_what_the_page_shows_runs_as_a_file(name, tmp_path, monkeypatch, capsys):
    at = run_page(name, text=TEXT, token=1)
    at.session_state["in_code"] = True
    at.run()
    assert not at.exception
    shown = at.code[-1].value
    if name == "training":  # the same with fewer steps: all 600 take half a minute
        assert shown.count("train_one()") == 1
        shown = shown.replace("train_one()", "train_one({'steps': 20})")
    monkeypatch.chdir(tmp_path)
    assert len(saved(shown, tmp_path)["picture"])


def test_a_call_says_only_what_is_no_default():
    last = program(
        merge_rows, "gptviz.load('mini')", text="a\n'b'", position=0, special_tokens=False
    ).splitlines()[-2:]
    assert last == ["lm = gptviz.load('mini')", "picture = merge_rows(lm, text=\"a\\n'b'\", position=0)"]


def test_a_long_call_is_written_a_line_an_argument(tmp_path, capsys):
    text = "Seven green parrots sang behind the old mill. " * 5
    code = program(merge_rows, "gptviz.load('mini')", text=text, position=2, whole_piece=False)
    assert max(len(line) for line in code.splitlines() if text not in line) <= 110
    assert saved(code, tmp_path)["picture"][-1] == (b" green",)


CHANGED = {
    "next_token": ("unchanged: 8192 of 8192 tokens kept, entropy 0.63 bits", "entropy 7.55 bits"),
    "logit_lens": ("unchanged:", "changed:"),
}


@pytest.mark.parametrize("name", CHANGED)
def test_the_program_of_a_changed_model_gives_both(name, tmp_path, capsys):
    text = "The little birds sang beside the red mill. The little birds sang beside the red"
    at = run_page(name, text=text, edits="z.4.3=zero")
    at.session_state["in_code"] = True
    at.run()
    assert not at.exception
    shown = next(code.value for code in at.code if "picture = " in code.value)
    assert "gptviz.load('mini').edited('z.4.3=zero')" in shown
    capsys.readouterr()
    assert len(saved(shown, tmp_path)["picture"])
    said = capsys.readouterr().out
    assert all(number in said for number in CHANGED[name])
