"""The Attention page in Python: one head step by step, and what is said of it."""

import torch

import gptviz
from gptviz.analysis.attention import mean_writes
from gptviz.analysis.head_roles import role_table, roles
from gptviz.analysis.moved import pattern_moved


def weights(
    lm: gptviz.LanguageModel,
    text: str,
    block: int,
    head: int,
    average: bool = False,
    hide_first: bool = False,
    pattern: str = "changed",
    special_tokens: bool = False,
) -> torch.Tensor:
    """The large matrix of the page, (T, T): rows are queries and columns keys."""
    ids = lm.encode(text, special_tokens)[: lm.config.context_length]
    t = lm.trace(ids, keep=("attn", "q", "k", "v", "z"))

    q, k, v = t["q", block][head], t["k", block][head], t["v", block][head]  # (T, head_dim) each
    scores = q @ k.T  # (T, T): one dot product a pair
    scaled = scores / q.shape[-1] ** 0.5
    future = torch.ones_like(scores, dtype=torch.bool).triu(diagonal=1)
    masked = scaled.masked_fill(future, -torch.inf)
    weights = torch.softmax(masked, dim=-1)
    z = weights @ v  # (T, head_dim)
    if not lm.edits:  # what is changed in the model may stand in the place of these
        near = 1e-4 if lm.dtype == "float32" else 0.1
        torch.testing.assert_close(weights, t["attn", block][head], rtol=0, atol=near)  # what it computed
        torch.testing.assert_close(z, t["z", block][head], rtol=0, atol=near)

    table = role_table(roles(t), mean_writes(t, lm.model))  # what each head does on this text
    print(table[(table["block"] == block) & (table["head"] == head)].iloc[0].to_string())

    after = of_head(t, block, head, average, hide_first)
    if not lm.edits:
        return after
    plain = lm.plain.trace(ids, keep=("attn",))
    pair = [of_head(trace, block, head, average) for trace in (plain, t)]
    print("moved by", pattern_moved(*pair), "of each row, on average")  # half the sum of |difference|
    before = of_head(plain, block, head, average, hide_first)
    return {"changed": after, "unchanged": before, "difference": after - before}[pattern]


def of_head(t: gptviz.Trace, block: int, head: int, average: bool, hide_first: bool = False) -> torch.Tensor:
    """A head's weights, or the block's average, (T, T); `hide_first`: without the first token."""
    drawn = t["attn", block].mean(dim=0) if average else t["attn", block][head].clone()
    if hide_first:
        drawn[:, 0] = 0  # without the first token,
        drawn = drawn / drawn.sum(dim=-1, keepdim=True)  # every row is scaled up to sum to 1 again
        drawn[:, 0] = torch.nan  # row 0 has nothing else to look at: all of it is NaN
    return drawn
