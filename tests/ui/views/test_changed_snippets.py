"""*In code* of a changed model: each page's program runs, and prints the unchanged numbers, too."""

import pytest

from gptviz.ui.views.embeddings.snippet import embedding_rows
from gptviz.ui.views.feed_forward.snippet import writes
from gptviz.ui.views.scaling.snippet import sizes
from gptviz.ui.views.why.snippet import shares

TEXT = "Seven green parrots sang"

PROGRAMS = {
    "embeddings": lambda lm: embedding_rows(lm, TEXT, 2),
    "feed_forward": lambda lm: writes(lm, TEXT, 2, 3, 7),
    "scaling": lambda lm: sizes(lm, TEXT, block=5),
    "why": lambda lm: shares(lm, TEXT, 3, 300, block=4, head=3),
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_it_prints_what_it_prints_of_the_unchanged_model_too(program, mini, capsys):
    program(mini)
    plain = capsys.readouterr().out.splitlines()
    for edits in (["z.4.3=zero"], ["resid_mid.2@1=zero", "mlp_out.2=mean", "embed@2=zero", "z.4=mean"]):
        program(mini.edited(*edits))
        printed = capsys.readouterr().out.splitlines()
        assert printed != plain
        own = {line.removeprefix("as it is") for line in plain}
        assert all(any(line in other for other in printed) for line in own), own
