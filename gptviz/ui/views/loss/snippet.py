"""The Loss page in Python: from the logits to the cross-entropy, step by step."""

import math

import torch
import torch.nn.functional as F

import gptviz


def losses(lm: gptviz.LanguageModel, text: str, special_tokens: bool = False) -> torch.Tensor:
    """What each token but the first cost, in nats: (T - 1,), in the order of the text.

    Of a model with edits (2, T - 1): the changed model, and the unchanged one.
    """
    if lm.edits:
        print("changed:")
        changed = cost(lm, text, special_tokens)
        print("unchanged:")
        return torch.stack([changed, cost(lm.plain, text, special_tokens)])
    return cost(lm, text, special_tokens)


def cost(lm: gptviz.LanguageModel, text: str, special_tokens: bool) -> torch.Tensor:
    """Of one model, step by step: (T - 1,)."""
    ids = lm.encode(text, special_tokens)[: lm.config.context_length]
    t = lm.trace(ids, keep=("final",))
    head = lm.model.out_head.weight.detach()
    logits = F.linear(t["final"].to(head), head).cpu().double()  # (T, V)

    targets = torch.tensor(ids[1:])  # shifted by one: the last position has none
    log_sum = logits[:-1].logsumexp(dim=1)  # ln of the sum of e^logit
    own = logits[:-1].gather(1, targets[:, None])[:, 0]
    probability = torch.exp(own - log_sum)  # softmax, of the target alone
    loss = -torch.log(probability)
    print(f"uniform guess: ln {logits.shape[1]} = {math.log(logits.shape[1]):.4f}")
    if len(targets):
        mean = loss.mean()
        print(f"cross-entropy {mean:.4f}, perplexity {mean.exp():.4f}")
        torch.testing.assert_close(mean, F.cross_entropy(logits[:-1], targets))
    return loss
