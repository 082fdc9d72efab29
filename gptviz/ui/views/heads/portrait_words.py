"""The sentences of a head's portrait: numbers in, Markdown out."""

import math

from gptviz.digits import fixed, percent


def portrait(block: int, head: int, sink: float, entropy: float, rows: int) -> str:
    """A head in a few numbers, over the sample."""
    return (
        f"Over {rows:,} tokens of the sample, block {block}, head {head} gives {percent(sink)} of its "
        f"attention to a window's first token. Its rows have an entropy of {fixed(entropy, 2)} nats on "
        f"average, as if it looked at {fixed(math.exp(entropy), 1)} tokens alike."
    )


PAIRS = "**Who looks at whom.** The pairs of tokens with most attention beyond an even head's"
DISTANCES = "**How far back it looks**, the first token left out"
ENTROPY = "**How spread out it looks**"


def places(by_role: str | None) -> str:
    """Over the passages; `by_role` is what they are chosen by, None for the largest single weight."""
    chosen = "the largest weight on one token" if by_role is None else f"the share of *{by_role}*"
    return (
        f"**Where it is most itself**, by {chosen}. From the framed token, the stronger a token's colour, "
        "the more of the attention goes there"
    )


WAITS = "A portrait is painted by what a head does in general, and that is not known yet."


def working(done: int, of: int) -> str:
    return f"The portrait: {done} of {of} windows read"


STOPPED = "The portrait was stopped."

DISTANCE_NUMBERS = (
    "Of all that the head gives in the sample, the share that goes so many tokens back; with what goes to "
    "the first token, which is left out here, they sum to 1."
)
NUMBERS = (
    "A row a pair of tokens, query and key: how often the key stood before the query, the mean weight, their "
    "sum (total), and by how much that is more than an even head's (excess). A window's first token is no "
    "key, and a pair stands there twice at least."
)
