"""The final MultiHeadAttention: what the book prints of it, and every tensor on the way."""

import torch

from gptviz.lessons import combined as lesson
from gptviz.model import MultiHeadAttention
from tests.lessons.test_attention import printed


def test_what_the_book_prints():
    before = torch.random.get_rng_state()
    found = lesson.combined()
    assert torch.equal(torch.random.get_rng_state(), before)
    assert found.output.shape == (2, 6, 2)
    for one in found.output:
        printed(one, lesson.PRINTED)


def test_it_is_the_class_after_the_seed():
    batch = lesson.books_batch()
    torch.manual_seed(123)
    batch_size, context_length, d_in = batch.shape
    mha = MultiHeadAttention(d_in, 2, context_length, 0.0, num_heads=2)
    assert batch_size == 2 and torch.equal(mha(batch).detach(), lesson.combined().output)


def test_every_tensor_on_the_way_leads_to_the_next():
    found = lesson.combined()
    module = lesson.books_attention(3, 6)
    split = [x.view(2, 6, 2, 1).transpose(1, 2) for x in (found.queries, found.keys, found.values)]
    assert torch.equal(found.queries, module.W_query(found.x))
    assert torch.allclose(found.scores, split[0] @ split[1].transpose(2, 3))
    for head in range(2):  # by plain sums
        for i in range(6):
            powers = (found.scores[0, head, i, : i + 1] / 1**0.5).exp()
            assert torch.allclose(
                found.weights[0, head, i, : i + 1], powers / powers.sum(), atol=1e-6
            )
            assert not found.weights[0, head, i, i + 1 :].any()
    side_by_side = (found.weights @ split[2]).transpose(1, 2).reshape(2, 6, 2)
    assert torch.allclose(found.context, side_by_side, atol=1e-6)
    assert torch.equal(found.output, module.out_proj(found.context))


def test_every_shape():
    rows = {what: shape for what, shape, _ in lesson.shapes(lesson.combined())}
    assert [*rows.values()] == [
        (2, 6, 3), (2, 6, 2), (2, 2, 6, 1), (2, 2, 6, 6), (2, 2, 6, 6), (2, 2, 6, 1), (2, 6, 2), (2, 6, 2),
    ]  # fmt: skip
