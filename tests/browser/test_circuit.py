"""The page "Circuit" in Chromium: heads clicked in and out, and the link that holds them."""

import re

import numpy as np

from gptviz.analysis.circuit_passes import Passes
from gptviz.analysis.circuit_search import brings, parse
from gptviz.ui.shell.state import DEFAULT_TEXT
from tests.browser.plots import click, values

SIXTEEN = "0.1+0.4+0.5+0.7+1.1+1.4+1.7+2.0+2.7+3.4+4.1+4.3+4.7+5.0+5.3+5.6"


def test_a_head_is_clicked_out_and_the_link_holds_the_circuit(open_page, settled, mini):
    page = open_page("circuit", circuit=SIXTEEN, score="0.9764")
    passes = Passes(mini, DEFAULT_TEXT, " mill", "sample")
    heads = parse(SIXTEEN, mini)
    own = passes.of([heads])[0]
    drawn = values(page, "circuit_sheet", 0, "z")
    assert np.allclose(drawn, brings(mini, DEFAULT_TEXT, " mill", heads, "sample"), atol=1e-4)
    assert abs(values(page, "circuit_curve", 0, "y")[16] - own) < 1e-4
    assert page.get_by_text("holds: 16 heads").count() == 1

    click(page, "circuit_sheet", 3, 4)  # the previous-token head goes
    settled(page)
    left = SIXTEEN.replace("4.3+", "")
    value = passes.of([parse(left, mini)])[0]
    assert abs(values(page, "circuit_curve", 0, "y")[15] - value) < 1e-4
    assert "score=0" not in page.url and re.search(r"circuit=[^&]*4\.1(%2B|\+)4\.7", page.url)
    link = page.get_by_test_id("stCode").filter(has_text="score=").inner_text().replace("\n", "")
    assert f"circuit={left}&score={value:.4g}" in link and link.startswith("http")
    page.goto(link)
    settled(page)
    page.get_by_text("holds: 15 heads").wait_for()
    assert abs(values(page, "circuit_curve", 0, "y")[15] - value) < 1e-4
