"""The roles of attention heads, each as one formula: here and nowhere else.

A role is a set of keys for every query. A head's score for it is the mean, over the queries that have such a
key, of the attention that they give to these keys: from 0 to 1, and not a number where no query has any.
The same formula is asked of a text that somebody typed, of random tokens that repeat, and of a sample of
books: what differs is the text alone.

Shapes in comments: H heads, T tokens, S sets of keys.

Elhage et al., A Mathematical Framework for Transformer Circuits, 2021 (previous token, induction, copying);
Olsson et al., In-context Learning and Induction Heads, 2022 (the score on random tokens that repeat);
Wang et al., Interpretability in the Wild, 2022 (duplicate-token heads); Xiao et al., Efficient Streaming
Language Models with Attention Sinks, 2023 (the first token as a place to rest); Clark et al., What Does BERT
Look At?, 2019 (punctuation, the token itself); TransformerLens' `head_detector` counts the same cells, over
all of a text's queries and not only those that have such a key.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from gptviz.engine.undisturbed import undisturbed

NEAR = 4  # tokens before the query that are nearby
ROWS = 256  # queries that are worked on at a time: a long text's weights are never copied whole


@dataclass(frozen=True)
class Role:
    """A role of a head: `label` names it on every page, `does` says what such a head does.

    `keys` is the formula: which keys a query q is asked about; empty where a role is told in another way (see
    `gptviz.analysis.head_roles.kind_of`). `source` is where the field has the role from. A `quiet` role
    claims nothing: the head is at rest, or has no habit.
    """

    name: str
    label: str
    does: str
    keys: str = ""
    source: str = ""
    quiet: bool = False


_ELHAGE = "Elhage et al., A Mathematical Framework for Transformer Circuits, 2021"
_OLSSON = "Olsson et al., In-context Learning and Induction Heads, 2022"
_WANG = "Wang et al., Interpretability in the Wild, 2022"
_XIAO = "Xiao et al., Efficient Streaming Language Models with Attention Sinks, 2023"
_CLARK = "Clark et al., What Does BERT Look At?, 2019"

# Every role there is, the rarest first, and last what claims nothing. Every page takes its words from here,
# and the roles have their colours in this order (`gptviz.figures.marks`).
ROLES = {
    role.name: role
    for role in (
        Role("induction", "induction", "looks at what came after an earlier copy of the token",
             "k with token[k-1] = token[q], k-1 < q", f"{_ELHAGE}; {_OLSSON}"),
        Role("copies", "duplicate", "looks at earlier copies of the token",
             "k < q with token[k] = token[q]", _WANG),
        Role("previous", "previous", "looks at the token just before", "k = q-1", _ELHAGE),
        Role("itself", "itself", "looks at the token itself", "k = q", _CLARK),
        Role("marks", "punctuation", "looks back at punctuation",
             "k < q with token[k] a punctuation mark", _CLARK),
        Role("favourite", "one token", "keeps looking at one token"),
        Role("nearby", "nearby", f"looks at up to {NEAR} tokens just before", f"q-{NEAR} <= k < q", _CLARK),
        Role("first", "resting", "looks mostly at the first token", "k = 0", _XIAO, quiet=True),
        Role("even", "even", "looks at all tokens almost alike", quiet=True),
        Role("mixed", "mixed", "has no single habit", quiet=True),
        Role("nothing", "nothing", "looks at nothing", quiet=True),
        Role("alone", "alone", "has only one token to look at", quiet=True),
    )
}  # fmt: skip

# The roles that have a formula, in the order of the columns of `role_keys` and of every table of shares.
SHARES = ("induction", "copies", "first", "previous", "itself", "marks", "nearby")
ON_REPEATS = SHARES[:2]  # which only a text that repeats asks for


@undisturbed
def same_before(ids: Sequence[int]) -> torch.Tensor:
    """(T, T) booleans, rows are queries: whether the key is an earlier copy of the query's token."""
    number = torch.tensor(list(ids))
    return (number[:, None] == number[None, :]).tril(-1)


def after_same(ids: Sequence[int]) -> torch.Tensor:
    """(T, T) booleans: whether the key followed an earlier copy of the query's token."""
    same = same_before(ids)
    followed = torch.zeros_like(same)
    followed[:, 1:] = same[:, :-1]
    return followed


@undisturbed
def just_before(n_tokens: int) -> torch.Tensor:
    """(T, T) booleans: whether the key is the token before the query."""
    if n_tokens > 1:
        return torch.ones(n_tokens - 1, dtype=torch.bool).diag(-1)
    return torch.zeros(1, 1).bool()


