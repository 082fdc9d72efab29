"""The twin that shows its work, against tiktoken and against the plainest BPE there is."""

import random
from itertools import accumulate, pairwise

import pytest
import regex
import tiktoken
from hypothesis import given, settings, strategies as st

from gptviz.tokenizer import encode, get_encoding, well_formed
from gptviz.tokenizer.steps import bpe, merges_of_part, own_piece, show_work, stages

NAMES = ["mini", "gpt2"]
ANY_TEXT = st.text(st.characters(categories=None), max_size=200)
# What the regex has rules for, close together.
RULED = [*" \t\n\r\x00\x1c\u00a0\u3000'sdmtrelv1²٣é你😀\u200d\ud800!<|>aA", "'ll", "<|endoftext|>"]
TRICKY = st.lists(st.sampled_from(RULED), max_size=50).map("".join)
LONG = {
    "a word": "a" * 10_000,
    "two letters": "ab" * 5_000,
    "letters by chance": "".join(random.Random(0).choices("etaoinshr", k=10_000)),
    "blanks": " " * 9_999 + "x",
    "emoji": "👨\u200d👩\u200d👧" * 500,
    "Chinese": "你好世界" * 2_500,
}


def ids(pieces):
    return [id for piece in pieces for id in piece.ids]


@pytest.mark.parametrize("name", NAMES)
@given(text=ANY_TEXT | TRICKY, special_tokens=st.booleans())
@settings(max_examples=300)
def test_the_ids_are_tiktokens_and_the_pieces_are_the_text(name, text, special_tokens):
    encoding = get_encoding(name)
    pieces = show_work(encoding, text, special_tokens)
    assert ids(pieces) == encode(encoding, text, special_tokens)
    assert "".join(piece.text for piece in pieces) == well_formed(text)
    assert [0, *accumulate(len(piece.text) for piece in pieces)][:-1] == [
        piece.start for piece in pieces
    ]
    assert b"".join(part for piece in pieces for part in piece.parts) == well_formed(text).encode()


@pytest.mark.parametrize("name", NAMES)
def test_no_code_point_is_cut_differently(name):
    """Python's regex module knows later letters than tiktoken's engine; this text has every one of them.

    All letters, digits and spaces are in planes 0 to 3 and 14; of the planes where nothing is assigned, or
    what is private, every hundredth stands for its neighbours.
    """
    assigned = [*range(0x40000), *range(0xE0000, 0xE1000)]
    rest = [*range(0x40000, 0xE0000), *range(0xE1000, 0x110000)]
    assert not regex.search(r"[\p{L}\p{N}\p{M}\s]", "".join(map(chr, rest)))
    codes = assigned + rest[::101]
    everything = "".join(chr(code) for code in codes if not 0xD800 <= code <= 0xDFFF)
    pieces = show_work(get_encoding(name), everything)
    assert ids(pieces) == get_encoding(name).encode_ordinary(everything)


@pytest.mark.parametrize("text", LONG.values(), ids=LONG.keys())
@pytest.mark.parametrize("name", NAMES)
def test_long_pieces(name, text):
    assert ids(show_work(get_encoding(name), text)) == get_encoding(name).encode_ordinary(text)


def plainest_bpe(ranks, raw):
    """The definition, word for word and quadratic: find the lowest rank, join, begin again."""
    parts = [raw[i : i + 1] for i in range(len(raw))]
    merges = []
    while True:
        found = [(ranks[a + b], i) for i, (a, b) in enumerate(pairwise(parts)) if a + b in ranks]
        if not found:
            return merges, parts
        rank, i = min(found)
        merges.append((rank, parts[i], parts[i + 1], sum(map(len, parts[:i]))))
        parts[i : i + 2] = [parts[i] + parts[i + 1]]


@given(raw=st.binary(max_size=60) | st.text("abn ", max_size=60).map(str.encode))
@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=300)
def test_the_merges_come_in_the_order_of_the_definition(name, raw):
    ranks = get_encoding(name)._mergeable_ranks
    merges, parts = bpe(ranks, raw)
    expected_merges, expected_parts = plainest_bpe(ranks, raw)
    assert parts == expected_parts
    assert [
        (merge.rank, merge.left, merge.right, merge.start) for merge in merges
    ] == expected_merges


@pytest.mark.parametrize("name", NAMES)
def test_every_token_of_the_vocabulary_is_built_by_its_own_merges(name):
    ranks = get_encoding(name)._mergeable_ranks
    for token in ranks:
        merges, parts = bpe(ranks, token)
        assert parts == [token]
        assert len(merges) == len(token) - 1
        assert all(merge.rank == ranks[merge.result] for merge in merges)


