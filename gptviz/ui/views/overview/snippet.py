"""The Overview in Python: what each of its five small pictures draws."""

from typing import Any

import torch

import gptviz


def five_pictures(
    lm: gptviz.LanguageModel, text: str, position: int, special_tokens: bool = False
) -> dict[str, Any]:
    """By name, the numbers of each picture, for the selected token at `position`."""
    ids = lm.encode(text, special_tokens)[: lm.config.context_length]
    t = lm.trace(ids)
    norms = t.norms()[t.norms()["position"] == position]
    return {
        "tokens": ids,
        "embeddings": torch.stack([t["tok_emb"], t["pos_emb"], t["embed"]]),  # (3, T, D)
        "attention": torch.stack([t["attn", b] for b in range(lm.config.n_layers)]),  # (n_layers, H, T, T)
        "layernorm": norms[["norm", "variance", "variance_after"]],  # drawn: their square roots
        "next_token": t.next_tokens(k=5, position=position),
    }
