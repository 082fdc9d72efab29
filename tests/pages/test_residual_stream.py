"""The Residual stream page through AppTest: its numbers are those of the pass."""

import re

import numpy as np
import pytest
import torch

from gptviz.analysis.stream import stream
from gptviz.digits import significant
from tests.specs import charts, given, in_numbers, number, prose, table

TEXT = "Sam and the dog and the cat"


@pytest.fixture(scope="module")
def trace(mini):
    return mini.trace(TEXT)


def test_what_the_block_does_is_in_its_tables(run_page, trace):
    at = run_page("residual_stream", text=TEXT, token=3, block=2)
    lines = table(at, "block lines")
    assert [line[0] for line in lines][:2] == ["shortcut = x", "x = self.norm1(x)"]
    assert number(lines[-1][1]) == pytest.approx(trace["resid_post", 2][3].norm().item(), rel=1e-3)
    for dimension, *summed in table(at, "additions"):
        sites = ("resid_pre", "attn_out", "mlp_out", "resid_post")
        expected = [trace[site, 2][3][int(dimension)].item() for site in sites]
        assert [number(text) for text in summed] == pytest.approx(expected, rel=1e-3)


def test_a_block_is_chosen_by_the_app_or_by_what_it_changes(run_page, mini, trace):
    most = stream(mini, trace).most_changed(3)
    at = run_page("residual_stream", text=TEXT, token=3)
    assert f"**Block {most}.**" in prose(at)
    at = run_page("residual_stream", text=TEXT, token=3, block=99)  # of another model
    assert "**Block 5.**" in prose(at)


def test_how_far_a_change_moved_the_stream_and_its_writes(run_page, mini, trace):
    at = run_page("residual_stream", text=TEXT, token=3, block=4, edits="z.4.3=zero")
    changed = mini.trace(TEXT, edits=["z.4.3=zero"])
    moved, times = (np.array(one["z"]) for one in charts(at)[1]["data"])
    gap = changed["resid_post", 5] - trace["resid_post", 5]
    assert np.allclose(moved[-1], gap.norm(dim=1) / trace["resid_post", 5].norm(dim=1), rtol=1e-4)
    assert not moved[:9].any() and moved[9].all()
    ratio = changed["mlp_out", 5].norm(dim=1) / trace["mlp_out", 5].norm(dim=1)
    assert np.allclose(10.0 ** times[-1], ratio, rtol=1e-4)
    assert np.allclose(in_numbers(at, "residual-stream")["moved"], moved[:, 3])


def test_a_stream_that_ends_as_zeros_has_no_angle_and_no_shares(run_page):
    said = prose(run_page("residual_stream", text=TEXT, edits="resid_post.5=zero"))
    assert (
        re.search(r"At the end the norm is \*\*[\d.]+ → 0\*\*\.", said)
        and "at an angle of" not in said
    )
    assert "no part a share of it" in said and "is what a change put" not in said


def test_where_nothing_is_written_no_write_is_called_the_largest(run_page):
    for edits, largest in (("attn_out.*=zero", True), ("attn_out.*=zero,mlp_out.*=zero", False)):
        said = prose(run_page("residual_stream", text="One two", edits=edits))
        assert ("the longest is" in said) == largest == ("all of them are zeros" not in said)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_what_a_small_change_put_into_the_stream_is_not_told_of_rounding(run_page, dtype):
    put = "a change put something else into the stream itself"
    left = f"rounding to {dtype} leaves"
    for edits in ("", "resid_pre.2=+4*tok512"):
        said = prose(run_page("residual_stream", text=TEXT, dtype=dtype, edits=edits))
        assert (put in said, left in said) == (
            (bool(edits), not edits) if dtype == "float32" else (False, True)
        )


def test_the_path_ends_where_the_stream_does_and_leaves_the_former_where_it_is_changed(
    run_page, mini, trace
):
    at = run_page("residual_stream", text=TEXT, token=3, block=4, edits="z.4.3=zero")
    path = given(at, "stream_path")
    changed = mini.trace(TEXT, edits=["z.4.3=zero"])
    norms = [changed["embed"][3].norm()]
    for b in range(6):
        norms += [changed["resid_mid", b][3].norm(), changed["resid_post", b][3].norm()]
    assert np.allclose(np.linalg.norm(path["stops"], axis=1), norms, rtol=1e-4)
    # the floor is where the unchanged stream ends
    end = trace["resid_post", 5][3]
    assert path["was"][-1] == pytest.approx([end.norm().item(), 0], abs=1e-2)
    angle = np.degrees(np.arctan2(*path["stops"][-1][::-1]))
    between = torch.cosine_similarity(end, changed["resid_post", 5][3], 0).arccos().rad2deg()
    assert angle == pytest.approx(between.item(), abs=0.05)
    assert np.allclose(path["stops"][:9], path["was"][:9], atol=1e-3)
    assert not np.allclose(path["stops"][9], path["was"][9], atol=1e-3)
    assert path["block"] == 4 and not any(path["jumps"])
    writes = [changed[site, b][3].norm() for b in range(6) for site in ("attn_out", "mlp_out")]
    assert path["longest"] == int(np.argmax(writes))
    assert path["longest_said"] == f"longest: {significant(max(writes).item())}"


def test_what_a_change_puts_into_the_stream_is_no_arrow(run_page):
    at = run_page("residual_stream", text=TEXT, token=3, edits="resid_mid.2=zero")
    path = given(at, "stream_path")
    assert [step for step, jump in enumerate(path["jumps"]) if jump] == [4]
    assert path["stops"][5] == [0, 0] and path["tips"][4] != [0, 0]
