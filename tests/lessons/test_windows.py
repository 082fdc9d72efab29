"""Data windows: the seeds' printed batches, the book's own class, and what is read how often."""

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from gptviz.lessons import Windows, examples
from gptviz.lessons.windows import VERDICT
from gptviz.tokenizer import get_encoding

# printed in ../shared/seeds/000 for max_length 4, batch_size 8 and stride 1, and for stride 4
STRIDE_1 = [
    [[40, 367, 2885, 1464], [367, 2885, 1464, 1807], [2885, 1464, 1807, 3619], [1464, 1807, 3619, 402],
     [1807, 3619, 402, 271], [3619, 402, 271, 10899], [402, 271, 10899, 2138], [271, 10899, 2138, 257]],
    [[367, 2885, 1464, 1807], [2885, 1464, 1807, 3619], [1464, 1807, 3619, 402], [1807, 3619, 402, 271],
     [3619, 402, 271, 10899], [402, 271, 10899, 2138], [271, 10899, 2138, 257], [10899, 2138, 257, 7026]],
]  # fmt: skip
STRIDE_4 = [
    [[40, 367, 2885, 1464], [1807, 3619, 402, 271], [10899, 2138, 257, 7026], [15632, 438, 2016, 257],
     [922, 5891, 1576, 438], [568, 340, 373, 645], [1049, 5975, 284, 502], [284, 3285, 326, 11]],
    [[367, 2885, 1464, 1807], [3619, 402, 271, 10899], [2138, 257, 7026, 15632], [438, 2016, 257, 922],
     [5891, 1576, 438, 568], [340, 373, 645, 1049], [5975, 284, 502, 284], [3285, 326, 11, 287]],
]  # fmt: skip


@pytest.mark.parametrize(("stride", "printed"), [(1, STRIDE_1), (4, STRIDE_4)])
def test_the_batches_that_the_seed_prints(stride, printed):
    ids = tuple(get_encoding("gpt2").encode(VERDICT))
    windows = Windows(ids, max_length=4, stride=stride, batch_size=8)
    inputs, targets = windows.batch(0)
    assert [inputs.tolist(), targets.tolist()] == printed
    first = next(iter(windows.loader()))
    assert torch.equal(first[0], inputs) and torch.equal(first[1], targets)


def test_the_examples_that_the_seed_prints():
    """../shared/seeds/002: eight examples in a window of eight characters."""
    window = [18, 47, 56, 57, 58, 1, 15, 47, 58]
    found = list(examples(window[:-1], window[1:]))
    assert found[0] == ((18,), 47) and found[3] == ((18, 47, 56, 57), 58)
    assert found[7] == ((18, 47, 56, 57, 58, 1, 15, 47), 58) and len(found) == 8


def book_windows(ids, max_length, stride):
    """The loop of the book's GPTDatasetV1, word for word."""
    pairs = []
    for i in range(0, len(ids) - max_length, stride):
        pairs.append((ids[i : i + max_length], ids[i + 1 : i + max_length + 1]))
    return pairs


sizes = {"n": st.integers(0, 60), "length": st.integers(1, 12), "stride": st.integers(1, 12)}


@given(**sizes, batch=st.integers(1, 9), drop=st.booleans())
def test_every_window_is_the_books_and_is_in_one_batch(n, length, stride, batch, drop):
    ids = tuple(range(100, 100 + n))
    windows = Windows(ids, length, stride, batch, drop)
    pairs = book_windows(ids, length, stride)
    assert len(windows) == len(pairs) == windows.used + windows.dropped
    batches = list(windows.loader())
    assert len(batches) == windows.n_batches
    for number, (inputs, targets) in enumerate(batches):
        assert torch.equal(windows.batch(number)[0], inputs)
        assert torch.equal(windows.batch(number)[1], targets)
    seen = [
        (tuple(x), tuple(y))
        for xs, ys in batches
        for x, y in zip(xs.tolist(), ys.tolist(), strict=True)
    ]
    assert seen == pairs[: windows.used]
    assert windows.dropped < batch and (drop or windows.dropped == 0)
    counts = Counter(token for _, targets in seen for token in targets)
    assert windows.times_target().tolist() == [counts[token] for token in ids]
    last = max((token for pair in pairs for part in pair for token in part), default=99)
    assert windows.beyond == 100 + n - 1 - last
    table = windows.table()
    rows = [
        (x[0] - 100, x[-1] - 100, " ".join(map(str, x)), " ".join(map(str, y))) for x, y in pairs
    ]
    assert [*table[["first", "last", "input", "target"]].itertuples(index=False, name=None)] == rows
    assert table["dropped"].sum() == windows.dropped


def test_windows_side_by_side_ask_for_every_token_once():
    windows = Windows(tuple(range(33)), max_length=4, stride=4, batch_size=8)
    assert windows.times_target().tolist() == [0] + [1] * 32
    assert windows.never_target() == 0 and windows.shared == 0 and windows.beyond == 0


def test_a_window_is_as_many_examples_as_it_has_tokens(mini):
    """One pass predicts what a pass over each beginning of the window would: the mask hides the rest."""
    ids = mini.encode("Seven green parrots sang behind the old mill")
    whole = mini.trace(ids[:-1], keep=[])
    for context, target in examples(ids[:-1], ids[1:]):
        alone = mini.trace(context, keep=[]).logits(-1)
        inside = whole.logits(len(context) - 1)
        assert torch.allclose(alone, inside, atol=1e-4)
        assert target == ids[len(context)]


def test_the_loader_leaves_everybodys_random_numbers_alone():
    torch.manual_seed(5)
    before = torch.get_rng_state()
    list(Windows(tuple(range(20)), 4, 2, 2).loader())
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("wrong", [{"max_length": 0}, {"stride": 0}, {"batch_size": 0}])
def test_sizes_below_one_are_refused(wrong):
    sizes = {"max_length": 4, "stride": 1, "batch_size": 8} | wrong
    with pytest.raises(ValueError, match=r" is 0|stride 0"):
        Windows((1, 2, 3), **sizes)


def test_a_batch_that_is_not_there_is_refused():
    windows = Windows(tuple(range(9)), 4, 1, 3)
    with pytest.raises(ValueError, match="there is no batch 7"):
        windows.batch(7)
    assert np.array_equal(windows.members(1), [3, 4])
    assert windows.dropped == 2  # 5 windows, batches of 3
