"""The Residual stream page in Python: what each block adds to one token's row, and that it all adds up."""

import pandas as pd
import torch

import gptviz

SITES = ("resid_pre", "attn_out", "resid_mid", "mlp_out", "resid_post")


def ladder(lm: gptviz.LanguageModel, text: str, position: int, special_tokens: bool = False) -> pd.DataFrame:
    """A row a write: the stream that it joins, its size, their cosine, its share of the stream at the end."""
    ids = lm.encode(text, special_tokens)[: lm.config.context_length]
    t = lm.trace(ids, keep=SITES)
    last = lm.config.n_layers - 1
    end = t["resid_post", last][position].double()  # (emb_dim,)
    near = 1e-5 if lm.dtype == "float32" else 0.02  # of the stream's largest number

    start = t["resid_pre", 0][position].double()
    rows: list[tuple] = [("embedding", 0.0, start.norm(), 0.0, 0.0, start @ end / (end @ end))]
    for block in range(last + 1):
        before, middle, after = (
            t[site, block][position].double() for site in ("resid_pre", "resid_mid", "resid_post")
        )
        attention, feed_forward = (t[site, block][position].double() for site in ("attn_out", "mlp_out"))
        gap = (before + attention + feed_forward - after).abs().max()
        assert gap <= near * after.abs().max() or lm.edits  # an edit of the stream itself is no write
        for part, x, write, new in (
            ("attention", before, attention, middle),
            ("feed-forward", middle, feed_forward, after),
        ):
            cosine = torch.cosine_similarity(write, x, dim=0)
            turn = torch.cosine_similarity(x, new, dim=0).clamp(-1, 1).arccos().rad2deg()
            share = write @ end / (end @ end)
            rows.append((f"block {block} · {part}", x.norm(), write.norm(), cosine, turn, share))

        lone = (
            torch.cosine_similarity(attention, middle, dim=0),
            torch.cosine_similarity(feed_forward, after, dim=0),
        )
        brought = before @ after / (after @ after)
        print(
            f"block {block} without shortcuts: cosines {lone[0]:.2f}, {lone[1]:.2f}; {brought:.1%} was there"
        )

    table = pd.DataFrame(rows, columns=["step", "stream", "write", "cosine", "turn", "share"])
    table = table.astype(dict.fromkeys(table.columns[1:], float))
    assert abs(table["share"].sum() - 1) < 50 * near or lm.edits  # the end is the sum of all that was written
    if lm.edits:
        against_unchanged(lm, ids, position, end)
        ladder(lm.plain, text, position, special_tokens)
    return table


def against_unchanged(lm: gptviz.LanguageModel, ids: list[int], position: int, end: torch.Tensor) -> None:
    """How far the end of the stream is from where it ends in the unchanged model."""
    last = lm.config.n_layers - 1
    old = lm.plain.trace(ids, keep=[("resid_post", last)])["resid_post", last][position].double()  # (D,)
    angle = torch.cosine_similarity(end, old, dim=0).clamp(-1, 1).arccos().rad2deg()
    print(f"size {old.norm():.4g} unchanged, {end.norm():.4g} changed, at {angle:.1f} degrees;")
    print(f"apart by {(end - old).norm() / old.norm():.2%} of the unchanged size. Unchanged:")
