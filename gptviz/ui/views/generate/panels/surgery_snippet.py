"""Surgery on the cache in Python: what comes next with one remembered token changed."""

from collections.abc import Sequence

import torch

import gptviz
from gptviz.analysis.surgery import Kind, Operation, surgery


def after(
    lm: gptviz.LanguageModel,
    text: str,
    position: int,
    kind: Kind,
    at: int,
    other: int | None = None,
    token: int | None = None,
    new: Sequence[int] = (),
    special_tokens: bool = False,
) -> torch.Tensor:
    """The probabilities (V,) of what comes after a text up to a position and what was written after it."""
    ids = lm.encode(text, special_tokens)[: position + 1]
    ids = [*ids, *new][-lm.config.context_length :]
    found = surgery(lm, ids, Operation(kind, at, other, token))
    assert found.agrees
    print(f"the cache as it is: no logit differs by more than {found.disagreement:.1e} from a whole pass")

    log_p, log_q = (torch.log_softmax(x.double(), dim=0) for x in (found.cached, found.after))
    kl = (log_p.exp() * (log_p - log_q)).sum() / torch.log(torch.tensor(2.0))
    print(f"KL divergence from before to after: {kl:.3f} bits")
    for name, log in (("before", log_p), ("after", log_q)):
        top = log.exp().topk(5)
        print(
            name, {lm.decode([i]): round(p, 4) for p, i in zip(*map(torch.Tensor.tolist, top), strict=True)}
        )
    return log_q.exp()
