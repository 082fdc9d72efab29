"""Data windows: how a text becomes the batches that a model is trained on.

Raschka, Build a Large Language Model (From Scratch), section 2.6. The windows are those of
`gptviz.training.datasets.TokenWindows`, the ones that the bundled model was trained on.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch.utils.data import DataLoader, default_collate

from gptviz.engine.index import whole
from gptviz.training.datasets import TokenWindows

# The beginning of Edith Wharton's "The Verdict" (1908), the text of the book's chapter 2: with GPT-2's
# tokenizer 33 tokens, which is what its two printed batches are made of.
VERDICT = (
    "I HAD always thought Jack Gisburn rather a cheap genius--though a good fellow enough--so it was no "
    "great surprise to me to hear that, in"
)

Batch = tuple[torch.Tensor, torch.Tensor]  # inputs and targets, (batch_size, max_length) each


@dataclass(frozen=True)
class Windows:
    """A text's token ids, cut into windows of `max_length` inputs that start `stride` tokens apart.

    Raises ValueError for a max_length, stride or batch_size below 1. A text of no more than max_length
    tokens has no window: the last input needs a target, too.
    """

    ids: tuple[int, ...]
    max_length: int
    stride: int
    batch_size: int
    drop_last: bool = True

    def __post_init__(self) -> None:
        whole("batch_size", self.batch_size, 1)
        _ = self.dataset  # which checks max_length and stride

    @cached_property
    def dataset(self) -> TokenWindows:
        return TokenWindows(np.array(self.ids, dtype=np.int64), self.max_length, self.stride)

    def __len__(self) -> int:
        """The number of windows of the text, those that `drop_last` loses included."""
        return len(self.dataset)

    # ---- batches ----

    @property
    def n_batches(self) -> int:
        """The number of batches that training sees: without a last one that `drop_last` drops."""
        if self.drop_last:
            return self.used // self.batch_size
        return -(-len(self) // self.batch_size)

    @property
    def used(self) -> int:
        """The windows that are in a batch."""
        if self.drop_last:
            return len(self) - len(self) % self.batch_size
        return len(self)

    @property
    def dropped(self) -> int:
        """The windows that `drop_last` loses."""
        return len(self) - self.used

    def members(self, number: int) -> range:
        """The windows of batch `number`; of the one after the last, those that were dropped."""
        start = number * self.batch_size
        return range(start, min(start + self.batch_size, len(self)))

    def batch(self, number: int) -> Batch:
        """Inputs and targets of one batch, (windows, max_length) each. ValueError where it has no window."""
        members = self.members(number)
        if number < 0 or not members:
            raise ValueError(
                f"there is no batch {number}; {len(self)} windows are in {self.n_batches}"
            )
        inputs, targets = default_collate([self.dataset[i] for i in members])
        return inputs, targets

    def loader(self) -> DataLoader:
        """The batches of `gptviz.book.create_dataloader_v1` with shuffle=False, of ids instead of a text."""
        return DataLoader(
            self.dataset,
            batch_size=self.batch_size,
            shuffle=False,
            drop_last=self.drop_last,
            generator=torch.Generator(),  # else it would draw a number from the global random state
        )

    # ---- what is read, and how often ----

    @property
    def shared(self) -> int:
        """The inputs that a window has in common with the next one; below 0 that many tokens lie between."""
        return self.max_length - self.stride

    @property
    def beyond(self) -> int:
        """The tokens at the end that are in no window at all."""
        if not len(self):
            return len(self.ids)
        return len(self.ids) - (self.dataset.starts[-1] + self.max_length + 1)

    def times_target(self) -> NDArray[np.int64]:
        """(n_tokens,): in how many of the windows in use each token is a target."""
        steps = np.zeros(len(self.ids) + 1, dtype=np.int64)
        starts = np.array(self.dataset.starts[: self.used], dtype=np.int64)
        np.add.at(steps, starts + 1, 1)
        np.add.at(steps, starts + self.max_length + 1, -1)
        return np.cumsum(steps)[:-1]

    def never_target(self) -> int:
        """The number of tokens after the first that are never a target."""
        return int((self.times_target()[1:] == 0).sum())

    def table(self) -> pd.DataFrame:
        """A row a window: its batch, whether it is dropped, its inputs' positions, its ids."""
        rows = []
        for number in range(len(self)):
            inputs, targets = self.dataset[number]
            start = self.dataset.starts[number]
            batch = number // self.batch_size
            texts = (" ".join(map(str, part.tolist())) for part in (inputs, targets))
            rows.append(
                (number, batch, number >= self.used, start, start + self.max_length - 1, *texts)
            )
        return pd.DataFrame(
            rows, columns=["window", "batch", "dropped", "first", "last", "input", "target"]
        )


def examples(
    inputs: Sequence[int], targets: Sequence[int]
) -> Iterator[tuple[tuple[int, ...], int]]:
    """The T training examples in a window of T: what stands before, and what comes next.

    ValueError unless there are as many targets as inputs.
    """
    for end, target in enumerate(zip(inputs, targets, strict=True), start=1):
        yield tuple(inputs[:end]), target[1]
