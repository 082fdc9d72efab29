"""Reading, splitting and encoding the corpus."""

import gzip

import numpy as np
import pytest

from gptviz.tokenizer import encoding_from_ranks
from gptviz.training.corpus import Book, encode_books, encoded_corpus, read_books, split_books
from tests.training.conftest import HELD_OUT, learn_tokenizer


@pytest.fixture(scope="module")
def tokenizer(corpus, tmp_path_factory):
    return learn_tokenizer(
        tmp_path_factory.mktemp("tokenizer"), [book.text for book in corpus.books], 320
    )


def test_books_come_back_with_the_rows_that_belong_to_them(corpus):
    # the table is in the reverse order
    assert read_books(corpus.text, corpus.table) == corpus.books


def test_a_table_that_does_not_match_is_refused(corpus, tmp_path):
    lines = corpus.table.read_text(encoding="utf-8").splitlines()
    table = tmp_path / "books.tsv"
    for wrong in (lines[:-1], [*lines[:-1], "A\tB\t1900\t17"], [*lines, lines[-1]]):
        table.write_text("\n".join(wrong) + "\n", encoding="utf-8")
        with pytest.raises(ValueError, match="must match one to one"):
            read_books(corpus.text, table)
    # two books of one length cannot be told apart
    with gzip.open(tmp_path / "t.gz", "wt") as file:
        file.write("abc\n<|endoftext|>\nxyz\n")
    (tmp_path / "t.tsv").write_text(
        "author\ttitle\tyear\tcharacters\nA\tB\t1900\t3\nC\tD\t1901\t3\n"
    )
    with pytest.raises(ValueError, match="2 rows with 1 different numbers"):
        read_books(tmp_path / "t.gz", tmp_path / "t.tsv")


def test_split_keeps_whole_books_apart_and_names_an_unknown_one(corpus):
    training, held_out = split_books(corpus.books, HELD_OUT)
    assert {book.title for book in held_out} == set(HELD_OUT)
    assert len(training) + len(held_out) == len(corpus.books) and not set(training) & set(held_out)
    with pytest.raises(ValueError, match=r"not in the corpus: Emma$"):
        split_books(corpus.books, ["Emma", HELD_OUT[0]])


def test_each_book_ends_with_the_separator_and_decodes_to_itself(corpus, tokenizer):
    encoding = encoding_from_ranks(tokenizer / "tokenizer.tiktoken")
    ids = encode_books(encoding, corpus.books)
    assert ids.dtype == np.uint16
    assert encoding.decode(ids.tolist()) == "".join(
        book.text + "<|endoftext|>" for book in corpus.books
    )
    assert (ids == encoding.n_vocab - 1).sum() == len(corpus.books)
    ids = encode_books(encoding, [Book("A", "B", 1900, "one <|endoftext|> two")])
    assert (ids == encoding.n_vocab - 1).sum() == 1  # a separator inside a book stays text


def test_the_corpus_is_encoded_once(corpus, tokenizer, tmp_path):
    first = encoded_corpus(corpus.text, corpus.table, tokenizer, tmp_path, HELD_OUT)
    written = (tmp_path / "training.npy").stat().st_mtime_ns
    again = encoded_corpus(corpus.text, corpus.table, tokenizer, tmp_path, reversed(HELD_OUT))
    assert (tmp_path / "training.npy").stat().st_mtime_ns == written
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    encoding = encoding_from_ranks(tmp_path / "tokenizer.tiktoken")
    training, held_out = split_books(corpus.books, HELD_OUT)
    assert np.array_equal(first[0], encode_books(encoding, training))
    assert np.array_equal(first[1], encode_books(encoding, held_out))
    assert first[2] == encoding.n_vocab == 320


def test_ids_of_another_tokenizer_or_split_are_never_used(corpus, tokenizer, tmp_path):
    work = tmp_path / "work"
    other = tmp_path / "other"
    encoded_corpus(corpus.text, corpus.table, tokenizer, work, HELD_OUT)
    with pytest.raises(ValueError, match="other held-out books"):
        encoded_corpus(corpus.text, corpus.table, tokenizer, work, HELD_OUT[:1])
    learn_tokenizer(other, [book.text for book in corpus.books], 300)
    with pytest.raises(ValueError, match="another tokenizer"):
        encoded_corpus(corpus.text, corpus.table, other, work, HELD_OUT)
