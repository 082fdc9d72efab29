"""A corpus of six tiny books, written for the tests: small enough to train on within seconds; and a run."""

import gzip
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from gptviz.training.bpe import save_ranks, train_ranks
from gptviz.training.corpus import SEPARATOR, TOKENIZER_FILE, Book
from gptviz.training.datasets import Batches, TokenWindows
from gptviz.training.loop import TrainingRun

HELD_OUT = ("The Fox at Home", "A Long Walk")
TITLES = ("One Morning", "The Fox at Home", "Snow", "A Long Walk", "The Café", "Letters")


@dataclass(frozen=True)
class TinyCorpus:
    text: Path
    table: Path
    books: list[Book]

    def options(self):
        """The command line's corpus options."""
        return ["--text", str(self.text), "--table", str(self.table), "--held-out", *HELD_OUT]


def prose(seed, sentences):
    """Sentences of a small grammar, in paragraphs, with quotation marks and a few letters beyond ASCII."""
    rng = np.random.default_rng(seed)

    def one(*words):
        return str(rng.choice(words))

    def name():
        return "".join(one("ba", "lin", "tor", "mi", "shu", "rek") for _ in range(3)).title()

    def sentence():
        who = one("the fox", "the old man", "Mary", "a crow", "his sister", "Zoë", name())
        did = one("walked to", "looked at", "was afraid of", "came from", "remembered")
        what = one("the house", "the river", "the café", "a stone", "the 12 trees", "nothing")
        said = one("", "", ', and said "never"', '; "oh!" cried the crow', ", slowly")
        return f"{who} {did} {what}{said}."

    paragraphs = [
        " ".join(sentence() for _ in range(int(rng.integers(2, 6)))) for _ in range(sentences // 4)
    ]
    return "\n\n".join(paragraphs)


def learn_tokenizer(folder, texts, vocab_size):
    """The folder, with the file of a tokenizer that was learnt from these texts."""
    folder.mkdir(exist_ok=True)
    save_ranks(train_ranks(texts, vocab_size), folder / TOKENIZER_FILE)
    return folder


def trained(folder, config, recipe, ids, **options):
    """A run on the windows of these ids, validated on the same, to its end or as `options` say."""
    run = TrainingRun.start(config, recipe, folder)
    windows = TokenWindows(ids, config.context_length, recipe.stride)
    batches = Batches(
        windows, recipe.batch_size, recipe.seed, recipe.repeat_share, recipe.shuffle_share
    )
    run.train(batches, windows, progress=False, **options)
    return run


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    named = [(f"Author {letter}", title) for letter, title in zip("ABCDEF", TITLES, strict=True)]
    books = [Book(*names, 1800 + 7 * i, prose(i, 60 + 10 * i)) for i, names in enumerate(named)]
    text = folder / "books.txt.gz"
    table = folder / "books.tsv"
    with gzip.open(text, "wt", encoding="utf-8") as file:
        file.write(SEPARATOR.join(book.text for book in books) + "\n")
    rows = [
        f"{book.author}\t{book.title}\t{book.year}\t{len(book.text)}" for book in reversed(books)
    ]
    table.write_text("\n".join(["author\ttitle\tyear\tcharacters", *rows]) + "\n", encoding="utf-8")
    return TinyCorpus(text, table, books)
