"""What could come next: a table of one row of logits."""

import pandas as pd
import tiktoken
import torch

from gptviz.engine.index import whole
from gptviz.engine.sampling import Sampling, distribution
from gptviz.tokenizer import named_bytes


def next_tokens_of(
    tokenizer: tiktoken.Encoding, logits: torch.Tensor, k: int, sampling: Sampling, cut: bool = False
) -> pd.DataFrame:
    """The `k` most probable tokens of one row of logits (V,): see `Trace.next_tokens`.

    With `cut` only those that the filters left. ValueError for a `k` that is no whole number from 1 on.
    """
    k = whole("k", k, 1)
    chosen = distribution(logits, sampling)
    ids = chosen.order[: min(k, int(chosen.kept.sum())) if cut else k]
    return pd.DataFrame(
        {
            "rank": range(1, len(ids) + 1),
            "id": ids.numpy(),
            "token": [named_bytes(tokenizer, i).decode("utf-8", "replace") for i in ids.tolist()],
            "logit": logits[ids].numpy(),
            "probability": chosen.probabilities[ids].numpy(),
        }
    )
