"""The byte-level BPE: what the tokenizers library learnt is what tiktoken does."""

import base64

import pytest
from hypothesis import given, strategies as st

from gptviz.tokenizer import encoding_from_ranks
from gptviz.tokenizer.files import byte_of_unicode, bytes_of
from gptviz.training.bpe import ranks_of, save_ranks, train_ranks, train_tokenizer
from tests.training.conftest import prose

TEXTS = [prose(seed, 200) for seed in range(4)]
VOCAB = 400


@pytest.fixture(scope="module")
def trained():
    return train_tokenizer(TEXTS, VOCAB)


@pytest.fixture(scope="module")
def encoding(trained, tmp_path_factory):
    path = tmp_path_factory.mktemp("bpe") / "tokenizer.tiktoken"
    save_ranks(ranks_of(trained), path)
    return encoding_from_ranks(path, "tiny")


def test_bytes_have_256_different_stand_ins():
    table = byte_of_unicode()
    assert sorted(table.values()) == list(range(256))
    # four of GPT-2's encoder.json, known by heart: space, newline, "a" and the first byte of "é"
    assert (table["Ġ"], table["Ċ"], table["a"], table["Ã"]) == (0x20, 0x0A, 0x61, 0xC3)


def test_ranks_are_the_bytes_then_the_merges_in_order(trained):
    ranks = ranks_of(trained)
    assert sorted(ranks.values()) == list(range(VOCAB - 1))
    assert all(ranks[bytes([byte])] == byte for byte in range(256))
    first = train_ranks(["xyxyxyxyxy xyxy ab"], 258)
    assert max(first, key=first.get) == b"xy"  # the most frequent pair
    for token, rank in ranks.items():  # each merge joins two tokens that were there before it
        cuts = [(token[:i], token[i:]) for i in range(1, len(token))]
        assert rank < 256 or any(
            ranks.get(a, rank) < rank and ranks.get(b, rank) < rank for a, b in cuts
        )


def test_tiktoken_cuts_the_training_text_as_the_library_does(trained, encoding):
    for text in TEXTS:
        theirs = list(map(bytes_of, trained.encode(text).tokens))
        assert [
            encoding.decode_single_token_bytes(i) for i in encoding.encode_ordinary(text)
        ] == theirs


@given(st.text())
def test_any_text_round_trips_and_the_last_id_ends_texts(encoding, text):
    assert encoding.n_vocab == VOCAB
    assert encoding.encode("<|endoftext|>", allowed_special="all") == [VOCAB - 1]
    assert len(encoding.encode_ordinary("<|endoftext|>")) > 1
    assert encoding.decode(encoding.encode_ordinary(text)) == text


def test_file_is_tiktokens_own_format(tmp_path):
    path = tmp_path / "ranks"
    save_ranks({b"ab": 1, b"\xff": 0}, path)
    assert (
        path.read_bytes() == base64.b64encode(b"\xff") + b" 0\n" + base64.b64encode(b"ab") + b" 1\n"
    )


def test_too_small_a_vocabulary_and_too_small_a_text_are_refused():
    with pytest.raises(ValueError, match=r"vocab_size is 257; .* 258 or more"):
        train_ranks(["abc"], 257)
    with pytest.raises(ValueError, match="too small for 5000 tokens: it gave only 2"):
        train_ranks(["abc abd"], 5000)
