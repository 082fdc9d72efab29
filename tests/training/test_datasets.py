"""The batches of a run. Its sliding windows are the book's: tests/lessons/test_windows.py."""

import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st

from gptviz.tokenizer import END_OF_TEXT, encoding_from_ranks
from gptviz.tokenizer.encodings import MINI_RANKS
from gptviz.training.datasets import (
    Batches,
    MixedBatches,
    PassageWindows,
    TokenWindows,
    repeat_passage,
    say_again,
)


def batches(n_windows=23, batch_size=4, seed=1, **shares):
    ids = np.arange(n_windows * 8 + 1, dtype=np.uint16)
    return Batches(TokenWindows(ids, 8, 8), batch_size, seed, **shares)


@given(st.integers(0, 10_000), st.integers(0, 3))
def test_a_batch_depends_on_seed_and_step_alone(step, seed):
    one = batches(seed=seed)
    other = batches(seed=seed)
    elsewhere = other[step + 1], batches(seed=seed + 1)[step]  # a look there changes nothing
    inputs, targets = other[step]
    assert torch.equal(one[step][0], inputs) and torch.equal(one[step][1], targets)
    assert torch.equal(inputs[:, 1:], targets[:, :-1]) and inputs.dtype == torch.int64
    assert not any(torch.equal(inputs, different) for different, _ in elsewhere)


def test_every_window_at_most_once_an_epoch_and_every_epoch_in_another_order():
    plain = batches(repeat_share=0.0)  # 23 windows: 5 batches of 4, 3 windows left over
    epochs = [[plain[e * 5 + i][0][:, 0].tolist() for i in range(5)] for e in range(4)]
    for epoch in epochs:
        starts = [start for batch in epoch for start in batch]
        assert len(starts) == len(set(starts)) == 20 and all(start % 8 == 0 for start in starts)
    assert len({str(epoch) for epoch in epochs}) == 4
    # the left-over ones change
    assert {s for e in epochs for b in e for s in b} == set(range(0, 23 * 8, 8))


def test_share_of_repeated_windows():
    ids = np.arange(40_000, dtype=np.uint16)  # no token twice, unless a passage is repeated
    drawn = Batches(TokenWindows(ids, 40, 40), 50, seed=3, repeat_share=0.2, shuffle_share=0.25)
    windows = torch.cat(
        [torch.cat([x, y[:, -1:]], dim=1) for x, y in (drawn[step] for step in range(19))]
    )
    repeated = [w for w in windows if len(w.unique()) < len(w)]
    shuffled = [w for w in repeated if not torch.equal(w.unique(), w[: len(w.unique())])]
    # binomial: 950 draws of 0.2, standard deviation 12; a quarter of those, standard deviation about 6
    assert 130 < len(repeated) < 250
    assert 20 < len(shuffled) < 80
    assert all(8 <= len(w.unique()) <= 20 for w in repeated)
    in_steps = [sum(len(w.unique()) < len(w) for w in step) for step in windows.split(50)]
    assert len(set(in_steps)) > 1  # each step draws its own


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
    with pytest.raises(ValueError, match="3 windows are fewer than one batch of 4"):
        batches(n_windows=3)


def test_passages_begin_at_the_beginning_of_a_window():
    ids = np.arange(100, dtype=np.uint16)
    starts = np.array([0, 7, 30, 60, 89, 95])
    passages = PassageWindows(ids, starts, 10)
    assert len(passages) == 5  # the last one leaves no ten tokens and a target
    for index in range(len(passages)):
        [window] = passages.windows(np.array([index]))
        assert window.tolist() == list(range(starts[index], starts[index] + 11))


def test_a_mixed_batch_holds_a_batch_of_each():
    one = batches(seed=1)
    other = batches(n_windows=50, batch_size=2, seed=2)
    mixed = MixedBatches([one, other])
    inputs, targets = mixed[3]
    assert torch.equal(inputs, torch.cat([one[3][0], other[3][0]]))
    assert torch.equal(targets, torch.cat([one[3][1], other[3][1]]))


