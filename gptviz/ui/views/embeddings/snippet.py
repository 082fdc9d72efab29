"""The Embeddings page in Python: a row of tok_emb plus a row of pos_emb, and a token's neighbours."""

import torch

import gptviz
from gptviz.tokenizer import named_bytes


def embedding_rows(
    lm: gptviz.LanguageModel, text: str, position: int, special_tokens: bool = False
) -> torch.Tensor:
    """Token embedding, position embedding and their sum for every token: (3, T, emb_dim)."""
    ids = lm.encode(text, special_tokens)[: lm.config.context_length]
    t = lm.trace(ids, keep=("tok_emb", "pos_emb", "embed"))

    table = lm.model.tok_emb.weight.detach()  # (vocab_size, emb_dim)
    row = table[ids[position]] + lm.model.pos_emb.weight.detach()[position]  # this row plus this row
    same = torch.equal(row.float().cpu(), t["embed"][position])  # is that row
    assert same or lm.edits
    print("lengths", *(f"{t[site][position].norm():.4g}" for site in ("tok_emb", "pos_emb", "embed")))
    if lm.edits:
        embedding_rows(lm.plain, text, position, special_tokens)

    cosine = torch.cosine_similarity(table.float(), table[ids[position]].float(), dim=-1)  # (vocab_size,)
    for other in cosine.argsort(descending=True)[1:11].tolist():  # the neighbours, after the token itself
        print(f"{cosine[other]:.3f}", named_bytes(lm.tokenizer, other))

    return torch.stack([t["tok_emb"], t["pos_emb"], t["embed"]])
