"""What an attention head does, in a few numbers.

`roles` measures every head on the text that somebody typed and names what stands out. The formulas of the
roles are `gptviz.analysis.head_formulas`'; what a head does in general is `gptviz.analysis.head_general`'s.

**The sink first.** A row of attention must sum to 1, so a head that finds nothing to do rests on token 0
(Xiao et al., 2023). That is no habit to be weighed against others. So it is set apart before a head is named:

1. Of the queries that a role is asked about, what they leave on token 0 is taken off (`rests`). A head that
   leaves more than `REST` of them there is at rest in this role's place, and does not have the role.
2. The role's share is then taken of what is left, all its queries together: share / (1 - rest). Rows are not
   scaled up one by one: one that rests would count as much by its last thousandth as one that works.
3. Induction and copying are asked only of the queries whose token came before, so a head that rests elsewhere
   and works there is named for it. Any other head that leaves more than `REST` of all queries on token 0, and
   clearly more than an even head, is "first": at rest on this text.

The shares themselves stay what they are: means over the whole matrix.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
import torch

from gptviz.analysis.attention import mean_writes
from gptviz.analysis.head_formulas import ON_REPEATS, ROLES, SHARES
from gptviz.analysis.head_scores import (
    ENTROPY,
    FAVOURITE,
    FAVOURITE_REST,
    FAVOURITE_SHARE,
    RESTS,
    HeadScores,
    Targets,
    block_scores,
    even_means,
    spans,
)
from gptviz.analysis.reads import reads
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.trace import Trace
from gptviz.engine.undisturbed import undisturbed


@dataclass(frozen=True)
class HeadRole:
    """The role of one head on one text.

    `shares`, by the names in `KINDS`, are from 0 to 1: the mean over the queries that have such keys
    of their attention to them, and None where no query has any; `rows` says which queries these are, so
    that every share can be taken again from the matrix. Query 0 can only look at itself and counts
    nowhere (but in a text of one token). `favourite` is the key (not the first) that later tokens look at
    most, wherever they stand. `spread` is over how many tokens the attention reaches: exp of its mean
    entropy in nats over the queries from 1 on. `kind` is the role that stands out, and `rest` what the
    queries of its share leave on token 0 (0 where that is the role's own key, or all of it).
    """

    block: int
    head: int
    kind: str
    shares: Mapping[str, float | None]
    rows: Mapping[str, tuple[int, ...]]
    favourite: int | None
    spread: float
    rest: float = 0.0

    @property
    def share(self) -> float | None:
        """The share of its own kind; None for a head without a habit."""
        return self.shares.get(self.kind)

    @property
    def share_of_rest(self) -> float | None:
        """The share of the attention not left on token 0, by which its kind was named; None without one."""
        if self.share is None:
            return None
        return self.share / (1 - self.rest)


KINDS = tuple(ROLES)
NO_HABIT = ("even", "mixed", "nothing")  # what they do has no share

# A head is at rest where token 0 gets more than all other tokens together: no role can have as much.
REST = 0.5
# A role is named when the head goes this far of the way from even attention (0) to nothing else (1).
CLEAR = 0.3
# Induction and copying show only where the text repeats; elsewhere such a head does something else,
# mostly rest on the first token. So they are named before what the head does on average.
CLEAR_ON_REPEATS = 0.4
# Where even attention gives them more than this, as in "ha ha ha ha", any look back is at such a key.
TELLING = 0.5
EVEN = 0.9  # of the largest possible entropy


@undisturbed
def roles(trace: Trace) -> list[list[HeadRole]]:
    """Every head's role on this text: `roles(trace)[block][head]`. Needs `attn` in the trace."""
    targets = HeadScores.of(trace.tokens).targets
    blocks = range(trace.config.n_layers)
    return roles_of([block_scores(trace["attn", b], targets.keys) for b in blocks], targets)


def roles_of(scores: Sequence[torch.Tensor], targets: Targets) -> list[list[HeadRole]]:
    """`roles` from each block's `block_scores`."""
    return [
        [_role(row, targets, b, h) for h, row in enumerate(block)] for b, block in enumerate(scores)
    ]


def _role(scores: torch.Tensor, targets: Targets, block: int, head: int) -> HeadRole:
    """One head's role, from its row of `block_scores`."""
    n_tokens = len(targets.keys)
    if n_tokens == 1:
        return HeadRole(block, head, "alone", {"alone": 1.0}, {"alone": (0,)}, None, 1.0)
    measured = scores.tolist()
    even = targets.even.tolist()
    shares = {
        name: None if math.isnan(measured[i]) else measured[i] for i, name in enumerate(SHARES)
    }
    rows = dict(targets.rows) | dict.fromkeys(NO_HABIT, targets.rows["first"])
    rests = rests_of(measured)
    lifts = lifts_of(measured, even)
    if math.isnan(measured[FAVOURITE]):
        favourite = None
    else:
        favourite = int(measured[FAVOURITE])
    if favourite is None:
        shares["favourite"] = None
        rows["favourite"] = ()
        lifts["favourite"] = 0.0
    else:
        shares["favourite"] = measured[FAVOURITE_SHARE]
        rows["favourite"] = tuple(range(favourite + 1, n_tokens))
        rests["favourite"] = measured[FAVOURITE_REST]
        # of an even head, to this key and to token 0
        alike = float(even_means(n_tokens)[favourite])
        lifts["favourite"] = _lift(measured[FAVOURITE_SHARE], rests["favourite"], alike, alike)
    kind = "nothing"
    if any(shares.values()):
        kind = kind_of(lifts, rests["mixed"], measured[ENTROPY] / even[ENTROPY])
    return HeadRole(
        block, head, kind, shares, rows, favourite, math.exp(measured[ENTROPY]), rests[kind]
    )


def rests_of(own: Sequence[float]) -> dict[str, float]:
    """The attention that the queries of each role leave on token 0.

    From a row of `block_scores`; not a number where there is none.
    """
    return dict(zip(SHARES, own[RESTS:], strict=False)) | dict.fromkeys(
        NO_HABIT, own[SHARES.index("first")]
    )


def lifts_of(own: Sequence[float], even: Sequence[float]) -> dict[str, float]:
    """Each of `SHARES` on a scale from 0 (as with even attention) to 1 (all of it).

    Of what is not left on token 0, from rows of `block_scores`; 0 where there is none, where the head rests,
    and where a text repeats so much that it does not tell (`TELLING`).
    """
    lifts = {}
    for i, name in enumerate(SHARES):
        unasked = math.isnan(own[i]) or (name in ON_REPEATS and even[i] > TELLING)
        if unasked:
            lifts[name] = 0.0
        else:
            lifts[name] = _lift(own[i], own[RESTS + i], even[i], even[RESTS + i])
    return lifts


def _lift(share: float, rest: float, even: float, even_rest: float) -> float:
    """A share of what is left, on the scale from what an even head has (0) to all there is (1)."""
    if rest > REST:
        return 0.0
    alike = even / (1 - even_rest)
    return (share / (1 - rest) - alike) / max(1 - alike, 1e-6)


def kind_of(lifts: Mapping[str, float], first: float, evenness: float) -> str:
    """The role that stands out.

    `lifts` as `lifts_of` has them, `first` is the share of all attention that goes to token 0, and `evenness`
    the entropy as a share of the largest that is possible.
    """
    for name in ON_REPEATS:
        if lifts[name] >= CLEAR_ON_REPEATS:
            return name
    if first > REST and lifts["first"] >= CLEAR:
        return "first"
    best = max(("previous", "itself", "marks", "favourite"), key=lambda name: lifts.get(name, 0.0))
    if lifts.get(best, 0.0) >= CLEAR:
        return best
    if lifts["nearby"] >= CLEAR:
        return "nearby"
    if evenness >= EVEN:
        return "even"
    return "mixed"


@reads("attn", "z")
def head_table(lm: LanguageModel, t: Trace) -> pd.DataFrame:
    """Return every head's label on this text, and the numbers behind it: see `role_table`."""
    return role_table(roles(t), mean_writes(t, lm.model))


def most_telling(found: Sequence[Sequence[HeadRole]]) -> HeadRole:
    """The head to begin with: the clearest of the rarest role that the text brings out."""
    heads = [role for row in found for role in row]
    for kind in KINDS:
        if of_kind := [role for role in heads if role.kind == kind]:
            return max(of_kind, key=lambda role: role.share or 0.0)
    return heads[0]


def role_table(found: Sequence[Sequence[HeadRole]], writes: torch.Tensor) -> pd.DataFrame:
    """A table with every number about each head, one row per head. `writes` (n_layers, H) are the mean writes.

    Columns: block, head, role, share (of its role), rows (over how many queries that is the mean),
    row_positions (which: "1 to 19"), rest (what these leave on token 0), share_of_rest (share of what is
    then left, which the role was named by), favourite, spread, mean_write, and the share of each kind, empty
    where no query of the text has such a key.
    """
    rows = []
    for role in (role for row in found for role in row):
        taken = role.rows.get(role.kind, ())
        rows.append(
            {"block": role.block, "head": role.head, "role": role.kind, "share": role.share}
            | {"rows": len(taken), "row_positions": spans(taken)}
            | {"rest": role.rest, "share_of_rest": role.share_of_rest, "favourite": role.favourite}
            | {"spread": role.spread, "mean_write": float(writes[role.block, role.head])}
            | {f"to_{kind}": share for kind, share in role.shares.items()}
        )
    return pd.DataFrame(rows).astype({"share": float, "share_of_rest": float, "favourite": "Int64"})