def test_noise_blanks_inputs_of_half_of_the_windows_and_no_target():
    ids = np.arange(41 * 200 + 1, dtype=np.uint16)
    plain = Batches(TokenWindows(ids, 40, 41), 50, seed=3, repeat_share=0.0)
    noisy = Batches(
        TokenWindows(ids, 40, 41), 50, seed=3, repeat_share=0.0, noise=0.2, blank_id=9000
    )
    changed = []
    for step in range(4):
        assert torch.equal(noisy[step][1], plain[step][1])
        differing = noisy[step][0] != plain[step][0]
        changed.extend(differing.float().mean(dim=1).tolist())
        assert (noisy[step][0][differing] == 9000).all()
    assert 60 < sum(share == 0 for share in changed) < 140  # half of 200, and those that had luck
    assert 0.05 < np.mean([share for share in changed if share]) < 0.15 and max(changed) < 0.45


def test_windows_are_counted_from_the_end_too_and_there_are_no_others():
    dataset = TokenWindows(np.arange(20, dtype=np.uint16), 4, 4)
    assert dataset.window(-1).tolist() == dataset.window(len(dataset) - 1).tolist()
    with pytest.raises(IndexError):
        dataset.window(len(dataset))
    assert [start.tolist()[0] for start, _ in dataset] == [0, 4, 8, 12]


@pytest.fixture(scope="module")
def encoding():
    return encoding_from_ranks(MINI_RANKS)


def joined(encoding, passages):
    """The passages in one row of ids, each followed by <|endoftext|>."""
    text = "".join(passage + END_OF_TEXT for passage in passages)
    return torch.tensor(encoding.encode(text, allowed_special={END_OF_TEXT}))


@pytest.mark.parametrize(
    "passage, times, said",
    [
        ("Bartek saw it.", 2, "Bartek saw it. Bartek saw it."),
        ("Bartek saw it.", 3, "Bartek saw it. Bartek saw it. Bartek saw it."),
        ("1 + 1 = 2\n2 + 1 = 3", 2, "1 + 1 = 2\n2 + 1 = 3\n1 + 1 = 2\n2 + 1 = 3"),
        ("half of the window " * 4, 3, " ".join(["half of the window " * 4] * 2)),
        ("more than half of it " * 6, 3, "more than half of it " * 6),
    ],
)
def test_a_passage_is_said_again_as_it_would_be_typed(encoding, passage, times, said):
    after = ["It rained."] * 20
    window = joined(encoding, [passage, *after])[:45]
    assert torch.equal(
        say_again(window, times, encoding), joined(encoding, [said, *after])[: len(window)]
    )


def test_a_window_without_the_end_of_its_passage_stays(encoding):
    window = joined(encoding, ["It rained and rained. " * 20])[:40]
    assert torch.equal(say_again(window, 2, encoding), window)


def test_share_of_windows_that_say_their_passage_again(encoding):
    ids = joined(encoding, [f"The {number} cows ran." for number in range(2000)]).numpy()
    end = encoding.encode_single_token(END_OF_TEXT)
    starts = np.concatenate([[0], np.flatnonzero(ids == end)[:-1] + 1])
    drawn = Batches(
        PassageWindows(ids, starts, 40), 50, seed=3, repeat_share=0.2, encoding_of_passages=encoding
    )
    said = []
    for inputs, targets in (drawn[step] for step in range(19)):
        assert torch.equal(inputs[:, 1:], targets[:, :-1])
        for window in inputs.tolist():
            passage, *after = encoding.decode(window).split(END_OF_TEXT)
            said.append(passage.count("cows"))
            assert all(text.count("cows") <= 1 for text in after)
            assert len(set(passage.replace(". ", ".\n").split("\n"))) == 1
    # binomial: 950 draws of 0.1 each, standard deviation 9
    assert 60 < said.count(2) < 130 and 60 < said.count(3) < 130
    assert said.count(1) == len(said) - said.count(2) - said.count(3)
