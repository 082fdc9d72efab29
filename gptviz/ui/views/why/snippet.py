"""The page "Why this token?" in Python: a logit against the mean as a sum, and what every token gave."""

import numpy as np
import torch

import gptviz
from gptviz.analysis import attribution, knock_out, source_tokens
from gptviz.analysis.logit_attribution import read_at, sites, value_bias


def shares(
    lm: gptviz.LanguageModel,
    text: str,
    position: int,
    token: int,
    against: int | None = None,
    block: int = 0,
    head: int = 0,
    muted: bool = False,
    special_tokens: bool = False,
) -> np.ndarray:
    """Every part's share of the logit of `token` minus that of `against`, in the order of the pass.

    `against` None: minus the mean of all logits. Printed are the sum, and of one head its share, its tokens,
    and with `muted` what muting it changes.
    """
    ids = lm.encode(text, special_tokens)[: lm.config.context_length]
    t = lm.trace(ids, keep=[*sites(lm.config), "v"], reduce=[read_at(position)])
    table = attribution(t, lm.model, token, against, position)

    logits = t.logits(position).double()
    own = float(logits[token] - (logits.mean() if against is None else logits[against]))
    total = table["contribution"].sum()
    print(f"{len(table)} parts add up to {total:.4f}; the model's own number is {own:.4f}")
    assert abs(total - own) < 1e-4 * max(1, table["contribution"].abs().max())
    by_hand(lm, t, position, token, against, table["contribution"][0])

    heads = table[table["part"] == "head"]
    print(table.groupby(["part", "block"], dropna=False)["contribution"].sum())
    found = source_tokens(t, lm.model, token, against, position)  # (L, H, T)
    near = 1e-4 if lm.dtype == "float32" else 0.05
    sums, written = found.sum(-1).flatten().numpy(), heads["contribution"].to_numpy()
    known = np.isfinite(sums)  # an edit may have put in what comes from no token
    np.testing.assert_allclose(sums[known], written[known], atol=near, rtol=near)

    attention = t.reduced(read_at(position).name)[block][head]  # (T,)
    print(f"block {block}, head {head} wrote {found[block, head].sum():.4f}; all heads of the block, and it:")
    for i in range(position + 1):
        print(
            i,
            t.tokens[i].raw,
            *(f"{x:.4f}" for x in (found[block, :, i].sum(), found[block, head, i], attention[i])),
        )
    print("by the values' bias alone", value_bias(t, lm.model, token, against, position)[block, head].item())
    if muted:
        print(knock_out(lm, ids, (token, against), position=position).to_string())
    if lm.edits:
        print("unchanged:")
        shares(lm.plain, text, position, token, against, block, head, special_tokens=special_tokens)
    return table["contribution"].to_numpy()


def by_hand(
    lm: gptviz.LanguageModel,
    t: gptviz.Trace,
    position: int,
    token: int,
    against: int | None,
    share: float,
) -> None:
    """One part's share written out: the embedding through the final LayerNorm, its divisor held fixed."""
    norm, head = lm.model.final_norm, lm.model.out_head.weight.detach().double().cpu()
    x = t["resid_post", lm.config.n_layers - 1][position].double()  # (D,): all that was written
    divisor = torch.sqrt(x.var(unbiased=False) + norm.eps)
    part = t["tok_emb"][position].double()  # (D,)
    normed = (part - part.mean()) / divisor * norm.scale.detach().double().cpu()
    row = head[token] - (head.mean(0) if against is None else head[against])  # (D,)
    print(f"the final LayerNorm divides by {divisor:.4f}; the embedding's share is {row @ normed:.4f}")
    torch.testing.assert_close((row @ normed).item(), share, rtol=1e-6, atol=1e-6)
