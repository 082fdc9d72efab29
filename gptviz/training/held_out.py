"""Loss on books that were never trained on, in nats a token and in bits a byte."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tiktoken
import torch
import torch.nn.functional as F

from gptviz.model import GPTModel
from gptviz.tokenizer import END_OF_TEXT
from gptviz.training.corpus import Book
from gptviz.training.datasets import Ids

Score = dict[str, Any]
Predictor = Callable[[Ids], np.ndarray]  # (N,) ids -> (N-1,) nats of ids[1:]


def score_book(
    book: Book, encoding: tiktoken.Encoding, predictors: Mapping[str, Predictor], limit: int | None = None
) -> Score:
    """Return what a book costs: every token of it (or its first `limit`) once, after one `<|endoftext|>`.

    The separator is context only, as it is between the books in training: every byte of the book
    is paid for, and nothing else.
    """
    text_ids = encoding.encode_ordinary(book.text)[:limit]
    ids = np.array([encoding.encode_single_token(END_OF_TEXT), *text_ids], dtype=np.int64)
    nats = {name: float(predict(ids).sum()) for name, predict in predictors.items()}
    return score(book.title, len(text_ids), len(encoding.decode_bytes(text_ids)), nats)


def score(title: str, tokens: int, bytes: int, nats: Mapping[str, float]) -> Score:
    """Return what a text costs each predictor, of its nats for all of it: per token, and in bits per byte.

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
    tokens, bytes = (sum(one[unit] for one in scores) for unit in ("tokens", "bytes"))
    names = scores[0]["nats_per_token"]
    nats = {name: sum(one["nats_per_token"][name] * one["tokens"] for one in scores) for name in names}
    return score("all held-out books", tokens, bytes, nats)


@torch.inference_mode()
def model_nats(model: GPTModel, ids: Ids, stride: int, batch_size: int = 8) -> np.ndarray:
    """-log P of ids[1:] under the model, each once. (N,) -> (N-1,).

    Windows of the full context start every `stride` tokens. With `stride` equal to the context
    they do not overlap, and the first tokens of each are predicted from little; with a smaller one each
    window scores only what the ones before it did not, so that context - stride tokens stand before it.
    Raises ValueError for a stride that is not between 1 and the context.
    """
    context = model.pos_emb.num_embeddings
    if not 1 <= stride <= context:
        raise ValueError(f"stride is {stride}; with a context of {context} it must be from 1 to {context}")
    row = torch.from_numpy(np.asarray(ids).astype(np.int64))
    whole = max(0, (len(row) - 1 - context) // stride + 1)  # windows with a target for every position
    parts = []
    for first in range(0, whole, batch_size):
        starts = [index * stride for index in range(first, min(first + batch_size, whole))]
        windows = torch.stack([row[start : start + context + 1] for start in starts])  # (b, context + 1)
        losses = _losses(model, windows)  # (b, context)
        parts += [loss[0 if start == 0 else -stride :] for start, loss in zip(starts, losses, strict=True)]
    done = sum(len(part) for part in parts)
    if done < len(row) - 1:
        start = whole * stride
        parts.append(_losses(model, row[None, start:])[0, done - start :])
    return torch.cat(parts).double().numpy() if parts else np.zeros(0)


def _losses(model: GPTModel, windows: torch.Tensor) -> torch.Tensor:
    """(b, T+1) ids -> (b, T) nats of windows[:, 1:]."""
    logits = model(windows[:, :-1])  # (b, T, V)
    nats = F.cross_entropy(logits.flatten(0, 1), windows[:, 1:].flatten(), reduction="none")  # (b*T,)
    return nats.view(len(windows), -1)  # (b*T,) -> (b, T)
