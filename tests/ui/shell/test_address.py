"""A page's own choices: what the address says of them, read back and written down."""

import pytest
from streamlit.testing.v1 import AppTest

from gptviz.ui.shell.address import parse


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("3", int, 3),
        ("", int, None),
        ("-1", int, None),
        ("1e3", int, None),
        ("٣", int, None),  # a digit to str.isdigit, but no address of ours
        ("99999999", int, None),
        ("final", str, "final"),
        ("", str, None),
    ],
)
def test_what_makes_no_sense_is_not_there(text, kind, value):
    assert parse(text, kind) == value


def app():
    import streamlit as st

    from gptviz.ui.shell import address

    choices = {"block": int, "norm": str}
    address.read(choices)
    st.button("code", on_click=lambda: st.session_state.update(block=4))
    st.number_input("Block", value=None, min_value=0, max_value=9, step=1, key="block")
    st.text_input("Norm", value=None, key="norm")
    address.write(address.written(choices))


def test_what_code_or_a_person_chooses_stands_in_the_address():
    at = AppTest.from_function(app, default_timeout=30).run()
    assert not at.query_params
    at.button[0].click().run()
    assert at.query_params == {"block": "4"}
    at.number_input[0].set_value(7).run()
    at.text_input[0].set_value("final").run()
    assert at.query_params == {"block": "7", "norm": "final"}


def test_an_address_opens_what_it_says():
    at = AppTest.from_function(app, default_timeout=30)
    at.query_params["block"] = "5"
    at.query_params["norm"] = "final"
    at.run()
    assert at.number_input[0].value == 5 and at.text_input[0].value == "final"
