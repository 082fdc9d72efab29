"""The Feed-forward page's sentences and tables, all of them, for small inputs."""

import re
from dataclasses import replace

import numpy as np

from gptviz.analysis.feed_forward import Moved, Units
from gptviz.ui.views.feed_forward import tables, words
from tests.golden_files import check


def test_every_sentence() -> None:
    check(
        "feed_forward_words",
        {
            "what to see": words.what_to_see(5, "·old", 1024, 249, 50, 327.9),
            "what to see: one": words.what_to_see(0, "`", 16, 1, 1, 0.5),
            "what to see: nothing": words.what_to_see(0, "a", 16, 0, 0, 0.0),
            "relu": words.relu(True, 775, 3.26, 327.9),
            "relu: exact, one": words.relu(False, 1, 0.05, 2.0),
            "relu: none": words.relu(True, 0, 0.0, 2.0),
            "largest": words.largest(10),
            "reading": words.READING,
            "cut": words.CUT,
            "unit": words.unit(1007, "·old", 20.98, 20.98, 3.605, 0.1234),
            "unit: quiet": words.unit(3, "·old", -0.75, -0.1699, 2.0, -0.0004),
            "column": words.column(1007, "·it", 27.4651),
            "over text": words.over_text(1007, 15, 22, "·the", 8, 37.5),
            "over text: one token": words.over_text(1007, 1, 1, "a", 0, 2.0),
            "sample help": words.SAMPLE_HELP,
            "progress": words.progress(3, 15),
            "sample": words.sample(1007, 2000, 3336, 3351, 5),
            "sample: all": words.sample(7, 0, 3351, 3351, 5),
            "no sample": words.no_sample("nano"),
            "expansion": words.expansion(256, 1024, -0.17),
            "expansion, changed": words.expansion(256, 1024, -0.17, ghosts=True),
            "adds up": words.adds_up(1.0e-6, "float32", False),
            "adds up: replaced": words.adds_up(3.5, "float32", True),
            "what to see: replaced": words.what_to_see(2, "·old", 1024, 300, 40, 0.0, True),
            "made of": words.made_of(2, "·old"),
            "what changed": words.what_changed("·old", (310, 300), (59.5, 0.0), 14, 1024),
            "what changed: not which fire": words.what_changed("·old", (310, 310), (59.5, 0.0), 0, 1024),
            "unchanged unit": words.unchanged_unit(2.01, 1.96),
            "left out": words.left_out(1),
            "left out: several": words.left_out(3),
            "alt": words.dots_alt(5, "·old", 1024),
            "table": words.TABLE,
        },
    )


def cells(html: str) -> list[list[str]]:
    rows = re.findall(r"<tr class=.*?</tr>", html)
    return [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in rows]


def test_the_tables_are_the_units() -> None:
    two = np.array([2.0, -0.5])
    found = Units(two, two, np.array([1.95, -0.154]), np.ones(2), np.array([1.95, 0.154]), two, two, 0, 0, 0)
    read = [Moved([(1, 0.5)], [(2, -0.75)]), Moved([(3, 0.1)], [(4, -0.2)])]
    html = tables.largest(found, [0, 1], read, 1, "<{}>".format)
    assert cells(html) == [
        ["0", "2.00", "1.95", "1.00", "1.95", "&lt;1&gt;", "&lt;2&gt;"],
        ["1", "−0.500", "−0.154", "1.00", "0.154", "&lt;3&gt;", "&lt;4&gt;"],
    ]
    assert html.count("line chosen") == 1
    beside = tables.largest(found, [1], read[1:], 1, "{}".format, replace(found, writes=np.array([0.5, 7.0])))
    assert cells(beside)[0][4:6] == ["7.00", "0.154"]
    assert cells(tables.reading(read[0], "t{}".format)) == [["t1", "+0.500", "t2", "−0.750"]]


def test_an_excerpt_marks_its_token_and_says_what_is_left_out() -> None:
    tokens = [f"·w{i}" for i in range(30)]
    middle, first, last = cells(tables.excerpts([(1.5, tokens, at, "a book") for at in (15, 0, 29)]))
    assert middle[0] == "1.50" and middle[2] == "a book"
    assert (
        middle[1].startswith("…  w7") and "<mark> w15</mark> w16" in middle[1] and middle[1].endswith("w23 …")
    )
    assert first[1].startswith("<mark> w0</mark>") and last[1].endswith("<mark> w29</mark>")
    (escaped,) = cells(tables.excerpts([(1.0, ["<b>", "&"], 0, "x")]))
    assert escaped[1] == "<mark>&lt;b&gt;</mark>&amp;"
