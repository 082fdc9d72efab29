"""The measurements of the model card: loss on held-out books, heads, copying, samples, size."""

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from safetensors import safe_open

from gptviz.loading import load
from gptviz.training.abilities import PERIODS, SEEDS, copying_losses, footprint, head_scores, samples
from gptviz.training.baselines import fit_bigram
from gptviz.training.corpus import HELD_OUT, encode_books, read_books, split_books
from gptviz.training.export import WEIGHTS
from gptviz.training.held_out import Predictor, model_nats, score_book, together

PREDICTORS = ("model", "model_sliding", "bigram", "unigram")


def evaluate(
    folder: Path,
    text_path: Path,
    table_path: Path,
    held_out: Iterable[str] = HELD_OUT,
    limit: int | None = None,
) -> dict[str, Any]:
    """Return everything the card states, as a dict that JSON can hold.

    `limit` scores only the first tokens of each held-out book, for a quick look.
    """
    lm = load(folder)
    training, held_out_books = split_books(read_books(text_path, table_path), held_out)
    bigram = fit_bigram(encode_books(lm.tokenizer, training), lm.config.vocab_size)
    context = lm.config.context_length
    half = max(1, context // 2)
    predictors: dict[str, Predictor] = {
        "unigram": bigram.unigram.nats,
        "bigram": bigram.nats,
        "model": lambda ids: model_nats(lm.model, ids, context),
        "model_sliding": lambda ids: model_nats(lm.model, ids, half),
    }
    scores = [score_book(book, lm.tokenizer, predictors, limit) for book in held_out_books]
    return {
        "weights": weights_of(folder),
        "footprint": footprint(folder),
        "books": {
            part: [
                {"author": book.author, "title": book.title, "year": book.year, "characters": len(book.text)}
                for book in books
            ]
            for part, books in (("training", training), ("held_out", held_out_books))
        },
        "held_out": {
            "books": scores,
            "together": together(scores),
            "windows": {"model": context, "model_sliding": half},
            "bigram_strength": bigram.strength,
            "limit": limit,
        },
        "sequences": {"periods": PERIODS, "draws": len(PERIODS) * len(SEEDS)},
        "heads": head_scores(lm).to_dict("records"),
        "copying": copying_losses(lm).to_dict("records"),
        "samples": samples(lm),
    }


def weights_of(folder: Path) -> dict[str, str]:
    """Return what the weights file says of itself, and its SHA-256, by which a card knows it again."""
    path = folder / WEIGHTS
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata() or {}
    return metadata | {"sha256": hashlib.sha256(path.read_bytes()).hexdigest()}
