"""Roles of heads: made-up heads that do exactly one thing must be named for it."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st

from gptviz.analysis.attention import mean_writes
from gptviz.analysis.head_formulas import SHARES
from gptviz.analysis.head_roles import REST, lifts_of, role_table, roles, roles_of
from gptviz.analysis.head_scores import RESTS, HeadScores, block_scores, is_mark, spans
from gptviz.engine.reduction import Reduction
from gptviz.engine.tokens import Token


def looking_at(keys):
    """(1, T, T): query q gives everything to keys[q]."""
    attn = torch.zeros(1, len(keys), len(keys))
    attn[0, range(len(keys)), keys] = 1
    return attn


def blended(attn, sink):
    """The same head, which leaves so much of every row on token 0."""
    return (1 - sink) * attn + sink * looking_at([0] * attn.shape[-1])


def even(n_tokens):
    return (torch.ones(n_tokens, n_tokens).tril() / torch.arange(1.0, n_tokens + 1)[:, None])[None]


def random_attention(n_tokens, heads=3):
    scores = torch.randn(heads, n_tokens, n_tokens) * 3
    future = torch.ones(n_tokens, n_tokens, dtype=torch.bool).triu(1)
    return torch.softmax(scores.masked_fill(future, -torch.inf), dim=-1)


def tokens(ids):
    return [
        Token(i, number, f" word{number}", f" word{number}".encode())
        for i, number in enumerate(ids)
    ]


def spelled(raws):
    """Tokens that are the same where their bytes are."""
    return [
        Token(i, raws.index(raw), raw.decode("utf-8", "replace"), raw) for i, raw in enumerate(raws)
    ]


def block_roles(attn, text):
    targets = HeadScores.of(text).targets
    return roles_of([block_scores(attn, targets.keys)], targets)[0]


DIFFERENT = list(range(10, 18))
REPEATED = [5, 6, 7, 8, 5, 6, 7, 8]


@pytest.mark.parametrize(
    ("keys", "ids", "expected", "rows"),
    [
        ([0, 0, 1, 2, 3, 4, 5, 6], DIFFERENT, "previous", range(1, 8)),
        ([0, 0, 0, 0, 0, 0, 0, 0], DIFFERENT, "first", range(1, 8)),
        ([0, 1, 2, 3, 4, 5, 6, 7], DIFFERENT, "itself", range(1, 8)),
        ([0, 0, 0, 0, 1, 2, 3, 4], REPEATED, "induction", range(4, 8)),
        # the copy of 4 is the first token
        ([0, 0, 0, 0, 0, 1, 2, 3], REPEATED, "copies", range(5, 8)),
        ([0, 1, 1, 1, 1, 1, 1, 1], DIFFERENT, "favourite", range(2, 8)),
        ([0, 0, 0, 1, 1, 2, 2, 3], DIFFERENT, "nearby", range(2, 8)),
        ([0, 0, 0, 0, 0, 0, 0, 0], REPEATED, "first", range(1, 8)),
        ([0, 0, 1, 2, 3, 4, 5, 6], REPEATED, "previous", range(1, 8)),
    ],
)
def test_a_head_that_does_one_thing_is_named_for_it(keys, ids, expected, rows):
    role = block_roles(looking_at(keys), tokens(ids))[0]
    assert (role.kind, role.block, role.head) == (expected, 0, 0)
    assert role.rows[expected] == tuple(rows)
    assert role.spread == pytest.approx(1)
    assert role.share == 1 or (expected == "nearby" and role.share >= 0.5)
    if expected in ("first", "nearby"):  # they look at token 0 as they are
        return
    # what is left on token 0 is taken off first: with 0.4 of each row there it still has its habit
    some = block_roles(blended(looking_at(keys), 0.4), tokens(ids))[0]
    assert some.kind == expected and some.share_of_rest == pytest.approx(role.share_of_rest)
    # still of the whole matrix
    assert some.share == pytest.approx(some.share_of_rest * (1 - some.rest))
    most = block_roles(blended(looking_at(keys), 0.7), tokens(ids))[0]
    assert (
        most.kind == "first"
        and most.share == pytest.approx(most.shares["first"])
        and most.rest == 0
    )


def test_an_even_head_is_even():
    role = block_roles(even(8), tokens(DIFFERENT))[0]
    assert role.kind == "even" and role.share is None and role.rows["even"] == tuple(range(1, 8))
    assert role.shares["first"] == pytest.approx(sum(1 / n for n in range(2, 9)) / 7)
    assert role.spread == pytest.approx(np.exp(np.mean(np.log(np.arange(2, 9)))))
    assert role.shares["induction"] is None and role.shares["copies"] is None  # nothing repeats
    assert role.rows["induction"] == role.rows["copies"] == ()


def test_a_text_of_one_token_again_and_again_tells_nothing_of_induction():
    far = looking_at([0, 1, 2, 1, 2, 3, 1, 4, 5, 6, 2, 7])  # back, at what are copies all
    role = block_roles(far, tokens([5] * 12))[0]
    assert role.shares["induction"] == role.shares["copies"] == 1 and role.kind == "nearby"


def test_a_head_whose_weights_a_change_sets_to_zero_looks_at_nothing():
    role = block_roles(0 * even(8), tokens(DIFFERENT))[0]
    assert (role.kind, role.share, role.rest) == ("nothing", None, 0) and len(
        role.rows["nothing"]
    ) == 7


def test_a_head_between_roles_is_mixed():
    heads = (
        looking_at([0, 0, 1, 2, 3, 4, 5, 6]),
        looking_at(list(range(8))),
        looking_at([0] * 8),
        even(8),
    )
    attn = sum(heads) / 4
    role = block_roles(attn, tokens(DIFFERENT))[0]
    assert role.kind == "mixed" and role.share is None and role.share_of_rest is None
    alike = sum(1 / n for n in range(2, 9))
    assert role.shares["previous"] == pytest.approx((1 + 1 / 7 + alike / 7) / 4)
    assert role.rest == role.shares["first"]


# ---- the sink first ----


def test_a_head_that_rests_on_most_tokens_is_named_for_what_it_does_where_it_can():
    # the last three come a second time, after twelve others
    ids = [*range(20, 29), 5, 6, 7, 5, 6, 7]
    works = looking_at([0] * 12 + [10, 11, 12])
    role = block_roles(works, tokens(ids))[0]
    assert role.kind == "induction" and role.rows["induction"] == (12, 13, 14)
    assert (role.share, role.rest, role.shares["first"]) == (1, 0, pytest.approx(11 / 14))
    # at just these tokens, too, it gives most to token 0: what is left goes where it should, but it rests
    rests = block_roles(blended(works, 0.6), tokens(ids))[0]
    assert rests.kind == "first" and rests.shares["induction"] == pytest.approx(0.4)


def test_rows_are_not_scaled_up_one_by_one():
    """Four rows rest but for a hundredth, on themselves; three look at the token before and nowhere else."""
    attn = blended(looking_at(list(range(8))), 0.99)
    attn[:, 5:] = looking_at([0, 0, 1, 2, 3, 4, 5, 6])[:, 5:]
    role = block_roles(attn, tokens(DIFFERENT))[0]
    assert role.shares["first"] == pytest.approx(4 * 0.99 / 7) and role.kind == "first"
    # one more works: less than half is left there
    attn[:, 4:] = looking_at([0, 0, 1, 2, 3, 4, 5, 6])[:, 4:]
    role = block_roles(attn, tokens(DIFFERENT))[0]
    # token 0 is before 1
    assert role.kind == "previous" and role.share == pytest.approx((4 + 0.99) / 7)
    assert role.rest == pytest.approx(2 * 0.99 / 7)
    assert role.share_of_rest == pytest.approx(4.99 / (7 - 1.98))


@settings(deadline=None, max_examples=25)
@given(
    ids=st.lists(st.integers(0, 4), min_size=4, max_size=14),
    seed=st.integers(0, 99),
    sink=st.floats(0, 0.4),
)
def test_more_of_every_row_on_token_0_changes_no_share_of_the_rest(ids, seed, sink):
    torch.manual_seed(seed)
    attn = random_attention(len(ids)).double()
    targets = HeadScores.of(tokens(ids)).targets
    before, after = (
        block_scores(one, targets.keys)[0].tolist() for one in (attn, blended(attn, sink))
    )
    for i, name in enumerate(SHARES):
        # token 0 is the token before token 1
        if name in ("first", "previous") or np.isnan(before[i]):
            continue
        own, left = zip(
            *((scores[i], 1 - scores[RESTS + i]) for scores in (before, after)), strict=True
        )
        # own / left is the same
        assert own[0] * left[1] == pytest.approx(own[1] * left[0], abs=1e-6), name
        if after[RESTS + i] <= REST:
            lifts = [lifts_of(scores, targets.even.tolist())[name] for scores in (before, after)]
            assert lifts[0] == pytest.approx(lifts[1], abs=1e-5)


def test_the_bundled_models_heads_with_much_of_their_attention_on_token_0(mini):
    trace = mini.trace('"Where are you going?" said the boy. "Where are you going')
    found = roles(trace)
    most = found[5][0]  # an induction head, at rest wherever nothing repeats
    assert most.shares["first"] > REST and most.kind == "induction"  # type: ignore[operator]
    at = trace["attn", 5][0][list(most.rows["induction"])]
    assert most.rest == pytest.approx(at[:, 0].mean().item(), abs=1e-6) and most.rest < 0.2
    assert [found[5][h].kind for h in (0, 3, 4, 5, 7)] == ["induction"] * 5
    assert found[4][3].kind == "previous"


def test_punctuation_is_what_has_no_letter_and_no_digit():
    attn = looking_at([0, 0, 0, 1, 1, 1, 1, 6])
    text = spelled([raw.encode() for raw in ("A", ", ", "then", " b2", " c", ",", ".", " é")])
    role = block_roles(attn, text)[0]
    # queries 3 to 5 can look back at the comma at 1, query 6 at it, and query 7 at the commas at 1 and 5
    assert role.kind == "marks" and role.rows["marks"] == (3, 4, 5, 6, 7)
    assert role.shares["marks"] == pytest.approx(4 / 5)


@pytest.mark.parametrize(
    ("text", "mark"),
    [(text, True) for text in (",", " (", "。", "==", "—", ").", "¿")]
    + [(text, False) for text in ("a", " 1", " ", "\n", "你", "🙂", "a.", "é")],
)
def test_marks(text, mark):
    assert is_mark(text.encode()) == mark
    assert not is_mark("你".encode()[:2]), "a piece of a character is no punctuation"


def test_pieces_of_characters_are_told_apart_by_their_ids(mini):
    """Decoded alone, pieces look alike, `\ufffd`; a head that looks one back would then look at repeats."""
    text = "🙂🙃😉🦜"
    trace = mini.trace(text)
    ids = [token.id for token in trace.tokens]
    assert len({mini.decode([i]) for i in ids}) < len(set(ids)), "the text must have such pieces"
    again = {q for q, i in enumerate(ids) if any(ids[p] == i and p + 1 < q - 1 for p in range(q))}
    assert set(roles(trace)[0][0].rows["induction"]) == again


@settings(deadline=None)
@given(n_tokens=st.integers(5, 30), seed=st.integers(0, 50))
def test_the_favourite_stands_out_most_from_an_even_head(n_tokens, seed):
    torch.manual_seed(seed)
    attn = random_attention(n_tokens)[2]
    flat = even(n_tokens)[0]
    lifts = {}
    for key in range(1, n_tokens - max(3, n_tokens // 4)):
        own, alike = (weights[key + 1 :, key].mean().item() for weights in (attn, flat))
        lifts[key] = (own - alike) / (1 - alike)
    role = block_roles(attn[None], tokens(list(range(n_tokens))))[0]
    assert role.favourite is not None
    assert lifts[role.favourite] == pytest.approx(max(lifts.values()), abs=1e-6)


def test_one_token_is_alone(lm):
    role = roles(lm.trace(lm.encode("The")[:1]))[1][2]
    assert (role.kind, role.share, role.rows["alone"]) == ("alone", 1.0, (0,))


def test_the_table_says_every_number_of_every_head(lm):
    trace = lm.trace("One two three one two three four five")
    found = roles(trace)
    writes = mean_writes(trace, lm.model)
    table = role_table(found, writes)
    assert len(table) == 8
    for _, row in table.iterrows():
        role = found[row["block"]][row["head"]]
        rows = role.rows[role.kind]
        first = role.shares["first"]
        names = ["role", "favourite", "rows", "row_positions", "to_first", "spread", "rest"]
        said = [role.kind, role.favourite, len(rows), spans(rows), first, role.spread, role.rest]
        assert row[names].tolist() == said
        assert row["mean_write"] == pytest.approx(writes[role.block, role.head].item())
        if role.share is not None:
            assert row["share"] == role.share == row[f"to_{role.kind}"]
            assert row["share_of_rest"] == pytest.approx(role.share / (1 - role.rest))


def test_scores_taken_during_the_pass_are_those_of_the_kept_weights(lm):
    text = "One two, three one two, three."
    trace = lm.trace(text)
    measure = HeadScores.of(trace.tokens)
    assert measure == HeadScores.of(lm.trace(text, keep=()).tokens)
    scores = lm.trace(text, keep=(), reduce=[Reduction("scores", "attn", measure)]).reduced(
        "scores"
    )
    kept = [
        block_scores(trace["attn", block], measure.targets.keys) for block in range(len(scores))
    ]
    torch.testing.assert_close(list(scores), kept, equal_nan=True)
    assert roles_of(scores, measure.targets) == roles(trace)


def test_a_long_text_is_measured_some_rows_at_a_time():
    torch.manual_seed(0)
    attn = random_attention(300)
    text = tokens([i % 70 for i in range(300)])
    keys = HeadScores.of(text).targets.keys
    shares = [
        (attn[:, 1:] * keys[1:, :, i]).sum(-1).sum(-1) / keys[:, :, i].any(1).sum()
        for i in range(5)
    ]
    torch.testing.assert_close(block_scores(attn, keys)[:, :5], torch.stack(shares, dim=-1))


def test_spans():
    assert spans((1, 2, 3, 5, 7, 8)) == "1 to 3, 5, 7 to 8"
    assert spans((4,)) == "4" and spans(()) == ""
