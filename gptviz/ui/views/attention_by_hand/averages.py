"""The averaging trick, three programs side by side."""

from collections.abc import Sequence

import torch

from gptviz.lessons.averaging import (
    NOTEBOOK,
    NOTEBOOK_AVERAGES,
    averages_by_loop,
    averages_by_matrix,
    averages_by_softmax,
)
from gptviz.ui.components.worksheet import Cell, Line, Sheet, Sign
from gptviz.ui.views.attention_by_hand import words
from gptviz.ui.views.attention_by_hand.cells import numbers, reach, signed
from gptviz.ui.words import unlike_printed


def lines(labels: Sequence[str], x: torch.Tensor) -> list[Line]:
    """A line each, of the vectors x (T, d)."""
    matrix, softmax = averages_by_matrix(x), averages_by_softmax(x)
    loop = _vectors("loop", "averages", "mean of rows 0 to t", labels, averages_by_loop(x))
    by_matrix = _vectors("by_matrix", "averages", "weights × vectors", labels, matrix.context)
    by_softmax = _vectors("by_softmax", "averages", "weights × vectors", labels, softmax.context)
    ones = _weights("ones", "ones, a row ÷ its sum", labels, matrix.weights)
    soft = _weights("soft", "softmax of zeros and −∞", labels, softmax.weights)
    vectors = _vectors("vectors", "vectors", "given", labels, x)
    return [
        Line([vectors, Sign("→", "for t in …"), loop], "1. A loop"),
        Line([ones, Sign("→", "× vectors"), by_matrix], "2. A matrix"),
        Line(
            [_zeros(labels, softmax.scores), Sign("→", "softmax"), soft, Sign("→", "× vectors"), by_softmax],
            "3. Softmax",
        ),
    ]


def apart(x: torch.Tensor) -> float:
    """The largest difference between the three results."""
    loop = averages_by_loop(x)
    others = (averages_by_matrix(x), averages_by_softmax(x))
    return max(float((other.context - loop).abs().max()) for other in others)


def notebook() -> torch.Tensor:
    """The notebook's own vectors, (8, 2)."""
    return torch.tensor(NOTEBOOK, dtype=torch.float64)


def printed_otherwise() -> list[str]:
    """The notebook's averages whose last printed digit is another than here."""
    printed = (value for row in NOTEBOOK_AVERAGES for value in row)
    return unlike_printed(printed, averages_by_loop(notebook()).flatten().tolist())


def _vectors(name: str, title: str, note: str, labels: Sequence[str], values: torch.Tensor) -> Sheet:
    cells = [
        [signed(words.at(label, j, value), value, reach(values)) for j, value in enumerate(row)]
        for label, row in zip(labels, values.tolist(), strict=True)
    ]
    color = "" if title == "vectors" else "output"
    return Sheet(name, title, note, labels, numbers(values.shape[1]), cells, "signed", color)


def _weights(name: str, note: str, labels: Sequence[str], weights: torch.Tensor) -> Sheet:
    def cell(i: int, j: int, value: float) -> Cell:
        if j > i:
            return Cell(None, None, words.masked(labels[i], labels[j]))
        return Cell(words.four(value), value, words.takes(labels[i], labels[j], value))

    cells = [[cell(i, j, value) for j, value in enumerate(row)] for i, row in enumerate(weights.tolist())]
    return Sheet(name, "weights", note, labels, labels, cells, "attention", "output")


def _zeros(labels: Sequence[str], scores: torch.Tensor | None) -> Sheet:
    assert scores is not None
    cells = [
        [
            Cell("−∞" if value < 0 else "0", None, words.equal(labels[i], labels[j], value < 0))
            for j, value in enumerate(row)
        ]
        for i, row in enumerate(scores.tolist())
    ]
    return Sheet("zeros", "scores", "all the same; −∞ for what comes later", labels, labels, cells)
