"""The Python behind the LayerNorm page."""


def layernorm(model: str, text: str, norm: str, position: int, quantity: str, special: bool = False) -> str:
    """Ends in `picture`: `quantity` before and after every norm, (2, norms, tokens), as the page draws it.

    `norm` is a name as in `Trace.norms()`; its arithmetic for one token is written out.
    """
    if norm == "final":
        module, source = "lm.model.final_norm", 't["resid_post", lm.config.n_layers - 1]'
    else:
        block, name = norm.removeprefix("block ").split(" · ")
        module = f"lm.model.trf_blocks[{block}].{name}"
        source = f't["{"resid_pre" if name == "norm1" else "resid_mid"}", {block}]'
    return f"""\
import numpy as np
import torch

import gptviz

lm = gptviz.load({model})
ids = lm.encode({text!r}, special_tokens={special})[: lm.config.context_length]
t = lm.trace(ids, keep=("resid_pre", "resid_mid", "resid_post"))

norm = {module}.float()  # {norm}
x = {source}[{position}]  # (D,): what it is given for this token
mean = x.mean()
variance = x.var(unbiased=False)
normalised = (x - mean) / torch.sqrt(variance + norm.eps)
after = norm.scale.detach() * normalised
if norm.shift is not None:
    after = after + norm.shift.detach()
with torch.no_grad():
    torch.testing.assert_close(after, norm(x), atol=1e-4, rtol=1e-4)  # the model's own output
for name, values in (("before", x), ("normalised", normalised), ("after", after)):
    print(f"{{name:10}} mean {{values.mean():8.4f}}  variance {{values.var(unbiased=False):8.4f}}")

table = t.norms()
names = table["norm"].unique()
grids = [
    table.pivot(index="norm", columns="position", values=column).loc[names].to_numpy()
    for column in ({quantity!r}, {quantity + "_after"!r})
]
picture = np.stack(grids)  # (2, norms, T): before and after
"""
