"""The Python of every page runs for every way a model can be computed in."""

import runpy

import pytest

from gptviz.ui.snippets.attention import attention
from gptviz.ui.snippets.embeddings import embeddings
from gptviz.ui.snippets.layernorm import layernorm
from gptviz.ui.snippets.next_token import next_token
from gptviz.ui.snippets.overview import overview
from gptviz.ui.snippets.tokens import tokens

LOAD, TEXT = "'mini', dtype='bfloat16'", "Seven green parrots"
SNIPPETS = {
    "overview": overview(LOAD, TEXT, 2),
    "tokens": tokens(LOAD, TEXT, 2),
    "embeddings": embeddings(LOAD, TEXT, 2),
    "attention": attention(LOAD, TEXT, 1, 5, False, False),
    "layernorm": layernorm(LOAD, TEXT, "block 1 · norm2", 2, "mean"),
    "final norm": layernorm(LOAD, TEXT, "final", 2, "variance"),
    "next_token": next_token(LOAD, TEXT, 2, 0.8, 100, 0.95, came=True),
}


@pytest.mark.parametrize("code", SNIPPETS.values(), ids=SNIPPETS.keys())
def test_it_runs_in_bfloat16(code, tmp_path, capsys):
    file = tmp_path / "snippet.py"
    file.write_text(code, encoding="utf-8")
    found = runpy.run_path(str(file))  # its own assertions hold
    assert found["lm"].dtype == "bfloat16"
