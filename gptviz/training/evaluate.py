"""The measurements of the model card: loss on held-out books, heads, copying, samples, size."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from safetensors import safe_open

from gptviz.loading import load
from gptviz.training.abilities import PERIODS, SEEDS, copying_losses, footprint, head_scores, samples
from gptviz.training.baselines import fit_bigram
from gptviz.training.corpus import HELD_OUT, Book, encode_books, read_books, split_books
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
    """Everything the card states, as a dict that JSON can hold.

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
        "books": {"training": _names(training), "held_out": _names(held_out_books)},
        "held_out": {
            "books": [score.to_dict() for score in scores],
            "together": together(scores).to_dict(),
            "windows": {"model": context, "model_sliding": half},
            "bigram_strength": bigram.strength,
            "limit": limit,
        },
        "sequences": {"periods": PERIODS, "draws": len(PERIODS) * len(SEEDS)},
        "heads": [asdict(score) for score in head_scores(lm)],
        "copying": [loss.to_dict() for loss in copying_losses(lm)],
        "samples": samples(lm),
    }


def weights_of(folder: Path) -> dict[str, str]:
    """What the weights file says of itself, and its SHA-256, by which a card knows it again."""
    path = folder / WEIGHTS
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata() or {}
    return metadata | {"sha256": hashlib.sha256(path.read_bytes()).hexdigest()}


def _names(books: list[Book]) -> list[dict[str, Any]]:
    return [
        {"author": book.author, "title": book.title, "year": book.year, "characters": len(book.text)}
        for book in books
    ]


def best_head(heads: list[dict[str, Any]], score: str) -> dict[str, Any]:
    """The head with the highest `score`, "induction" or "previous_token"."""
    return max(heads, key=lambda head: head[score])


def report(result: dict[str, Any]) -> str:
    """The measurements as a screen of text."""
    return "\n".join(_report_lines(result))


def _report_lines(result: dict[str, Any]) -> Iterator[str]:
    held_out = result["held_out"]
    yield f"{'nats per token | bits per byte':34}" + "".join(f"{name:>16}" for name in PREDICTORS)
    for score in [*held_out["books"], held_out["together"]]:
        nats, bits = score["nats_per_token"], score["bits_per_byte"]
        yield f"{score['title']:34}" + "".join(
            f"{f'{nats[name]:.3f} | {bits[name]:.3f}':>16}" for name in PREDICTORS
        )
    yield ""
    for name in ("induction", "previous_token"):
        best = best_head(result["heads"], name)
        where = f"block {best['block']}, head {best['head']}"
        yield f"best {name.replace('_', '-')} score: {best[name]:.3f} ({where})"
    for loss in result["copying"]:
        yield (
            f"{loss['period']} random tokens, twice: loss {loss['first_half']:.2f} on the first half, "
            f"{loss['second_half']:.2f} on the second, ratio {loss['ratio']:.3f}"
        )
    size = result["footprint"]
    yield f"{size['bytes'] / 1e6:.1f} MB, {size['parameters']:,} parameters"
    yield f"loads in {size['load_seconds']:.2f} s"
    for sample in result["samples"]:
        yield f"\nseed {sample['seed']}: {sample['text']}"
