"""The measurements of the model card: loss on held-out books, heads, copying, samples, size.

Loss is on books that were never trained on, in nats a token and in bits a byte. Copying is measured on random
tokens that are followed by themselves: nothing but looking back can predict the second half (Olsson et al.,
In-context Learning and Induction Heads, 2022).
"""

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import tiktoken
import torch
import torch.nn.functional as F
from safetensors import safe_open

from gptviz.analysis.head_formulas import induction_score, previous_token_score
from gptviz.engine.architecture import architecture_of
from gptviz.engine.generate import generate
from gptviz.engine.kinds import Model
from gptviz.engine.language_model import LanguageModel
from gptviz.models.checkpoints.looks import bytes_of
from gptviz.models.loading import load
from gptviz.tokenizer import END_OF_TEXT
from gptviz.training.baselines import fit_bigram
from gptviz.training.corpus import HELD_OUT, Book, encode_books, read_books, split_books
from gptviz.training.datasets import Ids
from gptviz.training.export import WEIGHTS, sha256_of

PREDICTORS = ("model", "model_sliding", "bigram", "unigram")
PERIODS = (50, 100)
SEEDS = tuple(range(8))
TEMPERATURE = 0.8  # of the samples

Score = dict[str, Any]
Predictor = Callable[[Ids], np.ndarray]  # (N,) ids -> (N-1,) nats of ids[1:]


def evaluate(
    folder: Path,
    text: Path,
    table: Path,
    held_out: Iterable[str] = HELD_OUT,
    limit: int | None = None,
) -> dict[str, Any]:
    """Return everything the card states, as a dict that JSON can hold.

    `limit` scores only the first tokens of each held-out book, for a quick look.
    """
    lm = load(folder)
    training, held_out_books = split_books(read_books(text, table), held_out)
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
                {
                    "author": book.author,
                    "title": book.title,
                    "year": book.year,
                    "characters": len(book.text),
                }
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
    """The metadata of the weights file, and its SHA-256, by which a card recognises it."""
    path = folder / WEIGHTS
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata() or {}
    return metadata | {"sha256": sha256_of(folder)}


# ---- loss on books that were never trained on ----


def score_book(
    book: Book,
    encoding: tiktoken.Encoding,
    predictors: Mapping[str, Predictor],
    limit: int | None = None,
) -> Score:
    """Score every token of a book (or its first `limit`) once, after one `<|endoftext|>`.

    The separator is context only, as it is between the books in training: every byte of the book
    is paid for, and nothing else.
    """
    text_ids = encoding.encode_ordinary(book.text)[:limit]
    ids = np.array([encoding.encode_single_token(END_OF_TEXT), *text_ids], dtype=np.int64)
    nats = {name: float(predict(ids).sum()) for name, predict in predictors.items()}
    return score(book.title, len(text_ids), len(encoding.decode_bytes(text_ids)), nats)


def score(title: str, tokens: int, bytes: int, nats: Mapping[str, float]) -> Score:
    """A text's cost for each predictor, from its nats for the whole: per token, and per byte.

    Bits per byte can be compared between tokenizers, nats per token cannot.
    """
    return {
        "title": title,
        "tokens": tokens,
        "bytes": bytes,
        "nats_per_token": {name: value / tokens for name, value in nats.items()},
        "bits_per_byte": {name: value / math.log(2) / bytes for name, value in nats.items()},
    }


def together(scores: list[Score]) -> Score:
    """Return all books as one text: sums of tokens, bytes and nats, so that long books weigh more."""
    tokens, bytes = (sum(book_score[unit] for book_score in scores) for unit in ("tokens", "bytes"))
    names = scores[0]["nats_per_token"]
    nats = {
        name: sum(
            book_score["nats_per_token"][name] * book_score["tokens"] for book_score in scores
        )
        for name in names
    }
    return score("all held-out books", tokens, bytes, nats)


