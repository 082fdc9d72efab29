"""However wrong an address is, its page says so in a sentence: never a stack trace, never nothing at all."""

from functools import cache

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gptviz.ui.shell.navigation import PAGES
from tests.pages.conftest import run_page

TEXTS = ("", " ", "a", "one two three", "東京 🙂", "<|endoftext|>", "\x00\ufeff\u202e", "x = [\n\t1]\n")

NUMBERS = (
    "0", "1", "5", "-1", "007", "999999", "9" * 30, "00000000" + "9" * 5000, "0" * 5000, "0.5", "-0.0", "1e9",
    "1e999", "nan", "inf", "١٢", "½", "²", "20_" + "9" * 5000, "²." + "a" * 32, "9" * 5000 + ".a",
)  # fmt: skip
WORDS = (
    "on", "off", "true", "None", "mini", "mini-untrained", "upload:1", "float64", "bfloat16", "cuda", "gpt2",
)  # fmt: skip
CHOICES = (
    "mean", "zero", "sample", "first", "difference", "unchanged", "remove", "add", "both", "text", "model",
    "edits", "z", "q", "attn", "resid_pre", "mlp_out", "noising", "denoising", "probability", "greedy",
)  # fmt: skip
EDITS = ("z.4.3=zero", "attn.*=hide0,embed@-1=sample", "z.9.9=zero", "resid_pre.1@0=ids1+2", "z.1=mean,,=,z")
JUNK = ("", " ", ",", "+", "%", "&=#", "[]", "{}", "..", "../../x", "\x00", "<b>é漢🙂", "'--", "a" * 3000)
ANYTHING = st.sampled_from((*NUMBERS, *WORDS, *CHOICES, *EDITS, *JUNK)) | st.text(max_size=8)


@cache
def params_of(page):
    """The names of all choices that an address of this page may hold, the app's among them."""
    return [param.name for param in run_page(page, text="one two three").session_state["gptviz_params"]]


@pytest.mark.parametrize("page", PAGES)
@settings(max_examples=4, derandomize=True, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_address_is_answered(page, data):
    names = params_of(page)
    query = data.draw(st.fixed_dictionaries({}, optional=dict.fromkeys(names, ANYTHING)))
    query["text"] = data.draw(st.sampled_from(TEXTS))
    at = run_page(page, **query)  # which fails if the page raised
    assert at.markdown or at.info or at.warning or at.error
