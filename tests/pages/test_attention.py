"""The Attention page without a browser: what it says and sends, against the trace."""

import json
from typing import Any

import numpy as np
import pytest
import torch

from gptviz.analysis.attention import cell
from gptviz.digits import fixed, significant, weight
from gptviz.engine import sites
from gptviz.tokenizer import show_token
from gptviz.ui import runs
from tests.specs import charts, floats, given, opened, prose, put

CHIPS = "chips"
GRID = "heads"
HEAD = "matrix_head"
STEPS = "matrix_steps"
ARCS = "arcs_head"
TEXT = "The cat sat on the mat. The cat sat on the mat."
CELL = {"text": TEXT, "block": 4, "head": 3, "token": 9, "key": 8}


def values(array: dict[str, Any]) -> np.ndarray:
    """What the browser decodes, row by row."""
    numbers = floats(array["base64"])
    if not array["triangle"]:
        return numbers.reshape(-1, array["columns"])
    square = np.zeros((array["columns"],) * 2, np.float32)
    square[np.tril_indices(len(square))] = numbers
    return square


def lines(data: dict[str, Any], n_tokens: int) -> np.ndarray:
    """The weights of the arcs' heads, (H, T, T)."""
    numbers = floats(data["weights"]).reshape(len(data["heads"]), -1)
    square = np.zeros((len(numbers), n_tokens, n_tokens), np.float32)
    square[:, *np.tril_indices(n_tokens)] = numbers
    return square


@pytest.fixture(scope="module")
def trace(mini):
    return mini.trace(TEXT)


@pytest.mark.parametrize(
    ("edits", "query", "shown"),
    [
        ("", {}, "unchanged"),
        ("mlp_out.1=zero", {"shown": "difference"}, "difference"),
        ("mlp_out.1=zero", {"shown": "changed"}, "changed"),
        ("mlp_out.1=zero", {"pattern": "unchanged"}, "unchanged"),  # as an older link says it
    ],
)
def test_all_that_is_drawn_is_the_chosen_traces(run_page, mini, trace, edits, query, shown) -> None:
    changed = mini.trace(TEXT, edits=[edits] if edits else [])
    at = run_page("attention", **CELL, edits=edits, arcs="on", mass=95, **query)
    data = given(at, HEAD)
    steps = given(at, STEPS)
    arcs = given(at, ARCS)
    old = trace["attn", 4].numpy()
    new = changed["attn", 4].numpy()
    of = trace if shown == "unchanged" else changed
    whole = {"unchanged": old, "changed": new, "difference": new - old}[shown]
    np.testing.assert_allclose(values(data["arrays"]["weights"]), whole[3], atol=2e-6)
    np.testing.assert_allclose(lines(arcs, len(of.tokens)), of["attn", 4].numpy(), atol=1e-6)
    assert (arcs["heads"][arcs["head"]], arcs["mass"]) == (3, 95)
    for drawn in (data, steps, arcs):
        assert (drawn["query"], drawn["key"]) == (9, 8)
    # the browser multiplies what it was sent
    assert steps["arrays"]["scores"] == {"of": ["q", "k"]}
    for name in ("q", "k", "v", "z"):
        np.testing.assert_allclose(values(steps["arrays"][name]), of[name, 4][3].numpy(), atol=1e-4)
    if edits:
        assert ("unchanged" if shown == "unchanged" else "changed") in steps["saved"]["stem"].split(
            "-"
        )
        now, was = (cell(mini, t, 4, 3, 9, 8).score for t in (changed, trace))
        assert f"{fixed(now, 2)} (unchanged {fixed(was, 2)})" in prose(at)


def test_the_steps_divide_and_mask_and_the_grid_has_every_head(run_page, mini, trace) -> None:
    at = run_page("attention", **CELL)
    panels = {panel["name"]: panel for panel in given(at, STEPS)["panels"]}
    d = trace["q", 4].shape[-1]
    assert panels["scaled"]["divisor"] == panels["masked"]["divisor"] == pytest.approx(d**0.5)
    assert [name for name in panels if panels[name]["masked"]] == ["masked", "weights"]
    grid = given(at, GRID)
    proj = mini.model.trf_blocks[4].att.out_proj.weight.detach()
    assert (grid["blocks"], grid["heads"]) == (trace.config.n_layers, trace.config.n_heads)
    assert (grid["block"], grid["head"]) == (4, 3)
    write = (trace["z", 4][3] @ proj[:, 3 * d : 4 * d].T).norm(dim=-1).mean().item()
    assert grid["roles"][4][3]["write"] == pytest.approx(write, abs=1e-3)


