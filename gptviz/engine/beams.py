"""Beam search: of all ways on, the few that are most probable as a whole, carried forward side by side.

Reference: Graves, Sequence Transduction with Recurrent Neural Networks, 2012.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from gptviz.engine.generate import Growing, end_of_text, steps
from gptviz.engine.given import Text, ids_of
from gptviz.engine.index import whole
from gptviz.engine.progress import Progress, unheard
from gptviz.engine.reader import Reader
from gptviz.engine.sampling import Sampling
from gptviz.engine.undisturbed import undisturbed


@dataclass(frozen=True)
class Beam:
    """One way on: the ids that were written, and ln of what the model gives all of them together.

    `parent` is the number of the beam of the round before that it goes on from (0 in the first round, which
    goes on from the text). `ended`: it wrote the model's own end of text, and is carried on as it is.
    """

    ids: tuple[int, ...]
    log_probability: float
    parent: int
    ended: bool = False


@dataclass(frozen=True)
class Round:
    """One token more: `kept` are the beams that go on, the most probable first, `dropped` the next ones."""

    kept: tuple[Beam, ...]
    dropped: tuple[Beam, ...]


Ids = Sequence[int]
# texts of one length -> (b, V): the logits after each of them
Read = Callable[[Sequence[Ids]], torch.Tensor]


@undisturbed
def beam_search(
    lm: Reader,
    text: Text,
    beams: int,
    max_new_tokens: int,
    dropped: int | None = None,
    progress: Progress = unheard,
) -> list[Round]:
    """Write on after a text (or ids) with so many beams, a pass for all of them together: see `search`.

    The model sees the last `context_length` tokens. `progress(done, of)` is called after every round.
    """
    ids = ids_of(lm, text)
    longest = whole("max_new_tokens", max_new_tokens, 1)
    grown = Growing(lm, len(ids) + longest)

    def read(texts: Sequence[Ids]) -> torch.Tensor:
        progress(len(texts[0]) - len(ids), longest)
        return grown.read(texts)

    return search(read, ids, beams, longest, end_of_text(lm), dropped)


def beside(
    lm: Reader, text: Ids, beams: int, max_new_tokens: int, sampling: Sampling, progress: Progress = unheard
) -> tuple[list[Round], dict[str, tuple[tuple[int, ...], float]]]:
    """`beam_search`, and what it, greedy search and, where something is drawn, sampling come to.

    Of each the ids, and ln of what the model gives all of them together.
    """
    rounds = beam_search(lm, text, beams, max_new_tokens, progress=progress)
    if beams == 1:
        name = "1 beam"
    else:
        name = f"{beams} beams"
    ways = {name: rounds[-1].kept[0]}
    ways["greedy"] = beam_search(lm, text, 1, max_new_tokens, 0)[-1].kept[0]
    found = {name: (beam.ids, beam.log_probability) for name, beam in ways.items()}
    if not sampling.greedy:
        drawn = list(steps(lm, text, max_new_tokens, sampling))
        ln = sum(math.log(step.model_probability) for step in drawn)
        found[f"sampling, seed {sampling.seed}"] = tuple(step.id for step in drawn), ln
    return rounds, found


@undisturbed
def given(
    lm: Reader, text: Ids, rounds: Sequence[Round], progress: Progress = unheard
) -> dict[tuple[int, ...], float]:
    """Return ln of what this model gives each beam of another's rounds, kept or dropped, by its ids."""
    read = Growing(lm, len(text) + len(rounds)).read
    found: dict[tuple[int, ...], float] = {(): 0.0}
    for n, one in enumerate(rounds):
        progress(n, len(rounds))
        new = [beam.ids for beam in (*one.kept, *one.dropped) if len(beam.ids) == n + 1]  # the others ended
        before = list(dict.fromkeys(ids[:-1] for ids in new))
        rows = read([(*text, *ids) for ids in before]).double().log_softmax(-1)  # (b, V)
        for ids in new:
            found[ids] = found[ids[:-1]] + float(rows[before.index(ids[:-1]), ids[-1]])
    return found


@undisturbed
def search(
    read: Read, ids: Ids, beams: int, max_new_tokens: int, end: int | None = None, dropped: int | None = None
) -> list[Round]:
    """Beam search; a round for each token, fewer where all beams ended, which they do with the id `end`.

    Every round looks at all tokens after each of the beams, and keeps the `beams` whose whole is most
    probable: the sum of the model's own ln p, at temperature 1, not divided by the length. Of two that are
    equal the one of the better beam comes first, then the lower id. `dropped` (as many as beams, unless
    given) of those that were not kept are told as well.

    With one beam it is greedy; with as many as there are texts it is exhaustive. Raises ValueError for an
    empty text, no beam, no token, or what is no whole number of them.
    """
    if not ids:
        raise ValueError("there is nothing to write on from: the text is empty")
    beams = whole("beams", beams, 1)
    max_new_tokens = whole("max_new_tokens", max_new_tokens, 1)
    most = beams + (beams if dropped is None else whole("dropped", dropped, 0))
    rounds: list[Round] = []
    living = [Beam((), 0.0, 0)]
    while len(rounds) < max_new_tokens and not all(beam.ended for beam in living):
        found = [Beam(b.ids, b.log_probability, i, True) for i, b in enumerate(living) if b.ended]
        going = [(i, beam) for i, beam in enumerate(living) if not beam.ended]
        log_p = torch.log_softmax(read([(*ids, *beam.ids) for _, beam in going]).double(), dim=-1)  # (b, V)
        best = torch.sort(log_p, dim=-1, descending=True, stable=True)  # of equals the lower id first
        for row, (i, beam) in enumerate(going):
            own = best.values[row, :most].tolist()
            tokens = best.indices[row, :most].tolist()
            for token, ln in zip(tokens, own, strict=True):
                found.append(Beam((*beam.ids, token), beam.log_probability + ln, i, token == end))
        found.sort(key=lambda beam: (-beam.log_probability, beam.parent))  # stable
        rounds.append(Round(tuple(found[:beams]), tuple(found[beams:most])))
        living = found[:beams]
    return rounds


def ways(rounds: Sequence[Round]) -> list[list[int]]:
    """For each beam of the last round, its number in every round: the way to it through the tree."""
    found = []
    for number in range(len(rounds[-1].kept) if rounds else 0):
        way = [number]
        for later in rounds[:0:-1]:
            way.insert(0, later.kept[way[0]].parent)
        found.append(way)
    return found
