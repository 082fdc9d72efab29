"""The model with heads muted to what they give in another text: plain passes with torch hooks, no code of ours."""

from itertools import combinations

import numpy as np
import pytest
import torch

from gptviz.analysis.circuit_claims import RANDOM_CIRCUITS
from gptviz.analysis.circuit_search import written


def muted_by_hooks(model, own, other, heads):
    """The logits (T, V) of `own` with each (block, head) giving what it gives in `other`, of as many tokens."""
    given = {}

    def run(ids, hook):
        handles = [
            block.att.out_proj.register_forward_pre_hook(lambda _, args, b=b: hook(b, args[0]))
            for b, block in enumerate(model.trf_blocks)
        ]
        with torch.no_grad():
            logits = model(torch.tensor([list(ids)]))[0]
        for handle in handles:
            handle.remove()
        return logits

    def note(b, z):
        given[b] = z.clone()

    def replace(b, z):
        z = z.clone()
        width = z.shape[-1] // model.trf_blocks[b].att.num_heads
        for block, head in heads:
            if block == b:
                part = slice(head * width, (head + 1) * width)
                z[..., part] = given[b][..., part]
        return (z,)

    run(other, note)
    return run(own, replace)


def lead(logits, text):
    """The logit of a text's answer minus that of its other word, after the last token."""
    last = logits[-1].double()
    return float(last[text.answer] - last[text.instead])


def lost_by_hooks(lm, texts, other, heads):
    """By how much each text's difference falls with these heads as they are in its other text of that name."""
    return [
        lead(muted_by_hooks(lm.model, text.ids, text.others[other], ()), text)
        - lead(muted_by_hooks(lm.model, text.ids, text.others[other], heads), text)
        for text in texts
    ]


def check_worth(lm, texts, other, worth):
    """Check the circuit's numbers, every head outside it as it is in the other text of that name."""
    everyone = {(b, h) for b in range(lm.config.n_layers) for h in range(lm.config.n_heads)}

    def mean(heads):
        muted = everyone - {*heads}
        logits = [muted_by_hooks(lm.model, text.ids, text.others[other], muted) for text in texts]
        return float(np.mean([lead(*pair) for pair in zip(logits, texts, strict=True)]))

    circuit = mean(worth.heads)
    assert worth.whole == pytest.approx(mean(everyone), abs=1e-4)
    assert worth.circuit == pytest.approx(circuit, abs=1e-4)
    assert worth.empty == pytest.approx(mean(()), abs=1e-4)
    alone = [abs(circuit - mean({*worth.heads} - {head})) for head in worth.heads]
    assert worth.minimality == pytest.approx(alone, abs=1e-4)
    gaps = {}
    for size in range(len(worth.heads) + 1):
        for left_out in combinations(worth.heads, size):
            gap = abs(mean({*worth.heads} - {*left_out}) - mean(everyone - {*left_out}))
            gaps[written(left_out)] = gap
    assert worth.completeness == pytest.approx(max(gaps.values()), abs=1e-4)
    assert gaps[worth.without] == pytest.approx(worth.completeness, abs=1e-4)
    assert len(worth.random) == RANDOM_CIRCUITS