def test_the_merges_of_hello():
    """By hand from vocab.bpe: its lines `h e`, `l l`, `he ll` and `hell o` are in this order of ranks."""
    (piece,) = show_work(get_encoding("gpt2"), "hello")
    assert [(merge.left, merge.right) for merge in piece.merges] == [
        (b"h", b"e"), (b"l", b"l"), (b"he", b"ll"), (b"hell", b"o"),
    ]  # fmt: skip
    assert piece.ids == (31373,)
    assert [merge.rank for merge in piece.merges][-1] == 31373


@pytest.mark.parametrize("name", NAMES)
@given(text=TRICKY)
def test_stages_replay_the_merges_and_always_take_the_lowest_rank(name, text):
    encoding = get_encoding(name)
    for piece in show_work(encoding, text):
        replay = stages(encoding, piece)
        assert len(replay) == len(piece.merges) + 1
        assert replay[0].parts == tuple(piece.raw[i : i + 1] for i in range(len(piece.raw)))
        assert replay[-1].parts == piece.parts
        assert replay[-1].chosen is None
        assert all(rank is None for rank in replay[-1].ranks)
        for stage, merge in zip(replay, piece.merges, strict=False):
            lowest = min(rank for rank in stage.ranks if rank is not None)
            assert stage.ranks[stage.chosen] == merge.rank == lowest
            assert stage.parts[stage.chosen : stage.chosen + 2] == (merge.left, merge.right)


@given(text=TRICKY)
def test_a_token_has_the_merges_that_its_own_bytes_would_go_through(text):
    for piece in show_work(get_encoding("gpt2"), text):
        of_parts = [merges_of_part(piece, index) for index in range(len(piece.parts))]
        assert [len(merges) for merges in of_parts] == [len(part) - 1 for part in piece.parts]
        assert sum(map(len, of_parts)) == len(piece.merges)
        for index, part in enumerate(piece.parts):
            alone = own_piece(piece, index)
            assert (list(alone.merges), list(alone.parts)) == bpe(
                get_encoding("gpt2")._mergeable_ranks, part
            )
            assert alone.ids == (piece.ids[index],)


def test_a_special_token_is_a_piece_that_nothing_merges():
    encoding = get_encoding("mini")
    before, special, after = show_work(encoding, "a<|endoftext|>b", special_tokens=True)
    assert (before.special, special.special, after.special) == (False, True, False)
    assert (special.ids, special.merges, special.start) == ((encoding.eot_token,), (), 1)
    assert len(stages(encoding, special)) == 1
    assert not any(piece.special for piece in show_work(encoding, "a<|endoftext|>b"))


def test_ids_that_are_not_tiktokens_are_never_shown(monkeypatch):
    monkeypatch.setattr("gptviz.tokenizer.steps.encode", lambda *_, **__: [1])
    with pytest.raises(RuntimeError, match="other ids than tiktoken's gpt2"):
        show_work(get_encoding("gpt2"), "hello")


@given(text=TRICKY, limit=st.integers(0, 20))
def test_a_limit_stops_after_the_piece_that_holds_the_last_token(text, limit):
    encoding = get_encoding("gpt2")
    everything = show_work(encoding, text)
    some = show_work(encoding, text, limit=limit)
    assert some == everything[: len(some)]
    assert len(ids(some)) >= min(limit, len(ids(everything)))
    assert len(ids(some[:-1])) < max(limit, 1)


def test_a_piece_that_merges_do_not_lead_to_is_looked_up():
    """A vocabulary of characters: tiktoken finds the three bytes of 你 as a whole, and so does the twin."""
    single = {bytes([byte]): byte for byte in range(256)}
    ranks = single | {"你".encode(): 256, "é".encode(): 257}
    encoding = tiktoken.Encoding(
        "characters", pat_str=r"(?s:.)", mergeable_ranks=ranks, special_tokens={}
    )
    pieces = show_work(encoding, "a你é")
    assert ids(pieces) == encoding.encode_ordinary("a你é") == [97, 256, 257]
    assert [len(piece.merges) for piece in pieces] == [0, 0, 1]
    assert [len(stages(encoding, piece)) for piece in pieces] == [1, 1, 2]
    assert all(stages(encoding, piece)[-1].parts == piece.parts for piece in pieces)
