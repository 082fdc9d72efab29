"""The Baselines page in Python: counts, the network that learns them, and a small MLP, on one scale."""

import numpy as np

from gptviz.analysis.tokens import chapter
from gptviz.lessons.bigram import count, learn
from gptviz.lessons.compared import counted, mlp_bits, tokenizer_for
from gptviz.lessons.mlp import Recipe, train


def baselines(
    text: str | None = None, step: int = 20, context: int = 3, mlp_steps: int = 600
) -> tuple[np.ndarray, np.ndarray]:
    """P(next | this), (V, V), as counted and as learnt after `step` steps; of a chapter if `text` is None."""
    text = chapter() if text is None else text
    counts = count(text)
    *_, network = learn(counts, steps=step)
    print(f"{len(counts.characters)} characters; nats a character of this text:")
    print(f"  by the counts {counts.loss:.4f}, by the network after {step} steps {network.loss(counts):.4f}")

    recipe, tokenizer = Recipe(context=context, steps=mlp_steps), tokenizer_for(text)
    ids = np.array(tokenizer.encode("\n" * context + text))
    *_, last = train(ids, len(tokenizer.vocabulary), recipe)
    bits = counted(text)
    print("bits a byte of the held-out text:")
    for name in ("blind", "unigram", "bigram"):
        print(f"  {name:8} {getattr(bits, name):.4f}")
    print(f"  {'MLP':8} {mlp_bits(last.model, tokenizer):.4f}")
    return counts.probabilities, network.probabilities
