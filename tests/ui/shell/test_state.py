"""The prompt in the address: what is written there opens the same prompt."""

from urllib.parse import parse_qsl, urlencode

from hypothesis import given
from hypothesis import strategies as st

from gptviz import KNOWN_MODELS
from gptviz.checkpoints.hub import HUB_MODELS
from gptviz.ui.models.choice import Choice, choice_from, is_a_name
from gptviz.ui.shell import state
from gptviz.ui.shell.state import DEFAULT_MODEL, DEFAULT_TEXT, LINK_CHARACTERS, Prompt, address_of

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
COMPUTED = {
    "dtype": st.sampled_from(["float32", "bfloat16"]),
    "device": st.sampled_from([None, "cpu"]),
}
CHOICES = st.builds(
    Choice, name=st.sampled_from([*KNOWN_MODELS, *HUB_MODELS, "owner/name"]), **COMPUTED
) | st.builds(
    Choice,
    name=st.sampled_from(["upload:0123", "path:/a folder/model.pth"]),
    n_heads=st.none() | st.integers(1, 99),
    tokenizer=st.sampled_from([None, "gpt2", "cl100k_base"]),
    **COMPUTED,
)
PROMPTS = st.builds(
    Prompt,
    text=TEXT,
    token=st.none() | st.integers(0, 9999),
    model=CHOICES,
    special=st.booleans(),
)


def from_address(address):
    """The prompt that a session takes from these query parameters."""
    params = (state.TEXT, state.TOKEN, state.SPECIAL)
    said = {p.name: p.parse(address[p.name]) for p in params if p.name in address}
    return Prompt(model=choice_from(address), **said)


@given(PROMPTS)
def test_an_address_opens_what_its_sender_saw(prompt):
    query = urlencode(address_of(prompt))
    assert from_address(dict(parse_qsl(query, keep_blank_values=True))) == prompt


def test_an_empty_address_is_the_default():
    assert from_address({}) == Prompt(DEFAULT_TEXT, None, DEFAULT_MODEL, False)
    assert address_of(Prompt()) == {}


@given(
    st.dictionaries(
        st.sampled_from(["text", "token", "model", "special", "n_heads", "dtype", "device"]),
        st.text(max_size=30),
    )
)
def test_what_makes_no_sense_is_ignored(params):
    prompt = from_address(params)
    assert is_a_name(prompt.model.name) and prompt.model.dtype in ("float32", "bfloat16")
    assert prompt.model.device in (None, "cpu") and (prompt.model.n_heads or 1) >= 0
    assert prompt.token is None or prompt.token >= 0


def test_a_token_is_a_plain_number():
    for nonsense in ("-1", "1.5", "x", "", "last", "²", "١", "9" * 30):
        assert from_address({"token": nonsense}).token is None
    assert from_address({"token": "12"}).token == 12


def test_the_longest_address_is_one_that_the_server_takes():
    # 64 KiB is what the server reads of a request's first lines; an emoji is 12 bytes in an address
    assert len(urlencode(address_of(Prompt(text="🙂" * 100_000)))) < 65_536 - 2_000
    assert len(address_of(Prompt(text="x" * 100_000))["text"]) == LINK_CHARACTERS
