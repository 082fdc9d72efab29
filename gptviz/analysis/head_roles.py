"""What an attention head does, in a few numbers.

`roles` measures every head on the text that somebody typed and names what stands out. The formulas of the
roles are `gptviz.analysis.head_formulas`'; what a head does in general is `gptviz.analysis.head_general`'s.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pandas as pd
import torch

from gptviz.analysis.head_formulas import SHARES
from gptviz.analysis.head_scores import (
    ENTROPY,
    FAVOURITE,
    FAVOURITE_SHARE,
    Targets,
    block_scores,
    even_means,
    spans,
)

if TYPE_CHECKING:
    from gptviz.trace import Trace


@dataclass(frozen=True)
class HeadRole:
    """What one head did on one text.

    `shares`, by the names in `KINDS`, are from 0 to 1: the mean over the queries that have such keys
    of their attention to them, and None where no query has any; `rows` says which queries these are, so
    that every share can be taken again from the matrix. Query 0 can only look at itself and counts
    nowhere (but in a text of one token). `favourite` is the key (not the first) that later tokens look at
    most, wherever they stand. `spread` is over how many tokens the attention reaches: exp of its mean
    entropy in nats over the queries from 1 on. `kind` is the role that stands out.
    """

    block: int
    head: int
    kind: str
    shares: Mapping[str, float | None]
    rows: Mapping[str, tuple[int, ...]]
    favourite: int | None
    spread: float

    @property
    def share(self) -> float | None:
        """The share of its own kind; None for an even or a mixed head."""
        return self.shares.get(self.kind)


# The roles, the rarest first.
KINDS = (
    "induction",  # the token that followed an earlier occurrence of the query's token
    "copies",  # earlier occurrences of the query's token
    "first",
    "previous",
    "itself",
    "marks",  # punctuation
    "favourite",  # one token, whoever looks
    "nearby",  # the few tokens before
    "even",
    "mixed",
    "alone",  # a text of one token
)

# A role is named when the head goes this far of the way from even attention (0) to nothing else (1).
CLEAR = 0.3
# Induction and copying show only where the text repeats; elsewhere such a head does something else,
# mostly rest on the first token. So they are named before what the head does on average.
CLEAR_ON_REPEATS = 0.4
EVEN = 0.9  # of the largest possible entropy


def roles(trace: "Trace") -> list[list[HeadRole]]:
    """Every head's role on this text: `roles(trace)[block][head]`. Needs `attn` in the trace."""
    targets = Targets.of(trace.tokens)
    blocks = range(trace.config.n_layers)
    return roles_of([block_scores(trace["attn", b], targets.keys) for b in blocks], targets)


def roles_of(scores: Sequence[torch.Tensor], targets: Targets) -> list[list[HeadRole]]:
    """`roles` from each block's `block_scores`."""
    return [[_role(row, targets, b, h) for h, row in enumerate(block)] for b, block in enumerate(scores)]


def _role(scores: torch.Tensor, targets: Targets, block: int, head: int) -> HeadRole:
    """One head's role, from its row of `block_scores`."""
    n_tokens = len(targets.keys)
    if n_tokens == 1:
        return HeadRole(block, head, "alone", {"alone": 1.0}, {"alone": (0,)}, None, 1.0)
    own, even = scores.tolist(), targets.even.tolist()
    shares = {name: None if math.isnan(own[i]) else own[i] for i, name in enumerate(SHARES)}
    rows = dict(targets.rows) | dict.fromkeys(("even", "mixed"), targets.rows["first"])
    lifts = lifts_of(own, even)
    favourite = None if math.isnan(own[FAVOURITE]) else int(own[FAVOURITE])
    if favourite is None:
        shares["favourite"], rows["favourite"], lifts["favourite"] = None, (), 0.0
    else:
        shares["favourite"], rows["favourite"] = own[FAVOURITE_SHARE], tuple(range(favourite + 1, n_tokens))
        lifts["favourite"] = _lift(own[FAVOURITE_SHARE], float(even_means(n_tokens)[favourite]))
    kind = kind_of(lifts, own[ENTROPY] / even[ENTROPY])
    return HeadRole(block, head, kind, shares, rows, favourite, math.exp(own[ENTROPY]))


def lifts_of(own: Sequence[float], even: Sequence[float]) -> dict[str, float]:
    """How far each of `SHARES` goes from an even head's (0) to all there is (1); 0 where there is none."""
    return {
        name: 0.0 if math.isnan(share) else _lift(share, flat)
        for name, share, flat in zip(SHARES, own, even, strict=False)
    }


def _lift(share: float, even: float) -> float:
    """How far a share goes from what an even head has (0) to all there is (1)."""
    return (share - even) / max(1 - even, 1e-6)


def kind_of(lifts: Mapping[str, float], evenness: float) -> str:
    """The role that stands out; `evenness` is the entropy as a share of the largest that is possible."""
    for name in ("induction", "copies"):
        if lifts[name] >= CLEAR_ON_REPEATS:
            return name
    best = max(("first", "previous", "itself", "marks", "favourite"), key=lambda name: lifts.get(name, 0.0))
    if lifts.get(best, 0.0) >= CLEAR:
        return best
    if lifts["nearby"] >= CLEAR:
        return "nearby"
    return "even" if evenness >= EVEN else "mixed"


def most_telling(found: Sequence[Sequence[HeadRole]]) -> HeadRole:
    """The head to begin with: the clearest of the rarest role that the text brings out."""
    heads = [role for row in found for role in row]
    for kind in KINDS:
        if of_kind := [role for role in heads if role.kind == kind]:
            return max(of_kind, key=lambda role: role.share or 0.0)
    return heads[0]


def role_table(found: Sequence[Sequence[HeadRole]], writes: torch.Tensor) -> pd.DataFrame:
    """Every number that is said of a head: one row a head. `writes` (n_layers, H) are the mean writes.

    Columns: block, head, role, share (of its role), rows (over how many queries that is the mean),
    row_positions (which: "1 to 19"), favourite, spread, mean_write, and the share of each kind, empty where
    no query of the text has such a key.
    """
    rows = []
    for role in (role for row in found for role in row):
        taken = role.rows.get(role.kind, ())
        rows.append(
            {"block": role.block, "head": role.head, "role": role.kind, "share": role.share}
            | {"rows": len(taken), "row_positions": spans(taken), "favourite": role.favourite}
            | {"spread": role.spread, "mean_write": float(writes[role.block, role.head])}
            | {f"to_{kind}": share for kind, share in role.shares.items()}
        )
    return pd.DataFrame(rows).astype({"share": float, "favourite": "Int64"})
