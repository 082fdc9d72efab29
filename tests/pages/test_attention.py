"""The Attention page without a browser: what it says and sends, against the trace."""

import base64
import json
from typing import Any

import numpy as np
import pytest
import torch

import gptviz
from gptviz.analysis.attention import cell
from gptviz.digits import significant
from gptviz.ui import heads, runs
from gptviz.ui.components.matrix import encode
from gptviz.ui.views.attention import change_words
from gptviz.ui.views.attention.snippet import weights

CHIPS = ("gptviz.chips", None)
TEXT = "The cat sat on the mat. The cat sat on the mat."


def component(at: Any, name: tuple[str, str | None]) -> dict[str, Any]:
    """The data that the page sent to one of its components, by the component's name and its own."""
    for element in at.get("bidi_component"):
        if element.proto.component_name == name[0]:
            data = json.loads(element.proto.json)
            if name[1] in (None, data.get("name")):
                return data
    raise AssertionError(f"the page has no {name}")


def values(array: dict[str, Any]) -> np.ndarray:
    """What the browser decodes, row by row."""
    numbers = np.frombuffer(base64.b64decode(array["base64"]), "<f4")
    if not array["triangle"]:
        return numbers.reshape(-1, array["columns"])
    square = np.zeros((array["columns"],) * 2, np.float32)
    square[np.tril_indices(len(square))] = numbers
    return square


def prose(at: Any) -> str:
    return "\n".join(element.value for element in at.markdown)


@pytest.fixture(scope="module")
def trace():
    return gptviz.load("mini").trace(TEXT)


