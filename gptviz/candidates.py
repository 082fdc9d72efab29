"""What could come next: a table of one row of logits."""

import pandas as pd
import tiktoken
import torch

from gptviz.sampling import Sampling, distribution
from gptviz.tokenizer import named_bytes


def next_tokens_of(
    tokenizer: tiktoken.Encoding, logits: torch.Tensor, k: int, sampling: Sampling
) -> pd.DataFrame:
    """The `k` most probable tokens of one row of logits (V,): see `Trace.next_tokens`."""
    if k < 1:
        raise ValueError(f"k is {k}; ask for at least 1 token")
    chosen = distribution(logits, sampling)
    ids = chosen.order[:k]
    return pd.DataFrame(
        {
            "rank": range(1, len(ids) + 1),
            "id": ids.numpy(),
            "token": [named_bytes(tokenizer, i).decode("utf-8", "replace") for i in ids.tolist()],
            "logit": logits[ids].numpy(),
            "probability": chosen.probabilities[ids].numpy(),
        }
    )
