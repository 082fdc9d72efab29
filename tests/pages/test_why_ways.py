"""The panels of the page /why on paths, flow and agreement: what is drawn against the numbers themselves."""

import numpy as np
import pytest
import torch

from gptviz.analysis.agreement import measures, rank_correlations, ranks, with_muting
from gptviz.analysis.flow import contribution_graph, token_flow
from gptviz.analysis.muting import muted
from gptviz.analysis.paths import paths
from gptviz.analysis.rollout import rollout
from gptviz.ui.shell import slow
from gptviz.ui.shell.details import program
from gptviz.ui.views.why.ways.agreement_snippet import side_by_side
from gptviz.ui.views.why.ways.flow_snippet import shares
from gptviz.ui.views.why.ways.paths_snippet import edges
from tests.pages.conftest import AppTest, page_file
from tests.pages.test_snapshots import run_program
from tests.specs import charts

TEXT = "The little birds sang beside the red mill. The little birds sang beside the red"
BOXES = {"paths": "why_paths_box", "flow": "why_flow_box", "agreement": "why_agreement_box"}
OWN = 3  # charts of the page without its panels


def open_panels(*names, **query):
    """The page with these panels open."""
    at = AppTest.from_file(str(page_file("why")), default_timeout=240)
    for key, value in query.items():
        at.query_params[key] = str(value)
    for name in names:
        at.session_state[BOXES[name]] = True
    at.run()
    assert not at.exception, [error.message for error in at.exception]
    return at


def words_on(at):
    return " ".join(block.value for block in [*at.markdown, *at.caption])


def test_closed_they_draw_nothing_and_open_what_is_found(mini):
    at = open_panels("paths", text=TEXT, against=1647)
    fig = charts(at)[-1]
    trace = mini.trace(TEXT)
    token = int(trace.next_tokens(1)["id"].iloc[0])
    found = paths(trace, mini.model, token, 1647)
    drawn, above = found.above(0.005, 32), found.above(0.005)
    assert fig["data"][0]["customdata"][:, 0].sum() == pytest.approx(drawn["logits"].sum(), abs=1e-3)
    said = words_on(at)
    assert len(drawn) == 32 and f"32 largest of {len(above)} edges" in said and "8.93" in said
    assert len(charts(open_panels(text=TEXT, against=1647))) == len(charts(at)) - 1


def test_the_threshold_stands_in_the_address(mini):
    at = open_panels("paths", "flow", text=TEXT, token=9, paths_from=5, flow_from=10)
    assert (at.slider(key="paths_from").value, at.slider(key="flow_from").value) == (5, 10)
    trace = mini.trace(TEXT)
    token = int(trace.next_tokens(1, position=9)["id"].iloc[0])
    found = paths(trace, mini.model, token, None, 9).above(0.05)
    of_paths, of_flow, shown = charts(at)[-3:]
    assert of_paths["data"][0]["customdata"][:, 0].sum() == pytest.approx(found["logits"].sum(), abs=1e-3)
    graph = contribution_graph(trace, mini.model, 9, 0.1, renormalize=True).edges
    assert np.allclose(
        np.sort(of_flow["data"][0]["customdata"][:, 0]), np.sort(graph["contribution"]), atol=1e-4
    )
    assert np.allclose(shown["data"][0]["z"], token_flow(trace, mini.model, 9)[0], atol=1e-4)
    at.toggle(key="flow_scaled").set_value(False).run()
    graph = contribution_graph(trace, mini.model, 9, 0.1).edges
    drawn = charts(at)[-2]["data"][0]["customdata"][:, 0]
    assert np.allclose(np.sort(drawn), np.sort(graph["contribution"]), atol=1e-4)


def test_rollout_is_drawn_instead(mini):
    at = open_panels("flow", text=TEXT, flow_way="Attention rollout")
    shown = charts(at)[-1]["data"][0]["z"]
    assert np.allclose(shown, rollout(mini.trace(TEXT)), atol=1e-5)
    assert f"{100 * shown[0, -1]:.1f} %" in words_on(at)
    assert "paths_from" not in [slider.key for slider in at.slider]


