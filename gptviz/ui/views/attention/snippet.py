"""The Python behind the Attention page."""

from gptviz import Trace


def attention(
    model: str,
    text: str,
    block: int,
    head: int,
    average: bool = False,
    hide_first: bool = False,
    special: bool = False,
) -> str:
    """Ends in `picture`: the large matrix of the page, (T, T), rows are queries and columns keys."""
    taken = (
        't["attn", block].mean(dim=0)  # (T, T): over the block\'s heads' if average else "weights  # (T, T)"
    )
    hidden = """
picture[:, 0] = 0  # without the first token,
picture = picture / picture.sum(dim=-1, keepdim=True)  # every row sums to 1 again
picture[:, 0] = torch.nan  # row 0 has nothing else to look at: all of it is NaN
"""
    return f"""\
import torch

import gptviz

lm = gptviz.load({model})
ids = lm.encode({text!r}, special_tokens={special})[: lm.config.context_length]
t = lm.trace(ids, keep=("attn", "q", "k", "v", "z"))

block, head = {block}, {head}
q, k, v = t["q", block][head], t["k", block][head], t["v", block][head]  # (T, head_dim) each
scores = q @ k.T  # (T, T): one dot product a pair
scaled = scores / q.shape[-1] ** 0.5
future = torch.ones_like(scores, dtype=torch.bool).triu(diagonal=1)
masked = scaled.masked_fill(future, -torch.inf)
weights = torch.softmax(masked, dim=-1)
z = weights @ v  # (T, head_dim)
near = {{"rtol": 0, "atol": 1e-4 if lm.dtype == "float32" else 0.05}}
torch.testing.assert_close(weights, t["attn", block][head], **near)  # what the model computed
torch.testing.assert_close(z, t["z", block][head], **near)

picture = {taken}
{hidden if hide_first else ""}"""


def shapes(trace: Trace) -> dict[str, str]:
    """The live shapes of what `MultiHeadAttention.forward` has in its hands."""
    config, n_tokens = trace.config, len(trace.tokens)
    heads, d = config.n_heads, config.emb_dim // config.n_heads
    return {
        "x": f"(1, {n_tokens}, {config.emb_dim})",
        "queries, keys, values": f"(1, {heads}, {n_tokens}, {d}) after the split",
        "attn_scores, attn_weights": f"(1, {heads}, {n_tokens}, {n_tokens})",
        "context_vec": f"(1, {n_tokens}, {config.emb_dim})",
    }
