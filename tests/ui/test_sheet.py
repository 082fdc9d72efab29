"""A page of one of everything: where `sheet` puts the changed and the unchanged run's numbers."""

import numpy as np
import pandas as pd
import pytest

from gptviz.both import Both
from gptviz.ui import sheet
from tests.pages.conftest import run_page
from tests.specs import charts, in_numbers, prose, table

TEXT, EDIT = "Sam and the dog", "z.4.3=zero"
PAGE = """
import numpy as np
import pandas as pd

from gptviz.analysis.stream import stream
from gptviz.figures.maps import Map
from gptviz.ui import sheet
from gptviz.ui.shell.page import page
from gptviz.ui.sheet import SHOWN

scene = page("Residual stream", keep=("resid_pre",), params=(SHOWN,))
sizes = sheet.of(scene, stream).map(lambda s: s.sizes)
names = [str(row) for row in range(len(sizes.now))]
one = sizes.map(lambda s: s[:, 1])
early = one.map(lambda s: s[:3])
last = one.map(lambda s: float(s[-1]))
sheet.say(scene, f"The last is {last:4}.", about=early, what="it", sites=[("resid_pre", 0)])
sheet.say(scene, "And so.", about=early, what="them")
sheet.maps(scene, "map", [Map("size", sizes)], names, "sizes")
sheet.curves(scene, "curve", {"size": one}, names, "size", "a size")
sheet.bars(scene, "bars", one, names, "size", "a size")
rows = one.map(lambda s: pd.DataFrame({"step": names, "size": s}))
sheet.table("steps", rows, 6)
sheet.numbers_of("sizes", lambda: rows)
"""


@pytest.fixture
def at(tmp_path, monkeypatch, mini):
    """at(**query): the page; and of both runs the stream's sizes (N, T)."""
    (tmp_path / "page.py").write_text(PAGE)
    monkeypatch.setattr("tests.pages.conftest.page_file", lambda name: tmp_path / "page.py")
    return lambda **query: run_page("sheet", text=TEXT, **query)


def sizes(lm, *edits):
    t = lm.trace(TEXT, edits=edits)
    sites = [t["embed"], *(t[site, b] for b in range(6) for site in ("resid_mid", "resid_post"))]
    return np.stack([x.norm(dim=-1).numpy() for x in sites])


def test_both_runs_stand_in_every_picture_sentence_and_table(at, mini):
    was, now = sizes(mini), sizes(mini, EDIT)
    assert not np.allclose(now[9:], was[9:], rtol=1e-3)
    for shown, cells in ((None, now - was), ("changed", now), ("unchanged", was)):
        page = at(edits=EDIT, **({"shown": shown} if shown else {}))
        drawn, curve, bars = charts(page)
        assert np.allclose(drawn["data"][0]["z"], cells, atol=1e-4)
        for figure in (curve, bars):
            lines = {trace["name"]: trace["y"] for trace in figure["data"] if trace.get("name")}
            assert np.allclose(lines.pop("unchanged"), was[:, 1]) and len(figure["data"]) == 2
            assert np.allclose(next(t["y"] for t in figure["data"] if t["name"] != "unchanged"), now[:, 1])
        assert f"The last is {now[-1, 1]:.4g} (unchanged {was[-1, 1]:.4g})." in prose(page)
        assert "changed nothing in them" in prose(page)  # without sites there is no reason to be given
        assert "cannot matter for it" in prose(page)  # of which only what comes before was given
    rows = table(page, "steps")
    assert [row[0] for row in rows[8:13]] == ["8", "9", "9, unchanged", "10", "10, unchanged"]
    assert [float(row[1]) for row in rows[9:11]] == pytest.approx([now[9, 1], was[9, 1]], rel=1e-5)
    numbers = in_numbers(page, "sizes")
    assert list(numbers) == ["step", "unchanged size", "size"]
    assert np.allclose(numbers["size"], now[:, 1]) and np.allclose(numbers["unchanged size"], was[:, 1])


def test_of_an_unchanged_model_there_is_one_of_each(at, mini):
    page, was = at(), sizes(mini)
    assert [len(figure["data"]) for figure in charts(page)] == [1, 1, 1]
    assert f"The last is {was[-1, 1]:.4g}." in prose(page) and len(table(page, "steps")) == 13
    assert list(in_numbers(page, "sizes")) == ["step", "size"]


def test_joined_has_both_columns_row_by_row():
    now = pd.DataFrame({"token": ["a", "b"], "bits": [2.0, 3.0], "rank": [1, 2]})
    was = pd.DataFrame({"token": ["a", "b"], "bits": [0.5, 0.25], "rank": [1, 2]}, index=[5, 6])
    found = sheet.joined(Both(now, was))
    assert list(found) == ["token", "unchanged bits", "bits", "rank"] and "unchanged bits" not in now
    assert found["unchanged bits"].tolist() == [0.5, 0.25]
    assert sheet.joined(Both(now)) is now
    with pytest.raises(ValueError, match="2 rows and 1 cannot"):
        sheet.joined(Both(now, was[:1]))
