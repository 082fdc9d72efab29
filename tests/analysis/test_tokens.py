"""The Tokens page's numbers, against tiktoken and plain Python."""

import string

import numpy as np
import pytest
from hypothesis import given, strategies as st

from gptviz.analysis import tokens
from gptviz.tokenizer import encode, get_encoding, well_formed
from gptviz.tokenizer.steps import show_work, stages

MINI = get_encoding("mini")
GPT2 = get_encoding("gpt2")
MIXED = st.text(st.sampled_from([*"ab .'\n\té你好😀\u200d\x00"]), max_size=40)


def test_a_table_of_tokens():
    table = tokens.token_table(GPT2, encode(GPT2, "The cat\n"))
    assert list(table.columns) == ["position", "id", "token", "bytes", "characters", "part_of"]
    assert table.values.tolist() == [
        [0, 464, "The", "54 68 65", 3, ""],
        [1, 3797, "·cat", "20 63 61 74", 4, ""],
        [2, 198, "⏎", "0a", 1, ""],
    ]
    assert tokens.token_table(GPT2, []).shape == (0, 6)


def test_a_token_that_is_half_a_character_says_of_which():
    """GPT-2 cuts 你, the bytes e4 bd a0, into e4 bd and a0."""
    table = tokens.token_table(GPT2, encode(GPT2, "你"))
    assert list(table["bytes"]) == ["e4 bd", "a0"]
    assert list(table["token"]) == ["\\xe4\\xbd", "\\xa0"]
    assert list(table["characters"]) == [0, 0]
    assert list(table["part_of"]) == ["你 U+4F60, bytes 1-2 of 3", "你 U+4F60, byte 3 of 3"]
    for text, shown in (("a😀好", ("😀", True)), ("cat", ("你", False))):
        found, own = tokens.broken_character(GPT2, encode(GPT2, text))
        assert (found.character, own) == shown


@given(text=MIXED)
@pytest.mark.parametrize("encoding", [MINI, GPT2], ids=lambda encoding: encoding.name)
def test_every_byte_of_a_broken_character_is_counted_once(encoding, text):
    ids = encode(encoding, text)
    table = tokens.token_table(encoding, ids)
    assert bytes.fromhex(" ".join(table["bytes"])).decode() == text
    spread = tokens.broken_characters(encoding, ids)
    assert table["characters"].sum() + len(spread) == len(text)
    for found in spread:
        assert len(found.positions) > 1
        assert list(found.positions) == list(range(found.positions[0], found.positions[-1] + 1))
        assert found.character in b"".join(found.raws).decode("utf-8", "ignore")
        assert tuple(ids[position] for position in found.positions) == found.ids
        assert found.character not in [raw.decode("utf-8", "replace") for raw in found.raws]
        named = f"U+{ord(found.character):04X}"
        assert all(named in table["part_of"][position] for position in found.positions)
    assert sum(table["part_of"] != "") == len(
        {position for found in spread for position in found.positions}
    )


def test_a_space_and_a_capital_make_another_token():
    table = tokens.spellings(GPT2, "The")
    assert dict(zip(table["written"], table["ids"], strict=True)) == {
        "The": [464], "·The": [383], "the": [1169], "·the": [262], "THE": [10970], "·THE": [3336],
    }  # fmt: skip
    assert list(tokens.spellings(GPT2, "42")["written"]) == ["42", "·42"]
    for row in tokens.spellings(MINI, "Rabbit").itertuples():
        assert encode(MINI, row.written.replace("·", " ")) == row.ids
        assert row.tokens == len(row.ids) == len(row.cut)


def test_the_word_to_spell_is_the_selected_one_or_the_first():
    assert tokens.word_near("In a hole", " hole") == "hole"
    assert tokens.word_near("In a hole", " ") == "In"
    assert tokens.word_near("42 !", "42") == "the"


def cuts(text, learnt_from="the cat", special_tokens=False):
    return {
        cut.tokenizer: cut
        for cut in tokens.compare(text, [MINI, GPT2], learnt_from, special_tokens)
    }


def test_the_same_text_in_five_tokenizers():
    found = cuts("the dog, café")
    assert list(found) == ["mini", "gpt2", "words", "characters", "bytes"]
    assert list(found["gpt2"].ids) == GPT2.encode("the dog, café")
    assert found["words"].tokens == ("the", "[UNK]", "[UNK]", "[UNK]")
    assert (found["words"].vocabulary, found["words"].unknown) == (2 + 4, 3)
    assert found["characters"].tokens == tuple("the·dog,·café")
    assert found["characters"].unknown == len(set("dog,fé"))
    unknown = np.equal(found["characters"].ids, None)
    assert [*np.array(found["characters"].tokens)[unknown]] == [*"dog,fé"]
    assert bytes(found["bytes"].ids) == "the dog, café".encode()
    assert found["bytes"].tokens[-2:] == ("c3", "a9")


