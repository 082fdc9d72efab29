"""The Feed-forward page through AppTest: its numbers are those of the pass and of the model's matrices."""

import re

import numpy as np
import pytest
import torch

from gptviz.analysis import feed_forward as numbers
from gptviz.engine.sample import windows
from gptviz.ui.words import show_id
from tests.models.checkpoints import makers
from tests.specs import charts, in_numbers, number, prose, table

TEXT = "Sam and the dog and the cat"


@pytest.fixture(scope="module")
def trace(mini):
    return mini.trace(TEXT)


@pytest.mark.parametrize(("block", "edits"), [(2, ""), (5, "z.4.3=zero")])
def test_the_dots_and_the_largest_are_the_units_of_both_runs(run_page, mini, trace, block, edits):
    at = run_page("feed_forward", text=TEXT, token=3, block=block, ff_unit=7, edits=edits)
    changed = mini.trace(TEXT, edits=[edits] if edits else [])
    now, was = (numbers.units(mini, run, block, 3) for run in (changed, trace))
    relu, gelu, dots, *others = charts(at)[1]["data"]
    assert np.array_equal(relu["y"], np.maximum(relu["x"], 0))
    assert np.allclose(
        gelu["y"], torch.nn.functional.gelu(torch.tensor(gelu["x"]), approximate="tanh")
    )
    order = dots["customdata"].copy()
    assert sorted(order) == list(range(1024))
    for axis, values in (("x", now.before), ("y", now.after)):
        assert np.allclose(dots[axis], values[order], atol=1e-5)
    writes = [number(size) for size in dots["text"]]
    assert np.allclose(writes, now.writes[order], rtol=6e-3, atol=1e-5)
    fired = [int((units.before > 0).sum()) for units in (now, was)]
    said = f"{fired[1]} → {fired[0]}" if edits else f"{fired[0]}"
    assert f"**{said} units of " in prose(at)
    rows = table(at, "largest units")
    if not edits:
        assert [int(row[0]) for row in rows] == now.largest(10)
    for unit, *cells in rows:
        told, runs = (cells[-4:-2], (was, now)) if edits else (cells[3:4], (now,))
        assert [float(cell) for cell in told] == pytest.approx(
            [run.writes[int(unit)] for run in runs], rel=1e-2
        )
    frame = in_numbers(at, f"feed-forward-block{block}").sort_values("unit")
    assert np.allclose(frame["after"], now.after, atol=1e-5)
    if edits:
        ghost = others[3]
        assert (ghost["x"][0], ghost["y"][0]) == pytest.approx(
            (was.before[7], was.after[7]), abs=1e-5
        )
        moved = int(((was.before > 0) != (now.before > 0)).sum())
        assert f"{moved} fire in only one of the two models" in prose(at)
        assert np.allclose(frame["unchanged after"], was.after, atol=1e-5)


@pytest.mark.parametrize(("edit", "here"), [("mlp_act.2=x-1", True), ("mlp_act.2@0=x-1", False)])
def test_what_a_change_puts_in_the_place_of_gelu_is_not_told_of_gelu(run_page, mini, edit, here):
    left = torch.nn.functional.gelu(mini.trace(TEXT)["mlp_pre", 2][:, 7], approximate="tanh")
    at = run_page(
        "feed_forward", text=TEXT, token=3, block=2, ff_unit=7, edits=edit, ff_sample="on"
    )
    said = prose(at)
    count = len(left)
    left[: count if here else 1] *= -1  # above 0 where GELU's is below it, and the other way round
    assert (
        f"In this text it is above 0, with the change in it, at {int((left > 0).sum())} of {count} "
        in said
    )
    assert "In this text it fires at" not in said
    assert (
        ("GELU lets more than half of it through" not in said)
        == here
        == ("GELU leaves" not in said)
    )
    assert ("A change puts other numbers in the place of what GELU makes of them" in said) == here
    of_sample = "unit 7 is above 0, with the change in it, at" if here else "unit 7 fires at"
    assert of_sample in said  # what is about a place is not made there