def test_the_matrices_are_the_traces_own_numbers(run_page, trace) -> None:
    at = run_page("attention", text=TEXT, block=2, head=3, token=9, key=4)
    data = component(at, ("gptviz.matrix", "head"))
    np.testing.assert_allclose(values(data["arrays"]["weights"]), trace["attn", 2][3].numpy(), atol=1e-6)
    assert (data["query"], data["key"]) == (9, 4)
    steps = component(at, ("gptviz.matrix", "steps"))
    q, k = trace["q", 2][3], trace["k", 2][3]
    assert steps["arrays"]["scores"] == {"of": ["q", "k"]}  # the browser multiplies what it was sent
    products = values(steps["arrays"]["q"]) @ values(steps["arrays"]["k"]).T
    np.testing.assert_allclose(products, (q @ k.T).numpy(), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(values(steps["arrays"]["z"]), trace["z", 2][3].numpy(), rtol=1e-4, atol=1e-4)
    scaled = next(panel for panel in steps["panels"] if panel["name"] == "scaled")
    assert scaled["divisor"] == pytest.approx(q.shape[-1] ** 0.5) and not scaled["masked"]


def test_the_steps_are_of_the_model_that_the_matrix_is_of(run_page) -> None:
    mini, edit = gptviz.load("mini"), "mlp_out.1=zero"
    query = {"text": TEXT, "block": 2, "head": 3, "token": 9, "key": 4, "edits": edit}
    plain, changed = mini.trace(TEXT), mini.trace(TEXT, edits=[edit])
    for pattern, trace in (("unchanged", plain), ("changed", changed), ("difference", changed)):
        at = run_page("attention", **query, pattern=pattern)
        steps = component(at, ("gptviz.matrix", "steps"))
        for name in ("q", "z"):
            np.testing.assert_allclose(values(steps["arrays"][name]), trace[name, 2][3].numpy(), atol=1e-4)
        model = "unchanged" if pattern == "unchanged" else "changed"
        assert model in steps["saved"]["stem"].split("-")
    old = cell(plain, 2, 3, 9, 4)
    said = next(m.value for m in at.markdown if "**softmax**" in m.value)
    assert change_words.unchanged(old.score, old.weight) in said
    assert abs(old.score - cell(changed, 2, 3, 9, 4).score) > 0.1


def test_the_grid_has_every_head_and_rings_the_chosen_one(run_page, trace) -> None:
    grid = component(run_page("attention", text=TEXT, block=2, head=3), ("gptviz.heads", None))
    config = trace.config
    assert (grid["blocks"], grid["heads"]) == (config.n_layers, config.n_heads)
    assert (grid["block"], grid["head"]) == (2, 3)
    z, proj = trace["z", 2][3], gptviz.load("mini").model.trf_blocks[2].att.out_proj.weight.detach()
    d = z.shape[-1]
    write = (z @ proj[:, 3 * d : 4 * d].T).norm(dim=-1).mean().item()
    assert grid["roles"][2][3]["write"] == pytest.approx(write, abs=1e-3)


def test_average_and_hidden_first_token(run_page, trace) -> None:
    at = run_page("attention", text=TEXT, block=1, head=0, average="true", hide_first="true")
    sent = values(component(at, ("gptviz.matrix", "head"))["arrays"]["weights"])
    mean = trace["attn", 1].numpy().mean(axis=0)
    for row in range(1, len(mean)):
        rest = mean[row, 1 : row + 1]
        np.testing.assert_allclose(sent[row, 1 : row + 1], rest / rest.sum(), atol=1e-5)
    assert np.isnan(sent[:, 0]).all()
    # the sentences give the model's own number beside the one that is drawn
    row = mean[-1]
    key = int(np.argmax(row[1:])) + 1
    own, drawn = significant(row[key], 2), significant(row[key] / (1 - row[0]), 2)
    assert f"{drawn} to" in prose(at) and f"(the model: {own})" in prose(at)
    assert significant(row[0], 4) in prose(at)


def test_the_text_itself_is_coloured_by_the_selected_row(run_page, trace) -> None:
    at = run_page("attention", text=TEXT, block=2, head=3, token=5)
    sent = component(at, CHIPS)["weights"]
    assert sent[:6] == pytest.approx(trace["attn", 2][3, 5, :6].tolist(), abs=1e-6)
    assert sent[6:] == [None] * (len(trace.tokens) - 6)  # what comes later is masked, and not 0
    hidden = component(run_page("attention", text=TEXT, block=2, head=3, token=5, hide_first="on"), CHIPS)
    rest = trace["attn", 2][3, 5, 1:6]
    assert hidden["weights"][0] is None
    assert hidden["weights"][1:6] == pytest.approx((rest / rest.sum()).tolist(), abs=1e-5)


def test_a_long_text_keeps_only_the_chosen_block_whole(run_page, trace, monkeypatch) -> None:
    """With no room for all blocks' weights, everything that is drawn and said is the same."""
    runs.runs.clear()  # another test's pass may have kept other sites: its last bit is another
    whole = run_page("attention", text=TEXT, block=2, head=3, token=9)
    monkeypatch.setattr(heads, "WHOLE_MEGABYTES", 0)
    runs.runs.clear()
    at = run_page("attention", text=TEXT, block=2, head=3, token=9)
    for name in (CHIPS, ("gptviz.heads", None), ("gptviz.matrix", "head"), ("gptviz.matrix", "steps")):
        assert component(at, name) == component(whole, name)
    # of this text: what another test's page began in the background may trace its own meanwhile
    (held,) = [
        entry
        for (kind, run, *_), (entry, _) in runs.runs()._cache.items()
        if kind == "trace" and run.ids == tuple(t.id for t in trace.tokens)
    ]
    assert {block for site, block in held.sites() if site == "attn"} == {2}
    # without a chosen block, the one to begin with is known only after the pass
    first = run_page("attention", text=TEXT)
    assert component(first, ("gptviz.matrix", "head"))["query"] == len(trace.tokens) - 1
    runs.runs.clear()


def test_without_a_chosen_key_it_is_the_strongest(run_page, trace) -> None:
    data = component(run_page("attention", text=TEXT, block=0, head=0, token=7), ("gptviz.matrix", "head"))
    assert data["key"] == int(trace["attn", 0][0, 7].argmax())


def test_buttons_walk_through_all_heads(run_page, trace) -> None:
    at = run_page("attention", text=TEXT, block=0, head=trace.config.n_heads - 1)
    at.button(key="head_after").click().run()
    assert (at.session_state["block"], at.session_state["head"]) == (1, 0)
    at.button(key="head_before").click().run()
    assert (at.session_state["block"], at.session_state["head"]) == (0, trace.config.n_heads - 1)


def test_a_masked_key_has_a_score_and_no_weight(run_page) -> None:
    """Of the five bars' charts that a visible key has, those of softmax and output are not there."""
    charts = [len(run_page("attention", text=TEXT, token=2, key=key).get("plotly_chart")) for key in (1, 5)]
    assert charts == [3, 1]


def test_the_sentence_can_be_recomputed_from_the_printed_matrix(run_page, trace) -> None:
    """The head of the first sentence, from the tables under *In numbers* alone."""
    at = run_page("attention", text=TEXT)
    chosen = component(at, ("gptviz.heads", None))
    block, head = chosen["block"], chosen["head"]
    at.session_state[f"numbers_attention-block{block}-head{head}"] = True
    at.session_state["numbers_heads"] = True
    at.run()
    matrix, heads = (frame.value for frame in at.dataframe)
    np.testing.assert_allclose(
        matrix.iloc[:, 2:].fillna(0).to_numpy(), trace["attn", block][head].numpy(), atol=1e-6
    )
    row = heads[(heads["block"] == block) & (heads["head"] == head)].iloc[0]
    assert row["role"] == "induction" and row["rows"] > 1
    first, last = map(int, row["row_positions"].split(" to "))
    ids = [token.id for token in trace.tokens]
    means = []
    for query in range(first, last + 1):
        keys = [p + 1 for p in range(query) if ids[p] == ids[query] and p + 1 not in (0, query - 1, query)]
        means.append(sum(matrix.iloc[query, 2 + key] for key in keys))
    assert row["share"] == pytest.approx(np.mean(means), abs=1e-6)
    assert f"{significant(100 * row['share'], 2)} %" in prose(at)


def test_one_token(run_page) -> None:
    at = run_page("attention", text="T")
    assert values(component(at, ("gptviz.matrix", "head"))["arrays"]["weights"]).tolist() == [[1.0]]


def test_the_whole_context(run_page) -> None:
    at = run_page("attention", text="word and more " * 200)
    data = component(at, ("gptviz.matrix", "head"))
    n_tokens = gptviz.load("mini").config.context_length
    assert len(data["tokens"]) == n_tokens
    size = len(json.dumps(data))
    assert size < 4 * n_tokens * n_tokens, "more is sent than the numbers themselves weigh"


@pytest.mark.parametrize(
    "query", [{"block": 99}, {"head": -1}, {"block": "x"}, {"key": 10**9}, {"token": 999, "average": "maybe"}]
)
def test_nonsense_in_the_address_is_as_if_it_were_not_there(run_page, query: dict[str, object]) -> None:
    run_page("attention", text=TEXT, **query)


def test_triangles_are_packed_row_by_row() -> None:
    packed = encode(np.array([[1, 9], [2, 3]], np.float32), triangle=True)
    assert np.frombuffer(base64.b64decode(packed["base64"]), "<f4").tolist() == [1, 2, 3]


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("hide_first", [False, True])
def test_the_snippet_draws_the_same_picture(trace, capsys, average: bool, hide_first: bool) -> None:
    picture = weights(gptviz.load("mini"), TEXT, 1, 5, average, hide_first)
    expected = trace["attn", 1].mean(dim=0) if average else trace["attn", 1][5]
    if hide_first:
        assert picture[:, 0].isnan().all()
        rest = expected[4, 1:5] / expected[4, 1:5].sum()
        torch.testing.assert_close(picture[4, 1:5], rest, rtol=0, atol=1e-5)
    else:
        torch.testing.assert_close(picture, expected, rtol=0, atol=1e-5)
    said = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines() if " " in line)
    previous = [trace["attn", 1][5, q, q - 1].item() for q in range(1, len(trace.tokens))]
    assert float(said["to_previous"]) == pytest.approx(np.mean(previous), abs=1e-5)