def test_average_and_hidden_first_token(run_page, trace) -> None:
    at = run_page(
        "attention",
        text=TEXT,
        block=1,
        head=0,
        average="true",
        hide_first="true",
        arcs="on",
        mass=1,
    )
    mean = trace["attn", 1].numpy().mean(axis=0)
    rest = mean / np.maximum(1 - mean[:, :1], 1e-9)  # row 0 has nothing left
    arcs = given(at, ARCS)
    for sent in (values(given(at, HEAD)["arrays"]["weights"]), lines(arcs, len(mean))[0]):
        inside = np.tril(np.ones_like(mean, bool)) & (np.arange(len(mean)) > 0)
        np.testing.assert_allclose(sent[inside], rest[inside], rtol=1e-4)
        assert np.isnan(sent[:, 0]).all()
    assert arcs["mass"] == 50  # the least that there is
    chips = given(at, CHIPS)["weights"]
    assert chips[0] is None and chips[1:] == pytest.approx(rest[-1, 1:].tolist(), abs=1e-5)
    # the sentences give the model's own number beside the one that is drawn
    key = int(np.argmax(mean[-1, 1:])) + 1
    own = significant(mean[-1, key], 2)
    drawn = significant(rest[-1, key], 2)
    assert f"{drawn} to" in prose(at) and f"(the model: {own})" in prose(at)
    assert significant(mean[-1, 0], 4) in prose(at) and significant(rest[-1, key], 4) in prose(at)
    assert "**in the picture**: the first token is hidden." in prose(put(at, key=0))


def test_a_long_text_keeps_only_the_chosen_block_whole(run_page, trace, monkeypatch) -> None:
    """With no room for all blocks' weights, everything that is drawn and said is the same."""
    runs.runs.clear()  # another test's pass may have kept other sites: its last bit is another
    whole = run_page("attention", text=TEXT, block=2, head=3, token=9)
    monkeypatch.setattr(sites, "SMALL", 0)
    runs.runs.clear()
    at = run_page("attention", text=TEXT, block=2, head=3, token=9)
    for name in (CHIPS, GRID, HEAD, STEPS):
        assert given(at, name) == given(whole, name)
    # of this text: what another test's page began in the background may trace its own meanwhile
    (held,) = [
        entry
        for (kind, run, *_), (entry, _) in runs.runs()._cache.items()
        if kind == "trace" and run.ids == tuple(t.id for t in trace.tokens)
    ]
    assert [key for key in held.sites() if key[0] == "attn" and held.holds([key])] == [("attn", 2)]
    # without a chosen block, the one to begin with is known only after the pass
    assert given(run_page("attention", text=TEXT), HEAD)["query"] == len(trace.tokens) - 1
    runs.runs.clear()


def test_the_text_has_the_selected_row_and_buttons_walk_through_all_heads(run_page, trace) -> None:
    last = trace.config.n_heads - 1
    at = run_page("attention", text=TEXT, block=2, head=last, token=5)
    row = trace["attn", 2][last, 5]
    sent = given(at, CHIPS)["weights"]
    assert sent[:6] == pytest.approx(row[:6].tolist(), abs=1e-6)
    assert sent[6:] == [None] * (len(trace.tokens) - 6)  # what comes later is masked, and not 0
    assert given(at, HEAD)["key"] == int(row.argmax())
    for button, wanted in (("head_after", (3, 0)), ("head_before", (2, last))):
        at.button(key=button).click().run()
        assert (at.session_state["block"], at.session_state["head"]) == wanted


def test_a_masked_key_has_a_score_and_no_weight(run_page) -> None:
    """Of the bars of a key that is seen, only the products are there."""
    charts = [
        len(run_page("attention", text=TEXT, token=2, key=key).get("plotly_chart"))
        for key in (1, 5)
    ]
    assert charts == [5, 1]


def test_the_printed_matrix_and_role_are_those_of_the_sentence(run_page, trace) -> None:
    """The head of the first sentence: what a share is made of, is in tests/analysis/test_head_formulas.py."""
    at = run_page("attention", text=TEXT)
    chosen = given(at, GRID)
    block = chosen["block"]
    head = chosen["head"]
    opened(at, f"numbers_attention-block{block}-head{head}", "numbers_heads")
    matrix, table = (frame.value for frame in at.dataframe)
    weights = matrix.iloc[:, 2:].fillna(0).to_numpy()
    np.testing.assert_allclose(weights, trace["attn", block][head].numpy(), atol=1e-6)
    row = table[(table["block"] == block) & (table["head"] == head)].iloc[0]
    assert row["role"] == "induction" and f"{significant(100 * row['share'], 2)} %" in prose(at)


def test_what_a_change_cannot_move_is_said_and_what_a_head_hands_on(run_page) -> None:
    """A head that is off looks where it looked; one beside it, and one before it, cannot be moved by that."""
    for head, block, words in (
        (3, 4, "not where it looks"),
        (2, 4, "in parallel"),
        (3, 1, "computes later"),
    ):
        at = run_page(
            "attention", text=TEXT, block=block, head=head, edits="z.4.3=zero,attn.4.3=first"
        )
        moved = (block, head) == (4, 3)
        assert words in prose(at) and ("now goes elsewhere" in prose(at)) == moved
        assert ("shown" in [group.key for group in at.get("button_group")]) == moved
        assert ("the steps before do not lead there" in prose(at)) == moved


