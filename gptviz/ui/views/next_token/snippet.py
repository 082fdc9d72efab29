"""The Python behind the Next token page."""


def next_token(
    model: str,
    text: str,
    position: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    rows: int = 10,
    came: bool = False,
    special: bool = False,
) -> str:
    """Ends in `picture`: the bars' probabilities in falling order, and last that of all other tokens.

    `came`: the token that follows in the prompt is not among the first `rows` and has a bar of its own.
    """
    also = (
        f"shown = torch.cat([shown, torch.tensor([ids[{position + 1}]])])  # the token that came next\n"
        if came
        else ""
    )
    return f"""\
import numpy as np
import torch

import gptviz
from gptviz.sampling import distribution

lm = gptviz.load({model})
ids = lm.encode({text!r}, special_tokens={special})[: lm.config.context_length]
t = lm.trace(ids, keep=("final",))

logits = t.logits({position})  # (V,): t["final"] of this position, times out_head
chosen = distribution(logits, temperature={temperature}, top_k={top_k}, top_p={top_p})
print(f"{{int(chosen.kept.sum())}} of {{len(logits)}} tokens are kept")
print(f"entropy {{torch.special.entr(chosen.probabilities).sum() / np.log(2):.2f}} bits")

log_p = torch.log_softmax(t["final"][:-1] @ lm.model.out_head.weight.detach().float().T, dim=-1)  # (T - 1, V)
for position, came in enumerate(ids[1:]):  # how surprising each token of the prompt was
    print(f"{{-log_p[position, came] / np.log(2):6.2f}} bits", t.tokens[position + 1].raw)

print(t.next_tokens({rows}, {position}, temperature={temperature}, top_k={top_k}, top_p={top_p}))
shown = logits.argsort(descending=True, stable=True)[:{rows}]  # ids
{also}picture = np.append(chosen.probabilities[shown], 1 - chosen.probabilities[shown].sum())
"""