@undisturbed
def role_keys(ids: Sequence[int], marks: Sequence[bool]) -> torch.Tensor:
    """(T, T, S) booleans: for each of `SHARES` the keys that it means; `marks`: which tokens are punctuation.

    Keys that are the first, the previous or the very token would not tell the roles apart, so they
    belong to no other role (but the previous token is nearby). Query 0 can only look at itself: it has none.
    """
    n_tokens = len(ids)
    queries = torch.arange(n_tokens)[:, None]
    keys = torch.arange(n_tokens)[None, :]
    first = (keys == 0) & (queries > 0)
    itself = (keys == queries) & (queries > 0)
    previous = just_before(n_tokens)
    plain = first | itself | previous
    sets = {
        "induction": after_same(ids) & ~plain,
        "copies": same_before(ids) & ~plain,
        "first": first,
        "previous": previous,
        "itself": itself,
        "marks": torch.tensor(list(marks)) & (keys < queries) & ~plain,
        "nearby": (keys < queries) & (keys >= queries - NEAR) & ~first,
    }
    return torch.stack([sets[name] for name in SHARES], dim=-1)  # S of (T, T) -> (T, T, S)


@undisturbed
def shares(attn: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    """The score of each set of keys: weights (..., T, T), keys (T, T, S) -> (..., S), from 0 to 1.

    The mean, over the queries that have such a key, of their attention to such keys; NaN where none has.
    """
    n_tokens = side_of(attn)
    if keys.shape[:2] != (n_tokens, n_tokens) or keys.ndim != 3:
        raise ValueError(
            f"keys have the shape {tuple(keys.shape)}; weights of {n_tokens} tokens need those of the same "
            f"text, ({n_tokens}, {n_tokens}, S)"
        )
    sums = torch.zeros(*attn.shape[:-2], keys.shape[-1], dtype=attn.dtype)
    for start in range(0, n_tokens, ROWS):
        stop = min(start + ROWS, n_tokens)
        chunk = attn[..., start:stop, :stop].flatten(-2)  # (..., rows, keys) -> (..., rows * keys)
        sums += chunk @ keys[start:stop, :stop].flatten(0, 1).to(attn.dtype)  # (..., S)
    return sums / keys.any(dim=1).sum(dim=0)  # 0 / 0 is NaN


def rests(attn: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
    """The attention left on token 0: weights (..., T, T), keys (T, T, S) -> (..., S).

    The mean, over the queries of `shares`, of their attention to token 0 where that is not such a key itself:
    this, the share and what goes to all other keys are together 1. NaN where no query has such a key.
    """
    asked = keys.any(dim=1)  # (T, S)
    idle = (asked & ~keys[:, 0]).to(attn.dtype)
    return attn[..., 0] @ idle / asked.sum(dim=0)  # (..., T) x (T, S) -> (..., S)


def previous_token_score(attn: torch.Tensor) -> torch.Tensor:
    """Mean attention from each token to the one before it: (..., T, T) weights -> (...), from 0 to 1.

    Query 0 has no token before it and is left out. Raises ValueError for fewer than two tokens.
    """
    n_tokens = side_of(attn)
    if n_tokens < 2:
        raise ValueError("a previous-token score needs at least 2 tokens, got 1")
    return shares(attn, just_before(n_tokens)[..., None])[..., 0]


def induction_score(attn: torch.Tensor, period: int) -> torch.Tensor:
    """Mean attention from a token's second occurrence to the token after its first, from 0 to 1.

    `attn` (..., T, T) belongs to a random passage of `period` tokens that is followed by itself; the
    mean runs over the second half's queries q, at the key q - period + 1. (..., T, T) -> (...).
    Raises ValueError where nothing is repeated (T <= period) or the period is below 2, for then the
    token after the first occurrence would be the query itself.
    """
    n_tokens = side_of(attn)
    if not 2 <= period < n_tokens:
        raise ValueError(
            f"period is {period}; for {n_tokens} tokens it must be from 2 to {n_tokens - 1}"
        )
    twice = min(2 * period, n_tokens)
    keys = after_same([i % period for i in range(twice)])
    return shares(attn[..., :twice, :twice], keys[..., None])[..., 0]


def side_of(attn: torch.Tensor) -> int:
    """T of (..., T, T), or a ValueError."""
    if attn.ndim < 2 or attn.shape[-1] != attn.shape[-2] or attn.shape[-1] < 1:
        raise ValueError(
            f"attention weights are (..., T, T), T at least 1; got {tuple(attn.shape)}"
        )
    return int(attn.shape[-1])
