"""Random tokens in which a passage comes back: what nothing but looking back can tell.

Olsson et al., In-context Learning and Induction Heads, 2022. Where the passage stands, how long it is, and
how many other tokens come before it returns are drawn at random: a head that always looks so many tokens back
is then no induction head, whatever that number is.
"""

import numpy as np

from gptviz.analysis.copying import ordinary_tokens
from gptviz.engine.language_model import LanguageModel

LENGTH = 192  # tokens, or the context
SHORTEST = 8  # a context below this has no room for a passage twice
SEQUENCES = 16


def random_repeats(lm: LanguageModel, sequences: int = SEQUENCES, seed: int = 0) -> list[tuple[int, ...]]:
    """Token ids, as many sequences as asked for; none where the context is shorter than `SHORTEST`.

    Each is: some random tokens, a passage of random tokens, others, the passage again, others. Evenly drawn
    from the ordinary tokens, each at most once where the vocabulary has enough, so that nothing else repeats.
    """
    length = min(LENGTH, lm.config.context_length)
    if length < SHORTEST:
        return []
    ordinary, found = ordinary_tokens(lm), []
    for number in range(sequences):
        rng = np.random.default_rng((seed, number))
        passage = int(rng.integers(max(2, length // 8), length // 3 + 1))
        rest = length - 2 * passage
        before = int(rng.integers(1, rest + 1))
        between = int(rng.integers(0, rest - before + 1))
        ids = rng.choice(ordinary, length - passage, replace=ordinary < length - passage).tolist()
        again = before + passage + between
        found.append((*ids[:again], *ids[before : before + passage], *ids[again:]))
    return found
