"""Roles of heads: made-up heads that do exactly one thing must be named for it."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gptviz.analysis.head_roles import (
    block_roles,
    describe,
    induction_score,
    previous_token_score,
    roles,
)
from gptviz.language_model import LanguageModel


def looking_at(keys: list[int]) -> torch.Tensor:
    """(1, T, T): query q gives everything to keys[q]."""
    attn = torch.zeros(1, len(keys), len(keys))
    attn[0, range(len(keys)), keys] = 1
    return attn


def even(n_tokens: int) -> torch.Tensor:
    return (torch.ones(n_tokens, n_tokens).tril() / torch.arange(1.0, n_tokens + 1)[:, None])[None]


def random_attention(n_tokens: int, heads: int = 3) -> torch.Tensor:
    scores = torch.randn(heads, n_tokens, n_tokens) * 3
    future = torch.ones(n_tokens, n_tokens, dtype=torch.bool).triu(1)
    return torch.softmax(scores.masked_fill(future, -torch.inf), dim=-1)


def texts(ids: list[int]) -> list[str]:
    return [f" word{i}" for i in ids]


def test_previous_token_score_of_heads_that_are_known() -> None:
    assert previous_token_score(looking_at([0, 0, 1, 2])[0]).item() == 1
    assert previous_token_score(looking_at([0, 1, 2, 3])[0]).item() == 0
    assert previous_token_score(np.asarray(even(3)))[0] == pytest.approx((1 / 2 + 1 / 3) / 2)


def test_induction_score_of_heads_that_are_known() -> None:
    copying = looking_at([0, 1, 2, 1, 2, 3])  # the passage has 3 tokens: 3 -> 1, 4 -> 2, 5 -> 3
    assert induction_score(copying, period=3).tolist() == [1.0]
    assert induction_score(looking_at([0, 0, 0, 0, 0, 0]), period=3).tolist() == [0.0]


@given(period=st.integers(2, 9), seed=st.integers(0, 99))
def test_scores_are_means_over_written_out_cells(period: int, seed: int) -> None:
    torch.manual_seed(seed)
    n_tokens = 2 * period
    attn = torch.stack([random_attention(n_tokens), random_attention(n_tokens)])  # (2, 3, T, T)
    previous = previous_token_score(attn)
    induction = induction_score(attn.numpy(), period)
    assert previous.shape == (2, 3) and induction.shape == (2, 3)
    cells = [attn[1, 2, q, q - 1].item() for q in range(1, n_tokens)]
    assert previous[1, 2].item() == pytest.approx(sum(cells) / len(cells), abs=1e-6)
    cells = [attn[0, 1, period + i, i + 1].item() for i in range(period)]
    assert induction[0, 1] == pytest.approx(sum(cells) / len(cells), abs=1e-6)


def test_scores_refuse_what_they_cannot_measure() -> None:
    with pytest.raises(ValueError, match="at least 2 tokens"):
        previous_token_score(torch.ones(1, 1))
    with pytest.raises(ValueError, match="period is 4; for 4 tokens it must be from 2 to 3"):
        induction_score(torch.ones(4, 4), period=4)
    with pytest.raises(ValueError, match=r"\(3, 4\)"):
        previous_token_score(torch.ones(3, 4))


DIFFERENT = list(range(10, 18))
REPEATED = [5, 6, 7, 8, 5, 6, 7, 8]


@pytest.mark.parametrize(
    ("keys", "ids", "expected", "sentence"),
    [
        ([0, 0, 1, 2, 3, 4, 5, 6], DIFFERENT, "previous", "looks at the previous token (1.00 on average)"),
        ([0, 0, 0, 0, 0, 0, 0, 0], DIFFERENT, "first", "rests on the first token (1.00 on average)"),
        ([0, 1, 2, 3, 4, 5, 6, 7], DIFFERENT, "itself", "looks at the token itself (1.00 on average)"),
        ([0, 0, 0, 0, 1, 2, 3, 4], REPEATED, "induction", "looks at what followed last time (1.00"),
        ([0, 0, 0, 0, 0, 1, 2, 3], REPEATED, "copies", "looks at earlier copies of the same token (1.00"),
        ([0, 1, 1, 1, 1, 1, 1, 1], DIFFERENT, "favourite", "looks at position 1, wherever it stands (1.00"),
        ([0, 0, 0, 1, 1, 2, 2, 3], DIFFERENT, "nearby", "looks at the 4 tokens before ("),
        ([0, 0, 0, 0, 0, 0, 0, 0], REPEATED, "first", "rests on the first token"),
        ([0, 0, 1, 2, 3, 4, 5, 6], REPEATED, "previous", "looks at the previous token"),
    ],
)
def test_a_head_that_does_one_thing_is_named_for_it(
    keys: list[int], ids: list[int], expected: str, sentence: str
) -> None:
    role = block_roles(looking_at(keys), texts(ids), block=3)[0]
    assert (role.kind, role.block, role.head) == (expected, 3, 0)
    assert describe(role).startswith(sentence)
    assert role.spread == pytest.approx(1)


def test_an_even_head_is_even() -> None:
    role = block_roles(even(8), texts(DIFFERENT), block=0)[0]
    assert role.kind == "even"
    assert role.shares["first"] == pytest.approx(sum(1 / n for n in range(2, 9)) / 7)
    assert role.spread == pytest.approx(np.exp(np.mean(np.log(np.arange(2, 9)))))
    assert "evenly" in describe(role)


def test_a_head_between_roles_is_mixed_and_says_what_it_mixes() -> None:
    attn = (
        looking_at([0, 0, 1, 2, 3, 4, 5, 6]) + looking_at([0] * 8) + looking_at([0, 1, 1, 1, 1, 1, 1, 1])
    ) / 3
    role = block_roles(attn, texts(DIFFERENT), block=0)[0]
    assert role.kind == "mixed"
    assert describe(role) == "spreads over 2.6 tokens on average: 0.43 to the previous token"


def test_punctuation_is_what_has_no_letter_and_no_digit() -> None:
    attn = looking_at([0, 0, 0, 1, 1, 1, 1, 6])
    tokens = ["A", ", ", "then", " b2", " c", ",", ".", " é"]
    role = block_roles(attn, tokens, block=0)[0]
    # queries 3 to 5 can look back at the comma at 1, query 6 at it, and query 7 at the commas at 1 and 5
    assert role.shares["marks"] == pytest.approx(4 / 5)
    assert role.kind == "marks" and describe(role) == "looks back at punctuation (0.80 on average)"


def test_a_favourite_is_called_by_its_token() -> None:
    role = block_roles(looking_at([0, 1, 1, 1, 1, 1, 1, 1]), texts(DIFFERENT), block=0)[0]
    assert role.favourite == 1
    assert describe(role, ["a", "·b"] + 6 * ["c"]).startswith("looks at `·b`, position 1, wherever")


def test_keys_that_would_not_tell_roles_apart_do_not_count() -> None:
    """In a a b a: from the last a, `a` at 0 is the first token and `b` the previous one; only 1 remains."""
    role = block_roles(even(4), texts([1, 1, 2, 1]), block=0)[0]
    assert role.repeats == 1
    assert role.shares["induction"] == pytest.approx(1 / 4)  # query 3 -> key 1, which followed the a at 0
    assert role.shares["copies"] == pytest.approx(1 / 4)  # query 3 -> key 1, an a itself


def test_without_repeats_there_is_no_induction_to_measure() -> None:
    role = block_roles(even(8), texts(DIFFERENT), block=0)[0]
    assert role.shares["induction"] is None and role.shares["copies"] is None and role.repeats == 0


@given(ids=st.lists(st.integers(0, 4), min_size=2, max_size=12), seed=st.integers(0, 50))
def test_induction_is_the_mean_over_cells_found_by_hand(ids: list[int], seed: int) -> None:
    torch.manual_seed(seed)
    attn = random_attention(len(ids))
    found = []
    for q in range(len(ids)):
        keys = [p + 1 for p in range(q) if ids[p] == ids[q] and p + 1 not in (0, q - 1, q)]
        if keys:
            found.append(sum(attn[1, q, key].item() for key in keys))
    role = block_roles(attn, texts(ids), block=0)[1]
    if found:
        assert role.shares["induction"] == pytest.approx(sum(found) / len(found), abs=1e-5)
    else:
        assert role.shares["induction"] is None
    assert role.repeats == len(found)
    assert describe(role)


def test_one_token_is_said_to_be_alone(lm: LanguageModel) -> None:
    found = roles(lm.trace(lm.encode("The")[:1]))
    assert found[1][2].kind == "alone"
    assert describe(found[1][2]) == "has only one token to look at: 1.00 to itself"


def test_every_head_of_a_trace_has_a_role(lm: LanguageModel) -> None:
    trace = lm.trace("One two three four five")
    found = roles(trace)
    assert [[(r.block, r.head) for r in row] for row in found] == [
        [(b, h) for h in range(4)] for b in range(2)
    ]
    weights = trace["attn", 1][3]
    cells = [weights[q, q - 1].item() for q in range(1, len(weights))]
    assert found[1][3].shares["previous"] == pytest.approx(sum(cells) / len(cells), abs=1e-6)
