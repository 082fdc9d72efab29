"""The training text: a gzip of books separated by `<|endoftext|>`, and the table that names them."""

import csv
import gzip
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import islice, repeat
from pathlib import Path

import numpy as np
import tiktoken

from gptviz.tokenizer import END_OF_TEXT, encoding_from_ranks
from gptviz.training.datasets import Ids, PassageWindows
from gptviz.training.world.passages import passages

SEPARATOR = f"\n{END_OF_TEXT}\n"
TOKENIZER_FILE = "tokenizer.tiktoken"
NEVER_IN_TEXT = b"\xff"  # a byte that UTF-8 does not use, and so the token of it
WORLD_FILE = "world.npz"
TRAINING_FILE = "training.npy"
HELD_OUT_FILE = "held_out.npy"
SPLIT_FILE = "held_out.json"
# what `encoded_corpus` leaves in a run's folder
ENCODED = (TRAINING_FILE, HELD_OUT_FILE, TOKENIZER_FILE, SPLIT_FILE)
WORLD_PART = 20_000  # passages that one process makes at a time

# Never trained on, by the tokenizer either: five authors, whole books, from 1818 to 1911.
# "The Wind in the Willows" is its author's only book in the corpus.
HELD_OUT = (
    "Ethan Frome",
    "Persuasion",
    "The Hound of the Baskervilles",
    "The Time Machine",
    "The Wind in the Willows",
)


@dataclass(frozen=True)
class Book:
    author: str
    title: str
    year: int
    text: str


def read_books(text_path: Path, table_path: Path) -> list[Book]:
    """Every book of the corpus, in the order of the text.

    The table is in another order and has no numbers; the count of characters tells which row is
    whose. Raises ValueError where that does not match one to one.
    """
    with gzip.open(text_path, "rt", encoding="utf-8") as file:
        texts = file.read().removesuffix("\n").split(SEPARATOR)
    with open(table_path, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    by_length = {int(row["characters"]): row for row in rows}
    lengths = sorted(len(text) for text in texts)
    if len(by_length) != len(rows) or sorted(by_length) != lengths:
        raise ValueError(
            f"{table_path.name} has {len(rows)} rows with {len(by_length)} different numbers of characters, "
            f"{text_path.name} holds {len(texts)} books; the numbers must match one to one"
        )
    pairs = [(by_length[len(text)], text) for text in texts]
    return [Book(row["author"], row["title"], int(row["year"]), text) for row, text in pairs]


def split_books(
    books: list[Book], held_out: Iterable[str] = HELD_OUT
) -> tuple[list[Book], list[Book]]:
    """(training books, held-out books); raises ValueError for a held-out title that is not there."""
    titles = set(held_out)
    missing = titles - {book.title for book in books}
    if missing:
        raise ValueError(f"held-out books not in the corpus: {', '.join(sorted(missing))}")
    training = [book for book in books if book.title not in titles]
    return training, [book for book in books if book.title in titles]


def encode_books(encoding: tiktoken.Encoding, books: Iterable[Book]) -> Ids:
    """One row of ids, each book followed by the separator token; 16 bits an id where they are enough."""
    kind = np.uint16 if encoding.n_vocab <= 2**16 else np.uint32
    end = encoding.encode_single_token(END_OF_TEXT)
    texts = [book.text for book in books]
    encoded = encoding.encode_ordinary_batch(texts, num_threads=os.cpu_count() or 1)
    parts = [np.array([*ids, end], dtype=kind) for ids in encoded]
    if parts:
        return np.concatenate(parts)
    return np.zeros(0, dtype=kind)


def encoded_corpus(
    text_path: Path,
    table_path: Path,
    tokenizer: Path,
    work: Path,
    held_out: Iterable[str] = HELD_OUT,
) -> tuple[Ids, Ids, int]:
    """(ids of the training books, of the held-out books, size of the vocabulary), encoded once into `work`.

    `tokenizer` is the folder of a rank file, which is copied into `work`, beside the ids that it
    made. Raises ValueError if `work` holds the ids of another tokenizer or of another split.
    """
    encoding = encoding_from_ranks(tokenizer / TOKENIZER_FILE)
    own_ranks = work / TOKENIZER_FILE
    own_split = work / SPLIT_FILE
    cached = work / TRAINING_FILE, work / HELD_OUT_FILE
    split = sorted(held_out)
    if not all(path.exists() for path in (*cached, own_ranks, own_split)):
        work.mkdir(parents=True, exist_ok=True)
        for path, books in zip(
            cached, split_books(read_books(text_path, table_path), split), strict=True
        ):
            np.save(path, encode_books(encoding, books))
        shutil.copyfile(tokenizer / TOKENIZER_FILE, own_ranks)
        own_split.write_text(json.dumps(split, indent=1) + "\n", encoding="utf-8")
    if own_ranks.read_bytes() != (tokenizer / TOKENIZER_FILE).read_bytes():
        raise ValueError(
            f"{work} holds a corpus encoded with another tokenizer; give another --work folder"
        )
    if json.loads(own_split.read_text(encoding="utf-8")) != split:
        raise ValueError(
            f"{work} holds a corpus with other held-out books; give another --work folder"
        )
    training, held_out_ids = (np.load(path, mmap_mode="r") for path in cached)
    return training, held_out_ids, encoding.n_vocab


# ---- the small world: the second kind of training text ----


def write_world(
    tokenizer: Path, work: Path, parts: int, seed: int, processes: int
) -> tuple[int, int]:
    """Write `parts` times 20,000 passages as ids into `work`; return the number of passages, and of tokens.

    Each part has a seed of its own, so that the text is the same whatever the number of processes.
    """
    work.mkdir(parents=True, exist_ok=True)
    seeds = range(seed * 1_000_000, seed * 1_000_000 + parts)
    if processes == 1:
        encoded = [_world_part(tokenizer, part) for part in seeds]
    else:
        with ProcessPoolExecutor(processes) as pool:
            encoded = list(pool.map(_world_part, repeat(tokenizer), seeds))
    lengths = np.concatenate([part_lengths for _, part_lengths in encoded])  # (passages,)
    ids = np.concatenate([part_ids for part_ids, _ in encoded])  # (tokens of all passages,)
    starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])  # (passages,)
    np.savez(work / WORLD_FILE, ids=ids, starts=starts)
    return len(lengths), len(ids)


def read_world(work: Path, max_length: int) -> PassageWindows:
    """The passages that `write_world` left in `work`. Raises FileNotFoundError where there are none."""
    path = work / WORLD_FILE
    if not path.exists():
        raise FileNotFoundError(
            f"no {path}: run `python -m gptviz.training world --work {work} ...`"
        )
    with np.load(path) as saved:
        return PassageWindows(saved["ids"], saved["starts"], max_length)


def world_sample(characters: int, seed: int = 0) -> Iterator[str]:
    """Yield passages of the small world until they have this many characters."""
    endless = passages(seed)
    count = 0
    while count < characters:
        passage = next(endless)
        yield passage
        count += len(passage)


def _world_part(tokenizer: Path, seed: int) -> tuple[Ids, np.ndarray]:
    """(ids of 20,000 passages, each followed by the separator token; the number of ids of each)."""
    encoding = encoding_from_ranks(tokenizer / TOKENIZER_FILE)
    end = encoding.encode_single_token(END_OF_TEXT)
    encoded = [
        [*encoding.encode_ordinary(text), end] for text in islice(passages(seed), WORLD_PART)
    ]
    lengths = np.array([len(ids) for ids in encoded])
    return np.concatenate([np.array(ids, dtype=np.uint16) for ids in encoded]), lengths
