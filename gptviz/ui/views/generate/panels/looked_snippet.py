"""Where a head looked when the next token was written, in Python."""

from collections.abc import Sequence

import torch

import gptviz


def last_row(
    lm: gptviz.LanguageModel,
    text: str,
    position: int,
    block: int,
    head: int,
    key: int = 0,
    new: Sequence[int] = (),
    special_tokens: bool = False,
) -> torch.Tensor:
    """The attention of the last token, of a text up to a position and what was written after it: (T,)."""
    ids = lm.encode(text, special_tokens)[: position + 1]
    ids = [*ids, *new][-lm.config.context_length :]
    t = lm.trace(ids, keep=["q", "k", "attn"])
    row = t["attn", block][head, -1]  # (T,)

    q, k = t["q", block][head, -1], t["k", block][head]  # (d,) and (T, d): the last one may see all of them
    by_hand = torch.softmax(k @ q / len(q) ** 0.5, dim=0)
    torch.testing.assert_close(row, by_hand, rtol=2e-2, atol=2e-3)

    for b in range(lm.config.n_layers):  # who looked at the token `key`
        weights = [f"{w:.2f}" for w in t["attn", b][:, -1, key]]
        print(f"block {b} gives {t.tokens[key].text!r}:", *weights)
    return row
