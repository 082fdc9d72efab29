"""The LayerNorm page in Python: one norm at work on one token, and every norm before and after."""

import numpy as np
import torch

import gptviz


def before_and_after(
    lm: gptviz.LanguageModel,
    text: str,
    norm: str,
    position: int,
    quantity: str = "variance",
    special_tokens: bool = False,
) -> np.ndarray:
    """The mean or the variance of every token's values before and after every norm: (2, norms, T).

    For the norm called `norm` ("block 3 · norm1", "final") and one token it writes out the arithmetic.
    """
    ids = lm.encode(text, special_tokens)[: lm.config.context_length]
    t = lm.trace(ids, keep=("resid_pre", "resid_mid", "resid_post"))
    one_norm(lm, t, norm, position)
    if lm.edits:
        print("unchanged:")
        before_and_after(lm.plain, text, norm, position, quantity, special_tokens)

    table = t.norms()
    rows = table["norm"].unique()
    before, after = (
        table.pivot(index="norm", columns="position", values=column).loc[rows].to_numpy()
        for column in (quantity, f"{quantity}_after")
    )
    return np.stack([before, after])


def one_norm(lm: gptviz.LanguageModel, t: gptviz.Trace, name: str, position: int) -> None:
    """What LayerNorm does to one token's values, line by line."""
    if name == "final":
        module = lm.model.final_norm
        x = t["resid_post", lm.config.n_layers - 1][position]  # (emb_dim,): what comes out of the last block
    else:
        block, which = name.removeprefix("block ").split(" · ")
        module = lm.model.get_submodule(f"trf_blocks.{block}.{which}")
        x = t["resid_pre" if which == "norm1" else "resid_mid", int(block)][position]

    normalised = (x - x.mean()) / torch.sqrt(x.var(unbiased=False) + module.eps)
    after = normalised * module.scale.detach().float().cpu()
    if module.shift is not None:
        after = after + module.shift.detach().float().cpu()

    for stage, values in {"before": x, "normalised": normalised, "after": after}.items():
        print(f"{stage:10} mean {values.mean():8.4f}  variance {values.var(unbiased=False):8.4f}")

    with torch.no_grad():  # the model's own output, in the numbers that it computes in
        own = module(x.to(module.scale)).float().cpu()
    near = 1e-4 if lm.dtype == "float32" else 0.02
    torch.testing.assert_close(after, own, rtol=near, atol=near)
