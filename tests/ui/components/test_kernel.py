"""What the browser may send: checked once, in one place."""

from types import SimpleNamespace

import pytest
from hypothesis import given, strategies as st

from gptviz.ui.components import kernel
from gptviz.ui.components.kernel import Component, Refused, among, happened, record, text

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 30) | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
)
POSITION = among(range(20))
PAGE = among({"tokens", "attention"})
CELL = record("column", row=POSITION, column=POSITION)


class Renderer:
    """Stands for Streamlit: keeps what it was given."""

    def __init__(self, **came):
        self.came = came

    def __call__(self, **given):
        self.given = given
        return self.came


# of each check what fits, and what does not
CHECKED = [
    (POSITION, [0, 19], [-1, 20, 3.0, True, "3", [3]]),
    (PAGE, ["tokens"], ["https://example.org"]),
    (CELL, [{"row": 3, "column": 4}, {"row": 3}], [{}, {"column": 3}, {"row": 3, "more": 1}]),
    (CELL, [], [{"row": 99, "column": 1}, [3, 4]]),
    (happened, [True], [1, "true"]),
    (text(), ["a\n🙂 \x00" * 9999], [3]),
    (text(3), ["abc"], ["abcd"]),
]


@pytest.mark.parametrize(("check", "fits", "wrong"), CHECKED)
def test_what_fits_comes_through_as_it_is_and_what_does_not_is_refused(check, fits, wrong):
    assert [check(value) for value in fits] == fits
    for value in wrong:
        with pytest.raises(Refused):
            check(value)


@given(JSON)
def test_no_value_gets_past_the_checks_or_breaks_them(value):
    for check in (POSITION, PAGE, CELL, happened):
        try:
            got = check(value)
        except Refused:
            continue
        if check is CELL:
            assert set(got) <= {"row", "column"} and all(part in range(20) for part in got.values())
        else:
            assert got is True or got in range(20) or got in ("tokens", "attention")


def test_a_drawing_gives_back_only_what_fits(monkeypatch):
    drawn = Component("example")
    monkeypatch.setattr(kernel, "_renderer", lambda _: Renderer(position=99, page="tokens"))
    on = {"position": (POSITION, None), "page": (PAGE, None)}
    assert drawn("key", {}, on) == {"page": "tokens"}


def test_the_callback_gets_checked_values_or_is_not_called(monkeypatch):
    renderer = Renderer()
    got = []
    monkeypatch.setattr(kernel, "_renderer", lambda _: renderer)
    Component("example")("key", {}, {"cell": (CELL, got.append)})

    state = {"key": SimpleNamespace()}
    monkeypatch.setattr("streamlit.session_state", state)
    for value in ({"row": 1}, {"row": 99}, None, "row", {"row": 2, "column": 3}):
        state["key"].cell = value
        renderer.given["on_cell_change"]()
    state.clear()  # it came late: Streamlit has forgotten the component of the page before
    renderer.given["on_cell_change"]()
    assert got == [{"row": 1}, {"row": 2, "column": 3}]
