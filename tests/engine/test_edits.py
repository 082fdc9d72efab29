"""Edit as data: its text form and back, what is refused, and numbers that an edit is known to give.

What an edit does to a pass is in tests/engine/test_edit_values.py, against an independent forward.
"""

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from gptviz import Edit, Run
from gptviz.engine.edit_values import FOR_WEIGHTS, NAMES, Plus
from gptviz.engine.sites import SITES

STORY = "The little birds sang beside the red mill. The little birds sang beside the red"
NUMBERS = st.integers(0, 10**9 - 1)
IDS = st.lists(NUMBERS, min_size=1, max_size=5).map(lambda ids: "+".join(map(str, ids)))
FACTORS = NUMBERS.map(lambda n: f"{n / 1000:.9g}")


def values(site, numbers=NUMBERS, ids=IDS, factors=FACTORS):
    """Every value that can be written down for a site, of these numbers, ids of texts, and factors."""
    times = factors.map("x{}".format) | factors.map("x-{}".format)
    always = times | ids.map("ids{}".format)
    if site.form == "weights":
        named = st.sampled_from([name for name in NAMES if name != "sample"])
        return named | numbers.map("hide{}".format) | always
    named = st.sampled_from([name for name in NAMES if name not in FOR_WEIGHTS])
    whole = ids.map("ids{}".format) | ids.map("mean{}".format)
    if site.shape == "(T, D)":
        whole = whole | numbers.map("tok{}".format) | numbers.map("out{}".format)
    term = st.tuples(st.sampled_from("+-"), st.just("") | factors.map("{}*".format), whole).map(
        "".join
    )
    sums = st.lists(term, min_size=1, max_size=3).map("".join)
    return named | numbers.map("shuffle{}".format) | always | sums


@st.composite
def edits(draw):
    """Any edit that some model could make."""
    site = draw(st.sampled_from(list(SITES.values())))
    numbers = st.lists(st.integers(0, 10**6), min_size=1, max_size=4)
    return Edit(
        site.name,
        draw(st.just("*") | st.integers(0, 10**6)) if site.per_block else None,
        draw(values(site)),
        draw(st.none() | numbers) if site.form != "rows" else None,
        draw(st.none() | st.lists(st.integers(-(10**6), 10**6), min_size=1, max_size=4)),
    )


@given(edits())
def test_the_text_form_gives_the_edit_back(edit):
    text = str(edit)
    assert Edit.parse(text) == edit and hash(Edit.parse(text)) == hash(edit)
    # an address joins edits with commas
    assert "," not in text and not any(c.isspace() for c in text)
    assert Edit.parse(text.replace("+", " ")) == edit  # what an address makes of a +


@pytest.mark.parametrize(
    ("text", "edit"),
    [
        ("z.4.3=zero", Edit("z", 4, "zero", heads=[3])),
        ("z.5.0+3+4=zero", Edit("z", 5, "zero", heads=(4, 0, 3))),
        ("attn.0.1@-1+2=mean", Edit("attn", 0, "mean", heads=[1], positions=[2, -1])),
        ("pos_emb=shuffle0", Edit("pos_emb", value="shuffle0")),
        ("attn.*.2@-1=first", Edit("attn", "*", "first", heads=[2], positions=[-1])),
        ("resid_pre.3@4=ids17+5+17", Edit("resid_pre", 3, "ids17+5+17", positions=[4])),
        ("k.2.1@3=shuffle12", Edit("k", 2, "shuffle12", heads=[1], positions=[3])),
        ("z.4.3=x0.5", Edit("z", 4, "x0.5", heads=[3])),
        ("resid_post.3=+2*tok5-tok7", Edit("resid_post", 3, "+2*tok5-tok7")),
    ],
)
def test_how_edits_are_written(text, edit):
    assert str(edit) == text and Edit.parse(text) == edit


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("z.4.3", r"site\[.block"),
        (None, r"site\[.block"),
        ("atn.0=zero", "the sites are tok_emb, pos_emb"),
        ("z=zero", "needs a block"),
        ("z.٣=zero", "is no block"),
        ("z.4.1+x=zero", "'x' is no head"),
        ("z.4.-1=zero", "no head -1"),
        ("z.4@99999999999=zero", "is no position"),
        ("mlp_out.2.1=zero", "not split by heads; those that are: q, k, v, attn, z"),
        ("embed.1=zero", "outside the blocks"),
        ("z.4=nought", '"zero", "mean", "sample", "uniform", "first", "previous", or .*"hide5"'),
        ("mlp_out.2=uniform", "it is for attn"),
        ("attn.2=sample", "would give rows of no text"),
        ("embed.*=zero", "outside the blocks"),
        ("attn.1=hide05", "it must be one of"),
        ("z.1=ids5+", "it must be one of"),
        ("attn.2=shuffle1", "look ahead"),
        ("pos_emb=shuffle01", '"shuffle7"'),
        ("z.1=x0.50", "it must be one of"),
        ("z.1=x1e5", "it must be one of"),
        ("resid_mid.1=+tok5+7", "it must be one of"),
        ("resid_mid.1=tok5", "it must be one of"),
        ("resid_mid.1=+2*", "it must be one of"),
        ("attn.1=+ids5", "add to weights that sum to 1"),
        ("z.1=+out5", "a token's row does not fit 'z'; it does tok_emb"),
        ("mlp_act.1=+ids5-tok5", "a token's row does not fit 'mlp_act'"),
    ],
)
def test_what_is_no_edit_is_quoted_and_told_what_is(text, reason):
    with pytest.raises(ValueError, match=reason) as caught:
        Edit.parse(text)
    assert str(caught.value).startswith(f"{text!r} is no edit")
    assert "z.4.3=zero" in str(caught.value)


