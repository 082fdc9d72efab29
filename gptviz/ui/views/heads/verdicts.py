"""Which labels of heads were put on trial, and which were withdrawn: what is known, without any work."""

from collections.abc import Mapping, Sequence

from gptviz import Run
from gptviz.analysis.head_trial import TESTABLE, Claim, Trial
from gptviz.ui.measuring import known_trial


def claims(labels: Mapping[tuple[int, int], tuple[str, float | None]]) -> list[Claim]:
    """Of every head's label in general those that can be put to a test."""
    return [(block, head, role) for (block, head), (role, _) in labels.items() if role in TESTABLE]


def verdicts(
    run: Run, labels: Mapping[tuple[int, int], tuple[str, float | None]]
) -> dict[tuple[int, int], Trial]:
    """The trials of heads' labels that were held, by block and head."""
    return _known(run, claims(labels))


def _known(run: Run, asked: Sequence[Claim]) -> dict[tuple[int, int], Trial]:
    found = {(block, head): known_trial(run, block, head, label) for block, head, label in asked}
    return {head: trial for head, trial in found.items() if trial is not None}
