"""What an attention head does, in a few numbers and in one plain sentence.

Two kinds of measurement stand here. `previous_token_score` and `induction_score` are the field's own
scores on prepared sequences (Elhage et al., A Mathematical Framework for Transformer Circuits, 2021;
Olsson et al., In-context Learning and Induction Heads, 2022). `roles` measures every head on the text
that somebody typed, and `describe` says what was found.

Shapes in comments: H heads, T tokens.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import torch

if TYPE_CHECKING:
    from gptviz.trace import Trace

Array = TypeVar("Array", np.ndarray, torch.Tensor)


def previous_token_score(attn: Array) -> Array:
    """Mean attention from each token to the one before it: (..., T, T) weights -> (...), from 0 to 1.

    Query 0 has no token before it and is left out. Raises ValueError for fewer than two tokens.
    """
    n_tokens = _square(attn)
    if n_tokens < 2:
        raise ValueError("a previous-token score needs at least 2 tokens, got 1")
    queries = np.arange(1, n_tokens)
    return attn[..., queries, queries - 1].mean(-1)


def induction_score(attn: Array, period: int) -> Array:
    """Mean attention from a token's second occurrence to the token after its first, from 0 to 1.

    `attn` (..., T, T) belongs to a random passage of `period` tokens that is followed by itself; the
    mean runs over the second half's queries q, at the key q - period + 1. (..., T, T) -> (...).
    Raises ValueError where nothing is repeated (T <= period) or the period is below 2, for then the
    token after the first occurrence would be the query itself.
    """
    n_tokens = _square(attn)
    if not 2 <= period < n_tokens:
        raise ValueError(f"period is {period}; for {n_tokens} tokens it must be from 2 to {n_tokens - 1}")
    queries = np.arange(period, min(2 * period, n_tokens))
    return attn[..., queries, queries - period + 1].mean(-1)


@dataclass(frozen=True)
class HeadRole:
    """What one head did on one text.

    `shares`, by the names in `KINDS`, are from 0 to 1: the mean over the queries that have such keys
    of their attention to them, and None where there are none. Query 0 can only look at itself and
    counts nowhere. `favourite` is the key (not the first) that
    later tokens look at most, wherever they stand. `repeats` counts the queries that have something
    to continue. `spread` is over how many tokens the attention reaches: exp of its mean entropy in
    nats. `kind` is the role that stands out.
    """

    block: int
    head: int
    kind: str
    shares: Mapping[str, float | None]
    favourite: int | None
    repeats: int
    spread: float


# A role's name, and its label where there is room for a word or two.
KINDS = {
    "induction": "what came next",  # the token that followed an earlier occurrence of the query's token
    "copies": "copies",  # earlier occurrences of the query's token
    "first": "first",
    "previous": "previous",
    "itself": "itself",
    "marks": "punctuation",  # tokens without a letter or a digit
    "favourite": "one token",
    "nearby": "nearby",  # the few tokens before
    "even": "even",
    "mixed": "mixed",
    "alone": "alone",  # a text of one token
}

# A role is named when the head goes this far of the way from even attention (0) to nothing else (1).
CLEAR = 0.3
# Induction and copying show only where the text repeats; elsewhere such a head does something else,
# mostly rest on the first token. So they are named before what the head does on average.
CLEAR_ON_REPEATS = 0.4
EVEN = 0.9  # of the largest possible entropy
NEAR = 4  # tokens before the query that are nearby


def roles(trace: "Trace") -> list[list[HeadRole]]:
    """Every head's role on this text: `roles(trace)[block][head]`. Needs `attn` in the trace."""
    texts = [token.text for token in trace.tokens]
    return [block_roles(trace["attn", b], texts, b) for b in range(trace.config.n_layers)]


def block_roles(attn: torch.Tensor, texts: Sequence[str], block: int) -> list[HeadRole]:
    """The roles of one block's heads: weights (H, T, T), the tokens' texts (T of them)."""
    n_tokens = _square(attn)
    if n_tokens == 1:
        return [HeadRole(block, h, "alone", {"itself": 1.0}, None, 0, 1.0) for h in range(len(attn))]
    even = torch.ones(n_tokens, n_tokens).tril() / torch.arange(1, n_tokens + 1)[:, None]  # (T, T)
    both = torch.cat([attn, even[None]])  # (H + 1, T, T): the last is what an even head would do
    entropy = torch.special.entr(both[:, 1:]).sum(dim=-1).mean(dim=-1)  # (H + 1,)
    targets = _targets(texts)
    shares = {name: _share(both, target) for name, target in targets.items()}
    lifts = {
        name: torch.zeros(len(both)) if share is None else _lift(share) for name, share in shares.items()
    }
    favourite, shares["favourite"], lifts["favourite"] = _favourites(both)
    repeats = int(targets["induction"].any(dim=-1).sum())
    return [
        HeadRole(
            block=block,
            head=h,
            kind=_kind(
                {name: float(lift[h]) for name, lift in lifts.items()}, float(entropy[h] / entropy[-1])
            ),
            shares={name: None if share is None else float(share[h]) for name, share in shares.items()},
            favourite=None if favourite is None else int(favourite[h]),
            repeats=repeats,
            spread=float(entropy[h].exp()),
        )
        for h in range(len(attn))
    ]


