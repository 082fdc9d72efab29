"""What attention costs as the text grows: T x T scores, in time and in memory, measured where it runs."""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pandas as pd
import torch

from gptviz.engine import forward

SIZES = (64, 128, 256, 512, 1024)
REPEATS = 5


@dataclass(frozen=True)
class Cost:
    """One block's attention over T tokens: seconds (the quickest of a few), bytes of scores and weights."""

    tokens: int
    seconds: float
    bytes: int


def measure(
    heads: int, head_dim: int, sizes: Sequence[int] = SIZES, repeats: int = REPEATS
) -> Iterator[Cost]:
    """A `Cost` for each size, as it is measured; whoever stops asking stops the measurement.

    Scores, mask, softmax and weights times values, as the book writes them, on random numbers. ValueError
    for sizes below 1 and for no repeats, before anything is measured.
    """
    if min((*sizes, repeats, heads, head_dim)) < 1:
        raise ValueError("sizes, repeats, heads and head_dim must all be at least 1")
    return _measure(heads, head_dim, sizes, repeats)


def _measure(heads: int, head_dim: int, sizes: Sequence[int], repeats: int) -> Iterator[Cost]:
    for tokens in sizes:
        draw = torch.Generator().manual_seed(tokens)
        q, k, v = torch.randn(3, heads, tokens, head_dim, generator=draw)  # (H, T, d) each
        mask = torch.triu(torch.ones(tokens, tokens, dtype=torch.bool), diagonal=1)
        times, held = [], 0
        for _ in range(repeats + 1):  # the first one warms up
            with forward.alone(), torch.inference_mode():
                start = time.perf_counter()
                held = attend(q, k, v, mask)
                times.append(time.perf_counter() - start)
        yield Cost(tokens, min(times[1:]), held)


def attend(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor) -> int:
    """The book's attention, (H, T, d) each; gives the bytes of its two T x T matrices a head."""
    scores = q @ k.transpose(-2, -1)  # (H, T, T)
    weights = torch.softmax(scores.masked_fill_(mask, -torch.inf) / math.sqrt(q.shape[-1]), dim=-1)
    _ = weights @ v  # (H, T, d)
    return scores.nbytes + weights.nbytes


def table(measured: Sequence[Cost]) -> pd.DataFrame:
    """A row a size: tokens, seconds, bytes, and how many times the last one's of each it should be by T^2.

    Columns: tokens, seconds, bytes, seconds by T^2 (from the largest size measured), times (this size's time
    over that of the one before; NaN for the first).
    """
    frame = pd.DataFrame([vars(cost) for cost in measured], columns=["tokens", "seconds", "bytes"])
    if len(frame):
        last = frame.iloc[-1]
        frame["seconds by T²"] = last["seconds"] * (frame["tokens"] / last["tokens"]) ** 2
        frame["times"] = frame["seconds"] / frame["seconds"].shift(1)
    return frame
