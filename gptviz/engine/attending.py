"""Attention for tokens that come after others, whose keys and values are known: of each class of model.

The first argument is a model's own attention module. `append` takes the new tokens' keys and values, and
gives them behind those of the earlier tokens, as `Past.append` does.

Shapes: B texts in the batch, H heads, K groups of heads, d head_dim, D emb_dim, n earlier tokens, t new ones.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gptviz.fast import kernels
from gptviz.fast.attention import attention
from gptviz.llama import apply_rope

# keys and values of the new tokens, (B, H, t, d) each, or (B, K, t, d) -> those of all, (B, H, n + t, d)
Append = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]


def attend(att: Any, x: Tensor, first: int, append: Append) -> Tensor:
    """GPT-2's attention for the new tokens, (B, t, D) -> (B, t, D). Their position, `first`, is not needed."""
    if kernels.serves(x):
        return attention(att, x, append)
    b, t, _ = x.shape

    def by_heads(rows: Tensor) -> Tensor:  # (B, t, D) -> (B, t, H, D/H) -> (B, H, t, D/H)
        return rows.view(b, t, att.num_heads, att.head_dim).transpose(1, 2)

    # of the new tokens only; earlier queries are not needed again
    queries = by_heads(att.W_query(x))
    # (B, H, n + t, D/H)
    keys, values = append(by_heads(att.W_key(x)), by_heads(att.W_value(x)))
    n = keys.shape[2] - t

    attn_scores = queries @ keys.transpose(2, 3)  # (B, H, t, n + t)
    attn_scores.masked_fill_(att.mask(t, before=n, device=x.device), -torch.inf)
    attn_weights = att.dropout(torch.softmax(attn_scores / att.head_dim**0.5, dim=-1))

    context_vec = (attn_weights @ values).transpose(1, 2)  # (B, t, H, D/H)
    return att.out_proj(context_vec.reshape(b, t, att.d_out))  # heads side by side


def attend_in_groups(att: Any, x: Tensor, first: int, append: Append) -> Tensor:
    """Llama's attention for the new tokens, from position `first` on: (B, t, D) -> (B, t, D).

    The keys that `append` takes and gives are turned already: a later token needs no other ones.
    """
    b, t, _ = x.shape

    def by_groups(rows: Tensor, count: int) -> Tensor:
        # (B, t, count * d) -> (B, t, count, d) -> (B, count, t, d)
        return rows.view(b, t, count, att.head_dim).transpose(1, 2)

    queries = by_groups(att.W_query(x), att.num_heads)
    keys = by_groups(att.W_key(x), att.num_kv_groups)
    values = by_groups(att.W_value(x), att.num_kv_groups)
    if att.q_norm is not None:
        queries = att.q_norm(queries)
        keys = att.k_norm(keys)
    cos, sin = att.rope(t, before=first, device=x.device)  # (t, d) each
    queries = att.rotated_queries(apply_rope(queries, cos, sin))
    keys = att.rotated_keys(apply_rope(keys, cos, sin))
    keys, values = append(keys, values)  # (B, K, n + t, d)
    n = keys.shape[2] - t
    # (B, K, n + t, d) -> (B, H, n + t, d)
    keys = keys.repeat_interleave(att.group_size, dim=1)
    values = values.repeat_interleave(att.group_size, dim=1)

    attn_scores = queries @ keys.transpose(2, 3)  # (B, H, t, n + t)
    attn_scores.masked_fill_(att.mask(t, before=n, device=x.device), -torch.inf)
    attn_weights = att.attn_weights(torch.softmax(attn_scores / att.head_dim**0.5, dim=-1))

    context_vec = (attn_weights @ values).transpose(1, 2)  # (B, t, H, d)
    return att.out_proj(context_vec.reshape(b, t, att.d_out))  # heads side by side
