"""Vanishing gradients: the book's printed ones, and those of a deep GPT, measured again by hand."""

import pytest
import torch
import torch.nn.functional as F

from gptviz.engine.config import GPTConfig
from gptviz.model import GPTModel
from gptviz.training.live import gradients as lesson


@pytest.mark.parametrize(
    ("use_shortcut", "printed"), [(False, lesson.PRINTED_WITHOUT), (True, lesson.PRINTED_WITH)]
)
def test_what_the_book_prints(use_shortcut, printed):
    before = torch.random.get_rng_state()
    assert lesson.books_gradients.__wrapped__(use_shortcut) == pytest.approx(printed, rel=1e-5)
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize("depth", lesson.DEPTHS)
def test_without_shortcuts_and_norms_the_gradient_vanishes_and_each_of_them_keeps_it(depth):
    table = lesson.gradients_by_block(depth)
    assert len(table) == depth and [*table] == ["block", *lesson.VARIANTS]
    # of the last block's gradient, how much gets to the first
    reached = table.iloc[0] / table.iloc[-1]
    assert reached["neither"] < 0.05 ** (depth - 2)
    for name in ("LayerNorm alone", "shortcuts alone", "both, as in GPT"):
        assert 0.3 < reached[name] < 3


def test_the_whole_model_is_the_books_gptmodel():
    depth = lesson.DEPTHS[0]
    torch.manual_seed(lesson.SEED)
    model = GPTModel(GPTConfig(lesson.VOCABULARY, lesson.TOKENS, lesson.WIDTH, lesson.HEADS, depth))
    shape = (lesson.TEXTS, lesson.TOKENS + 1)
    ids = torch.randint(
        lesson.VOCABULARY, shape, generator=torch.Generator().manual_seed(lesson.SEED)
    )
    F.cross_entropy(model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()).backward()
    for block, found in zip(
        model.trf_blocks, lesson.gradients_by_block(depth)["both, as in GPT"], strict=True
    ):
        matrices = [p.grad for name, p in block.named_parameters() if name.endswith("weight")]
        mean = sum(g.abs().sum() for g in matrices) / sum(g.numel() for g in matrices)
        assert found == pytest.approx(float(mean), rel=1e-4)
