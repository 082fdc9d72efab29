"""The flow into one token in Python: contributions block by block, or attention rollout."""

import torch

import gptviz
from gptviz.analysis.flow import into_attention, token_flow
from gptviz.analysis.rollout import rollout


def shares(
    lm: gptviz.LanguageModel,
    text: str,
    position: int,
    way: str = "Contributions",
    special_tokens: bool = False,
) -> torch.Tensor:
    """Where the token's last stream comes from at each depth, (blocks + 1, tokens up to it)."""
    ids = lm.encode(text, special_tokens)[: lm.config.context_length]
    t = lm.trace(ids)
    if way == "Contributions":
        one_share(lm, t, position)
        found, _ = token_flow(t, lm.model, position)
    else:
        n = position + 1
        found = rollout(t, position)
        by_hand = torch.eye(n)
        for block in range(lm.config.n_layers):  # half stays, half goes where the heads look
            by_hand = (0.5 * torch.eye(n) + 0.5 * t["attn", block].mean(dim=0)[:n, :n]) @ by_hand
        torch.testing.assert_close(found[0], by_hand[position], rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(found.sum(dim=1), torch.ones(len(found)), rtol=1e-3, atol=1e-4)
    return found


def one_share(lm: gptviz.LanguageModel, t: gptviz.Trace, position: int) -> None:
    """The last block's shares of one token's stream after attention, from the definition."""
    last, near = lm.config.n_layers - 1, 1e-4
    whole = t["resid_mid", last][position]  # (D,)
    parts = [t["resid_pre", last][position]]  # the shortcut, then every head's value of every token
    out = lm.model.trf_blocks[last].att.out_proj.weight.detach().float().cpu()  # (D, D)
    for head, columns in enumerate(out.chunk(lm.config.n_heads, dim=1)):  # (D, head_dim) each
        weights = t["attn", last][head, position, : position + 1]
        parts += list(weights[:, None] * (t["v", last][head, : position + 1] @ columns.T))
    nearer = [(whole.abs().sum() - (whole - part).abs().sum()).clamp(min=1e-5) for part in parts]
    by_hand = torch.stack(nearer) / torch.stack(nearer).sum()

    by_head, stays = into_attention(t, lm.model, last, torch.tensor([position]))
    torch.testing.assert_close(torch.cat([stays, by_head.flatten()]), by_hand, rtol=1e-3, atol=near)
    print(f"after the last attention {stays.item():.4f} is the shortcut's, {by_head.sum():.4f} the heads'")
