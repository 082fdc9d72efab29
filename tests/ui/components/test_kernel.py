"""What the browser may send: checked once, in one place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gptviz.ui.components.kernel import Component, Refused, among, exactly, record, text

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 30) | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
)
LIMITS = {"positions": range(20), "pages": {"tokens", "attention"}}
CELL = record("column", row=among("positions"), column=among("positions"))


class Renderer:
    """Stands for Streamlit: keeps what it was given."""

    def __init__(self, **came):
        self.came = came

    def __call__(self, **given):
        self.given = given
        return self.came


@pytest.mark.parametrize(
    ("check", "value"),
    [
        (among("positions"), 0),
        (among("positions"), 19),
        (among("pages"), "tokens"),
        (CELL, {"row": 3, "column": 4}),
        (CELL, {"row": 3}),
        (exactly(True), True),
        (text(), "a\n🙂 \x00" * 9999),
        (text(3), "abc"),
    ],
)
def test_what_fits_comes_through_as_it_is(check, value):
    assert check(value, LIMITS) == value


@pytest.mark.parametrize(
    ("check", "value"),
    [
        (among("positions"), -1),
        (among("positions"), 20),
        (among("positions"), 3.0),
        (among("positions"), True),
        (among("positions"), "3"),
        (among("positions"), [3]),
        (among("pages"), "https://example.org"),
        (CELL, {}),
        (CELL, {"column": 3}),
        (CELL, {"row": 3, "more": 1}),
        (CELL, {"row": 99, "column": 1}),
        (CELL, [3, 4]),
        (exactly(True), 1),
        (exactly(True), "true"),
        (text(), 3),
        (text(3), "abcd"),
    ],
)
def test_what_does_not_fit_is_refused(check, value):
    with pytest.raises(Refused):
        check(value, LIMITS)


@given(JSON)
def test_no_value_gets_past_the_checks_or_breaks_them(value):
    for check in (among("positions"), among("pages"), CELL, exactly(True)):
        try:
            got = check(value, LIMITS)
        except Refused:
            continue
        if check is CELL:
            assert set(got) <= {"row", "column"} and all(part in range(20) for part in got.values())
        else:
            assert got is True or got in range(20) or got in LIMITS["pages"]


def test_a_drawing_gives_back_only_what_fits():
    events = {"position": among("positions"), "page": among("pages")}
    drawn = Component("example", events, Renderer(position=99, page="tokens"))
    assert drawn("key", {}, mode="light", limits=LIMITS) == {"page": "tokens"}


def test_the_callback_gets_checked_values_or_is_not_called(monkeypatch):
    renderer, got = Renderer(), []
    Component("example", {"cell": CELL}, renderer)(
        "key", {}, mode="light", limits=LIMITS, on={"cell": got.append}
    )

    class Sent:
        cell: object = None

    state = {"key": Sent()}
    monkeypatch.setattr("gptviz.ui.components.kernel.st.session_state", state)
    for value in ({"row": 1}, {"row": 99}, None, "row", {"row": 2, "column": 3}):
        state["key"].cell = value
        renderer.given["on_cell_change"]()
    state.clear()  # it came late: Streamlit has forgotten the component of the page before
    renderer.given["on_cell_change"]()
    assert got == [{"row": 1}, {"row": 2, "column": 3}]


def test_an_event_that_was_not_declared_is_named():
    with pytest.raises(ValueError, match=r"example has no event clicked; it has cell"):
        Component("example", {"cell": CELL}, Renderer())("key", {}, mode="light", on={"clicked": print})
