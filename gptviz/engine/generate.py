"""Writing on: the model's own next token, appended, and again."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pandas as pd
import tiktoken
import torch
from torch import Tensor

from gptviz.digits import percent
from gptviz.engine.given import Text, ids_of
from gptviz.engine.index import listed, whole
from gptviz.engine.past import Past
from gptviz.engine.reader import Reader
from gptviz.engine.sampling import Sampling, distribution, draw, next_tokens_of
from gptviz.engine.trace import Trace
from gptviz.engine.undisturbed import undisturbed
from gptviz.text.as_html import table
from gptviz.tokenizer import END_OF_TEXT, named_bytes, show_token, token_text


@dataclass(frozen=True)
class Step:
    """One token that was written.

    A broken piece of UTF-8 shows as the replacement character, and an id that the tokenizer has no
    token for by its number, `<id 50300>`: no text can hold it, so `text_so_far` then encodes to other ids.
    """

    id: int
    token: str  # the token alone, as `Token.text`
    probability: float  # what this token had when it was drawn, after temperature and filters
    text_so_far: str = field(repr=False)  # prompt and everything written since
    point: float | None  # the number in [0, 1) that drew it, see `sampling.draw`; None where nothing is drawn
    cropped: int  # how many of the first tokens the model did not see, since the context was full: what it
    # knew of the others (`Past`) is void then, and every step reads all it sees anew
    ended_by: str | None  # the stop string or the end of text that it completed, if this is the last token
    _logits: Tensor = field(repr=False, compare=False)  # `logits`, from which all else is worked out
    sampling: Sampling = field(repr=False)
    tokenizer: tiktoken.Encoding = field(repr=False, compare=False)
    trace: Trace | None = field(default=None, repr=False, compare=False)  # of what the model read for it

    @property
    def logits(self) -> Tensor:
        """(V,) CPU float32, as the model gave them: a copy."""
        return self._logits.clone()

    def _repr_html_(self) -> str:
        shown = show_token(named_bytes(self.tokenizer, self.id))
        drawn = {"token": shown, "probability": percent(self.probability), "drawn from": self.candidates(5)}
        return table(drawn)

    @cached_property
    @undisturbed
    def model_probability(self) -> float:
        """The probability that the model itself gave the token: temperature 1, nothing filtered."""
        if self.sampling.changes_nothing:
            return self.probability
        return float(self._logits.double().softmax(0)[self.id])

    @undisturbed
    def candidates(self, k: int = 10, sampling: Sampling | None = None) -> pd.DataFrame:
        """The `k` most probable tokens of those it was drawn from: rank, id, token, logit, probability.

        Probabilities are over the whole vocabulary after temperature and filters, as in `Trace.next_tokens`;
        `sampling` gives them for other settings (`Sampling()`: the model's own). What the filters cut is not
        among them, so there may be fewer than `k`; at temperature 0 all but the first have probability 0.
        """
        return next_tokens_of(self.tokenizer, self._logits, k, sampling or self.sampling, cut=True)


def generate(
    lm: Reader,
    text: Text,
    max_new_tokens: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int | None = None,
    special_tokens: bool = False,
    stop: str | Iterable[str] | None = None,
    captured: bool = False,
    cache: bool = True,
) -> Iterator[Step]:
    """Write on after `text` (or ids), one `Step` a forward pass, until the caller stops iterating.

    Ends after `max_new_tokens`, with the model's own end-of-text token, or when the written text has one of
    the strings of `stop` (that step is yielded too, and says so). The same seed gives the same tokens: the
    i-th by the i-th of `Sampling(seed=seed).points(n)`. Temperature 0 is greedy. The model sees the last
    `context_length` tokens: from there on their positions shift with every step, as in the book.

    Each token is read once, its keys and values are kept (`past`); `cache=False` reads all of them
    again for every token, as the book does. `captured` gives each step a trace of what the model had read.

    The model's edits are made in every pass; where one depends on the whole text, each pass reads all of it.
    Where the context slides, positions are those that the model sees.

    Raises ValueError, at once and not at the first step, for an empty text, ids that the model does not have,
    and options out of range.
    """
    sampling = Sampling(temperature, top_k, top_p, seed)
    ids = _ids(lm, text, special_tokens)
    count = whole("max_new_tokens", max_new_tokens, 0)
    return steps(lm, ids, count, sampling, stop=_stops(stop), captured=captured, cache=cache)


def generate_batch(
    lm: Reader,
    text: Text,
    max_new_tokens: int,
    seeds: Iterable[int],
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    special_tokens: bool = False,
    stop: str | Iterable[str] | None = None,
) -> Iterator[list[Step | None]]:
    """`generate` for several seeds at once: the text is read once, and each pass writes a token of them all.

    Yields a list with a Step a seed, None for those that have ended. Raises ValueError as `generate` does.
    """
    seeds = listed("seeds", seeds, "give a list with one for each continuation, such as [1, 2, 3]")
    samplings = [Sampling(temperature, top_k, top_p, seed) for seed in seeds]
    if not samplings:
        raise ValueError("there are no seeds: give one for each continuation")
    ids = _ids(lm, text, special_tokens)
    count = whole("max_new_tokens", max_new_tokens, 0)
    strings = _stops(stop)
    writers = [_Writer(lm, ids, sampling, 0, strings) for sampling in samplings]
    return _write(Growing(lm, len(ids) + count), writers, count)


@undisturbed
def steps(
    lm: Reader,
    ids: Sequence[int],
    max_new_tokens: int,
    sampling: Sampling,
    skip: int = 0,
    stop: Sequence[str] = (),
    captured: bool = False,
    cache: bool = True,
) -> Iterator[Step]:
    """`generate`, for ids (at least one) and settings that stand together already.

    `skip` leaves out the first numbers of the seed's stream: those that drew the end of `ids`.
    """
    reader = _Captured(lm, cache) if captured else Growing(lm, len(ids) + max_new_tokens, cache)
    for (step,) in _write(reader, [_Writer(lm, ids, sampling, skip, stop)], max_new_tokens):
        if step is not None:
            yield step


@undisturbed
def _write(
    reader: "Growing | _Captured", writers: Sequence["_Writer"], max_new_tokens: int
) -> Iterator[list[Step | None]]:
    """A token of each that has not ended, as often as that; what they have in common is read once."""
    for _ in range(max_new_tokens):
        alive = [row for row, writer in enumerate(writers) if not writer.ended]
        logits = reader.read([writers[row].ids for row in alive])
        written: list[Step | None] = [None] * len(writers)
        for row, of_row in zip(alive, logits, strict=True):
            written[row] = writers[row].write(of_row, reader.trace)
        yield written
        if all(writer.ended for writer in writers):
            return


class Growing:
    """The last logits of texts that grow by a token each time; each token is read once."""

    trace: Trace | None = None

    def __init__(self, lm: Reader, longest: int, cache: bool = True):
        self.lm = lm
        self.context = lm.config.context_length
        # an edit that depends on the whole text changes the earlier tokens with every new one
        self.past = Past(lm.model, room=min(longest, self.context)) if cache and lm.is_causal else None
        self.known: list[tuple[int, ...]] = [()]  # the text of each row of the past

    def read(self, texts: Sequence[Sequence[int]]) -> Tensor:
        """The logits after each of these texts of one length: (b, V), float32 on the CPU."""
        every = [tuple(text) for text in texts]
        apart = list(dict.fromkeys(every))  # those that are still the same go through together
        if self.past is None or len(apart[0]) > self.context:
            self.past = None  # every position shifts
            new = [text[-self.context :] for text in apart]
        else:
            n = len(self.known[0])
            rows = [self.known.index(text[:n]) for text in apart]
            if rows != list(range(self.past.batch)):
                self.past = self.past.rows(rows)
            new = [text[n:] for text in apart]
        self.known = apart
        idx = torch.tensor(new, device=self.lm.model.tok_emb.weight.device)  # (b, t)
        logits = self.lm.last_logits(idx, self.past).float().cpu()
        return logits[[apart.index(text) for text in every]]


class _Captured:
    """The same of one text, with a trace of everything."""

    def __init__(self, lm: Reader, cache: bool):
        self.lm = lm
        self.cache = cache
        self.trace: Trace | None = None

    def read(self, texts: Sequence[Sequence[int]]) -> Tensor:
        seen = texts[0][-self.lm.config.context_length :]
        self.trace = self.lm.trace(seen, after=self.trace if self.cache else None)
        return self.trace.logits(-1)[None]  # (1, V)


class _Writer:
    """One continuation: its ids, its bytes, its draws."""

    def __init__(self, lm: Reader, ids: Sequence[int], sampling: Sampling, skip: int, stop: Sequence[str]):
        self.tokenizer = lm.tokenizer
        self.context = lm.config.context_length
        self.ids = list(ids)
        self.sampling = sampling
        self.points = sampling.stream(skip)
        self.text = b"".join(named_bytes(lm.tokenizer, i) for i in ids)
        self.begins = len(self.text)
        self.stop = [(s, s.encode()) for s in stop]
        self.end = end_of_text(lm)
        self.ended = False

    def write(self, logits: Tensor, trace: Trace | None) -> Step:
        chosen, probability, point = _choose(logits, self.sampling, self.points)
        cropped = max(0, len(self.ids) - self.context)
        raw = named_bytes(self.tokenizer, chosen)
        self.ids.append(chosen)
        self.text += raw
        ended_by = END_OF_TEXT if chosen == self.end else self._stop(len(raw))
        self.ended = ended_by is not None
        token = token_text(raw)
        so_far = self.text.decode("utf-8", "replace")
        drawn_from = logits, self.sampling, self.tokenizer
        return Step(chosen, token, probability, so_far, point, cropped, ended_by, *drawn_from, trace)

    def _stop(self, new: int) -> str | None:
        """The stop string that the last `new` bytes complete, the prompt not counted."""
        for string, sought in self.stop:
            start = max(self.begins, len(self.text) - new - len(sought) + 1)
            if self.text.find(sought, start) >= 0:
                return string
        return None


def _choose(logits: Tensor, sampling: Sampling, points: Iterator[float]) -> tuple[int, float, float | None]:
    """A token for these (V,) logits: its id, its probability, and the point that drew it."""
    if sampling.greedy and torch.isfinite(logits.max()):  # no need to sort 50,257 of them
        return int(logits.argmax()), 1.0, None  # of equals the lowest id
    chances = distribution(logits, sampling)
    point = next(points)
    chosen = draw(chances, point)
    return chosen, float(chances.probabilities[chosen]), point


def _ids(lm: Reader, text: Text, special_tokens: bool) -> list[int]:
    ids = ids_of(lm, text, special_tokens)
    if not ids:
        raise ValueError("there is nothing to write on from: the text is empty")
    for edit in lm.edits:
        edit.check(lm.config, min(len(ids), lm.config.context_length))
    return ids


def _stops(stop: str | Iterable[str] | None) -> list[str]:
    if stop is None:
        return []
    how = "give a string, a list of strings, or None"
    if isinstance(stop, str):
        stops = [stop]
    else:
        stops = listed("stop", stop, how)
    wrong = [s for s in stops if not isinstance(s, str) or not s]
    if wrong:
        raise ValueError(f"stop has {wrong[0]!r}; give strings of at least one character")
    return stops


def end_of_text(lm: Reader) -> int | None:
    if END_OF_TEXT not in lm.tokenizer.special_tokens_set:
        return None
    return lm.tokenizer.encode_single_token(END_OF_TEXT)
