"""The Embeddings page in Chromium: pictures, clicks and links, against the model's own numbers."""

import re

import numpy as np
import pytest

from gptviz.digits import significant
from tests.browser.plots import click, hover, values

TEXT = "the king and the queen and the king"
SITES = ("tok_emb", "pos_emb", "embed")


@pytest.fixture(scope="module")
def trace(mini):
    return mini.trace(TEXT, keep=SITES)


def test_the_values_are_the_traces_and_a_click_on_the_rows_chooses_the_dimension(open_page, settled, trace):
    page = open_page("embeddings", text=TEXT, token=4)
    page.get_by_text("Every token of the prompt").click()
    settled(page)
    for part, site in enumerate(SITES):
        assert np.array_equal(np.float32(values(page, "embedding_rows", part, "z")), trace[site].numpy().T)
        assert np.array_equal(np.float32(values(page, "embedding_sum", 0, "z")[part]), trace[site][4].numpy())
    sentence = hover(page, "embedding_rows", 1, 30).replace("−", "-")
    said = re.search(r"dimension (\d+) at `·king` \(position 1\):token embedding", sentence)
    assert said is not None and abs(int(said[1]) - 30) <= 1  # a row is 2.5 pixels high
    assert significant(trace["tok_emb"][1, int(said[1])].item()).replace("−", "-") in sentence
    sentence = hover(page, "embedding_sum", 100, 0)
    a, b, c = (trace[site][4, 100].item() for site in SITES)
    assert "`·queen` (position 4), dimension 100:" in sentence
    assert f"token {a:.4f} + position {b:.4f} = {c:.4f}".replace("-", "−") in sentence.replace("-", "−")
    click(page, "embedding_sum", 100, 0)
    settled(page)
    page.get_by_text("in dimension 100,").wait_for()
    assert "emb_dim=100" in page.url
    assert values(page, "embedding_sum", 1, "x").tolist() == ["98", "99", "100", "101", "102"]
    page.reload()
    settled(page)
    page.get_by_text("in dimension 100,").wait_for()
    page.locator("[data-testid=chip][data-position='1']").click()  # another row; the dimension stays
    settled(page)
    page.get_by_text("Row 1 of").wait_for()
    page.get_by_text("in dimension 100,").wait_for()
    assert "token=1" in page.url and "emb_dim=100" in page.url
