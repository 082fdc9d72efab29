"""The sliding windows against the book's own class, and the batches of a run."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import Dataset

from gptviz.tokenizer import get_encoding
from gptviz.training.datasets import Batches, GPTDatasetV1, repeat_passage
from tests.training.conftest import prose


class BooksDataset(Dataset):
    """GPTDatasetV1 as the book prints it."""

    def __init__(self, txt, tokenizer, max_length, stride):
        self.input_ids = []
        self.target_ids = []
        token_ids = tokenizer.encode(txt, allowed_special={"<|endoftext|>"})
        for i in range(0, len(token_ids) - max_length, stride):
            input_chunk = token_ids[i : i + max_length]
            target_chunk = token_ids[i + 1 : i + max_length + 1]
            self.input_ids.append(torch.tensor(input_chunk))
            self.target_ids.append(torch.tensor(target_chunk))

    def __len__(self):
        return len(self.input_ids)

    def __getitem__(self, idx):
        return self.input_ids[idx], self.target_ids[idx]


@pytest.mark.parametrize(("max_length", "stride"), [(4, 1), (4, 4), (7, 3), (16, 16), (5, 11), (2000, 1)])
def test_same_items_as_the_books_class(max_length, stride):
    text, encoding = prose(5, 40) + "<|endoftext|>" + prose(6, 8), get_encoding("gpt2")
    ids = np.array(encoding.encode(text, allowed_special="all"), dtype=np.uint16)
    ours, books = GPTDatasetV1(ids, max_length, stride), BooksDataset(text, encoding, max_length, stride)
    assert len(ours) == len(books)
    for i in range(len(books)):
        assert all(torch.equal(a, b) and a.dtype == b.dtype for a, b in zip(ours[i], books[i], strict=True))


@pytest.mark.parametrize(("max_length", "stride"), [(0, 1), (4, 0)])
def test_impossible_windows_are_refused(max_length, stride):
    with pytest.raises(ValueError, match=f"max_length is {max_length} and stride {stride}"):
        GPTDatasetV1(np.arange(9), max_length, stride)


def batches(n_windows=23, batch_size=4, seed=1, **shares):
    ids = np.arange(n_windows * 8 + 1, dtype=np.uint16)
    return Batches(GPTDatasetV1(ids, 8, 8), batch_size, seed, **shares)


@given(st.integers(0, 10_000), st.integers(0, 3))
def test_a_batch_depends_on_seed_and_step_alone(step, seed):
    one, other = batches(seed=seed), batches(seed=seed)
    other[step + 1]  # a look elsewhere changes nothing
    assert all(torch.equal(a, b) for a, b in zip(one[step], other[step], strict=True))


def test_seeds_and_steps_differ():
    first = batches(seed=1)[0][0]
    assert not torch.equal(first, batches(seed=2)[0][0])
    assert not torch.equal(first, batches(seed=1)[1][0])


def test_every_window_at_most_once_an_epoch_and_every_epoch_in_another_order():
    plain = batches(repeat_share=0.0)  # 23 windows: 5 batches of 4, 3 windows left over
    epochs = [[plain[e * 5 + i][0][:, 0].tolist() for i in range(5)] for e in range(4)]
    for epoch in epochs:
        starts = [start for batch in epoch for start in batch]
        assert len(starts) == len(set(starts)) == 20 and all(start % 8 == 0 for start in starts)
    assert len({str(epoch) for epoch in epochs}) == 4
    assert {s for e in epochs for b in e for s in b} == set(range(0, 23 * 8, 8))  # the left-over ones change


def test_targets_are_the_inputs_one_on():
    for step in range(12):
        inputs, targets = batches(repeat_share=0.5)[step]
        assert torch.equal(inputs[:, 1:], targets[:, :-1])


def test_share_of_repeated_windows():
    ids = np.arange(40_000, dtype=np.uint16)  # no token twice, unless a passage is repeated
    drawn = Batches(GPTDatasetV1(ids, 40, 40), 50, seed=3, repeat_share=0.2, shuffle_share=0.25)
    windows = torch.cat([torch.cat([x, y[:, -1:]], dim=1) for x, y in (drawn[step] for step in range(19))])
    repeated = [w for w in windows if len(w.unique()) < len(w)]
    shuffled = [w for w in repeated if not torch.equal(w.unique(), w[: len(w.unique())])]
    # binomial: 950 draws of 0.2, standard deviation 12; a quarter of those, standard deviation about 6
    assert 130 < len(repeated) < 250
    assert 20 < len(shuffled) < 80
    assert all(8 <= len(w.unique()) <= 20 for w in repeated)


@given(st.integers(1, 60), st.integers(1, 60), st.booleans())
def test_a_repeated_passage(size, length, shuffle):
    window = torch.arange(size) + 100
    length = min(length, size)
    made = repeat_passage(window, length, np.random.default_rng(0) if shuffle else None)
    assert len(made) == size
    assert sorted(made[:length].tolist()) == window[:length].tolist()
    assert torch.equal(made[length:], made[: size - length])
    assert shuffle or torch.equal(made[:length], window[:length])


def test_fewer_windows_than_a_batch_are_refused():
    with pytest.raises(ValueError, match="gives 3 windows, fewer than one batch of 4"):
        batches(n_windows=3)
