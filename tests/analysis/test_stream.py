"""The residual stream's numbers against plain torch on the captured sites, for random models."""

import ast
import inspect
import math
import textwrap

import numpy as np
import pytest
import torch
from hypothesis import given, settings

from gptviz import Edit
from gptviz.analysis.stream import (
    BLOCK_LINES,
    SITES,
    all_tokens_table,
    apart,
    block_at_work,
    cosine,
    does,
    half_plane,
    ladder_table,
    path,
    step_names,
    stream,
    way,
)
from gptviz.model import TransformerBlock
from tests.conftest import TEXTS, models

TEXT = "The cat sat on the mat, and the cat slept."


@settings(max_examples=12)
@given(models(), TEXTS)
def test_the_writes_add_up_to_the_stream_of_any_model(lm, ids):
    t = lm.trace(ids)
    layers = lm.config.n_layers
    found = stream(lm, lm.trace(ids, keep=SITES))
    assert found.sizes.shape == found.shares.shape == (2 * layers + 1, len(ids))
    assert found.writes.shape == found.cosines.shape == found.turns.shape == (2 * layers, len(ids))
    assert np.allclose(found.shares.sum(axis=0), 1, atol=1e-4)
    largest = max(t["resid_post", b].abs().max().item() for b in range(layers))
    assert found.difference <= 1e-5 * largest and not found.is_broken


def test_every_row_is_that_of_torch(lm):
    t = lm.trace(TEXT)
    found = stream(lm, t)
    off = 0.0
    assert torch.allclose(torch.from_numpy(found.sizes[0]).float(), t["embed"].norm(dim=1))
    for b in range(lm.config.n_layers):
        places = ("resid_pre", "attn_out", "resid_mid"), ("resid_mid", "mlp_out", "resid_post")
        for s, (start, write, end) in enumerate(places, 2 * b):
            x = t[start, b].double()
            w = t[write, b].double()
            y = t[end, b].double()
            assert np.allclose(found.writes[s], w.norm(dim=1))
            assert np.allclose(found.sizes[s + 1], y.norm(dim=1))
            assert np.allclose(found.ratios[s], w.norm(dim=1) / x.norm(dim=1))
            assert np.allclose(found.cosines[s], torch.cosine_similarity(x, w))
            turned = torch.cosine_similarity(x, y).arccos().rad2deg()
            assert np.allclose(found.turns[s], turned, atol=1e-3)
            off = max(off, (y - x - w).abs().max().item())
    assert found.difference == off


def test_what_is_changed_on_the_way_is_no_sum_any_more(lm):
    """Behind an edited stream stands another stream than the sum, and that is said."""
    changed = lm.trace(TEXT, keep=SITES, edits=[Edit("resid_mid", 0, "zero", positions=[2])])
    found = stream(lm, changed)
    assert found.difference > 0.1 and found.is_broken and found.sizes[1, 2] == 0
    assert found.cosines[1, 2] == 0 and math.isinf(found.ratios[1, 2]) and found.turns[1, 2] == 0


def test_a_stream_changed_between_two_blocks_is_what_the_next_write_joins(lm):
    changed = lm.trace(TEXT, edits=[Edit("resid_pre", 1, "x0.5", positions=[2])])
    found = stream(lm, changed)
    w = changed["attn_out", 1][2].double()
    x = changed["resid_post", 0][2].double() / 2
    assert found.is_broken and found.sizes[2, 2] == pytest.approx(x.norm().item())
    assert found.ratios[2, 2] == pytest.approx((w.norm() / x.norm()).item())
    assert found.cosines[2, 2] == pytest.approx(torch.cosine_similarity(w, x, dim=0).item())
    assert found.difference == pytest.approx(x.abs().max().item(), rel=1e-5)
    assert np.flatnonzero(apart(changed, lm.trace(TEXT)).distances[2]).tolist() == [2]


def test_nothing_written_is_nothing_in_terms_of_anything(lm):
    """No write, a stream of zeros, and both: no division by zero gets out."""
    edits = [Edit("attn_out", 0), Edit("mlp_out", 0), Edit("embed")]
    found = stream(lm, lm.trace(TEXT, keep=SITES, edits=edits))
    assert (found.sizes[:3] == 0).all() and (found.ratios[:2] == 0).all()
    assert np.isfinite(found.cosines).all() and np.isfinite(found.turns).all()
    assert (found.sizes[3] == found.writes[2]).all() and np.isinf(found.ratios[2]).all()


def test_tables_are_the_same_numbers(lm):
    t = lm.trace(TEXT)
    found = stream(lm, t)
    one = ladder_table(found, 3)
    every = all_tokens_table(found, [token.text for token in t.tokens])
    assert one["step"].tolist() == step_names(2) and one["step"][0] == "embedding"
    assert one["step"][4] == "block 1 · feed-forward" and one["write"][4] == found.writes[3, 3]
    assert np.allclose(one["stream"][1:], one["after"][:-1]) and np.allclose(one["share"].sum(), 1)
    assert np.allclose(one["along"][1:] / one["write"][1:], one["cosine"][1:])
    assert one.loc[0, ["stream", "ratio", "cosine", "turn"]].isna().all() and one["does"][0] == ""
    same = every[every["position"] == 3].reset_index()
    for column in ("write", "ratio", "cosine", "turn", "after"):
        assert np.allclose(same[column], one[column], equal_nan=True)
    assert same["token"].unique().tolist() == [t.tokens[3].text]


ANGLES = {"adds": (0, 44), "turns, adds": (46, 84), "turns": (85, 90, 95)}
ANGLES |= {"turns, erases": (96, 134), "erases": (136, 180)}


