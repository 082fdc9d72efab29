"""Beam search: continue a text in several ways at once, keeping those that are most probable as a whole.

In each round, every beam (one continuation so far) is extended by every token of the vocabulary; the few
extended beams with the highest total log probability are kept for the next round. "ln" is the natural
logarithm. Shapes: b beams, V the vocabulary size.

Reference: Graves, Sequence Transduction with Recurrent Neural Networks, 2012.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from gptviz.engine.generate import Growing, end_of_text, steps
from gptviz.engine.given import Text, ids_of
from gptviz.engine.index import whole
from gptviz.engine.progress import Progress, ignore_progress
from gptviz.engine.reader import Reader
from gptviz.engine.sampling import Sampling
from gptviz.engine.undisturbed import undisturbed


@dataclass(frozen=True)
class Beam:
    """One continuation: its token ids, and ln of the probability that the model gives all of them together.

    `parent` is the index, in the round before, of the beam that this one extends (0 in the first round).
    `ended`: its last token is the model's end-of-text token, so it is carried on without further tokens.
    """

    ids: tuple[int, ...]
    log_probability: float
    parent: int
    ended: bool = False


@dataclass(frozen=True)
class Round:
    """The beams after one more token, the most probable first: those kept, and the next best after them."""

    kept: tuple[Beam, ...]
    dropped: tuple[Beam, ...]  # kept for display only


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
    progress: Progress = ignore_progress,
) -> list[Round]:
    """Continue a text (or token ids) by beam search, with one pass per round for all beams: see `search`.

    The model sees the last `context_length` tokens. `progress(done, of)` is called before each pass, with the
    number of rounds done and of all rounds.
    """
    ids = ids_of(lm, text)
    longest = whole("max_new_tokens", max_new_tokens, 1)
    grown = Growing(lm, len(ids) + longest)

    def read(texts: Sequence[Ids]) -> torch.Tensor:
        progress(len(texts[0]) - len(ids), longest)
        return grown.read(texts)

    return search(read, ids, beams, longest, end_of_text(lm), dropped)


def beside(
    lm: Reader,
    text: Ids,
    beams: int,
    max_new_tokens: int,
    sampling: Sampling,
    progress: Progress = ignore_progress,
) -> tuple[list[Round], dict[str, tuple[tuple[int, ...], float]]]:
    """Run `beam_search`, greedy search and, unless `sampling` is greedy, sampling, to compare them.

    Returns the rounds of the beam search, and a dictionary from each method's name to its token ids and ln of
    their probability together, at temperature 1.
    """
    rounds = beam_search(lm, text, beams, max_new_tokens, progress=progress)
    if beams == 1:
        name = "1 beam"
    else:
        name = f"{beams} beams"
    ways = {name: rounds[-1].kept[0]}
    ways["greedy"] = beam_search(lm, text, 1, max_new_tokens, 0)[-1].kept[0]
    continuations = {name: (beam.ids, beam.log_probability) for name, beam in ways.items()}
    if not sampling.greedy:
        drawn = list(steps(lm, text, max_new_tokens, sampling))
        ln = sum(math.log(step.model_probability) for step in drawn)
        continuations[f"sampling, seed {sampling.seed}"] = tuple(step.id for step in drawn), ln
    return rounds, continuations


@undisturbed
def given(
    lm: Reader, text: Ids, rounds: Sequence[Round], progress: Progress = ignore_progress
) -> dict[tuple[int, ...], float]:
    """ln of the probability that this model gives to each beam in the rounds of another model, by token ids.

    `text` is what the beams continue. Beams that were dropped are included.
    """
    read = Growing(lm, len(text) + len(rounds)).read
    log_p: dict[tuple[int, ...], float] = {(): 0.0}
    for n, round_ in enumerate(rounds):
        progress(n, len(rounds))
        # a beam with fewer ids than rounds ended earlier, and has its number already
        new = [beam.ids for beam in (*round_.kept, *round_.dropped) if len(beam.ids) == n + 1]
        before = list(dict.fromkeys(ids[:-1] for ids in new))
        next_log_p = read([(*text, *ids) for ids in before]).double().log_softmax(-1)  # (b, V)
        for ids in new:
            log_p[ids] = log_p[ids[:-1]] + float(next_log_p[before.index(ids[:-1]), ids[-1]])
    return log_p


@undisturbed
def search(
    read: Read,
    ids: Ids,
    beams: int,
    max_new_tokens: int,
    end: int | None = None,
    dropped: int | None = None,
) -> list[Round]:
    """Beam search with any function that gives logits: `read` maps texts of one length to (b, V) logits.

    There is one round per token, and fewer if all beams end, which a beam does with the token id `end`. Each
    round extends each beam by every token and keeps the `beams` with the highest sum of ln p, at temperature
    1 and not divided by the length. Of equal ones, that with the better parent comes first, then that with
    the lower token id. The next `dropped` after those are returned, too (None: as many as `beams`).

    With one beam this is greedy search; with as many beams as there are possible texts it tries them all.
    Raises ValueError for an empty text, and unless `beams` and `max_new_tokens` are whole numbers from 1 on.
    """
    if not ids:
        raise ValueError("there is nothing to write on from: the text is empty")
    beams = whole("beams", beams, 1)
    max_new_tokens = whole("max_new_tokens", max_new_tokens, 1)
    most = beams + (beams if dropped is None else whole("dropped", dropped, 0))
    rounds: list[Round] = []
    living = [Beam((), 0.0, 0)]
    while len(rounds) < max_new_tokens and not all(beam.ended for beam in living):
        candidates = [
            Beam(b.ids, b.log_probability, i, True) for i, b in enumerate(living) if b.ended
        ]
        going = [(i, beam) for i, beam in enumerate(living) if not beam.ended]
        # (b, V)
        log_p = torch.log_softmax(read([(*ids, *beam.ids) for _, beam in going]).double(), dim=-1)
        # (b, V); a stable sort, so that of equal ones the lower id comes first
        best = torch.sort(log_p, dim=-1, descending=True, stable=True)
        for row, (i, beam) in enumerate(going):
            top_log_p = best.values[row, :most].tolist()
            tokens = best.indices[row, :most].tolist()
            for token, ln in zip(tokens, top_log_p, strict=True):
                candidates.append(
                    Beam((*beam.ids, token), beam.log_probability + ln, i, token == end)
                )
        # a stable sort, too: candidates of one parent with equal probability stay in the order of their ids
        candidates.sort(key=lambda beam: (-beam.log_probability, beam.parent))
        rounds.append(Round(tuple(candidates[:beams]), tuple(candidates[beams:most])))
        living = candidates[:beams]
    return rounds


def ways(rounds: Sequence[Round]) -> list[list[int]]:
    """For each beam of the last round, the index of the beam it came from in every round, itself last."""
    paths = []
    for number in range(len(rounds[-1].kept) if rounds else 0):
        path = [number]
        for later in rounds[:0:-1]:
            path.insert(0, later.kept[path[0]].parent)
        paths.append(path)
    return paths
