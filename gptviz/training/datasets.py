"""Sliding windows over token ids, as in the book, and the batches that training draws from them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np
import tiktoken
import torch
from torch import Tensor
from torch.utils.data import Dataset

from gptviz.tokenizer import END_OF_TEXT

Ids = np.ndarray  # one-dimensional, unsigned 16 or 32 bits
SHORTEST_PASSAGE = 8  # tokens of a passage that is repeated, where the window is long enough


class TokenWindows(Dataset):
    """Sliding windows over ids: item i is (ids[s : s+max_length], ids[s+1 : s+max_length+1]), s = i*stride.

    A window is cut when it is asked for: the 28 million tokens of the bundled model's books stay 56 MB. The
    book's class, which takes a text and a tokenizer, is `gptviz.book.GPTDatasetV1`.
    """

    def __init__(self, token_ids: Ids, max_length: int, stride: int):
        if max_length < 1 or stride < 1:
            raise ValueError(
                f"max_length is {max_length} and stride {stride}; both must be at least 1"
            )
        self.token_ids = np.asarray(token_ids)
        self.max_length = max_length
        self.starts = range(0, len(self.token_ids) - max_length, stride)

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        window = self.window(index)
        return window[:-1], window[1:]

    def window(self, index: int) -> Tensor:
        """(max_length + 1,): the input and, one to the right, its targets."""
        return self.windows(np.array([index]))[0]

    def windows(self, indices: np.ndarray) -> Tensor:
        """(n, max_length + 1): several windows at once."""
        # `self.starts` is a range: it refuses a number that is too large, and takes -1 for the last one
        starts = np.array([self.starts[index] for index in indices])  # (n,)
        return cut_windows(self.token_ids, starts, self.max_length)


class Windows(Protocol):
    """Windows of one length, by their numbers."""

    def __len__(self) -> int: ...

    def windows(self, indices: np.ndarray) -> Tensor:
        """(n, max_length + 1): inputs and, one to the right, their targets."""
        ...


def cut_windows(token_ids: Ids, starts: np.ndarray, max_length: int) -> Tensor:
    """(n, max_length + 1): the ids from each start.

    By one indexing and not window by window: a GPU asks for thousands a second.
    """
    positions = starts[:, None] + np.arange(max_length + 1)  # (n, max_length + 1)
    return torch.from_numpy(token_ids[positions].astype(np.int64))


@dataclass(frozen=True)
class PassageWindows:
    """Windows that begin where a passage begins: window i holds passage i and what fits of the next ones.

    A reader's prompt begins at position 0 with nothing before it; so do these.
    """

    token_ids: Ids  # every passage followed by <|endoftext|>
    starts: np.ndarray  # where each passage begins
    max_length: int

    def __len__(self) -> int:
        # a window ends one token later than its input; the last passages have no whole one (starts ascend)
        return int(np.searchsorted(self.starts, len(self.token_ids) - self.max_length))

    def windows(self, indices: np.ndarray) -> Tensor:
        """(n, max_length + 1): several windows at once."""
        return cut_windows(self.token_ids, self.starts[indices], self.max_length)


@dataclass(frozen=True)
class Batches:
    """Batch number n is a pure function of (seed, n): a resumed run sees what an unbroken one sees.

    Every epoch goes through all windows once, in an order of its own, but for the last ones that fill
    no batch. About `repeat_share` of the windows begin again and again: the first 8 tokens or more, at most
    half of the window, are repeated to its end. It is from these that heads learn to look at what came after
    an earlier copy. In `shuffle_share` of them the repeated tokens are in random order, so that nothing but
    copying can predict them.

    With `encoding_of_passages` the windows are of `PassageWindows`, whose ids this encoding decodes: what is
    repeated is the whole first passage (see `say_again`), never shuffled.

    `noise` is for text of few wordings: a model that cannot rely on every word before has less to learn by
    heart. The targets stay as they are. `blank_id` must be a token that no text has. Were it an ordinary
    word, the model would learn that what followed the replaced word follows this one.
    """

    dataset: Windows
    batch_size: int
    seed: int
    repeat_share: float = 0.1
    shuffle_share: float = 0.25
    encoding_of_passages: tiktoken.Encoding | None = None
    # in half of the windows, up to this share of the inputs is replaced by the token `blank_id`
    noise: float = 0.0
    blank_id: int = 0

    def __post_init__(self) -> None:
        if len(self.dataset) < self.batch_size:
            raise ValueError(
                f"{len(self.dataset)} windows are fewer than one batch of {self.batch_size}"
            )

    def __getitem__(self, step: int) -> tuple[Tensor, Tensor]:
        """Inputs and targets of one step, (batch_size, max_length) each."""
        rng = np.random.default_rng((self.seed, step))
        windows = self.dataset.windows(self._indices(step))  # (batch_size, max_length + 1)
        if self.repeat_share:
            windows = torch.stack([self._vary(window, rng) for window in windows])
        inputs = windows[:, :-1]
        if self.noise:
            inputs = self._blank_some(inputs, rng)
        return inputs, windows[:, 1:]

    def _blank_some(self, inputs: Tensor, rng: np.random.Generator) -> Tensor:
        """The inputs with some tokens replaced by the blank one. (b, T) -> (b, T)."""
        shares = rng.uniform(0, self.noise, size=(len(inputs), 1))  # one for each window
        shares[rng.random(len(inputs)) < 0.5] = 0.0
        replaced = torch.from_numpy(rng.random(inputs.shape) < shares)
        return inputs.masked_fill(replaced, self.blank_id)

    def _indices(self, step: int) -> np.ndarray:
        steps_per_epoch = len(self.dataset) // self.batch_size
        epoch, within = divmod(step, steps_per_epoch)
        order = _epoch_order(len(self.dataset), self.seed, epoch)
        return order[within * self.batch_size : (within + 1) * self.batch_size]

    def _vary(self, window: Tensor, rng: np.random.Generator) -> Tensor:
        if rng.random() >= self.repeat_share:
            return window
        if self.encoding_of_passages is not None:
            times = int(rng.integers(2, 4))  # twice or three times
            return say_again(window, times, self.encoding_of_passages)
        shuffled = rng.random() < self.shuffle_share
        longest = len(window) // 2
        length = int(rng.integers(min(SHORTEST_PASSAGE, longest), longest + 1))
        return repeat_passage(window, length, rng if shuffled else None)


# an epoch's order is asked for by each of its batches, and to draw it takes a while where there are millions
@lru_cache(maxsize=4)
def _epoch_order(windows: int, seed: int, epoch: int) -> np.ndarray:
    # 1: another stream than that of the batch (seed, step); NumPy takes a last 0 for nothing
    return np.random.default_rng((seed, epoch, 1)).permutation(windows)


@dataclass(frozen=True)
class MixedBatches:
    """Batches that hold a batch of every part: windows of books, and of another text."""

    parts: Sequence[Batches]

    def __getitem__(self, step: int) -> tuple[Tensor, Tensor]:
        """Inputs and targets of one step, (the parts' batch sizes together, max_length) each."""
        drawn = [part[step] for part in self.parts]
        inputs = torch.cat([part_inputs for part_inputs, _ in drawn])  # (b, max_length)
        targets = torch.cat([part_targets for _, part_targets in drawn])  # (b, max_length)
        return inputs, targets


def repeat_passage(
    window: Tensor, length: int, shuffle: np.random.Generator | None = None
) -> Tensor:
    """The window's first `length` tokens, again and again, to the window's own length. (N,) -> (N,)."""
    passage = window[:length]
    if shuffle is not None:
        passage = passage[torch.from_numpy(shuffle.permutation(length))]
    return passage.repeat(-(-len(window) // length))[: len(window)]


def say_again(window: Tensor, times: int, encoding: tiktoken.Encoding) -> Tensor:
    """The window with its first passage said `times` times, or as often as it fits; then what came after it.

    (N,) -> (N,). A list of lines is said again on a new line, any other passage after a space. It is written
    again and not copied: within a line a word's token begins with a space. A passage that does not fit twice
    is said once.
    """
    ids = window.tolist()
    end = encoding.encode_single_token(END_OF_TEXT)
    if end not in ids:
        return window
    length = ids.index(end)
    passage = encoding.decode(ids[:length])
    between = "\n" if "\n" in passage else " "
    fitting = len(window) // (length + 1)  # with a newline or <|endoftext|> after each
    said = encoding.encode_ordinary(between.join([passage] * min(times, fitting)))
    # a passage's ids are those of its text, so said again it is no shorter: the window stays full
    return torch.tensor([*said, *ids[length:]])[: len(window)]
