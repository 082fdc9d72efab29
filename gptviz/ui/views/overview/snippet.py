"""The Overview in Python: what each of its six small pictures draws."""

from typing import Any

import torch

import gptviz


def six_pictures(
    lm: gptviz.LanguageModel, text: str, position: int, special_tokens: bool = False
) -> dict[str, Any]:
    """By name, the numbers of each picture, for the selected token at `position`."""
    ids = lm.encode(text, special_tokens)[: lm.config.context_length]
    t = lm.trace(ids)
    last = lm.config.n_layers - 1
    norms = t.norms()[t.norms()["position"] == position]
    return {
        "tokens": ids,
        "embeddings": torch.stack([t["tok_emb"], t["pos_emb"], t["embed"]]),  # (3, T, D)
        "attention": torch.stack([t["attn", b] for b in range(lm.config.n_layers)]),  # (n_layers, H, T, T)
        "layernorm": norms[["norm", "variance", "variance_after"]],  # drawn: their square roots
        "feed_forward": [t[site, last][position] for site in ("mlp_pre", "mlp_act", "mlp_out")],
        "next_token": t.next_tokens(k=5, position=position),
        "unchanged": lm.plain.trace(ids).logits(position).softmax(dim=-1),  # (V,): what the ghosts are of
    }
