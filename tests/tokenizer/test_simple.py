"""The word-level and the character tokenizer, against the seeds' and the book's own code."""

import string

import pytest
from hypothesis import given, strategies as st

from gptviz.book import SimpleTokenizerV2
from gptviz.tokenizer.simple import CharacterTokenizer, WordTokenizer, split_words

# The 65 characters of "tiny Shakespeare", as everybody who has printed them knows them.
SHAKESPEARE = "\n !$&',-.3:;?" + string.ascii_uppercase + string.ascii_lowercase


def test_shakespeares_alphabet_gives_the_ids_of_the_notes():
    tokenizer = CharacterTokenizer(SHAKESPEARE)
    assert len(tokenizer.vocabulary) == 65
    assert tokenizer.encode("hello world") == [46, 43, 50, 50, 53, 1, 61, 53, 56, 50, 42]
    # the notes' first nine characters of input.txt, and what they sampled
    assert tokenizer.encode("First Cit") == [18, 47, 56, 57, 58, 1, 15, 47, 58]
    assert tokenizer.decode([0, 8, 39, 2, 14, 51, 55, 54, 18, 59, 54]) == "\n.a!BmqpFup"


@given(text=st.text(max_size=100))
def test_characters_come_back(text):
    tokenizer = CharacterTokenizer(text)
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert len(ids) == len(text)
    assert sorted(set(ids)) == list(range(len(tokenizer.vocabulary)))


def test_a_character_of_no_id_is_named():
    tokenizer = CharacterTokenizer("hello")
    assert tokenizer.known("h")
    assert not tokenizer.known("é")
    with pytest.raises(ValueError, match=r"'é' \(place 4\) is not among the 4 "):
        tokenizer.encode("hellé")
    with pytest.raises(ValueError, match=r"no token 4; .* 0 to 3"):
        tokenizer.decode([0, 4])
    with pytest.raises(ValueError, match="no token -1"):
        tokenizer.decode([-1])


def test_the_notes_sentence_is_four_words():
    assert split_words("Hello, world!") == ["Hello", ",", "world", "!"]
    assert split_words("a--b  \n c_d") == ["a", "--", "b", "c", "_", "d"]
    assert split_words(" \n") == []


@given(text=st.text("abc ,.'-\n!é", max_size=80), other=st.text("abcd ,.'-\n!é", max_size=80))
def test_words_are_the_books(text, other):
    ours = WordTokenizer.fit(text)
    book = SimpleTokenizerV2({word: id for id, word in enumerate(ours.vocabulary)})
    assert ours.encode(other) == book.encode(other)
    assert ours.decode(ours.encode(other)) == book.decode(book.encode(other))


def test_the_vocabulary_is_sorted_words_and_then_the_special_tokens():
    tokenizer = WordTokenizer.fit("the cat, the mat")
    assert tokenizer.vocabulary == (",", "cat", "mat", "the", "[BOS]", "[EOS]", "[PAD]", "[UNK]")
    assert tokenizer.encode("the dog, the cat") == [3, 7, 0, 3, 1]
    assert tokenizer.decode([3, 7, 0, 3, 1]) == "the [UNK], the cat"


def test_special_words():
    tokenizer = WordTokenizer.fit("the cat")
    cat, the, bos, eos, pad, unk = range(6)
    assert tokenizer.encode("the [EOS] cat") == [the, unk, cat]
    assert tokenizer.encode("the [EOS] cat", special_tokens=True) == [the, eos, cat]
    assert tokenizer.encode("cat", bos=True, eos=True) == [bos, cat, eos]
    assert tokenizer.pad([[the, cat], [cat], []]) == [[the, cat], [cat, pad], [pad, pad]]
    assert tokenizer.pad([]) == []
    assert WordTokenizer.fit("[UNK] cat").vocabulary == ("cat", "[BOS]", "[EOS]", "[PAD]", "[UNK]")
