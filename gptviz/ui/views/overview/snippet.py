"""The Overview in Python: what each of its six small pictures draws."""

from typing import Any

import torch

import gptviz
from gptviz.analysis.moved import pattern_moved


def six_pictures(
    lm: gptviz.LanguageModel, text: str, position: int, special_tokens: bool = False
) -> dict[str, Any]:
    """By name, the numbers of each picture, for the selected token at `position`.

    "unchanged" are those of the model without its edits, and how far each head's pattern moved by them.
    """
    ids = lm.encode(text, special_tokens)[: lm.config.context_length]
    t, unchanged = lm.trace(ids), lm.plain.trace(ids)
    last, heads = lm.config.n_layers - 1, range(lm.config.n_heads)

    def pictures(t: gptviz.Trace) -> dict[str, Any]:
        norms = t.norms()[t.norms()["position"] == position]
        return {
            "tokens": ids,
            "embeddings": torch.stack([t["tok_emb"], t["pos_emb"], t["embed"]]),  # (3, T, D)
            "attention": torch.stack([t["attn", b] for b in range(last + 1)]),  # (n_layers, H, T, T)
            "layernorm": norms[["norm", "variance", "variance_after"]],  # drawn: their square roots
            "feed_forward": [t[site, last][position] for site in ("mlp_pre", "mlp_act", "mlp_out")],
            "next_token": t.next_tokens(k=5, position=position),
            "probabilities": t.logits(position).softmax(dim=-1),  # (V,): the ghosts are the unchanged ones
        }

    new, old = pictures(t), pictures(unchanged)
    pairs = zip(old["attention"], new["attention"], strict=True)
    moved = torch.tensor([[pattern_moved(before[h], after[h]) for h in heads] for before, after in pairs])
    return new | {"unchanged": old, "moved": moved}  # (n_layers, H): how strongly a head is tinted
