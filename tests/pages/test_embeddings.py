"""The Embeddings page through AppTest: what is drawn is what the model holds."""

import numpy as np
import pytest

from gptviz.analysis.embeddings import SITES, nearest_tokens
from tests.specs import charts, in_numbers, number, opened, prose

TEXT = "the king and the queen and the king"


def test_a_dimension_is_added_up_as_the_table_has_it(run_page, mini):
    at = run_page("embeddings", text=TEXT, token=4, emb_dim=7)
    t = mini.trace(TEXT, keep=SITES)
    rows = [t[site][4].numpy() for site in SITES]
    assert "position 7" not in prose(at)  # this token stands nowhere else
    line = prose(at).split("dimension 7, ")[1].split("**. ")[0]
    a, b, c = (number(part.strip("()")) for part in line.replace("= **", "+ ").split(" + "))
    assert [a, b, c] == pytest.approx([row[7] for row in rows], abs=6e-4)
    assert a + b == pytest.approx(c, abs=1e-9)
    table = in_numbers(at, "embedding")
    for column, row in zip(("token", "position", "sum"), rows, strict=True):
        assert np.array_equal(table[column].to_numpy(dtype=np.float32), row)


def test_what_nobody_has_chosen_and_where_the_same_token_stands_again(run_page, mini):
    at = run_page("embeddings", text=TEXT, token=1)
    weight = mini.model.tok_emb.weight.detach()
    chosen = mini.encode(TEXT)[1]
    near = nearest_tokens(weight, chosen, 10)["cosine"]
    assert np.allclose(charts(at)[0]["data"][0]["x"], near, atol=1e-6)
    largest = int(mini.trace(TEXT, keep=("embed",))["embed"][1].abs().argmax())
    assert f"n dimension {largest}, " in prose(at) and "position 7" in prose(at)
    assert len(charts(at)) == 2  # the others wait behind their expanders


def test_a_change_of_a_later_block_cannot_matter(run_page):
    at = run_page("embeddings", text=TEXT, token=2, edits="z.4.3=zero")
    assert "cannot affect the embeddings" in prose(at)


def test_changed_rows_stand_beside_the_unchanged_ones(run_page, mini):
    at = opened(run_page("embeddings", text=TEXT, token=2, edits="embed@2=zero"), "emb_rows")
    own = mini.trace(TEXT)["embed"]
    cells = [one["z"] for one in charts(at)[2]["data"]]
    assert not np.any(cells[0]) and not np.any(cells[1])
    assert np.allclose(np.array(cells[2])[:, 2], -own[2]) and np.count_nonzero(cells[2]) == 256
    assert "do not add up to the third" in prose(at)
    drawn = charts(at)[1]
    text = str(charts(at)[1])
    assert (
        drawn["layout"]["yaxis"]["ticktext"] == ["token", "position", "given"]
        and "} = %{" not in text
    )
    alts = [one.proto.alt for one in at.get("plotly_chart")]
    assert "block 0 is given 0.0000 instead" in alts[1] and " = 0.0000" not in alts[1]
    assert not any("= input of block 0" in str(chart) for chart in charts(at))
    lengths = in_numbers(at, "embedding_lengths")
    assert (
        np.allclose(lengths["unchanged sum_norm"], own.norm(dim=1)) and lengths["sum_norm"][2] == 0
    )


@pytest.mark.parametrize(
    "edits", ["tok_emb@1=zero", "tok_emb@7=x2", "pos_emb=mean", "embed@1=zero"]
)
def test_the_same_token_has_the_same_row_where_it_has(run_page, mini, edits):
    t = mini.trace(TEXT, edits=[edits])
    same, alike = (t[site][1].equal(t[site][7]) for site in ("tok_emb", "pos_emb"))
    said = "the same token has the same token vector, but another position vector" in prose(
        run_page("embeddings", text=TEXT, token=1, edits=edits)
    )
    assert said == (same and not alike) == edits.startswith("embed")


def test_a_row_of_zeros_has_no_direction(run_page):
    said = prose(run_page("embeddings", text="one two", edits="pos_emb=zero"))
    assert "0 for the position, " in said and "between token and position" not in said


def test_tokens_that_training_never_showed_are_not_told_as_alike_by_their_places(run_page):
    # no book has one: its row and a Russian letter's are one
    said = prose(run_page("embeddings", text="\t"))
    assert "cosine 1.000" in said and "tokens that hardly ever appear at all" in said