def test_the_arcs_are_all_heads_of_the_block(run_page, trace) -> None:
    at = run_page("attention", text=TEXT, block=4, head=3, token=9, key=8, arcs="on", mass=95)
    data = component(at, ("gptviz.arcs", "head"))
    n, heads = len(trace.tokens), trace.config.n_heads
    numbers = np.frombuffer(base64.b64decode(data["weights"]), "<f4").reshape(heads, -1)
    rows, columns = np.tril_indices(n)
    np.testing.assert_allclose(numbers, trace["attn", 4].numpy()[:, rows, columns], atol=1e-6)
    assert (data["heads"][data["head"]], data["query"], data["key"], data["mass"]) == (3, 9, 8, 95)

    hidden = component(
        run_page("attention", text=TEXT, block=4, head=3, arcs="on", hide_first="on", average="on", mass=1),
        ("gptviz.arcs", "head"),
    )
    drawn = np.frombuffer(base64.b64decode(hidden["weights"]), "<f4").reshape(1, -1)
    mean = trace["attn", 4].mean(0).numpy()
    assert hidden["mass"] == 50 and np.isnan(drawn[0, columns == 0]).all()
    inside = (rows > 0) & (columns > 0)
    rows, columns = rows[inside], columns[inside]
    rest = mean[rows, columns] / (1 - mean[rows, 0])
    np.testing.assert_allclose(drawn[0, inside], rest, rtol=1e-4)


def test_the_arcs_stand_beside_the_matrix_of_the_same_head(run_page, trace, mini) -> None:
    changed = mini.trace(TEXT, edits=["z.3.2=zero"])["attn", 4]
    for pattern, matrix, lines in (
        ("unchanged", trace["attn", 4][3], trace["attn", 4]),
        ("difference", changed[3] - trace["attn", 4][3], changed),
    ):
        at = run_page(
            "attention", text=TEXT, block=4, head=3, token=9, key=8, arcs="on",
            edits="z.3.2=zero", pattern=pattern,
        )  # fmt: skip
        assert at.query_params["pattern"] == pattern
        large, arcs = component(at, ("gptviz.matrix", "head")), component(at, ("gptviz.arcs", "head"))
        assert (large["query"], large["key"]) == (arcs["query"], arcs["key"]) == (9, 8)
        drawn = np.frombuffer(base64.b64decode(arcs["weights"]), "<f4").reshape(len(lines), -1)
        rows, columns = np.tril_indices(len(trace.tokens))
        np.testing.assert_allclose(drawn, lines.numpy()[:, rows, columns], atol=1e-6)
        np.testing.assert_allclose(
            values(large["arrays"]["weights"])[rows, columns], matrix.numpy()[rows, columns], atol=2e-6
        )


def test_a_long_text_has_arcs_around_the_selected_token(run_page) -> None:
    at = run_page("attention", text="a b " * 110, token=10, arcs="on")
    assert len(component(at, ("gptviz.arcs", "head"))["tokens"]) == len(component(at, CHIPS)["tokens"]) <= 256
