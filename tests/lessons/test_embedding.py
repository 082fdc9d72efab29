"""Embeddings in small: what the seeds print after seed 123, and the two ways to one row."""

import pytest
import torch
from hypothesis import given, strategies as st
from torch import nn

from gptviz.lessons import embedding as lesson
from tests.lessons.test_attention import printed


def test_the_table_that_the_seeds_print():
    before = torch.random.get_rng_state()
    found = lesson.first_table()
    assert torch.equal(torch.random.get_rng_state(), before)  # nobody else's numbers change
    printed(found, lesson.PRINTED)
    torch.manual_seed(123)
    assert torch.equal(found, nn.Embedding(6, 3).weight.detach())
    printed(found[3], (-0.4015, 0.9666, -1.1481))  # print(embedding_layer(torch.tensor([3])))


@given(rows=st.integers(1, 9), columns=st.integers(1, 5), seed=st.integers(0, 99), data=st.data())
def test_looking_up_is_multiplying_a_one_hot_row(rows, columns, seed, data):
    id = data.draw(st.integers(0, rows - 1))
    table = lesson.first_table(rows, columns, seed)
    found = lesson.looked_up(table, id)
    assert torch.equal(found.row, nn.Embedding.from_pretrained(table)(torch.tensor(id)))
    assert torch.equal(found.product, found.row) and torch.equal(
        found.product, found.one_hot @ table
    )
    assert found.one_hot.tolist() == [float(i == id) for i in range(rows)]


def test_a_row_that_is_not_there():
    with pytest.raises(ValueError, match="the id is 6; the table has rows 0 to 5"):
        lesson.looked_up(lesson.first_table(), 6)


def test_the_shapes_that_the_seeds_print():
    inputs = torch.zeros(8, 4, dtype=torch.long)
    found = lesson.batch_shapes(inputs, lesson.BOOKS_VOCABULARY, lesson.BOOKS_DIMENSIONS)
    assert [*found.values()] == [(8, 4), (8, 4, 256), (4, 256), (8, 4, 256)]
    # of tables that are really there
    tok_emb = nn.Embedding(20, 6)
    pos_emb = nn.Embedding(4, 6)
    token = tok_emb(inputs)
    position = pos_emb(torch.arange(4))
    shapes = [tuple(one.shape) for one in (inputs, token, position, token + position)]
    assert [*lesson.batch_shapes(inputs, 20, 6).values()] == shapes
