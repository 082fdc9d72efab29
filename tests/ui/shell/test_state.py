"""The prompt in the address: what is written there opens the same prompt."""

from contextlib import contextmanager
from types import SimpleNamespace
from urllib.parse import parse_qsl, urlencode

import pytest
from hypothesis import given, strategies as st

from gptviz import KNOWN_MODELS
from gptviz.models.checkpoints.hub import HUB_MODELS
from gptviz.models.loading import DEFAULT_MODEL, UNSAID_MODEL
from gptviz.ui.models.choice import Choice, is_a_name
from gptviz.ui.shell import params, state
from gptviz.ui.shell.state import DEFAULT_TEXT, LINK_CHARACTERS, UNSAID_TEXT

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
    activation=st.sampled_from([None, "gelu", "gelu_tanh"]),
    tokenizer=st.sampled_from([None, "gpt2", "cl100k_base"]),
    **COMPUTED,
)


@contextmanager
def session(address=()):
    """A session that this address opens; gives the address, which it may write."""
    address = dict(address)
    shown = SimpleNamespace(to_dict=address.copy, get=address.get, update=address.update)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("streamlit.session_state", {})
        patch.setattr("streamlit.query_params", shown)
        state.load()
        yield address


def held():
    return state.TEXT.value, state.TOKEN.value, state.SPECIAL.value, state.model()


@given(TEXT, st.none() | st.integers(0, 9999), st.booleans(), CHOICES)
def test_an_address_opens_what_its_sender_saw(text, token, special, choice):
    with session():
        assert held() == (DEFAULT_TEXT, None, False, Choice())
        assert state.link() == {"text": DEFAULT_TEXT, "model": DEFAULT_MODEL}
        state.change(text=text, token=token, special=special)
        state.choose_model(choice)
        assert held() == (text, token, special, choice)
        query = urlencode(state.link())
    with session(parse_qsl(query, keep_blank_values=True)):
        assert held() == (text, token, special, choice)


def test_an_address_that_says_something_goes_on_to_mean_what_it_meant():
    for address in (
        {"token": "3"},
        {"special": "on"},
        {"claims": "x"},
        {"block": "0", "head": "9"},
    ):
        with session(address):
            assert (state.TEXT.value, state.model()) == (UNSAID_TEXT, Choice(UNSAID_MODEL))
    with session({"model": "gpt2"}):
        assert (state.TEXT.value, state.model()) == (UNSAID_TEXT, Choice("gpt2"))
    with session({"text": "one"}):
        assert (state.TEXT.value, state.model()) == ("one", Choice(UNSAID_MODEL))
    with session({"utm_source": "a letter"}):  # nothing of ours
        assert (state.TEXT.value, state.model()) == (DEFAULT_TEXT, Choice())


def test_an_address_is_not_written_before_somebody_chooses():
    with session() as address:
        params.store(state.APP)
        assert address == {}
    with session({"token": "3"}) as address:
        params.store(state.APP)
        assert address == {"token": "3"}


@given(
    st.sampled_from(
        [{}, {"token": "3"}, {"model": "gpt2"}, {"model": "mini-world"}, {"text": "a"}]
    ),
    st.lists(
        st.sampled_from([DEFAULT_TEXT, UNSAID_TEXT, "", "one"])
        | st.sampled_from([Choice(DEFAULT_MODEL), Choice(UNSAID_MODEL), Choice("gpt2")])
        | st.sampled_from([None, 3, 5]),
        max_size=4,
    ),
)
def test_a_reload_opens_what_was_chosen(opened, chosen):
    with session(opened) as address:
        for choice in chosen:
            if isinstance(choice, Choice):
                state.choose_model(choice)
            elif isinstance(choice, str):
                state.change(text=choice)
            else:
                state.change(token=choice)
            params.store(state.APP)
        before = held()
    with session(address):
        assert held() == before
        assert dict(parse_qsl(urlencode(state.link()), keep_blank_values=True)) == state.link()
        link = state.link()
    with session(link):
        assert held() == before


@given(
    st.dictionaries(
        st.sampled_from(
            ["text", "token", "model", "special", "n_heads", "activation", "dtype", "device"]
        ),
        st.text(max_size=30),
    )
)
def test_what_makes_no_sense_is_ignored(address):
    with session(address):
        _, token, _, model = held()
    assert is_a_name(model.name) and model.dtype in ("float32", "bfloat16")
    assert model.device in (None, "cpu") and (model.n_heads or 1) >= 0
    assert token is None or token >= 0


def test_the_longest_address_is_one_that_the_server_takes():
    # 64 KiB is what the server reads of a request's first lines; an emoji is 12 bytes in an address
    text = "🙂" * 100_000
    with session():
        state.change(text=text)
        link = state.link()
    assert len(urlencode(link)) < 65_536 - 2_000 and len(link["text"]) == LINK_CHARACTERS
    with session(link):  # which has only its beginning: this server kept the rest
        assert state.TEXT.value == text and state.lost_characters() is None
        state.change(text="short")
        assert state.KEPT.value is None
    with session(link | {"kept": f"{len(text)}.another"}):
        assert state.TEXT.value == link["text"] and state.lost_characters() == len(text)