@given(text=st.text(st.characters(categories=None), max_size=60), special_tokens=st.booleans())
def test_any_text_can_be_compared(text, special_tokens):
    found = cuts(text, learnt_from=well_formed(text), special_tokens=special_tokens)
    assert MINI.decode(found["mini"].ids) == GPT2.decode(found["gpt2"].ids) == well_formed(text)
    assert found["words"].unknown == found["characters"].unknown == 0
    assert len(found["characters"].ids) == len(well_formed(text))
    assert all(len(cut.tokens) == len(cut.ids) for cut in found.values())
    assert all(id is None or 0 <= id < cut.vocabulary for cut in found.values() for id in cut.ids)


def test_special_tokens_reach_the_tokenizers_that_have_them():
    text = "the [EOS] <|endoftext|>"
    assert MINI.eot_token not in cuts(text)["mini"].ids
    assert MINI.eot_token in cuts(text, special_tokens=True)["mini"].ids
    assert cuts(text)["words"].tokens == ("the", "[UNK]", "[UNK]")
    assert cuts(text, special_tokens=True)["words"].tokens == ("the", "[EOS]", "[UNK]")


def test_the_chapter_is_carrolls():
    text = tokens.chapter()
    assert text.startswith(
        "Alice was beginning to get very tired of sitting by her sister on the bank"
    )
    assert 10_000 < len(text) < 13_000
    assert set(text) <= set(string.printable)


@given(text=MIXED)
def test_the_place_of_a_token_is_in_its_piece(text):
    pieces = show_work(GPT2, text)
    ids = encode(GPT2, text)
    for position, id in enumerate(ids):
        piece, part = tokens.place_of(pieces, position)
        assert pieces[piece].ids[part] == id
    with pytest.raises(
        ValueError, match=rf"no token at position {len(ids) + 2}; the text has {len(ids)}$"
    ):
        tokens.place_of(pieces, len(ids) + 2)
    with pytest.raises(ValueError, match=rf"no token at position -1; the text has {len(ids)}$"):
        tokens.place_of(pieces, -1)


def test_what_becomes_of_the_end_of_text():
    found = tokens.end_of_text(GPT2, "a<|endoftext|>b")
    assert found is not None and found.lengths == (9, 3) and found.id == 50256
    assert "".join(found.typed) == "<|endoftext|>"


@pytest.mark.parametrize(
    ("prompt", "position", "special", "whole"),
    [
        ("Unbelievably so", 2, False, True),
        ('"""\\ {x} \' 你', 1, False, True),
        ("a<|endoftext|>b", 1, True, True),
        ("z" * 300, 4, False, False),
    ],
)
def test_merges_lead_from_bytes_to_tokens(mini, prompt, position, special, whole):
    rows = tokens.merge_rows(mini, prompt, position, special, whole)
    ids = encode(MINI, prompt, special)
    raw = MINI.decode_single_token_bytes(ids[position])
    assert raw in rows[-1]
    assert len({b"".join(row) for row in rows}) == 1
    assert [len(row) for row in rows] == list(range(len(rows[0]), len(rows[-1]) - 1, -1))
    pieces = show_work(MINI, prompt, special)
    piece = pieces[tokens.place_of(pieces, position)[0]]
    if whole:
        assert rows == [stage.parts for stage in stages(MINI, piece)]
    else:
        assert rows[-1] == (raw,)


def test_merges_of_a_position_from_the_end_are_those_of_the_same_token(mini):
    last = len(encode(MINI, "Unbelievably so")) - 1
    for whole in (True, False):
        from_end = tokens.merge_rows(mini, "Unbelievably so", -1, whole_piece=whole)
        assert from_end == tokens.merge_rows(mini, "Unbelievably so", last, whole_piece=whole)
    with pytest.raises(
        ValueError, match=f"no token at position {-last - 2}; the text has {last + 1}$"
    ):
        tokens.merge_rows(mini, "Unbelievably so", -last - 2)


def test_two_texts_of_words_in_one_batch():
    longer, shorter = tokens.word_batch(["the cat, the dog", "Hello, world!"], "the cat, the mat")
    # the vocabulary: , cat mat the [BOS] [EOS] [PAD] [UNK]
    assert longer.tokens == ("[BOS]", "the", "cat", ",", "the", "[UNK]", "[EOS]")
    assert longer.ids == (4, 3, 1, 0, 3, 7, 5)
    assert shorter.tokens == ("[BOS]", "[UNK]", ",", "[UNK]", "[UNK]", "[EOS]", "[PAD]")
    assert shorter.ids == (4, 7, 0, 7, 7, 5, 6) and shorter.text == "Hello, world!"
    # the seeds' four words, all known
    learnt = tokens.word_batch(["Hello, world!"], "Hello, world!")
    assert learnt[0].ids == (4, 2, 1, 3, 0, 5)
