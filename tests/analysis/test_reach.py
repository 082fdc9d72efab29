"""What an edit can reach: all else is the same to the bit, in any pass."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gptviz import Edit
from gptviz.analysis.reach import reached
from gptviz.sites import SITES, all_keys

IDS = [5, 80, 7, 7, 300, 12]


@st.composite
def edits(draw):
    """An edit of a model of two blocks with four heads, on six tokens."""
    site = draw(st.sampled_from(list(SITES.values())))
    spread = ("uniform",) if site.form == "weights" else ("mean", "shuffle3")
    places = st.lists(st.integers(-len(IDS), len(IDS) - 1), min_size=1, max_size=2)
    heads = st.lists(st.integers(0, 3), min_size=1, max_size=2)
    return Edit(
        site.name,
        draw(st.integers(0, 1)) if site.per_block else None,
        draw(st.sampled_from(("zero", *spread))),
        draw(st.none() | heads) if site.form != "rows" else None,
        draw(st.none() | places),
    )


@given(st.lists(edits(), max_size=2))
@settings(max_examples=25)
def test_what_is_not_reached_is_the_same_to_the_bit(lm, made):
    plain, changed = lm.trace(IDS), lm.trace(IDS, edits=made)
    for site, block in all_keys(lm.config):
        start = reached(made, site, block, len(IDS))
        key = site if block is None else (site, block)
        same = slice(None) if start is None else slice(start)
        assert torch.equal(plain[key][..., same, :], changed[key][..., same, :]), (made, key)


@pytest.mark.parametrize(
    ("edit", "site", "block", "start"),
    [
        ("z.1.3=zero", "resid_pre", 1, None),
        ("z.1.3=zero", "attn", 1, None),
        ("z.1.3=zero", "resid_mid", 1, 0),
        ("q.1@2=zero", "k", 1, None),
        ("q.1@2=zero", "attn", 1, 2),
        ("v.0@-2+5=zero", "attn", 0, None),
        ("v.0@-2+5=zero", "attn", 1, 4),
        ("attn.0=uniform", "final", None, 1),  # the first token has nothing else to look at
        ("mlp_out.0@3=mean", "final", None, 3),
        ("tok_emb=zero", "pos_emb", None, None),
        ("tok_emb=zero", "embed", None, 0),
        ("final=zero", "resid_post", 1, None),
    ],
)
def test_how_far_one_reaches(lm, edit, site, block, start):
    made = Edit.parse(edit)
    assert reached([made], site, block, len(IDS)) == start
    if start is not None:
        plain, changed = lm.trace(IDS), lm.trace(IDS, edits=[made])
        key = site if block is None else (site, block)
        assert not torch.equal(plain[key][..., start, :], changed[key][..., start, :])
