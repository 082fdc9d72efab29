"""Small tables as HTML: any text is shown as it is."""

from gptviz.ui.tables import Cell, Row, table
from tests.specs import Reader


def test_texts_are_texts_and_numbers_stand_right():
    rows = [
        Row(["1,000", "<b>a</b>"]),
        Row([Cell("&amp;", "label", color="#123", indent=1), "x"], "total"),
    ]
    read = Reader(table("parts", ["#one", "<i>"], rows, "wide"))
    assert read.texts == ["one", "<i>", "1,000", "<b>a</b>", "&amp;", "x"]
    kinds = [attrs.get("class") for tag, attrs in read.tags if tag in ("td", "th", "tr", "div")]
    assert kinds == [
        "gv-table wide",
        None,
        "number",
        "",
        "line",
        "number",
        "",
        "total",
        "label",
        "",
    ]
    assert [attrs["style"] for tag, attrs in read.tags if tag == "i"] == ["background:#123"]
