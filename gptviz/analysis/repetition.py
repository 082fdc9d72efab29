"""Loops and dull text: what of a text stood in it before, and the heads that look where it went on then.

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
from gptviz.analysis.next_token import surprises
from gptviz.engine.edits import Edit
from gptviz.engine.given import ids_of
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.reduction import Reduction
from gptviz.engine.trace import Token
from gptviz.tokenizer import named_bytes, show_token

LONG, LEAST = 8, 4  # tokens, see `loop`


def repeated(ids: Sequence[int], n: int) -> NDArray[np.bool_]:
    """(T,): whether the n tokens that end at a position stood together in the text before.

    They may overlap with where they stood. ValueError for n below 1.
    """
    if n < 1:
        raise ValueError(f"n is {n}; a piece has at least 1 token")
    seen: set[tuple[int, ...]] = set()
    found = np.zeros(len(ids), dtype=np.bool_)
    for end in range(n, len(ids) + 1):
        piece = tuple(ids[end - n : end])
        found[end - 1] = piece in seen
        seen.add(piece)
    return found


def share_along(ids: Sequence[int], start: int, n: int) -> NDArray[np.float64]:
    """(T - start,): of the tokens from `start` to each position, the share that ends such a piece."""
    written = repeated(ids, n)[start:]
    return np.cumsum(written) / np.arange(1, len(written) + 1)


def repeats(lm: LanguageModel, ids: Sequence[int], start: int, n: int) -> pd.DataFrame:
    """Return a row per token from `start` on: step (from 1), token, `repeats` (or not), the share so far."""
    return pd.DataFrame(
        {
            "step": range(1, len(ids) - start + 1),
            "token": [show_token(named_bytes(lm.tokenizer, i)) for i in ids[start:]],
            "repeats": repeated(ids, n)[start:],
            "share": share_along(ids, start, n),
        }
    )


def greedy_shares(lm: LanguageModel, prompt: str | Sequence[int], count: int, n: int) -> NDArray[np.float64]:
    """Return `share_along` what the model writes at temperature 0 after a prompt: (count,), or fewer."""
    ids = ids_of(lm, prompt)
    new = [step.id for step in lm.generate(ids, count, temperature=0)]
    return share_along([*ids, *new], len(ids), n)


@dataclass(frozen=True)
class Loop:
    """The end of a text that goes round: from `start` on every token is the one `period` before it."""

    start: int  # the first token that is such a copy
    period: int


def loop(ids: Sequence[int]) -> Loop | None:
    """The loop that a text ends in, the one of the shortest piece, or None.

    A word said twice is no loop: the piece stands there three times running at least, or twice where it has
    `LONG` tokens or more, and at least `LEAST` tokens are copies (so that one alone stands there five times).
    """
    ids = list(ids)
    for period in range(1, len(ids) // 2 + 1):
        start = len(ids)
        while start > period and ids[start - 1] == ids[start - 1 - period]:
            start -= 1
        copies = len(ids) - start
        if copies >= max(LEAST, period if period >= LONG else 2 * period):
            return Loop(start, period)
    return None


@dataclass(frozen=True)
class _Followed:
    scores: HeadScores

    def __call__(self, attn: torch.Tensor) -> torch.Tensor:
        keys = self.scores.targets.keys[..., SHARES.index("induction")]  # (T, T)
        given = (attn * keys).sum(dim=-1)  # (H, T)
        return given.masked_fill(~keys.any(dim=-1), torch.nan)


def followed(tokens: Sequence[Token]) -> Reduction:
    """What each head gives to the tokens that followed earlier copies of the query's token: (H, T) a block.

    NaN where the token stands for the first time. These are the keys of `head_scores`' induction share, whose
    mean over the queries is that share.
    """
    return Reduction("attention to what followed", "attn", _Followed(HeadScores.of(tokens)))


@dataclass(frozen=True)
class Induction:
    """The head that looks most at what followed, and all that do so clearly, the clearest first.

    `silent` are heads whose output an edit has set to zero: they make nothing go round, and are left out.
    """

    block: int
    head: int
    share: float
    clear: tuple[tuple[int, int], ...]
    silent: tuple[tuple[int, int], ...] = ()

    def muted(self, most: int = 5) -> tuple[tuple[int, int], ...]:
        """The heads to try it out without."""
        return self.clear[:most] or ((self.block, self.head),)


def induction(lm: LanguageModel, roles: Sequence[Sequence[HeadRole]]) -> Induction | None:
    """Return it from the roles of all heads on a text; None where no token stands twice: nothing followed."""
    silent = {
        (block, head)
        for edit in lm.edits
        if (edit.site, edit.value, edit.positions) == ("z", "zero", None)
        for block in edit.blocks(lm.config.n_layers)
        for head in (range(lm.config.n_heads) if edit.heads is None else edit.heads)
    }
    every = [role for row in roles for role in row]
    heard = [role for role in every if (role.block, role.head) not in silent] or every
    asked = [(share, role) for role in heard if (share := role.shares.get("induction")) is not None]
    if not asked:
        return None
    share, best = max(asked, key=lambda pair: pair[0])
    clear = sorted((pair for pair in asked if pair[1].kind == "induction"), key=lambda pair: -pair[0])
    places = tuple((role.block, role.head) for _, role in clear)
    return Induction(best.block, best.head, share, places, tuple(sorted(silent)))


def other_heads(
    lm: LanguageModel, heads: Sequence[tuple[int, int]], also: Iterable[tuple[int, int]] = (), sets: int = 5
) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Sets of as many (block, head) as `heads`, drawn at random from all others but `also`: a comparison.

    The same ones every time. None where there are not that many others.
    """
    every = [(b, h) for b in range(lm.config.n_layers) for h in range(lm.config.n_heads)]
    rest = sorted(set(every) - set(heads) - set(also))
    if len(rest) < len(heads):
        return ()
    chance = np.random.default_rng(len(heads))
    drawn = [chance.choice(len(rest), len(heads), replace=False) for _ in range(sets)]
    return tuple(tuple(rest[i] for i in sorted(places)) for places in drawn)


def without_heads(
    lm: LanguageModel,
    ids: Sequence[int],
    heads: Sequence[tuple[int, int]],
) -> NDArray[np.float64]:
    """(T,): what each token's probability would have been with these (block, head) giving nothing.

    One real pass in which their outputs are zero, everywhere in the text; NaN for the first token. No
    heads: as the model has it, with its own edits.
    """
    edits = [Edit("z", block, "zero", [head]) for block, head in heads]
    final = lm.trace(ids, keep=["final"], edits=edits)["final"]  # (T, D)
    found = surprises(final, lm.model.out_head.weight.detach(), ids)
    return found["probability"].to_numpy(dtype=np.float64)