def _targets(texts: Sequence[str]) -> dict[str, torch.Tensor]:
    """For each role the keys it would look at, as (T, T) booleans, rows are queries.

    Keys that are the first, the previous or the very token would not tell the roles apart, so they
    belong to no other role (but the previous token is nearby).
    """
    n_tokens = len(texts)
    queries, keys = torch.arange(n_tokens)[:, None], torch.arange(n_tokens)[None, :]
    first = (keys == 0) & (queries > 0)
    itself = (keys == queries) & (queries > 0)
    previous = keys == queries - 1
    plain = first | itself | previous
    number = {text: i for i, text in enumerate(dict.fromkeys(texts))}
    ids = torch.tensor([number[text] for text in texts])
    same = (ids[:, None] == ids[None, :]) & (keys < queries)  # (T, T): an earlier copy of the query
    followed = torch.zeros_like(same)
    followed[:, 1:] = same[:, :-1]  # the key after such a copy
    marks = torch.tensor([not any(char.isalnum() for char in text) for text in texts])  # (T,)
    return {
        "induction": followed & ~plain,
        "copies": same & ~plain,
        "first": first,
        "previous": previous,
        "itself": itself,
        "marks": marks & (keys < queries) & ~plain,
        "nearby": (keys < queries) & (keys >= queries - NEAR) & ~first,
    }


def _share(attn: torch.Tensor, target: torch.Tensor) -> torch.Tensor | None:
    """Mean over the queries that have a target of their attention to it: (..., T, T) -> (...)."""
    queries = target.any(dim=-1)
    if not queries.any():
        return None
    return (attn[..., queries, :] * target[queries]).sum(dim=-1).mean(dim=-1)


def _lift(shares: torch.Tensor) -> torch.Tensor:
    """How far each head goes from an even head (0), the last along H, to nothing else (1)."""
    return (shares - shares[-1]) / (1 - shares[-1]).clamp(min=1e-6)


def _favourites(attn: torch.Tensor) -> tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor]:
    """Each head's favourite key, its mean attention from later queries, and the lift: (H + 1,) each.

    Only keys that at least three queries, and a quarter of all, come after: one query's taste says little.
    """
    n_tokens = attn.shape[-1]
    last = n_tokens - 1 - max(3, n_tokens // 4)  # the last key with enough queries after it
    if last < 1:
        return None, None, torch.zeros(len(attn))
    later = n_tokens - 1 - torch.arange(1, last + 1)  # how many queries come after each key
    means = attn.tril(-1).sum(dim=-2)[:, 1 : last + 1] / later  # (H + 1, last)
    lifts = _lift(means)
    best = lifts.argmax(dim=-1)
    rows = torch.arange(len(attn))
    return best + 1, means[rows, best], lifts[rows, best]


def _kind(lifts: Mapping[str, float], evenness: float) -> str:
    for name in ("induction", "copies"):
        if lifts[name] >= CLEAR_ON_REPEATS:
            return name
    best = max(("first", "previous", "itself", "marks", "favourite"), key=lifts.__getitem__)
    if lifts[best] >= CLEAR:
        return best
    if lifts["nearby"] >= CLEAR:
        return "nearby"
    return "even" if evenness >= EVEN else "mixed"


def most_telling(found: Sequence[Sequence[HeadRole]]) -> HeadRole:
    """The head to begin with: the clearest of the rarest role that the text brings out."""
    heads = [role for row in found for role in row]
    for kind in KINDS:
        if of_kind := [role for role in heads if role.kind == kind]:
            return max(of_kind, key=lambda role: role.shares.get(kind) or 0.0)
    return heads[0]


def describe(role: HeadRole, tokens: Sequence[str] = ()) -> str:
    """One plain sentence, without its subject: "looks at the previous token (0.83 on average)".

    `tokens`, as the screen shows them, let it name a favourite token by more than its position.
    """
    share = role.shares.get(role.kind)
    number = f"{share:.2f} on average" if share is not None else ""
    match role.kind:
        case "alone":
            return "has only one token to look at: 1.00 to itself"
        case "induction":
            times = f"{role.repeats} token{'s' if role.repeats > 1 else ''} that occurred before"
            return f"looks at what followed last time ({number}, from {times}); in all, {_mostly(role)}"
        case "copies":
            return f"looks at earlier copies of the same token ({number}); in all, {_mostly(role)}"
        case "previous":
            return f"looks at the previous token ({number})"
        case "itself":
            return f"looks at the token itself ({number})"
        case "first":
            return f"rests on the first token ({number})"
        case "marks":
            return f"looks back at punctuation ({number})"
        case "favourite":
            assert role.favourite is not None
            name = f"`{tokens[role.favourite]}`, position" if tokens else "position"
            return f"looks at {name} {role.favourite}, wherever it stands ({number})"
        case "nearby":
            return f"looks at the {NEAR} tokens before ({number}, together)"
        case "even":
            return f"spreads almost evenly, over {role.spread:.1f} tokens on average"
        case _:
            return f"spreads over {role.spread:.1f} tokens on average: {_mostly(role)}"


def _mostly(role: HeadRole) -> str:
    """The largest of what can be said of any head."""
    names = {"first": "the first token", "previous": "the previous token", "itself": "the token itself"}
    share, name = max((role.shares[kind] or 0.0, name) for kind, name in names.items())
    return f"{share:.2f} to {name}"


def _square(attn: np.ndarray | torch.Tensor) -> int:
    """T of (..., T, T), or a ValueError."""
    if attn.ndim < 2 or attn.shape[-1] != attn.shape[-2] or attn.shape[-1] < 1:
        raise ValueError(
            f"attention weights have the shape (..., T, T), T at least 1; got {tuple(attn.shape)}"
        )
    return int(attn.shape[-1])
