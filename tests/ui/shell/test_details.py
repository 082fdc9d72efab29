"""Tables that come back as they were, and source lines that are where they say."""

import io
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, strategies as st

from gptviz.model import GPTModel, LayerNorm, MultiHeadAttention
from gptviz.ui.shell.details import csv, source

ROOT = Path(__file__).parents[3]
TEXT = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=8
)


def read_back(content: bytes) -> pd.DataFrame:
    # newline="" keeps a \r inside a text what it is
    text = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8-sig", newline="")
    frame = pd.read_csv(text, keep_default_na=False, dtype={"token": str})
    frame["token"] = [value.removeprefix("'") for value in frame["token"]]
    return frame


@given(
    st.lists(
        st.tuples(TEXT, st.floats(width=32, allow_nan=False, allow_infinity=False)), min_size=1
    )
)
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
    st.lists(
        st.sampled_from(["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", " =1", "'=1", "'"]),
        min_size=1,
    )
)
def test_no_text_is_a_formula(tokens):
    content = csv(pd.DataFrame({"token": tokens})).decode("utf-8-sig")
    for row in pd.read_csv(io.StringIO(content, newline=""), keep_default_na=False, dtype=str)[
        "token"
    ]:
        assert row.startswith("'")


def test_numbers_stay_numbers_and_the_table_itself_is_left_alone():
    frame = pd.DataFrame({"logit": [-1.5], "token": ["=1"]})
    assert csv(frame).decode("utf-8-sig").split() == ['"logit","token"', """-1.5,"'=1\""""]
    assert frame["token"].tolist() == ["=1"]


def test_no_name_of_a_column_is_a_formula_and_two_may_be_the_same():
    frame = pd.DataFrame([["=1", "-"]], columns=["=a", "=a"])
    assert csv(frame).decode("utf-8-sig").replace('"', "").split() == ["'=a,'=a", "'=1,'-"]
    assert [*frame.columns] == ["=a", "=a"]


@pytest.mark.parametrize(
    "function", [GPTModel.forward, MultiHeadAttention.forward, LayerNorm.forward, GPTModel]
)
def test_lines_are_where_they_say(function):
    place, lines = source(function)
    name, first, last = re.fullmatch(
        r"(.*): gptviz/model\.py, lines (\d+) to (\d+)", place
    ).groups()
    text = (
        (ROOT / "gptviz/model.py")
        .read_text(encoding="utf-8")
        .splitlines()[int(first) - 1 : int(last)]
    )
    assert name == function.__qualname__
    for at, (shown, own) in enumerate(zip(lines.splitlines(), text, strict=True), int(first)):
        number, _, code = shown.strip().partition(" ")
        assert (int(number), code.strip()) == (at, own.strip())
