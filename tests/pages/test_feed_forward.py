"""The Feed-forward page through AppTest: its numbers are those of the pass and of the model's matrices."""

import re

import numpy as np
import pytest
import torch

from gptviz import Edit
from gptviz.analysis import feed_forward as numbers
from gptviz.engine.sample import windows
from gptviz.ui.words import show_id
from tests.checkpoints import makers
from tests.specs import charts, in_numbers, number, prose, table

TEXT = "Sam and the dog and the cat"


@pytest.fixture(scope="module")
def trace(mini):
    return mini.trace(TEXT)


def test_the_dots_are_every_unit_of_the_selected_token(run_page, mini, trace):
    at = run_page("feed_forward", text=TEXT, token=3, block=2)
    figure = charts(at)[0]
    assert f"**{int((trace['mlp_pre', 2][3] > 0).sum())} of them fire" in prose(at)
    dots = figure["data"][2]
    order = dots["customdata"].copy()
    assert sorted(order) == list(range(1024))
    assert np.allclose(dots["x"], trace["mlp_pre", 2][3][order], atol=1e-5)
    assert np.allclose(dots["y"], trace["mlp_act", 2][3][order], atol=1e-5)
    columns = mini.model.trf_blocks[2].ff.layers[2].weight.detach().norm(dim=0)
    expected = trace["mlp_act", 2][3].abs() * columns
    assert np.allclose([number(size) for size in dots["text"]], expected[order], rtol=6e-3, atol=1e-5)
    curve = figure["data"][1]
    gelu = torch.nn.functional.gelu(torch.tensor(curve["x"]), approximate="tanh")
    assert np.allclose(curve["y"], gelu, atol=1e-5)
    assert np.array_equal(figure["data"][0]["y"], np.maximum(curve["x"], 0))


def test_the_last_block_and_the_largest_unit_are_shown_unless_others_are_chosen(run_page, mini, trace):
    largest = numbers.units(mini, trace, 5, 3).largest(1)[0]
    for query, unit in (({}, largest), ({"block": 99, "ff_unit": 5}, 5), ({"ff_unit": 9999}, largest)):
        at = run_page("feed_forward", text=TEXT, token=3, **query)  # 99 and 9999 are of a larger model
        assert f"Unit {unit} of block 5" in [element.value for element in at.subheader]


def test_the_tables_are_the_matrices(run_page, mini, trace):
    at = run_page("feed_forward", text=TEXT, token=3, block=2, ff_unit=7)
    rows = table(at, "largest units")
    found = numbers.units(mini, trace, 2, 3)
    assert [int(row[0]) for row in rows] == found.largest(10)
    assert float(rows[0][4]) == pytest.approx(found.writes.max(), rel=1e-2)
    reading, write = numbers.readings(mini, trace, 2, [7], [1.0], 6, 3)[0], found.largest(1)[0]
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
    assert any("cannot read the sample" in element.value for element in at.info)


def test_a_changed_run_stands_beside_the_unchanged_one(run_page, mini, trace):
    query = {"text": TEXT, "token": 3, "block": 5, "ff_unit": 7}
    at = run_page("feed_forward", edits="z.4.3=zero", **query)
    changed = mini.trace(TEXT, edits=[Edit.parse("z.4.3=zero")])
    dots = charts(at)[0]
    order = dots["data"][2]["customdata"]
    assert np.allclose(dots["data"][2]["x"], changed["mlp_pre", 5][3][order], atol=1e-5)
    pre, act = trace["mlp_pre", 5], trace["mlp_act", 5]
    ghost = dots["data"][6]
    assert (ghost["x"][0], ghost["y"][0]) == pytest.approx((pre[3, 7].item(), act[3, 7].item()), abs=1e-5)
    shapes = [(strip["name"], np.shape(strip["z"])) for strip in charts(at)[2]["data"]]
    sides = [(8, 32), (8, 128), (8, 128), (8, 32)]
    assert shapes == [(name, side) for side in sides for name in ("changed", "unchanged")]
    fired = [int((one["mlp_pre", 5][3] > 0).sum()) for one in (trace, changed)]
    moved = int(((trace["mlp_pre", 5][3] > 0) != (changed["mlp_pre", 5][3] > 0)).sum())
    said = f"**{fired[1]} (unchanged {fired[0]}) of them fire**"
    assert said in prose(at) and f"{moved} fire in only one of the two" in prose(at)
    old, new = (numbers.units(mini, one, 5, 3) for one in (trace, changed))
    for unit, *_, before, after, _, _ in table(at, "largest units"):
        assert float(before) == pytest.approx(old.writes[int(unit)], rel=1e-2)
        assert float(after) == pytest.approx(new.writes[int(unit)], rel=1e-2)
    frame = in_numbers(at, "feed-forward-block5").sort_values("unit")
    assert np.allclose(frame["unchanged after"], act[3], atol=1e-5)
    assert np.allclose(frame["after"], changed["mlp_act", 5][3], atol=1e-5)


def test_the_sample_is_read_by_the_changed_model(run_page, mini):
    edits = "mlp_pre.2=zero,z.1.0@3=zero"  # one that is of any text: then no unit fires
    at = run_page("feed_forward", text=TEXT, token=3, block=2, ff_unit=7, edits=edits, ff_sample="on")
    assert all(float(row[0]) == 0 for row in table(at, "excerpts"))
    assert any("One change is about a place" in element.value for element in at.caption)
