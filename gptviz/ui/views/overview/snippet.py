"""The Python behind the Overview's small pictures."""


def overview(model: str, text: str, position: int, special: bool = False) -> str:
    """Ends in `picture`: by name, what each of the five small pictures draws."""
    return f"""\
import torch

import gptviz

lm = gptviz.load({model})
ids = lm.encode({text!r}, special_tokens={special})[: lm.config.context_length]
t = lm.trace(ids)
position = {position}  # the selected token
norms = t.norms()[t.norms()["position"] == position]

picture = {{
    "tokens": ids,
    "embeddings": torch.stack([t["tok_emb"], t["pos_emb"], t["embed"]]),  # (3, T, D)
    "attention": torch.stack([t["attn", b] for b in range(lm.config.n_layers)]),  # (n_layers, H, T, T)
    "layernorm": norms[["norm", "variance", "variance_after"]],  # drawn: their square roots
    "next_token": t.next_tokens(k=5, position=position),
}}
"""