@pytest.mark.parametrize(
    ("word", "angle"), [(word, angle) for word in ANGLES for angle in ANGLES[word]]
)
def test_what_a_write_does_follows_from_its_angle(word, angle):
    assert does(math.cos(math.radians(angle))) == word
    # what the words say is true: along the stream it grows, against it (a write that is no larger) it shrinks
    after = math.hypot(1 + 0.3 * math.cos(math.radians(angle)), 0.3 * math.sin(math.radians(angle)))
    assert word != "adds" or after > 1
    assert word != "erases" or after < 1


def test_cosines_of_rows_without_length():
    rows = np.array([[0.0, 0.0], [1.0, 0.0]])
    assert cosine(rows, rows).tolist() == [0, 1] and cosine(rows, rows, none=1.0).tolist() == [1, 1]


# ---- a block at work ----


def test_the_lines_of_a_block_are_the_models_own():
    body = ast.parse(textwrap.dedent(inspect.getsource(TransformerBlock.forward))).body[0].body
    assert [ast.unparse(line) for line in body] == [*(line for line, _ in BLOCK_LINES), "return x"]


def test_their_sizes_are_those_of_the_lines_at_work(lm):
    """TransformerBlock.forward, run here line by line with its own modules."""
    t = lm.trace(TEXT)
    position = 4
    for b, block in enumerate(lm.model.trf_blocks):
        names = {"self": block, "x": t["resid_pre", b][None]}
        found = block_at_work(lm, t, b, position)
        assert len(found.lines) == len(BLOCK_LINES)
        for line, x, shortcut in found.lines.itertuples(index=False):
            with torch.no_grad():
                exec(line, names)
            assert x == pytest.approx(names["x"][0, position].norm().item(), rel=1e-4)
            assert shortcut == pytest.approx(names["shortcut"][0, position].norm().item(), rel=1e-4)


def test_a_block_in_the_dimensions_that_it_changes_most(lm):
    t = lm.trace(TEXT)
    position = 4
    for b in range(2):
        found = block_at_work(lm, t, b, position)
        pre, attention, feed_forward, post = rows = torch.stack(
            [t[site, b][position] for site in ("resid_pre", "attn_out", "mlp_out", "resid_post")]
        )
        order = (attention.double() + feed_forward.double()).abs().topk(4).indices
        assert found.additions["dimension"].tolist() == order.tolist()
        assert np.array_equal(found.additions.iloc[:, 1:].T, rows[:, order])
        off = (
            (pre.double() + attention.double() + feed_forward.double() - post.double()).abs().max()
        )
        assert found.difference == pytest.approx(off.item()) and off <= 1e-5
        alone, whole, angle = found.without[1]
        assert (alone, whole) == pytest.approx(
            (feed_forward.norm().item(), post.norm().item()), rel=1e-5
        )
        assert angle == pytest.approx(
            torch.cosine_similarity(feed_forward, post, dim=0).item(), abs=1e-5
        )
        assert found.share == pytest.approx((pre @ post / (post @ post)).item(), abs=1e-5)


def test_how_far_two_streams_are_apart(mini):
    new = mini.trace(TEXT, edits=[Edit.parse("z.4.3=zero")])
    old = mini.trace(TEXT)
    found = apart(new, old)
    assert found.distances.shape == found.angles.shape == (13, len(old))
    # before block 4's attention
    assert not found.distances[:9].any() and not found.angles[:9].any()
    one = new["resid_mid", 4][3].double()
    other = old["resid_mid", 4][3].double()
    assert found.distances[9, 3] == pytest.approx(
        ((one - other).norm() / other.norm()).item(), rel=1e-9
    )
    angle = torch.cosine_similarity(one, other, dim=0).arccos().rad2deg().item()
    assert found.angles[9, 3] == pytest.approx(angle, rel=1e-6)
    nothing = apart(old, mini.trace(TEXT, edits=[Edit.parse("embed=zero")]))
    assert np.isinf(nothing.distances[0]).all()


def test_a_path_has_the_streams_norms_and_its_angles_to_the_end(lm):
    t = lm.trace(TEXT)
    found = way(lm, lm.trace(TEXT, keep=SITES), 3)
    last = lm.config.n_layers - 1
    end = t["resid_post", last][3].double()
    table = path(lm, t, 3)
    rows = [t["embed"][3].double()]
    for b in range(lm.config.n_layers):
        rows += [t["resid_mid", b][3].double(), t["resid_post", b][3].double()]
    assert list(table["step"]) == step_names(lm.config.n_layers)
    assert np.allclose(table["norm"], [row.norm() for row in rows])
    angles = [torch.cosine_similarity(row, end, 0).clamp(-1, 1).arccos().rad2deg() for row in rows]
    assert np.allclose(table["degrees"], angles, atol=0.01)
    assert np.allclose(found.tips, found.stops[1:], atol=1e-4 * end.abs().max().item())
    places = half_plane(found.stops, found.stops[-1])
    assert places[-1] == pytest.approx([end.norm().item(), 0], abs=1e-4)
    # a step looks never longer than the vector that is added
    seen = np.linalg.norm(np.diff(places, axis=0), axis=1)
    assert (seen <= stream(lm, t).writes[:, 3] * 1.0001).all()


def test_beside_an_end_of_zeros_nothing_lies_along():
    rows = np.array([[3.0, 4.0], [0.0, 0.0]])
    assert half_plane(rows, np.zeros(2)).tolist() == [[0.0, 5.0], [0.0, 0.0]]


def test_a_changed_streams_tip_is_what_was_added_and_not_what_was_put_there(lm):
    t = lm.trace(TEXT, edits=["resid_mid.0=zero"])
    found = way(lm, t, 2)
    assert not found.stops[1].any()
    added = t["resid_pre", 0][2] + t["attn_out", 0][2]
    assert np.allclose(found.tips[0], added)
