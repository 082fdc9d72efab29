"""The Next token page in Python: from one row of logits to the bars, and how surprising the prompt was."""

from collections.abc import Sequence

import numpy as np
import torch

import gptviz
from gptviz.engine.sampling import Sampling, distribution


def bars(
    lm: gptviz.LanguageModel,
    text: str,
    position: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    rows: int = 10,
    also: Sequence[int] = (),
    special_tokens: bool = False,
) -> np.ndarray:
    """The bars' probabilities in falling order, and last that of all other tokens together, (n,).

    The ids `also` have bars of their own, although they are not among the first `rows`. Of a model with edits
    it is (2, n): what the changed model gives, and what the unchanged one gives the same tokens.
    """
    ids = lm.encode(text, special_tokens)[: lm.config.context_length]
    shown, drawn = torch.empty(0, dtype=torch.long), []
    for name, model in ({"changed": lm, "unchanged": lm.plain} if lm.edits else {"model": lm}).items():
        t = model.trace(ids, keep=("final",))
        say_how_surprising(model, t, ids)

        logits = t.logits(position)  # (V,): t["final"] of this position, times out_head
        for what, how in {name: Sampling(), "bars": Sampling(temperature, top_k, top_p)}.items():
            chosen = distribution(logits, how)
            bits = torch.special.entr(chosen.probabilities).sum() / np.log(2)
            print(f"{what}: {int(chosen.kept.sum())} of {len(logits)} tokens kept, entropy {bits:.2f} bits")
        print(t.next_tokens(rows, position, temperature=temperature, top_k=top_k, top_p=top_p))

        if not len(shown):
            most = logits.argsort(descending=True, stable=True)[:rows]  # ids
            shown = torch.cat([most, torch.tensor(list(also), dtype=torch.long)])
        p = chosen.probabilities[shown]
        drawn.append(np.append(p, 1 - p.sum()))
    return np.stack(drawn) if lm.edits else drawn[0]


def say_how_surprising(lm: gptviz.LanguageModel, t: gptviz.Trace, ids: list[int]) -> None:
    """The bits of surprise at each token of the prompt, from the probability that it had before it came."""
    head = lm.model.out_head.weight.detach().float().cpu()  # (V, D)
    log_p = torch.log_softmax(t["final"][:-1] @ head.T, dim=-1)  # (T - 1, V)
    for position, came in enumerate(ids[1:]):
        print(f"{-log_p[position, came] / np.log(2):6.2f} bits", t.tokens[position + 1].raw)
