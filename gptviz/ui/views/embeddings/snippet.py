"""The Python behind the Embeddings page."""


def embeddings(model: str, text: str, position: int, special: bool = False) -> str:
    """Ends in `picture`: token, position and sum (3, tokens, emb_dim), as the three heatmaps show them."""
    return f"""\
import torch

import gptviz

lm = gptviz.load({model})
ids = lm.encode({text!r}, special_tokens={special})[: lm.config.context_length]
t = lm.trace(ids, keep=("tok_emb", "pos_emb", "embed"))

position = {position}
row = lm.model.tok_emb.weight[ids[position]] + lm.model.pos_emb.weight[position]  # this row plus this row
assert torch.equal(row.float(), t["embed"][position])  # is that row

table = lm.model.tok_emb.weight.float()
cosine = torch.cosine_similarity(table, table[ids[position]], dim=-1)
for other in cosine.argsort(descending=True)[1:11].tolist():  # its nearest neighbours, after itself
    print(f"{{cosine[other]:.3f}}", lm.tokenizer.decode_single_token_bytes(other))

picture = torch.stack([t["tok_emb"], t["pos_emb"], t["embed"]])  # (3, T, D)
"""
