"""Tables that come back as they were, and source lines that are where they say."""

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gptviz.model import GPTModel, LayerNorm, MultiHeadAttention
from gptviz.ui.shell.details import csv, source

ROOT = Path(__file__).parents[3]
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=8)


def read_back(content: bytes) -> pd.DataFrame:
    # newline="" keeps a \r inside a text what it is
    text = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8-sig", newline="")
    frame = pd.read_csv(text, keep_default_na=False, dtype={"token": str})
    frame["token"] = [value.removeprefix("'") for value in frame["token"]]
    return frame


@given(st.lists(st.tuples(TEXT, st.floats(width=32, allow_nan=False, allow_infinity=False)), min_size=1))
def test_a_table_comes_back_to_the_digit(rows):
    frame = pd.DataFrame(
        {
            "token": pd.Series([text for text, _ in rows], dtype=object),
            "small": np.array([value for _, value in rows], dtype=np.float32),
            "large": [value / 3 for _, value in rows],
        }
    )
    back = read_back(csv(frame))
    assert back["token"].tolist() == frame["token"].tolist()
    assert (back["small"].astype(np.float32) == frame["small"]).all()
    assert (back["large"] == frame["large"]).all()


@given(
    st.lists(st.sampled_from(["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1", "'=1", "'"]), min_size=1)
)
def test_no_text_is_a_formula(tokens):
    content = csv(pd.DataFrame({"token": tokens})).decode("utf-8-sig")
    for row in pd.read_csv(io.StringIO(content, newline=""), keep_default_na=False, dtype=str)["token"]:
        assert row.startswith("'")


def test_numbers_stay_numbers():
    assert csv(pd.DataFrame({"logit": [-1.5, 2.0]})).decode("utf-8-sig").split() == ['"logit"', "-1.5", "2.0"]


def test_the_table_itself_is_left_alone():
    frame = pd.DataFrame({"token": ["=1"]})
    csv(frame)
    assert frame["token"].tolist() == ["=1"]


@pytest.mark.parametrize(
    "function", [GPTModel.forward, MultiHeadAttention.forward, LayerNorm.forward, GPTModel]
)
def test_lines_are_where_they_say(function):
    place, lines = source(function)
    name, _, where = place.partition(": ")
    assert name == function.__qualname__
    file, first, last = where.split()[0].rstrip(","), int(where.split()[2]), int(where.split()[4])
    text = (ROOT / file).read_text(encoding="utf-8").splitlines()
    assert file == "gptviz/model.py"
    shown = lines.splitlines()
    assert len(shown) == last - first + 1
    for offset, line in enumerate(shown):
        number, _, code = line.partition("  ")
        if not line.strip().isdigit():
            number, code = line.split(maxsplit=1)
        assert int(number) == first + offset
        assert text[first + offset - 1].strip() == (code.strip() if not line.strip().isdigit() else "")
