"""What a page's first bytes tell a browser to fetch: files that there are, and charts where it has one."""

import re
from pathlib import Path

import pytest
import streamlit

from gptviz.server.early import CHARTED, links
from gptviz.ui.components.code import PATH, served
from gptviz.ui.shell.navigation import PAGES, page_file
from tests.pages.conftest import visit

STATIC = Path(streamlit.__file__).parent / "static"


@pytest.mark.parametrize("name", PAGES)
def test_the_code_of_charts_is_named_where_the_page_has_one_at_once(name: str) -> None:
    at = visit(page_file(name), text="The cat sat on the mat. The cat")
    has_chart = bool(at.get("plotly_chart"))
    assert (name in CHARTED) == has_chart
    assert ("PlotlyChart" in links(f"/course/{name}")) == has_chart


def test_all_that_is_named_is_there() -> None:
    named = re.findall(r"<([^>]*)>; rel=modulepreload", links("/heads"))
    assert len(named) == 7
    for address in named:
        folder, _, file = address.rpartition("/")
        if folder == PATH:
            assert served(file)
        else:
            assert (STATIC / address).is_file()
    assert "Plotly" not in links("/")