@pytest.mark.parametrize("edit", ["mlp_out.2=zero", "mlp_out.1=zero"])
def test_what_the_units_write_reaches_nothing_where_a_change_replaces_it(run_page, edit):
    at = run_page("feed_forward", text=TEXT, token=3, block=2, edits=edit)
    assert ("may not reach the output head" in " ".join(one.value for one in at.caption)) == (
        edit == "mlp_out.2=zero"
    )


def test_the_last_block_and_the_largest_unit_are_shown_unless_others_are_chosen(
    run_page, mini, trace
):
    largest = numbers.units(mini, trace, 5, 3).largest(1)[0]
    for query, unit in (
        ({}, largest),
        ({"block": 99, "ff_unit": 5}, 5),
        ({"ff_unit": 9999}, largest),
    ):
        # 99 and 9999 are of a larger model
        at = run_page("feed_forward", text=TEXT, token=3, **query)
        assert f"**Unit {unit} of block 5** at" in prose(at)


def test_the_tables_are_the_matrices(run_page, mini, trace):
    at = run_page("feed_forward", text=TEXT, token=3, block=2, ff_unit=7)
    rows = table(at, "largest units")
    found = numbers.units(mini, trace, 2, 3)
    reading = numbers.readings(mini, trace, 2, [7], [1.0], 6, 3)[0]
    write = found.largest(1)[0]
    read = table(at, "reading")
    for column, wanted in ((0, reading.raises), (2, reading.lowers)):
        assert [row[column] for row in read] == [show_id(mini, token) for token, _ in wanted]
        by = [number(row[column + 1]) for row in read]
        assert by == pytest.approx([value for _, value in wanted], rel=6e-3)
    of_write = numbers.readings(mini, trace, 2, [write], [float(found.after[write])], 3, 3)[0]
    assert rows[0][5] == " ".join(show_id(mini, token) for token, _ in of_write.raises)


def test_the_sample_is_read_when_it_is_asked_for(run_page, mini):
    at = run_page("feed_forward", text=TEXT, token=3, block=2, ff_unit=7)
    assert not any('data-testid="excerpts"' in e.proto.body for e in at.get("html"))
    at.toggle(key="ff_sample").set_value(True).run()
    rows = table(at, "excerpts")
    read_in, _ = windows(mini.encode, 256)
    peaks = []
    for window in read_in:
        act = mini.trace(window.ids, keep=[("mlp_act", 2)])["mlp_act", 2][1:, 7]
        peaks.append((act.max().item(), mini.tokens([window.ids[int(act.argmax()) + 1]])[0].text))
    best = sorted(peaks, reverse=True)[:6]
    assert [float(row[0]) for row in rows] == pytest.approx([value for value, _ in best], rel=1e-2)
    for row, (_, token) in zip(rows, best, strict=True):
        assert re.search("<mark>(.*)</mark>", row[1])[1].strip() == token.strip()


def test_a_model_that_cannot_read_the_sample_says_so(run_page, monkeypatch, tmp_path):
    """A vocabulary of characters lacks some of the sample's."""
    monkeypatch.setenv("GPTVIZ_ALLOW_PATHS", "1")
    makers.save_characters(tmp_path)
    at = run_page("feed_forward", model=f"path:{tmp_path}", text="ABBA!", ff_sample="on")
    assert "cannot read the sample" in at.info[0].value


def test_the_sample_is_read_by_the_changed_model(run_page, mini):
    edits = "mlp_pre.2=zero,z.1.0@3=zero"  # one that is of any text: then no unit fires
    at = run_page(
        "feed_forward", text=TEXT, token=3, block=2, ff_unit=7, edits=edits, ff_sample="on"
    )
    assert all(float(row[0]) == 0 for row in table(at, "excerpts"))
    assert "One change is about a place" in prose(at)


def test_of_equal_activations_none_is_the_largest(run_page):
    said = prose(run_page("feed_forward", text="one two", block=3, edits="mlp_act.3=zero"))
    assert "It is the same at every token: 0." in said and "largest at" not in said
