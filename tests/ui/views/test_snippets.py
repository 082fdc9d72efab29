"""The Python of every page runs for every way a model can be computed in."""

import runpy

import pytest

from gptviz.ui.views.attention.snippet import attention
from gptviz.ui.views.embeddings.snippet import embeddings
from gptviz.ui.views.layernorm.snippet import layernorm
from gptviz.ui.views.next_token.snippet import next_token
from gptviz.ui.views.overview.snippet import overview
from gptviz.ui.views.tokens.snippet import tokens

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
