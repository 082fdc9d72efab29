"""The Embeddings page's sentences, with the numbers of the prompt in them."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from gptviz.analysis import embeddings as numbers
from gptviz.digits import fixed, significant
from gptviz.figures.neighbors import MEASURES
from gptviz.tokenizer import show_token
from gptviz.trace import Token
from gptviz.ui.words import as_code, term


def this_plus_this(
    tokens: Sequence[Token],
    position: int,
    lengths: pd.DataFrame,
    dimension: int,
    written: tuple[str, str, str],
) -> str:
    """The addition that makes the selected token's row, and what its position has to do with it."""
    token, row = tokens[position], lengths.loc[position]
    first, second, total = written
    return (
        f"**This row plus this row is that row.** Row {token.id} of `tok_emb` says *which* token it is: "
        f"{as_code(show_token(token.raw))}. Row {position} of `pos_emb` says *where* it stands. Added up, "
        f"dimension by dimension, they are what block 0 is given: in dimension {dimension}, "
        f"{first} + {term(second)} = **{total}**. "
        f"The token's row has length {significant(row['token_norm'])}, the position's "
        f"{significant(row['position_norm'])}, their sum {significant(row['sum_norm'])}; the cosine between "
        f"the two is {fixed(row['cosine'], 2)}. " + _elsewhere(tokens, position)
    )


def _elsewhere(tokens: Sequence[Token], position: int) -> str:
    """What becomes of the same token at another place of this prompt."""
    others = numbers.same_token_elsewhere(tokens, position)
    if not others:
        return "Compare the rows below: a token has the same token row wherever it stands."
    return (
        f"{as_code(show_token(tokens[position].raw))} stands at position {others[0]} as well: its token row "
        "is the same there, and only the position's row makes another sum of it. Without that the model "
        "could not tell the two apart."
    )


def nearest(near: pd.DataFrame, name: str, label: str, measure: str, rows: int) -> str:
    """What the first of the neighbours has to do with the selected token."""
    return (
        f"Of the {rows:,} rows of `tok_emb`, the nearest to that of {as_code(label)} "
        f"by {MEASURES[measure]} is {as_code(name)}'s, with a cosine of {fixed(near['cosine'][0], 3)} "
        f"(1 is the same direction, 0 is at right angles) and a dot product of {fixed(near['dot'][0], 2)}, "
        "which counts the lengths as well. No one tells a model which tokens are alike: training moves those "
        "together that stand in like places."
    )


def positions(similarity: np.ndarray, used: int, shown: int) -> str:
    """What the learned positions know of each other. `similarity` (C, C) cosines; `shown` of C are drawn."""
    count, far = len(similarity), len(similarity) // 2
    beside, apart = (fixed(numbers.similarity_apart(similarity, distance), 2) for distance in (1, far))
    text = (
        f"`pos_emb` has a learned row for each of the {count} positions; this prompt uses the first {used} "
        f"(shaded). What stands side by side has a cosine of {beside} on average, what stands {far} apart "
        f"{apart}: that 7 comes after 6 is written nowhere, a model has to learn it."
    )
    return text + (f" The square shows {shown} of the positions, evenly spread." if shown < count else "")
