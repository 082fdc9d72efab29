"""The Feed-forward page in Python: which units fire, how much each writes, and the tokens that one raises."""

import torch

import gptviz
from gptviz.analysis.feed_forward import of_any_text
from gptviz.engine.sample import windows


def writes(
    lm: gptviz.LanguageModel,
    text: str,
    block: int,
    position: int,
    unit: int | None = None,
    special_tokens: bool = False,
    sample: bool = False,
) -> torch.Tensor:
    """The size of what each unit writes for one token, (4 * emb_dim,): the areas of the dots.

    `unit` None: the one that writes most. `sample`: look for it in the sample of five books, too.
    """
    ids = lm.encode(text, special_tokens)[: lm.config.context_length]
    t = lm.trace(ids, keep=["resid_post", *((site, block) for site in ("mlp_pre", "mlp_act", "mlp_out"))])
    before, after = t["mlp_pre", block][position], t["mlp_act", block][position]  # (4 * emb_dim,) each
    written = t["mlp_out", block][position]  # (emb_dim,)

    second = lm.model.trf_blocks[block].ff.layers[2]
    columns = second.weight.detach().float().cpu()  # (emb_dim, 4 * emb_dim): a column a unit
    bias = 0 if second.bias is None else second.bias.detach().float().cpu()
    near = (1e-4 if lm.dtype == "float32" else 0.05) * written.abs().max()
    gap = (columns @ after + bias - written).abs().max()
    assert gap <= near or lm.edits  # an edit of what comes out is no unit's write

    sizes = after.abs() * columns.norm(dim=0)
    fires = before > 0
    ordered = sizes.sort(descending=True).values.cumsum(0)
    half = int((ordered < ordered[-1] / 2).sum()) + 1
    print(f"{int(fires.sum())} of {len(before)} units fire; {half} make up half of what is written")
    quiet = columns @ torch.where(fires, 0, after)
    print(f"those that do not fire write {quiet.norm():.3g} together, all {written.norm():.3g}")

    unit = int(sizes.argmax()) if unit is None else unit
    share = after[unit] * (columns[:, unit] @ written) / (written @ written)
    print(f"unit {unit}: {before[unit]:.3g} before GELU, {after[unit]:.3g} after, writes {sizes[unit]:.3g}")
    print(f"that is {share:.2%} of what the feed-forward writes")
    act = t["mlp_act", block][:, unit]
    print(
        f"it fires at {int((act > 0).sum())} of {len(act)} tokens; "
        f"most, {act.max():.3g}, at position {int(act.argmax())}"
    )

    norm, head = lm.model.final_norm, lm.model.out_head.weight.detach().float().cpu()  # (vocab_size, emb_dim)
    stream = t["resid_post", lm.config.n_layers - 1][position]  # (emb_dim,)
    divisor = torch.sqrt(stream.var(unbiased=False) + norm.eps)  # held as it is
    column = columns[:, unit] - columns[:, unit].mean()
    logits = head @ (column / divisor * norm.scale.detach().float().cpu())  # what 1 of its activation adds
    logits = logits - logits.mean()
    print(
        f"directly, with the final LayerNorm's divisor held at {divisor:.4g}, against the mean of all logits:"
    )
    for name, some in ("raises", logits.topk(6).indices), ("lowers", (-logits).topk(6).indices):
        print(name, [(lm.tokens([i])[0].raw, f"{logits[i]:.3g}") for i in some.tolist()])
    if sample:
        say_where_it_fires(of_any_text(lm), block, unit)
    if lm.edits:
        old = lm.plain.trace(ids, keep=[("mlp_pre", block)])["mlp_pre", block][position]
        print(f"{int(((old > 0) != fires).sum())} fire in only one of changed and unchanged. Unchanged:")
        writes(lm.plain, text, block, position, unit, special_tokens)
    return sizes


def say_where_it_fires(lm: gptviz.LanguageModel, block: int, unit: int) -> None:
    """How often a unit fires in the sample, and the token that excites it most in each window."""
    found, _ = windows(lm.encode, lm.config.context_length)
    fired = tokens = 0
    for window in found:
        act = lm.trace(window.ids, keep=[("mlp_act", block)])["mlp_act", block][
            1:, unit
        ]  # not the first token
        fired, tokens = fired + int((act > 0).sum()), tokens + len(act)
        most = int(act.argmax())
        print(f"{act[most]:.3g} at {lm.tokens(window.ids)[most + 1].raw!r} of {window.title}")
    print(f"it fires at {fired / tokens:.2%} of {tokens} tokens")