def test_the_five_ways_are_side_by_side(mini):
    at = open_panels("agreement", text=TEXT)
    trace = mini.trace(TEXT)
    token, n = int(trace.next_tokens(1)["id"].iloc[0]), len(trace)
    table = measures(trace, mini.model, token)
    table = with_muting(table, list(muted(mini, mini.encode(TEXT), range(n - 1), token)))
    ranked, alike = charts(at)[-2:]
    wanted = ranks(table)
    ways = list(alike["data"][0]["x"])
    assert ways == ["attention", "rollout", "contribution", "attribution", "muting"]
    drawn = ranked["data"][0]["z"]
    assert np.allclose(drawn, wanted[ways].to_numpy().T)
    assert np.allclose(alike["data"][0]["z"], rank_correlations(table), atol=1e-6)
    at.session_state["numbers_why-agreement"] = True
    at.run()
    numbers = at.dataframe[-1].value
    assert np.allclose(numbers["muting"], table["muting"], atol=1e-3) and len(numbers) == n - 1


def test_one_token_and_signs_of_many_bytes():
    at = open_panels("paths", "flow", "agreement", text="A")
    assert at.info and "Nothing stands before" in at.info[0].value
    at = open_panels("paths", "flow", "agreement", text="🦜 你好", token=3)
    assert len(charts(at)) >= OWN + 5


def test_a_full_context_compares_those_that_are_named_first():
    at = open_panels("flow", "agreement", text="once upon a time there was " * 60, token=255)
    ranked = charts(at)[-2]["data"][0]["z"]
    assert ranked.shape == (5, 32) and np.isfinite(ranked).all()
    assert charts(at)[-3]["data"][0]["z"].shape == (7, 256)


def test_what_takes_long_waits_for_a_click():
    at = open_panels("agreement", model="gpt2-untrained", text="one two three four five six " * 10)
    assert charts(at)[-1]["data"][0]["z"].shape == (4, 4)
    assert not at.toggle(key="why_mute_tokens").value


def test_asked_for_it_is_done_a_few_at_a_time(monkeypatch):
    at_once = charts(open_panels("agreement", text=TEXT, token=9))[-2]["data"][0]["z"]
    monkeypatch.setattr(slow, "UNASKED", 0)
    at = open_panels("agreement", text=TEXT + " mill", token=9)  # another run: nothing is known of it
    assert charts(at)[-2]["data"][0]["z"].shape == (4, 9)
    at.toggle(key="why_mute_tokens").set_value(True).run()
    assert not at.exception
    assert np.array_equal(charts(at)[-2]["data"][0]["z"], at_once)


def test_in_code_is_the_same_picture(mini, capsys):
    trace = mini.trace(TEXT)
    token = int(trace.next_tokens(1)["id"].iloc[0])
    got = edges(mini, TEXT, token, 1647, position=15)
    assert got.equals(paths(trace, mini.model, token, 1647).above(0.005, 32))
    assert torch.equal(shares(mini, TEXT, 15), token_flow(trace, mini.model)[0])
    assert torch.equal(shares(mini, TEXT, 15, "Attention rollout"), rollout(trace))
    found = side_by_side(mini, TEXT, token, position=9)
    assert len(found) == 9 and list(found)[-1] == "muting"
    assert "contribution" in capsys.readouterr().out


@pytest.mark.parametrize(
    "code",
    [
        program(edges, "gptviz.load('mini', dtype='bfloat16')", text=TEXT, token=2958, position=5),
        program(shares, "gptviz.load('mini', dtype='bfloat16')", text=TEXT, position=5),
        program(side_by_side, "gptviz.load('mini', dtype='bfloat16')", text=TEXT, token=2958, position=5),
    ],
    ids=["paths", "flow", "agreement"],
)
def test_it_runs_as_a_file_in_bfloat16(code, tmp_path, capsys):
    assert len(run_program(code, tmp_path)["picture"])
