"""The Embeddings page through AppTest: what is drawn is what the model holds."""

import numpy as np
import pytest
import torch

from gptviz import Edit
from tests.specs import charts, in_numbers, opened, prose

TEXT = "the king and the queen and the king"


def with_rows(run_page, **query):
    """The page with the grids of every token open."""
    return opened(run_page("embeddings", **{"text": TEXT} | query), "emb_rows")


def test_the_pictures_hold_the_traces_own_rows(run_page, mini):
    at = with_rows(run_page, token=4, emb_dim=7)
    t = mini.trace(TEXT, keep=("tok_emb", "pos_emb", "embed"))
    one, near, every, lengths = charts(at)
    rows = [t[site][4].numpy() for site in ("tok_emb", "pos_emb", "embed")]
    assert np.array_equal(np.float32(one["data"][0]["z"]), rows)
    for site, picture, line in zip(
        ("tok_emb", "pos_emb", "embed"), every["data"], lengths["data"], strict=True
    ):
        assert np.array_equal(np.float32(picture["z"]), t[site].numpy().T)
        assert np.allclose(line["y"], t[site].norm(dim=1).numpy(), rtol=1e-5)
    weight = mini.model.tok_emb.weight.detach()
    assert "position 7" not in prose(at)  # this token stands nowhere else
    line = prose(at).split("dimension 7, ")[1].split("**. ")[0]
    a, b, c = (
        float(part.replace("−", "-"))
        for part in line.replace("(", "").replace(")", "").replace("= **", "+ ").split(" + ")
    )
    assert [a, b, c] == pytest.approx([row[7] for row in rows], abs=6e-4)
    assert a + b == pytest.approx(c, abs=1e-9)
    table = in_numbers(at, "embedding")
    for column, row in zip(("token", "position", "sum"), rows, strict=True):
        assert np.array_equal(table[column].to_numpy(dtype=np.float32), row)
    cosine = torch.cosine_similarity(weight, weight[t.tokens[4].id], dim=1)
    cosine[t.tokens[4].id] = -2
    assert np.allclose(near["data"][0]["x"], cosine.topk(10).values.numpy(), atol=1e-6)


def test_by_dot_product_the_order_is_that_of_the_dot_product_and_positions_open(run_page, mini):
    at = run_page("embeddings", text=TEXT, token=1, emb_measure="dot product")
    weight = mini.model.tok_emb.weight.detach()
    chosen = mini.encode(TEXT)[1]
    dots = weight @ weight[chosen]
    dots[chosen] = -1e9
    assert np.allclose(charts(at)[1]["data"][0]["x"], dots.topk(10).values.numpy(), atol=1e-5)
    assert "position 7" in prose(at)  # where the same token stands again
    largest = int(mini.trace(TEXT, keep=("embed",))["embed"][1].abs().argmax())
    assert f"n dimension {largest}, " in prose(at)  # which nobody has chosen
    assert len(charts(at)) == 2
    square, curve = charts(opened(at, "emb_positions"))[2:]
    weight = mini.model.pos_emb.weight.detach()
    unit = weight / weight.norm(dim=1, keepdim=True)
    assert np.allclose(square["data"][0]["z"], (unit @ unit.T).numpy(), atol=1e-5)
    assert np.allclose(curve["data"][0]["y"], (unit @ unit[1]).numpy(), atol=1e-5)


def test_a_change_of_a_later_block_cannot_matter(run_page, mini):
    at = with_rows(run_page, token=2, edits="z.4.3=zero")
    assert "cannot matter for the embeddings" in prose(at)
    rows = charts(at)[2]
    cells = [one["z"] for one in rows["data"] if one["type"] == "heatmap"]
    trace = mini.trace(TEXT)
    for drawn, site in zip(cells, ("tok_emb", "pos_emb", "embed"), strict=True):
        assert np.allclose(drawn, trace[site].T)


def test_changed_rows_stand_beside_the_unchanged_ones(run_page, mini):
    trace, changed = mini.trace(TEXT), mini.trace(TEXT, edits=[Edit.parse("embed@2=zero")])
    at = with_rows(run_page, token=2, edits="embed@2=zero")
    cells = [one["z"] for one in charts(at)[2]["data"] if one["type"] == "heatmap"]
    assert not np.any(cells[0]) and not np.any(cells[1])
    assert np.allclose(cells[2], (changed["embed"] - trace["embed"]).T)
    assert "do not add up to the third" in prose(at)
    shown = charts(with_rows(run_page, token=2, edits="embed@2=zero", shown="changed"))
    assert np.array_equal(np.float32(shown[2]["data"][2]["z"]), changed["embed"].numpy().T)
    for one, expected in zip(shown[3]["data"][-2:], (trace, changed), strict=True):
        assert np.allclose(one["y"], expected["embed"].norm(dim=1), rtol=1e-5)
    lengths = in_numbers(at, "embedding_lengths")
    assert np.allclose(lengths["unchanged sum_norm"], trace["embed"].norm(dim=1))
    assert lengths["sum_norm"][2] == 0
