"""Repetition: which parts of a text occurred before, and which heads look at what followed them.

Holtzman et al., The Curious Case of Neural Text Degeneration, 2020 (greedy text repeats itself); Olsson et
al., In-context Learning and Induction Heads, 2022 (the heads that look at what followed last time).

Shapes in comments: H heads, T tokens.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from gptviz.analysis.head_formulas import SHARES
from gptviz.analysis.head_roles import HeadRole
from gptviz.analysis.head_scores import HeadScores
from gptviz.analysis.reads import reads
from gptviz.engine.given import Text, ids_of
from gptviz.engine.index import whole
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.tokens import token_ids
from gptviz.engine.trace import Trace
from gptviz.engine.undisturbed import undisturbed
from gptviz.tokenizer import named_bytes, show_token

Head = tuple[int, int]  # block and head

# tokens, see `loop`
LONG = 8
LEAST = 4
SETS = 5  # of other heads


def repeated(ids: Sequence[int], n: int) -> NDArray[np.bool_]:
    """(T,): whether the n tokens that end at a position occurred together earlier in the text.

    They may overlap with where they stood. ValueError for n below 1.
    """
    whole("n", n, 1)
    ids = token_ids(ids)
    seen: set[tuple[int, ...]] = set()
    is_copy = np.zeros(len(ids), dtype=np.bool_)
    for end in range(n, len(ids) + 1):
        piece = tuple(ids[end - n : end])
        is_copy[end - 1] = piece in seen
        seen.add(piece)
    return is_copy


def share_along(ids: Sequence[int], start: int, n: int) -> NDArray[np.float64]:
    """(T - start,): of the tokens from `start` to each position, the share that ends such a piece."""
    written = repeated(ids, n)[whole("start", start, 0) :]
    return np.cumsum(written) / np.arange(1, len(written) + 1)


@undisturbed
def repeats(lm: LanguageModel, ids: Sequence[int], start: int, n: int) -> pd.DataFrame:
    """Return a row per token from `start` on: step (from 1), id, token, `repeats` or not, share so far."""
    return pd.DataFrame(
        {
            "step": range(1, len(ids) - start + 1),
            "id": ids[start:],
            "token": [show_token(named_bytes(lm.tokenizer, i)) for i in ids[start:]],
            "repeats": repeated(ids, n)[start:],
            "share": share_along(ids, start, n),
        }
    )


@undisturbed
def greedy_repeats(lm: LanguageModel, prompt: Text, count: int, n: int) -> pd.DataFrame:
    """Return `repeats` of what the model writes at temperature 0 after a prompt: `count` rows, or fewer."""
    ids = ids_of(lm, prompt)
    new = [step.id for step in lm.generate(ids, count, temperature=0)]
    return repeats(lm, [*ids, *new], len(ids), n)


@dataclass(frozen=True)
class Loop:
    """The end of a text that goes round: from `start` on every token is the one `period` before it."""

    start: int  # the first token that is such a copy
    period: int


def loop(ids: Sequence[int]) -> Loop | None:
    """The loop that a text ends in, with the shortest repeated piece, or None.

    A word said twice is no loop: the piece stands there three times running at least, or twice where it has
    `LONG` tokens or more, and at least `LEAST` tokens are copies (so that one alone stands there five times).
    """
    ids = token_ids(ids)
    for period in range(1, len(ids) // 2 + 1):
        start = len(ids)
        while start > period and ids[start - 1] == ids[start - 1 - period]:
            start -= 1
        copies = len(ids) - start
        if copies >= max(LEAST, period if period >= LONG else 2 * period):
            return Loop(start, period)
    return None


@reads(lambda lm, block, head: (("attn", block),))
def given_to_followed(lm: LanguageModel, t: Trace, block: int, head: int) -> NDArray[np.float32]:
    """A head's attention to the tokens that followed earlier copies of the query's token: (T,).

    NaN where the token stands for the first time. These are the keys of the induction share of `head_scores`,
    which is the mean over the queries.
    """
    keys = HeadScores.of(t.tokens).targets.keys[..., SHARES.index("induction")]  # (T, T)
    attention = (t["attn", block][head] * keys).sum(dim=-1)  # (T,)
    return attention.masked_fill(~keys.any(dim=-1), torch.nan).numpy()


@undisturbed
def induction(lm: LanguageModel, roles: Sequence[Sequence[HeadRole]]) -> list[HeadRole]:
    """Return the roles of the heads by how much they look at what followed, the most first.

    Empty where no token stands twice: nothing followed. Heads that an edit has silenced make nothing go
    round, and are left out, unless there are no others.
    """
    all_roles = [role for row in roles for role in row]
    heard = [role for role in all_roles if (role.block, role.head) not in silent(lm)] or all_roles
    asked = [role for role in heard if role.shares.get("induction") is not None]
    return sorted(asked, key=lambda role: -(role.shares["induction"] or 0.0))


def silent(lm: LanguageModel) -> set[Head]:
    """Return the (block, head) whose output an edit has set to zero."""
    return {
        (block, head)
        for edit in lm.edits
        if (edit.site, edit.value, edit.positions) == ("z", "zero", None)
        for block in edit.blocks(lm.config.n_layers)
        for head in (range(lm.config.n_heads) if edit.heads is None else edit.heads)
    }


def other_heads(
    lm: LanguageModel, heads: Sequence[Head], also: Iterable[Head] = ()
) -> list[list[Head]]:
    """Draw five random sets of other heads, each as large as `heads`, for comparison.

    The same ones every time; none of `also`, nor a silent one. Empty where too few others are left.
    """
    all_heads = {(b, h) for b in range(lm.config.n_layers) for h in range(lm.config.n_heads)}
    others = sorted(all_heads - set(heads) - set(also) - silent(lm))
    if len(others) < len(heads):
        return []
    chance = np.random.default_rng(len(heads))
    drawn = [chance.choice(len(others), len(heads), replace=False) for _ in range(SETS)]
    return [[others[i] for i in sorted(places)] for places in drawn]
