"""A token has one name in the whole product: `show_token` of its bytes, also where these are no text."""

import io
import json

import pandas as pd
import pytest

from gptviz.tokenizer import show_token, token_text
from gptviz.ui.shell.details import csv
from gptviz.ui.shell.navigation import PAGES
from tests.conftest import WITHOUT_TEXT, random_lm
from tests.pages.conftest import open_all
from tests.pages.test_any_model import use

TEXT = "a 🙂 b 你 a 🙂"
BROKEN = "\ufffd"
ASKED = {
    "generate": [
        {"ask": ask, "written": 4} for ask in ("looked", "cache", "surgery", "loops", "beams")
    ],
    "compare": [{"vs": "text", "vs_text": "b 🙂"}, {"vs": "edits", "vs_edits": "z.0.1=zero"}],
    "patching": [{"other": "a 🙂 b 好 a 🙂"}],
}
NAMES = {"token", "query", "left_token", "right_token"}  # columns of tokens, where they hold texts
LAST = ("sum", "mean", "others", "others together")  # what stands there in a row of sums


def tables(at) -> list[pd.DataFrame]:
    return [one.value for one in at.dataframe]


@pytest.fixture(scope="module")
def lm():
    return random_lm()


@pytest.mark.parametrize("name", [name for name in PAGES if name not in WITHOUT_TEXT])
def test_a_piece_of_a_character_has_one_name_on_every_page(run_page, monkeypatch, lm, name):
    use(lm, "random", monkeypatch)
    tokens = lm.tokens(lm.encode(TEXT))
    # the text has such pieces
    assert any(token_text(token.raw).startswith("\\x") for token in tokens)
    every = {
        "",
        *(
            show_token(lm.tokenizer.decode_single_token_bytes(i))
            for i in range(lm.tokenizer.n_vocab)
        ),
    }
    for asked in [{}, *ASKED.get(name, [])]:
        at = open_all(run_page(name, text=TEXT, **asked))
        for table in tables(at):
            assert BROKEN not in csv(table).decode(), list(table)
            read = pd.read_csv(io.BytesIO(csv(table)), dtype=str, keep_default_na=False)
            for column in NAMES & {*table.select_dtypes(exclude="number")}:
                said = {cell.removeprefix("'") for cell in read[column] if not cell.endswith(LAST)}
                assert said <= every, (column, said - every)
        if name != "tokens":  # which tells what becomes of such bytes elsewhere
            drawn = [json.dumps(json.loads(one.proto.json)) for one in at.get("bidi_component")]
            drawn += [one.proto.spec for one in at.get("plotly_chart")]
            drawn += [
                one.proto.body for kind in ("markdown", "html", "caption") for one in at.get(kind)
            ]
            assert not [text for text in drawn if BROKEN in text or "\\ufffd" in text]


def test_in_python_too(lm):
    ids = lm.encode(TEXT)
    trace = lm.trace(ids)
    assert [token.text for token in trace.tokens] == [
        token_text(token.raw) for token in trace.tokens
    ]
    assert "".join(token.text for token in lm.trace("a b 7").tokens) == "a b 7"
    assert trace.norms()["token"].tolist()[: len(ids)] == [token.shown for token in trace.tokens]
    every = trace.next_tokens(k=lm.config.vocab_size)["token"]
    assert BROKEN not in "".join(every) and every.nunique() == len(every)
    steps = [*lm.generate(TEXT, 40, seed=3)]
    assert BROKEN not in "".join(step.token for step in steps)
