"""Measurements of every attention head on a text: a few numbers per head, from one block's weights.

Shapes in comments: H heads, T tokens.
"""

import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from unicodedata import category

import torch

from gptviz.analysis.head_formulas import ROWS, SHARES, rests, role_keys, shares, side_of
from gptviz.engine.copies import copied, worked_out_once
from gptviz.engine.tokens import Token
from gptviz.engine.undisturbed import undisturbed

# The columns of `block_scores`: seven shares, the favourite key with its share, the entropy, and for each of
# the shares, and the favourite's, what the same queries leave on token 0.
FAVOURITE, FAVOURITE_SHARE, ENTROPY, RESTS = (len(SHARES) + i for i in range(4))
FAVOURITE_REST = RESTS + len(SHARES)
COLUMNS = FAVOURITE_REST + 1


@dataclass(frozen=True)
class Targets:
    """The questions to the heads about one text: for each of `SHARES` the keys that it means.

    `keys` (T, T, len(SHARES)) booleans, rows are queries: whether the key belongs to the role. `rows`: the
    queries that have such a key. `even` are the scores of a head that looks at all tokens alike.
    """

    keys: torch.Tensor
    rows: Mapping[str, tuple[int, ...]]
    even: torch.Tensor


@dataclass(frozen=True)
class HeadScores:
    """`block_scores` of one text, as what a `Reduction` of `attn` calls: two of the same text are equal."""

    ids: tuple[int, ...]
    marks: tuple[bool, ...]

    @classmethod
    def of(cls, tokens: Sequence[Token]) -> "HeadScores":
        """The scores of a text. Tokens are the same where their ids are, whatever they look like."""
        return cls(
            tuple(token.id for token in tokens), tuple(is_mark(token.raw) for token in tokens)
        )

    @property
    def targets(self) -> Targets:
        return copied(_targets(self.ids, self.marks))

    def __call__(self, attn: torch.Tensor) -> torch.Tensor:
        return block_scores(attn, _targets(self.ids, self.marks).keys)


@lru_cache(maxsize=2)  # of the text whose blocks come one after the other: 7 MB for 1,024 tokens
@undisturbed
def _targets(ids: tuple[int, ...], marks: tuple[bool, ...]) -> Targets:
    n_tokens = len(ids)
    keys = role_keys(ids, marks)
    rows = {
        name: tuple(keys[..., i].any(dim=-1).nonzero()[:, 0].tolist())
        for i, name in enumerate(SHARES)
    }
    even = torch.ones(n_tokens, n_tokens).tril() / torch.arange(1, n_tokens + 1)[:, None]  # (T, T)
    return Targets(keys, rows, block_scores(even[None], keys)[0])


@undisturbed
def block_scores(attn: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    """The measurements of one block's heads: weights (H, T, T), `Targets.keys` -> (H, COLUMNS).

    A few numbers a head, so that a pass can measure its heads and let their weights go. The columns are
    `SHARES`, then favourite key, its share, and mean entropy in nats, then `rests` of all these shares; NaN
    where there is nothing to measure.
    """
    n_tokens = side_of(attn)
    if keys.shape != (n_tokens, n_tokens, len(SHARES)):
        raise ValueError(
            f"keys have the shape {tuple(keys.shape)}; weights of {n_tokens} tokens need the targets' "
            f"of the same text, {(n_tokens, n_tokens, len(SHARES))}"
        )
    entropy = torch.zeros(len(attn))
    for start in range(1, n_tokens, ROWS):  # query 0 has no entropy
        stop = min(start + ROWS, n_tokens)
        entropy += torch.special.entr(attn[:, start:stop, :stop].float()).sum(dim=(1, 2))
    favourite, favourite_share, favourite_rest = _favourites(attn)  # (H,) each
    if n_tokens > 1:
        entropy = entropy / (n_tokens - 1)
    else:
        entropy = entropy * torch.nan
    middle_columns = torch.stack([favourite, favourite_share, entropy], dim=-1)  # (H, 3)
    # (H, S), (H, 3), (H, S) and (H, 1) -> (H, COLUMNS), S the number of `SHARES`
    return torch.cat(
        [
            shares(attn.float(), keys),
            middle_columns,
            rests(attn.float(), keys),
            favourite_rest[:, None],
        ],
        dim=-1,
    )


def is_mark(raw: bytes) -> bool:
    """Whether a token is punctuation: no letter, digit, picture or piece of a character in it."""
    try:
        text = raw.decode().strip()
    except UnicodeDecodeError:
        return False
    return bool(text) and all(
        char in string.punctuation or category(char)[0] == "P" for char in text
    )


@worked_out_once(maxsize=2)  # every head of a text is compared with it
@undisturbed
def even_means(n_tokens: int) -> torch.Tensor:
    """(T,): for each key the mean over the queries after it of 1 / (query + 1), as in an even head."""
    rows = 1 / torch.arange(1, n_tokens + 1)  # (T,): what row q gives each key
    return _after(rows.flip(0).cumsum(0).flip(0) - rows)


def _after(sums: torch.Tensor) -> torch.Tensor:
    """Sums over the queries after each key as means: (..., T) -> (..., T); 0 for the last key."""
    n_tokens = sums.shape[-1]
    return sums / (n_tokens - 1 - torch.arange(n_tokens)).clamp(min=1)


def _favourites(attn: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Each head's favourite key, its mean attention from later queries, and that of token 0 from the same.

    (H,) each; NaN if there is none. Only keys that at least three queries, and a quarter of all, come after:
    one query's taste says little.
    """
    heads = attn.shape[0]
    n_tokens = attn.shape[-1]
    last = n_tokens - 1 - max(3, n_tokens // 4)  # the last key with enough queries after it
    if last < 1:
        return (torch.full((heads,), torch.nan),) * 3
    # (H, T): from later queries only
    sums = (attn.sum(dim=-2) - attn.diagonal(dim1=-2, dim2=-1)).float()
    means = _after(sums)[:, 1 : last + 1]  # (H, last)
    even = even_means(n_tokens)[1 : last + 1]  # (last,)
    best = ((means - even) / (1 - even)).argmax(dim=-1)
    head_index = torch.arange(heads)
    # (H, T): from this query and later ones
    resting = attn[..., 0].float().flip(-1).cumsum(-1).flip(-1)
    return (
        (best + 1).float(),
        means[head_index, best],
        resting[head_index, best + 2] / (n_tokens - 2 - best),
    )


def spans(positions: Sequence[int]) -> str:
    """Rising positions as they are written: "1 to 4, 7"."""
    runs: list[list[int]] = []
    for position in positions:
        if runs and position == runs[-1][1] + 1:
            runs[-1][1] = position
        else:
            runs.append([position, position])
    return ", ".join(f"{a} to {b}" if b > a else f"{a}" for a, b in runs)
