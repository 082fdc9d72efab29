"""What things hold, against sizes known from their parts."""

import sys
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
import torch

from gptviz.engine.sizes import nbytes_of


@dataclass
class Picture:
    name: str
    rows: list


class Known:
    nbytes = 12345


def test_buffers_count_whole_and_once():
    tensor = torch.zeros(10, 10)
    assert nbytes_of(tensor) == nbytes_of(tensor, tensor[3], tensor.T, tensor.numpy()) == 400
    assert nbytes_of(tensor[0, :2]) == 400  # a view keeps all of it alive
    array = np.zeros((4, 4))
    assert nbytes_of(array[1:], array, array.reshape(2, 8)) == 128
    assert nbytes_of(np.frombuffer(b"x" * 1000, np.uint8)) == sys.getsizeof(b"x" * 1000)
    assert nbytes_of(torch.from_numpy(array), array) == 128


@pytest.mark.parametrize(
    "wrap",
    [
        lambda big: [big],
        lambda big: ((1, (big,)),),
        lambda big: {"a": {"b": big}},
        lambda big: Picture("x", [big, big]),
        lambda big: pd.DataFrame({"x": big}),
        lambda big: np.array([None, big], dtype=object),
    ],
)
def test_whatever_holds_a_buffer_has_its_bytes(wrap):
    big = np.zeros(100_000)
    assert 800_000 <= nbytes_of(wrap(big)) < 810_000


def test_bytes_texts_cycles_and_those_that_know_their_own_size():
    assert 5000 < nbytes_of([b"x" * 5000]) < 5200
    assert 5000 < nbytes_of(Picture("x" * 5000, [])) < 6000
    cycle = []
    cycle.append(cycle)
    assert nbytes_of(cycle) == sys.getsizeof(cycle)
    assert nbytes_of(Known(), None, nbytes_of, Known, np) == 12345
