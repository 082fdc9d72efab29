"""What cannot be seen is not there: an edit that is said to reach nothing leaves the numbers as they were."""

import pytest
import torch
from hypothesis import given, settings, strategies as st

from gptviz import SITES, Edit
from gptviz.analysis.reach import hidden_token, positions_of, unseen

N = 5


@given(data=st.data())
@settings(max_examples=60)
def test_what_is_said_to_be_out_of_reach_is_unchanged_to_the_bit(lm, data):
    config = lm.config
    ids = [3, 1, 4, 1, 5]
    site, looked = (data.draw(st.sampled_from(sorted(SITES))) for _ in range(2))
    any_block = st.integers(0, config.n_layers - 1)
    any_head = st.integers(0, config.n_heads - 1)
    blocks = [data.draw(any_block) if SITES[s].per_block else None for s in (site, looked)]
    by_head, split = (SITES[s].form != "rows" for s in (site, looked))
    heads = data.draw(st.none() | st.sets(any_head, min_size=1)) if by_head else None
    places = data.draw(st.none() | st.sets(st.integers(-N, N - 1), min_size=1))
    edit = Edit(site, blocks[0], "uniform" if site == "attn" else "zero", heads, places)
    head = data.draw(st.none() | any_head) if split else None
    position = data.draw(st.none() | st.integers(0, N - 1))
    why = unseen(edit, looked, blocks[1], config, N, head, position)
    key = looked if blocks[1] is None else (looked, blocks[1])
    before, after = (lm.trace(ids, keep=[key], edits=edits)[key] for edits in ([], [edit]))
    if split:  # (H, T, ...)
        before, after = (v if head is None else v[[head]] for v in (before, after))
        before, after = (v if position is None else v[:, position] for v in (before, after))
    elif position is not None:
        before = before[position]
        after = after[position]
    if why is not None:
        assert torch.equal(before, after), (str(edit), key, head, position, why)


@pytest.mark.parametrize(
    ("edit", "at", "why"),
    [
        ("z.1.0=zero", {"site": "attn", "block": 1, "head": 0}, "later"),
        ("z.0.0=zero", {"site": "attn", "block": 1, "head": 0}, None),
        ("v.1.0=zero", {"site": "attn", "block": 1, "head": 0}, "beside"),
        ("q.1.1=zero", {"site": "attn", "block": 1, "head": 0}, "beside"),
        ("q.1.1=zero", {"site": "attn", "block": 1, "head": 1}, None),
        ("z.0@3=zero", {"site": "final", "block": None, "position": 2}, "later position"),
        ("z.1@1=zero", {"site": "final", "block": None, "position": 2}, "other position"),
        ("k.1@1=zero", {"site": "final", "block": None, "position": 2}, None),
        ("mlp_out.0@1=zero", {"site": "final", "block": None, "position": 2}, None),
        ("final=zero", {"site": "resid_post", "block": 1}, "later"),
    ],
)
def test_why(lm, edit, at, why):
    assert unseen(Edit.parse(edit), config=lm.config, n_tokens=N, **at) == why


def test_of_a_hidden_token_only_later_rows_change():
    assert hidden_token(Edit("attn", 0, "uniform")) is None
    assert list(positions_of(Edit("z", 0, "zero", positions=[-1, 0]), N)) == [0, 4]
