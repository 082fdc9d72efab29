"""Train a byte-level BPE with the `tokenizers` library and write it as tiktoken ranks."""

import base64
from collections.abc import Iterable, Iterator
from pathlib import Path

from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from tokenizers.pre_tokenizers import ByteLevel

from gptviz.tokenizer.files import bytes_of


def train_ranks(texts: Iterable[str], vocab_size: int) -> dict[bytes, int]:
    """Learn a vocabulary of `vocab_size` entries; return tiktoken's ranks, token bytes -> rank.

    The ranks hold `vocab_size - 1` tokens: the last id is left for `<|endoftext|>`. Raises ValueError
    when `vocab_size` leaves no room for a merge, or the text has too few.
    """
    return ranks_of(train_tokenizer(texts, vocab_size))


def train_tokenizer(texts: Iterable[str], vocab_size: int) -> Tokenizer:
    """Train the library's own tokenizer with `vocab_size - 1` entries; text is cut with GPT-2's regex."""
    if vocab_size < 258:
        raise ValueError(
            f"vocab_size is {vocab_size}; 256 bytes, <|endoftext|> and a merge need 258 or more"
        )
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size - 1, initial_alphabet=ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator(_paragraphs(texts), trainer)
    if tokenizer.get_vocab_size() != vocab_size - 1:
        learnt = tokenizer.get_vocab_size() + 1
        raise ValueError(f"the text is too small for {vocab_size} tokens: it gave only {learnt}")
    return tokenizer


def ranks_of(tokenizer: Tokenizer) -> dict[bytes, int]:
    """Return token bytes -> rank: the 256 single bytes first, then every merge in the order it was learnt."""
    vocabulary = tokenizer.get_vocab()
    merged = [
        bytes_of(text) for text in sorted(vocabulary, key=vocabulary.__getitem__) if len(text) > 1
    ]
    return {token: rank for rank, token in enumerate([*(bytes([i]) for i in range(256)), *merged])}


def _paragraphs(texts: Iterable[str]) -> Iterator[str]:
    """Yield books in pieces, for the trainer's parallel work: no token reaches over an empty line."""
    for text in texts:
        first, *later = text.split("\n\n")
        yield first
        yield from ("\n\n" + paragraph for paragraph in later)


def save_ranks(ranks: dict[bytes, int], path: Path) -> None:
    """Write tiktoken's own file format: a line a token, base64 of its bytes, a space, its rank."""
    lines = [
        base64.b64encode(t) + b" %d\n" % rank
        for rank, t in sorted((r, t) for t, r in ranks.items())
    ]
    path.write_bytes(b"".join(lines))