@pytest.mark.parametrize(
    ("query", "edits", "adds"),
    [
        ({"block": 4, "head": 3, "token": 9}, "", True),
        ({"block": 0, "head": 0, "token": 0}, "", True),
        ({"block": 4, "head": 3, "token": 9}, "attn.4.3=uniform", True),
        ({"block": 4, "head": 3, "token": 9}, "z.4.3=zero", False),
        ({"block": 4, "head": 3, "token": 9}, "z.4.3@9=x2", False),
        ({"block": 4, "head": 3, "token": 8}, "z.4.3@9=x2", True),
    ],
)
def test_the_output_adds_up_in_beats_unless_a_change_put_another_there(
    run_page, mini, query, edits, adds
) -> None:
    sent = given(run_page("attention", text=TEXT, **query, edits=edits, shown="changed"), STEPS)
    t = mini.trace(TEXT, edits=[edits] if edits else [])
    block, head, at = query.values()
    row = t["attn", block][head, at, : at + 1]
    assert (sent["adds"] is not None) == adds
    if not adds:
        return
    beats = sent["adds"]["beats"]
    keys = [key for beat in beats for key in beat["keys"]]
    assert len(keys) == len(set(keys)) and set(keys) <= set(range(at + 1))
    told = sum(row[beat["keys"]].sum().item() for beat in beats)
    assert told == pytest.approx(row.sum().item(), abs=1e-6)
    together = row[keys] @ t["v", block][head, keys]
    np.testing.assert_allclose(together, t["z", block][head, at], atol=1e-4)
    first = beats[0]
    assert first["keys"] == [int(row.argmax())] and len(beats) <= 5
    label = show_token(t.tokens[first["keys"][0]].raw)
    place = f" (position {first['keys'][0]})"
    assert first["says"] == [f"{weight(row.max().item())} × the value of ", label, place]


@pytest.mark.parametrize(("place", "replaced"), [("", True), ("@2", True), ("@1", False)])
def test_what_one_weight_brings_goes_nowhere_where_the_output_is_replaced(
    run_page, place, replaced
) -> None:
    """The bars of the output have no part that comes from a key, where a change put something else there."""
    at = run_page("attention", text=TEXT, token=2, block=4, head=3, edits=f"z.4.3{place}=zero")
    (output,) = [c for c in charts(at) if c["data"][0].get("name") == "output z"]
    assert [trace["name"] for trace in output["data"]] == [
        "output z",
        *["weight × value"] * (not replaced),
    ]
    assert ("the change puts another" in prose(at)) == replaced


@pytest.mark.parametrize(("token", "put"), [(2, True), (3, False)])
def test_a_weight_is_changed_in_the_rows_that_the_change_is_of(run_page, token, put) -> None:
    at = run_page("attention", text=TEXT, token=token, block=4, head=3, edits="attn.4.3@2=first")
    assert ("**changed**: the change puts" in prose(at)) == put


def test_one_token_and_the_whole_context(run_page, mini) -> None:
    at = run_page("attention", text="T")
    assert values(given(at, HEAD)["arrays"]["weights"]).tolist() == [[1.0]]
    at = run_page("attention", text="word and more " * 200, token=10, arcs="on")
    n_tokens = mini.config.context_length
    assert len(given(at, HEAD)["tokens"]) == len(given(at, CHIPS)["tokens"]) == n_tokens
    assert len(json.dumps(given(at, HEAD))) < 4 * n_tokens**2, (
        "more than the numbers themselves weigh"
    )
    assert len(given(at, ARCS)["tokens"]) <= 256


@pytest.mark.parametrize("edits", ["attn.4.3=x2", "attn.*=zero", "attn.4.3=first"])
def test_rows_that_a_change_scales_are_not_said_to_sum_to_1(run_page, mini, edits):
    sums = mini.trace(TEXT, edits=[edits])["attn", 4][3].sum(dim=-1)
    scaled = not torch.allclose(sums, torch.ones(len(sums)), atol=1e-4)
    query = {"text": TEXT, "edits": edits, "block": 4, "head": 3}
    for page in ("attention", "heads"):
        said = prose(run_page(page, **query))
        assert ("its rows may no longer sum to 1, and shares not to 100 %" in said) == scaled, page
    said = prose(run_page("attention", **query))
    assert ("goes elsewhere" not in said) == scaled == ("each row sums to 0" not in said)
    assert "gives nothing else" not in said  # nothing is hidden
    said = prose(run_page("compare", **query))
    assert ("attention goes to other tokens" not in said) == scaled
