"""The embeddings' numbers, against plain definitions written here."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from gptviz.analysis import embeddings


@pytest.fixture
def trace(lm):
    return lm.trace("the cat and the cat", keep=("tok_emb", "pos_emb", "embed"))


def test_lengths_obey_the_law_of_cosines(lm, trace):
    lengths = embeddings.lengths_table(lm, trace)
    a = lengths["token_norm"]
    b = lengths["position_norm"]
    c = lengths["sum_norm"]
    assert np.allclose(c**2, a**2 + b**2 + 2 * a * b * lengths["cosine"], rtol=1e-5)
    assert lengths["token"].tolist() == [token.shown for token in trace.tokens]
    by_hand = math.sqrt(sum(float(x) ** 2 for x in trace["tok_emb"][1]))
    assert lengths["token_norm"][1] == pytest.approx(by_hand, rel=1e-6)


def test_nearest_tokens_agree_with_torch_row_by_row():
    matrix = torch.randn(50, 8, generator=torch.Generator().manual_seed(1))
    found = embeddings.nearest_tokens(matrix, 7, k=5)
    cosines = [torch.cosine_similarity(matrix[7], row, dim=0).item() for row in matrix]
    others = sorted((i for i in range(50) if i != 7), key=lambda i: -cosines[i])
    assert found["id"].tolist() == others[:5]
    assert found["cosine"].tolist() == pytest.approx([cosines[i] for i in others[:5]], abs=1e-6)
    assert found["rank"].tolist() == [1, 2, 3, 4, 5]
    by_dot = embeddings.nearest_tokens(matrix, 7, k=49, measure="dot")
    assert (np.diff(by_dot["dot"]) <= 0).all() and 7 not in by_dot["id"].tolist()
    dots = (matrix @ matrix[7])[by_dot["id"].tolist()]
    assert np.allclose(by_dot["dot"], dots, atol=1e-5)


def test_nearest_tokens_of_a_small_matrix_and_of_a_row_of_zeros():
    matrix = torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 0.0], [-1.0, 0.0]])
    found = embeddings.nearest_tokens(matrix, 0, k=10)
    assert found["id"].tolist() == [1, 2, 3]
    assert found["cosine"].tolist() == [1.0, 0.0, -1.0]
    assert embeddings.nearest_tokens(matrix, 2)["cosine"].tolist() == [0.0, 0.0, 0.0]


def test_similarity_of_positions_is_the_cosine_of_every_pair():
    matrix = torch.randn(9, 6, generator=torch.Generator().manual_seed(2))
    matrix[4] = 0
    similarity = embeddings.position_similarity(matrix)
    assert similarity.shape == (9, 9)
    assert np.array_equal(similarity, similarity.T)
    expected = torch.cosine_similarity(matrix[:, None], matrix[None], dim=-1)
    assert np.allclose(similarity, expected, atol=1e-6)
    assert similarity[4, 4] == 0 and similarity[0, 0] == pytest.approx(1)
    assert np.allclose(
        embeddings.position_similarity(matrix, [7, 4]), similarity[[7, 4]], atol=1e-6
    )
    for apart in range(9):
        wanted = np.diagonal(similarity, apart).mean()
        assert embeddings.similarity_apart(matrix, apart) == pytest.approx(wanted, abs=1e-6)
    assert [*embeddings.spread(9, most=4)] == [0, 3, 6] and len(embeddings.spread(9)) == 9


finite = st.floats(-100, 100, width=32)


@given(finite, finite)
def test_a_cell_adds_up_in_the_digits_that_are_shown(a, b):
    total = np.float32(a) + np.float32(b)
    parts = np.array([a, b, total], dtype=np.float32).reshape(3, 1, 1)
    cell = embeddings.addition(parts, 0, 0)
    shown = [float(text.replace("−", "-")) for text in cell.written()]
    half = 0.5 * 10.0**-cell.decimals
    for value, digits in zip((cell.token, cell.position, cell.sum), shown, strict=True):
        assert abs(value - digits) <= half * (1 + 1e-6) + 1e-9
    assert abs(shown[0] + shown[1] - shown[2]) <= 10.0**-cell.decimals * 1.01


def test_digits_that_would_not_add_up_get_one_more():
    parts = np.array([0.00004, 0.00004, 0.00008], dtype=np.float32).reshape(3, 1, 1)
    cell = embeddings.addition(parts, 0, 0)  # with four decimals: 0.0000 + 0.0000 = 0.0001
    assert cell.written() == ("0.00004", "0.00004", "0.00008")


@given(st.lists(finite, min_size=1, max_size=60), st.floats(0.5, 1))
def test_a_scale_holds_what_it_promises(values, share):
    values = np.array(values)
    scale = embeddings.shared_scale(values, share)
    assert scale.limit > 0 and scale.count == len(values)
    assert scale.outside == (np.abs(values) > scale.limit).sum()
    assert scale.outside <= (1 - share) * len(values) + 1e-9
    assert (scale.outside > 0) == (scale.largest > scale.limit)


def test_a_scale_clips_only_what_stands_far_out():
    assert embeddings.shared_scale(np.linspace(-1, 1, 1001)).limit == 1
    lone = np.append(np.linspace(-1, 1, 1001), 40.0)
    assert embeddings.shared_scale(lone).limit <= 1 and embeddings.shared_scale(lone).largest == 40
    assert embeddings.shared_scale(np.zeros(5)).limit == 1


def test_the_nearest_of_random_rows():
    """In three dimensions all cosines are equally likely, in two all angles; in 64 by drawing rows."""
    nearer = 1 - 0.5 ** (
        1 / 50
    )  # of 50 rows, the share that is nearer than the nearest, in one half of tries
    assert embeddings.best_by_chance(50, 3) == pytest.approx(1 - 2 * nearer, abs=1e-3)
    assert embeddings.best_by_chance(50, 2) == pytest.approx(math.cos(math.pi * nearer), abs=1e-3)
    rows = np.random.default_rng(0).standard_normal((2000, 64))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    cosines = rows @ rows.T
    np.fill_diagonal(cosines, -1)
    drawn = float(np.median(cosines.max(axis=1)))
    assert embeddings.best_by_chance(1999, 64) == pytest.approx(drawn, rel=0.01)
