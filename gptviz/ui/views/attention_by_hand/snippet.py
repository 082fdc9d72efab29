"""The Attention by hand page in Python: from vectors to context, with nothing but torch."""

from collections.abc import Sequence

import torch

Matrix = Sequence[Sequence[float]]


def attention(x: Matrix, heads: Sequence[Sequence[Matrix]] = (), causal: bool = False) -> torch.Tensor:
    """Every word's context, (T, heads * d): `x` (T, 3) are the words' vectors.

    `heads` has W_query, W_key and W_value of each, (3, d). Without any the vectors are queries, keys
    and values themselves, and nothing is scaled.
    """
    vectors = torch.tensor(x, dtype=torch.float64)
    contexts = []
    for matrices in heads or [()]:
        if not matrices:
            queries = keys = values = vectors
            scores = queries @ keys.T  # (T, T): one dot product a pair
        else:
            queries, keys, values = (vectors @ torch.tensor(w, dtype=torch.float64) for w in matrices)
            scores = queries @ keys.T / queries.shape[1] ** 0.5
        if causal:
            future = torch.ones_like(scores, dtype=torch.bool).triu(diagonal=1)
            scores = scores.masked_fill(future, -torch.inf)
        weights = torch.softmax(scores, dim=-1)  # each row sums to 1
        contexts.append(weights @ values)
        print("weights", weights, "context", contexts[-1], sep="\n")

    # the averaging trick: a loop, a matrix, softmax
    loop = torch.stack([vectors[: t + 1].mean(dim=0) for t in range(len(vectors))])
    ones = torch.ones(len(vectors), len(vectors), dtype=torch.float64)
    shares = ones.tril() / ones.tril().sum(dim=1, keepdim=True)
    zeros = torch.zeros_like(ones).masked_fill(ones.triu(diagonal=1) == 1, -torch.inf)
    torch.testing.assert_close(shares @ vectors, loop)
    torch.testing.assert_close(torch.softmax(zeros, dim=-1) @ vectors, loop)

    return torch.cat(contexts, dim=1)  # the heads side by side