def test_equal_edits_are_equal_however_they_were_given():
    edit = Edit("z", 1, heads=[2, 0, 2], positions=range(2))
    same = Edit("z", np.int64(1), heads=torch.tensor([0, 2]), positions=np.array([1, 0]))
    assert edit == same and len({edit, same}) == 1 and str(edit) == str(same)
    assert edit.heads == (0, 2) and all(
        type(i) is int for i in (same.block, *same.heads, *same.positions)
    )


def test_a_function_works_in_python_and_has_no_text(lm):
    halved = Edit("z", 0, lambda z: z / 2)
    assert torch.equal(lm.trace("Hello", edits=[halved])["z", 0], lm.trace("Hello")["z", 0] / 2)
    assert str(halved) == "z.0=<a Python function>"
    assert str(Edit("z", 0, lm.trace("Hello"), heads=[2])) == "z.0.2=<another trace>"
    assert str(Edit("z", 0, torch.zeros(8))) == "z.0=<a tensor>"


def test_what_python_adds_is_equal_by_its_numbers(lm):
    row = torch.arange(32.0)
    one, other = (Edit("mlp_out", 1, Plus(row.clone(), 0.5)) for _ in range(2))
    assert (
        one == other and len({one, other}) == 1 and Run("m", [5], [one]) == Run("m", [5], [other])
    )
    row_of_one = one.value[0].numbers
    row[0] = 9  # what is added was copied
    assert torch.equal(row_of_one, torch.arange(32.0)) and one != Edit("mlp_out", 1, Plus(row, 0.5))
    assert one != Edit("mlp_out", 1, Plus(torch.arange(32.0)))
    assert str(one) == "mlp_out.1=<numbers that are added>"
    plain = lm.trace("Hello there")
    changed = lm.trace("Hello there", edits=[one])
    assert torch.equal(changed["mlp_out", 1], plain["mlp_out", 1] + 0.5 * torch.arange(32.0))
    here = Edit("z", 0, (Plus(plain), Plus(plain["z", 0], -1.0)), heads=[1])
    assert torch.allclose(lm.trace("Hello there", edits=[here])["z", 0], plain["z", 0], atol=1e-6)
    first = lm.trace("Hello there", edits=[Edit("mlp_out", 0, Plus(torch.ones(2, 32)))])[
        "mlp_out", 0
    ]
    added = first - plain["mlp_out", 0] > 0.5
    assert added[:2].all() and not added[2:].any()


@pytest.mark.parametrize(
    ("edits", "probability"),
    [((), 0.952), (("z.4.3=zero",), 0.183), (("z.5.0+3+4+5+7=zero",), 0.0004)],
)
def test_a_head_without_which_the_bundled_model_does_not_repeat_itself(mini, edits, probability):
    """Measured by hand outside of this code: which heads carry ` mill` from the first sentence."""
    trace = mini.trace(STORY, keep=(), edits=[Edit.parse(text) for text in edits])
    (mill,) = mini.encode(" mill")
    found = torch.softmax(trace.logits(-1).double(), dim=0)[mill].item()
    assert found == pytest.approx(probability, abs=5e-4 if probability > 0.01 else 5e-5)
    assert [str(edit) for edit in trace.edits] == list(edits)


@pytest.mark.parametrize(
    ("text", "within"),
    [
        ("attn.0=hide5", {5: None, 6: "attn.0=hide5"}),
        ("z.0=zero", {1: "z.0=zero"}),
        ("z.0@-3+0+4=zero", {2: "z.0@0=zero", 3: "z.0@-3+0=zero", 5: "z.0@-3+0+4=zero"}),
        ("z.0@4=zero", {4: None, 5: "z.0@4=zero"}),
        ("embed=ids7+8", {1: "embed=ids7+8", 2: "embed=ids7+8", 3: "embed@0+1=ids7+8"}),
        ("embed@-1+2=ids7+8", {2: "embed@-1=ids7+8", 3: None}),
    ],
)
def test_a_shorter_text_has_what_it_can_of_an_edit(text, within):
    edit = Edit.parse(text)
    for n_tokens, left in within.items():
        found = edit.within(n_tokens)
        assert (None if found is None else str(found)) == left, n_tokens
