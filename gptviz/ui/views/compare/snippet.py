"""The Compare page in Python: two passes, which of their tokens belong together, and what differs there."""

from collections.abc import Sequence

import pandas as pd

import gptviz
from gptviz import Edit
from gptviz.analysis import compare


def side_by_side(
    lm: gptviz.LanguageModel,
    text: str,
    other: gptviz.LanguageModel,
    position: int = -1,
    other_text: str | None = None,
    special_tokens: bool = False,
) -> pd.DataFrame:
    """What comes next on either side, at the pair of tokens that `position` of `text` belongs to.

    Printed are, for models of one shape, the head that differs most and how far apart the streams end.
    """
    texts = (text, text if other_text is None else other_text)
    left, right = (
        model.trace(model.encode(read, special_tokens)[: model.config.context_length])
        for model, read in zip((lm, other), texts, strict=True)
    )
    pairs = compare.align(left.tokens, right.tokens, one_text=other_text is None)
    at, other_at = pairs.pairs[pairs.nearest(position % len(left))]
    if (lm.config.n_layers, lm.config.n_heads) == (other.config.n_layers, other.config.n_heads):
        apart = compare.heads_apart(left, right, pairs)  # (L, H)
        block, head = divmod(int(apart.argmax()), lm.config.n_heads)
        print(f"most different: block {block}, head {head}, {apart.max():.4f} of its attention elsewhere")
        print(compare.streams_apart(left, right, pairs)[-1])  # (P,), at the end
    logits = (left.logits(at), right.logits(other_at))
    return compare.next_tokens(*logits, lm.tokenizer, other.tokenizer)


class Code:
    """A model as the Python that loads it, in a program's arguments."""

    def __init__(self, load: str, edits: Sequence[Edit]):
        self.load, self.edits = load, edits

    def __repr__(self) -> str:
        changed = ", ".join(repr(str(edit)) for edit in self.edits)
        return f"{self.load}.edited({changed})" if changed else self.load
