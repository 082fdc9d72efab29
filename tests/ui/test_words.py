"""Pieces of prose."""

import pandas as pd
import pytest

from gptviz.ui.words import as_code, markdown_table, show_id


@pytest.mark.parametrize(
    ("label", "written"),
    [
        ("·cat", "`·cat`"),
        ("`", "`` ` ``"),
        ("a`b", "``a`b``"),
        ("``", "``` `` ```"),
        ("$x$", "`$x$`"),
        (" ", "`   `"),
    ],
)
def test_a_token_is_code_whatever_it_is(label, written):
    assert as_code(label) == written


def test_a_table_in_markdown():
    table = pd.DataFrame({"step": ["mean", "normalised"], "gives": [0.0117231, 3e-17]})
    assert markdown_table(table) == "| step | gives |\n| --- | --- |\n| mean | 0.0117 |\n| normalised | 0 |"


def test_a_padded_row_goes_by_its_number(lm):
    assert show_id(lm, lm.encode(" cat")[0]) == "·cat"
    assert show_id(lm, lm.tokenizer.max_token_value + 1) == f"<id {lm.tokenizer.max_token_value + 1}>"
