"""Params: a choice is the same in the session, in the address and in its widget."""

import pytest
from hypothesis import given, strategies as st
from streamlit.testing.v1 import AppTest

from gptviz.ui.shell.params import LARGEST, Param, at_most_last, between, choosing, if_there

VALUES = {
    int: st.integers(0, LARGEST - 1),
    float: st.decimals(0, 99, places=3).map(float),
    str: st.text(min_size=1, max_size=20),
    bool: st.booleans(),
}


@pytest.mark.parametrize("kind", VALUES)
@given(data=st.data())
def test_what_is_written_is_read_back(kind, data):
    param = Param("x", kind, None)
    value = data.draw(VALUES[kind])
    assert param.parse(param.written(value)) == value


@given(st.sampled_from([*VALUES]), st.text(max_size=30))
def test_nonsense_is_as_if_it_were_not_there(kind, text):
    found = Param("x", kind, None).parse(text)
    assert found is None or isinstance(found, kind)


# ٣ is a digit to str.isdigit, but no address of ours; 5,000 digits are more than `int` reads; true is what
# Streamlit's own binding wrote into older links
BY_HAND = {
    int: {"3": 3, "0" * 16: 0, "0" * 5000 + "7": 7}
    | dict.fromkeys(["", "-1", "1e3", "٣", "99999999", "00000000" + "9" * 5000]),
    float: {"0.75": 0.75} | dict.fromkeys(["nan", "1e9", "9" * 5000 + ".5"]),
    str: {"final": "final", "": None},
    bool: {"true": True, "off": False, "maybe": None},
}


@pytest.mark.parametrize("kind", BY_HAND)
def test_an_address_by_hand(kind):
    assert {text: Param("x", kind, None).parse(text) for text in BY_HAND[kind]} == BY_HAND[kind]


def test_what_a_smaller_model_makes_of_a_choice():
    assert at_most_last(7, 6) == 5 and at_most_last(2, 6) == 2 and at_most_last(None, 6) is None
    assert if_there(7, 6) is None and if_there(5, 6) == 5 and if_there("b", ("a", "b")) == "b"
    assert (
        between(9.0, (0.0, 2.0)) == 2.0
        and between(-1, (1, 5)) == 1
        and between(None, (1, 5)) is None
    )


def app():
    import streamlit as st

    from gptviz.ui.shell import params
    from gptviz.ui.shell.params import Param, at_most_last

    block = Param("block", int, None, at_most_last)
    norm = Param("norm", str, "final", once="layer_norm")
    loud = Param("loud", bool, False)
    every = (block, norm, loud)
    params.load(every)
    params.store(every)
    st.button("code", on_click=lambda: block.set(4))
    st.button("back", on_click=lambda: norm.set(None))
    count = st.number_input("blocks", value=9)
    block.within(count)
    block.widget(st.number_input, "Block", value=None, min_value=0, max_value=9, step=1)
    norm.widget(st.text_input, "Norm")
    loud.widget(st.toggle, "Loud")


def test_a_link_that_chooses_goes_before_the_session_once():
    """A session keeps its choices from page to page; what a link is `choosing` is chosen on arrival, and no more."""
    norm = Param("norm", str, "final")
    at = AppTest.from_function(app, default_timeout=240).run()
    at.text_input[0].set_value("norm1").run()
    at.number_input[1].set_value(7).run()
    at.query_params.clear()
    at.query_params.update({"block": "2", **choosing({norm: "norm2"})})
    assert (
        at.run().text_input[0].value == "norm1"
    )  # no link led here: this is the page that was open
    at.query_params.update({"block": "2", **choosing({norm: "norm2"})})
    at.session_state["gptviz_loaded"] = "another page"
    at.run()
    assert (at.text_input[0].value, at.number_input[1].value) == ("norm2", 7)
    assert at.query_params["norm"] == "norm2" and at.query_params["block"] == "7"
    at.text_input[0].set_value("norm3").run()  # the mark still stands in the address
    assert at.text_input[0].value == at.query_params["norm"] == "norm3"
    at.session_state["gptviz_loaded"] = "another page"
    at.query_params.clear()
    at.query_params.update(choosing({norm: None}))
    assert at.run().text_input[0].value == "final"


def test_code_and_a_person_choose_the_same_thing():
    at = AppTest.from_function(app, default_timeout=240).run()
    assert not at.query_params
    at.button[0].click().run()
    assert at.query_params == {"block": "4"} and at.number_input[1].value == 4
    at.number_input[1].set_value(7).run()
    at.text_input[0].set_value("norm1").run()
    at.toggle[0].set_value(True).run()
    assert at.query_params == {"block": "7", "norm": "norm1", "loud": "on"}
    at.number_input[0].set_value(3).run()  # a model with fewer blocks
    assert at.number_input[1].value == 2 and at.query_params["block"] == "2"


def test_an_address_opens_what_it_says_by_an_older_name_too():
    at = AppTest.from_function(app, default_timeout=240)
    at.query_params.update(block="5", layer_norm="norm1", loud="true")
    at.run()
    assert (at.number_input[1].value, at.text_input[0].value, at.toggle[0].value) == (
        5,
        "norm1",
        True,
    )
    assert at.query_params["norm"] == "norm1"
    # the default, which the old name would undo when the page is loaded again
    at.button[1].click().run()
    assert at.text_input[0].value == at.query_params["norm"] == "final"
    again = AppTest.from_function(app, default_timeout=240)
    again.query_params.update(at.query_params)
    assert again.run().text_input[0].value == "final"
