"""What a page says holds for the text, the model and the changes that it is said of, however odd they are."""

import re

import pandas as pd
import pytest
import torch

from gptviz.analysis.head_formulas import ROLES
from gptviz.analysis.moved import kl_bits
from gptviz.teach import guides
from gptviz.ui.models.in_use import ALLOW_PATHS
from gptviz.ui.shell.navigation import CLASS, PAGES
from tests.conftest import random_lm
from tests.models.checkpoints import makers
from tests.pages.conftest import open_all
from tests.pages.test_any_model import use
from tests.pages.test_snapshots import FOLDER
from tests.specs import prose

TEXT = "mill mill mill mill"


# ---- captions, and the tables under them ----


def said_of_tables(at) -> list[tuple[str, pd.DataFrame]]:
    """Every caption of a tab *Table* with its table."""
    boxes = [tab for tab in open_all(at).tabs if tab.label.startswith("Table")]
    return [("".join(one.value for one in box.caption), box.dataframe[0].value) for box in boxes]


def check(caption: str, table: pd.DataFrame) -> None:
    """What a caption says of its table's rows and sums."""
    if "last row" in caption:
        texts = " ".join(cell for cell in table.iloc[-1] if isinstance(cell, str))
        assert re.search(r"\b(mean|sum|others?|model)\b", texts), (caption, texts)
    if "shares add up to 1" in caption:
        assert table["share"].sum() == pytest.approx(1, abs=0.01), caption
    if "counts nowhere" in caption:
        assert not (table["row_positions"] == "0").any(), caption


ODD = {
    "one token": {"text": "a"},
    "nothing written": {"text": TEXT, "block": 1, "edits": "mlp_out.1=zero"},
    "something else written": {"text": TEXT, "block": 1, "edits": "mlp_out.1=+5*tok7"},
}


@pytest.mark.parametrize("case", ODD)
@pytest.mark.parametrize("name", [name for name in PAGES if name != CLASS])
def test_a_caption_is_true_of_its_table(run_page, monkeypatch, name, case):
    # so that all shares stand in the table
    use(random_lm(linear_bias=False), "without biases", monkeypatch)
    for caption, table in said_of_tables(
        run_page(name, base_steps=50, base_measure="off", **ODD[case])
    ):
        check(caption, table)


@pytest.mark.parametrize("name", ["next_token", "generate"])
def test_no_row_sums_the_others_where_all_have_a_row(run_page, monkeypatch, tmp_path, name):
    monkeypatch.setenv(ALLOW_PATHS, "1")
    model = makers.save_characters(tmp_path)  # 61 tokens
    at = run_page(name, model=f"path:{model}", text="ABBA!", next_rows=100, temperature=0.7)
    tables = said_of_tables(at)
    for caption, table in tables:
        check(caption, table)
    if name == "next_token":
        assert max(len(table) for _, table in tables) == 61


def test_what_is_said_of_replaced_shares_is_said_of_no_others(run_page, monkeypatch):
    use(random_lm(linear_bias=False), "without biases", monkeypatch)
    for edits in ("", "mlp_out.1=+5*tok7"):
        said = prose(open_all(run_page("feed_forward", text=TEXT, block=1, edits=edits)))
        assert ("The shares add up to 1" in said) == (not edits)
        assert ("the shares need not add up to 1" in said) == bool(edits)


# ---- what heads do ----


def test_no_role_has_more_tokens_than_a_text_may_have():
    for role in ROLES.values():
        assert re.findall(r"\d+", role.does) == re.findall(r"up to (\d+)", role.does), role.does


def test_a_head_rests_on_the_first_token_only_where_its_value_and_the_answer_say_so(
    run_page, monkeypatch
):
    lm = random_lm(seed=4)
    use(lm, "looks at the first", monkeypatch)
    found = set()
    for block in range(2):
        for head in range(4):
            looks = f"attn.{block}.{head}=first"
            off = f"z.{block}.{head}=zero"
            now = lm.trace(TEXT, edits=[looks])
            without = lm.trace(TEXT, edits=[looks, off])
            first, *others = now["v", block][head].norm(dim=-1).tolist()
            little = first <= 0.8 * sum(others) / len(others)
            small = kl_bits(now.logits(-1), without.logits(-1)) < 0.01
            said = prose(run_page("attention", text=TEXT, block=block, head=head, edits=looks))
            assert ("This head rests there" in said) == (little and small)
            assert ("Yet the head matters here" in said) == (little and not small)
            assert ("This head takes something there" in said) != little
            found.add(little)
    assert found == {True, False}


def test_a_head_that_hands_on_nothing_rests(run_page, monkeypatch):
    lm = random_lm()
    with torch.no_grad():
        for module in (lm.model.trf_blocks[0].att.W_value, lm.model.trf_blocks[0].att.out_proj):
            module.weight.zero_()
            module.bias.zero_()
    use(lm, "hands on nothing", monkeypatch)
    said = prose(run_page("attention", text=TEXT, block=0, head=1, edits="attn.0.1=first"))
    assert "This head rests there" in said


# ---- the two themes ----

ONLY_ONE_THEME = re.compile(
    r"\b(dark|darker|bright|brighter|pale|paler|white|black)\b", re.IGNORECASE
)


def plain(text: str) -> str:
    """A text without what is typed, quoted or code in it."""
    return re.sub(r"```.*?```|`[^`]*`|“[^”]*”|\"[^\"]*\"", "", text, flags=re.DOTALL)


@pytest.mark.parametrize(
    "file", [*guides.files().values(), *sorted(FOLDER.glob("*.txt"))], ids=lambda f: f.stem
)
def test_no_sentence_tells_a_colour_that_only_one_theme_has(file):
    text = file.read_text("utf-8")
    if file.suffix == ".md":
        asked = re.findall(r"(?m)^ *(?:question|- ).*$", text)
        text = "\n".join([plain(text), *asked])
    sentences = [line for line in plain(text).splitlines() if "[" not in line]
    assert not [line for line in sentences if ONLY_ONE_THEME.search(line)]
