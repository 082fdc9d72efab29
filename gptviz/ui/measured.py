"""What is worked out of a model's heads in the background: once for all sessions, and kept on disk.

Of the bundled model it ships with it, and is there at once.
"""

from collections.abc import Iterable, Mapping
from weakref import WeakKeyDictionary

from gptviz import Run
from gptviz.analysis.head_general import General, general, known_general
from gptviz.analysis.head_trial import Claim, Trial, known_trials, trial
from gptviz.model import GPTModel
from gptviz.ui import runs, works
from gptviz.ui.models.choice import DEFAULT_MODEL
from gptviz.work import Work


def general_work(run: Run) -> Work[General]:
    """Return what all heads of this run's model do in general; its text does not matter, its edits do."""
    return works.ask(run, general, known=_at_once(run)[0])


def trial_work(run: Run, block: int, head: int, label: str) -> Work[Trial]:
    """Return whether a label of a head holds.

    What all heads do in general is worked out first, if not known.
    """
    return works.ask(run, trial, block, head, label, known=_at_once(run)[1].get((block, head, label)))


def known_trials_of(run: Run, claims: Iterable[Claim]) -> dict[tuple[int, int], Trial]:
    """The trials of these labels that were held and are remembered, or ship: by block and head."""
    ships, found = _at_once(run)[1], {}
    for claim in claims:
        work = works.find(run, trial, *claim)
        held = ships.get(claim) if work is None else work.result
        if held is not None:
            found[claim[:2]] = held
    return found


Known = tuple[General | None, Mapping[Claim, Trial]]
_known: WeakKeyDictionary[GPTModel, Known] = WeakKeyDictionary()


def _at_once(run: Run) -> Known:
    """Return what is known of the bundled model as it is: looked up once, by its weights' hash."""
    lm = runs.model(run)
    if lm.name != DEFAULT_MODEL or lm.edits:
        return None, {}
    if lm.model not in _known:
        _known[lm.model] = known_general(lm), known_trials(lm)
    return _known[lm.model]