@torch.inference_mode()
def model_nats(model: Model, ids: Ids, stride: int, batch_size: int = 8) -> np.ndarray:
    """-log P of ids[1:] under the model, each once. (N,) -> (N-1,).

    Windows of the full context start every `stride` tokens. With `stride` equal to the context
    they do not overlap, and the first tokens of each are predicted from little; with a smaller one each
    window scores only what the ones before it did not, so that context - stride tokens stand before it.
    Raises ValueError for a stride that is not between 1 and the context.
    """
    context = architecture_of(model).context_length(model)
    if not 1 <= stride <= context:
        raise ValueError(
            f"stride is {stride}; with a context of {context} it must be from 1 to {context}"
        )
    row = torch.from_numpy(np.asarray(ids).astype(np.int64))
    # windows with a target for every position
    full_windows = max(0, (len(row) - 1 - context) // stride + 1)
    parts = []
    for first in range(0, full_windows, batch_size):
        starts = [index * stride for index in range(first, min(first + batch_size, full_windows))]
        # (b, context + 1)
        windows = torch.stack([row[start : start + context + 1] for start in starts])
        losses = _losses(model, windows)  # (b, context)
        parts += [
            loss[0 if start == 0 else -stride :] for start, loss in zip(starts, losses, strict=True)
        ]
    done = sum(len(part) for part in parts)
    if done < len(row) - 1:
        start = full_windows * stride
        parts.append(_losses(model, row[None, start:])[0, done - start :])
    if parts:
        return torch.cat(parts).double().numpy()  # (N-1,)
    return np.zeros(0)


def _losses(model: Model, windows: torch.Tensor) -> torch.Tensor:
    """(b, T+1) ids -> (b, T) nats of windows[:, 1:]."""
    logits = model(windows[:, :-1])  # (b, T, V)
    # (b*T,)
    nats = F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten(), reduction="none")
    return nats.view(len(windows), -1)  # (b*T,) -> (b, T)


# ---- copying: random tokens that are followed by themselves ----


def repeated_tokens(lm: LanguageModel, period: int, seed: int) -> list[int]:
    """`period` ids drawn evenly from the ordinary tokens, followed by themselves: 2 * period ids."""
    # special ids are the last ones
    ordinary = lm.config.vocab_size - len(lm.tokenizer.special_tokens_set)
    passage = np.random.default_rng((seed, period)).integers(0, ordinary, period).tolist()
    return passage + passage


def head_scores(
    lm: LanguageModel, periods: Sequence[int] = PERIODS, seeds: Sequence[int] = SEEDS
) -> pd.DataFrame:
    """Return every head's mean attention, from 0 to 1, on repeated random tokens: over periods and seeds.

    Columns: block, head, induction (from a second occurrence to the token after the first), previous_token.
    """
    heads = pd.MultiIndex.from_product(map(range, (lm.config.n_layers, lm.config.n_heads)))
    scores = []
    for period, seed in product(periods, seeds):
        trace = lm.trace(repeated_tokens(lm, period, seed), keep=["attn"])
        # (L, H, T, T)
        attn = torch.stack([trace["attn", block] for block in range(lm.config.n_layers)])
        scores.append(torch.stack([induction_score(attn, period), previous_token_score(attn)]))
    means = torch.stack(scores).mean(0).flatten(1).T.double()  # (2, L, H) -> (L * H, 2)
    table = pd.DataFrame(means.numpy(), heads, ["induction", "previous_token"])
    return table.rename_axis(["block", "head"]).reset_index()


def copying_losses(
    lm: LanguageModel, periods: Sequence[int] = PERIODS, seeds: Sequence[int] = SEEDS
) -> pd.DataFrame:
    """Return nats per token on repeated random tokens, a row per period, means over the seeds.

    Columns: period, first_half, second_half, ratio (of the second to the first). The second half's first
    token cannot be foreseen and is counted; the first half's is not predicted. Raises ValueError for a model
    with edits.
    """
    if lm.edits:
        raise ValueError(
            "copying_losses is of a model as it is, and this one has edits: give lm.plain"
        )
    rows = []
    context = lm.config.context_length
    for period in periods:
        texts = [np.array(repeated_tokens(lm, period, seed)) for seed in seeds]
        # (seeds, 2 * period - 1)
        nats = np.stack([model_nats(lm.model, ids, context) for ids in texts])
        rows.append((period, nats[:, : period - 1].mean(), nats[:, period - 1 :].mean()))
    table = pd.DataFrame(rows, columns=["period", "first_half", "second_half"])
    return table.assign(ratio=table["second_half"] / table["first_half"])


# ---- writing on, and size ----


def samples(
    lm: LanguageModel,
    prompt: str = "Once upon a time",
    tokens: int = 60,
    seeds: Sequence[int] = (1, 2, 3),
) -> list[dict[str, Any]]:
    """Return the prompt continued, once a seed; the first seeds there are, not the best of many."""
    settings = {"prompt": prompt, "temperature": TEMPERATURE, "tokens": tokens}
    last_steps = {
        seed: [*generate(lm, prompt, tokens, TEMPERATURE, seed=seed)][-1] for seed in seeds
    }
    return [
        settings | {"seed": seed, "text": last.text_so_far} for seed, last in last_steps.items()
    ]


def footprint(folder: Path) -> dict[str, Any]:
    """Return bytes on disk, parameters, and seconds to load: the median of three, with torch in memory."""
    seconds = []
    for _ in range(3):
        began = time.perf_counter()
        lm = load(folder)
        seconds.append(time.perf_counter() - began)
    return {
        "bytes": bytes_of(folder),
        # a tied one once
        "parameters": sum(parameter.numel() for parameter in lm.model.parameters()),
        "load_seconds": sorted(seconds)[1],
    }
