"""The paths to a word in Python: the graph's edges, and the largest head taken apart by hand."""

import pandas as pd
import torch

import gptviz
from gptviz.analysis import attribution
from gptviz.analysis.paths import paths


def edges(
    lm: gptviz.LanguageModel,
    text: str,
    token: int,
    against: int | None = None,
    position: int = -1,
    threshold: float = 0.005,
    most: int = 32,
    special_tokens: bool = False,
) -> pd.DataFrame:
    """The edges that the picture draws: of `threshold` of the word's parts and more, the `most` largest."""
    ids = lm.encode(text, special_tokens)[: lm.config.context_length]
    t = lm.trace(ids)
    found = paths(t, lm.model, token, against, position)
    print(f"all that is written to the word sums to {found.total:.4f}; shares are of {found.scale:.4f}")

    direct = attribution(t, lm.model, token, against, position)
    near = 1e-4 * max(1.0, found.scale) if lm.dtype == "float32" else 0.05 * found.scale
    assert abs(direct["contribution"].sum() - found.total) < near

    heads = direct[direct["part"] == "head"]
    largest = heads.loc[heads["contribution"].abs().idxmax()]
    block, head = int(largest["block"]), int(largest["head"])
    by_source = what_it_read(lm, t, token, against, position, block, head)
    print(f"block {block}, head {head} wrote {largest['contribution']:.4f}, read from each token:")
    print([round(value, 4) for value in by_source.tolist()])
    assert abs(by_source.sum() - largest["contribution"]) < near
    return found.above(threshold, most)


def what_it_read(
    lm: gptviz.LanguageModel,
    t: gptviz.Trace,
    token: int,
    against: int | None,
    position: int,
    block: int,
    head: int,
) -> torch.Tensor:
    """One head's direct part of the word by the token that it was read from: (T,), exact."""
    model, att = lm.model, lm.model.trf_blocks[block].att
    x = t["resid_post", lm.config.n_layers - 1][position]
    std = torch.sqrt(x.var(unbiased=False) + model.final_norm.eps)  # frozen at what it is here
    rows = model.out_head.weight.detach().float().cpu()
    word = rows[token] - (rows.mean(dim=0) if against is None else rows[against])
    word = word * model.final_norm.scale.detach().cpu()
    word = (word - word.mean()) / std  # (D,): what a number of the stream is worth for the word

    columns = slice(head * att.head_dim, (head + 1) * att.head_dim)
    out = att.out_proj.weight.detach().float().cpu()[:, columns]  # (D, head_dim)
    values = t["v", block][head] @ (out.T @ word)  # (T,)
    return t["attn", block][head, position] * values
