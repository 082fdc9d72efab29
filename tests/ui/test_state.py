"""The prompt in the address: what is written there opens the same prompt."""

from urllib.parse import parse_qsl, urlencode

from hypothesis import given
from hypothesis import strategies as st

from gptviz import KNOWN_MODELS
from gptviz.ui.state import DEFAULT_MODEL, DEFAULT_TEXT, LINK_CHARACTERS, Prompt, address_of, from_address

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
PROMPTS = st.builds(
    Prompt,
    text=TEXT,
    token=st.none() | st.integers(0, 9999),
    model=st.sampled_from(sorted(KNOWN_MODELS)),
    special=st.booleans(),
)


@given(PROMPTS)
def test_an_address_opens_what_its_sender_saw(prompt):
    query = urlencode(address_of(prompt))
    assert from_address(dict(parse_qsl(query, keep_blank_values=True))) == prompt


def test_an_empty_address_is_the_default():
    assert from_address({}) == Prompt(DEFAULT_TEXT, None, DEFAULT_MODEL, False)
    assert address_of(Prompt()) == {}


@given(st.dictionaries(st.sampled_from(["text", "token", "model", "special"]), st.text(max_size=30)))
def test_what_makes_no_sense_is_ignored(params):
    prompt = from_address(params)
    assert prompt.model in KNOWN_MODELS
    assert prompt.token is None or prompt.token >= 0


def test_a_token_is_a_plain_number():
    for nonsense in ("-1", "1.5", "x", "", "last", "²", "١", "9" * 30):
        assert from_address({"token": nonsense}).token is None
    assert from_address({"token": "12"}).token == 12


def test_the_longest_address_is_one_that_the_server_takes():
    # 64 KiB is what the server reads of a request's first lines; an emoji is 12 bytes in an address
    assert len(urlencode(address_of(Prompt(text="🙂" * 100_000)))) < 65_536 - 2_000
    assert len(address_of(Prompt(text="x" * 100_000))["text"]) == LINK_CHARACTERS
