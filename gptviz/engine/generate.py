"""Text generation: let the model choose a next token, append it to the text, and repeat.

`generate` yields a `Step` for each new token, with its probability and the logits that it was drawn from;
`generate_batch` does it for several seeds at once. Both keep the keys and values of the tokens that were read
(`gptviz.engine.past`, a KV cache), so that each pass computes only the newest token.

Shapes: b texts in a batch, t new tokens, V the vocabulary size.
"""

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
from gptviz.tokenizer import ENDS_OF_TEXT, named_bytes, show_token, token_text


@dataclass(frozen=True)
class Step:
    """One token that the model wrote, and what it was drawn from.

    Bytes that are no whole UTF-8 character are shown as the replacement character, and an id that the
    tokenizer has no token for as `<id 50300>`. In both cases `text_so_far` encodes to other ids than those
    that the model wrote.
    """

    id: int
    token: str  # the token alone, as `Token.text`
    probability: float  # of this token when it was drawn, after temperature, top-k and top-p
    # the prompt and everything written since, this token included
    text_so_far: str = field(repr=False)
    # the random number in [0, 1) that drew it (`sampling.draw`); None at temperature 0
    point: float | None
    # The number of tokens at the start of the text that no longer fitted into the context. From then on every
    # position shifts with each new token, so no kept key or value can be used, and each pass reads
    # everything.
    cropped: int
    # the stop string or end-of-text token that ended the text; None before the end
    ended_by: str | None
    # (V,) the model's own, before temperature and filters
    _logits: Tensor = field(repr=False, compare=False)
    sampling: Sampling = field(repr=False)
    tokenizer: tiktoken.Encoding = field(repr=False, compare=False)
    # of the tokens that the model read
    trace: Trace | None = field(default=None, repr=False, compare=False)

    @property
    def logits(self) -> Tensor:
        """The logits that the token was drawn from, before temperature and filters: (V,) float32, a copy."""
        return self._logits.clone()

    def _repr_html_(self) -> str:
        """The step as a small table, for a notebook."""
        shown = show_token(named_bytes(self.tokenizer, self.id))
        drawn = {
            "token": shown,
            "probability": percent(self.probability),
            "drawn from": self.candidates(5),
        }
        return table(drawn)

    @cached_property
    @undisturbed
    def model_probability(self) -> float:
        """The probability that the model gave the token, at temperature 1 and without filters."""
        if self.sampling.changes_nothing:
            return self.probability
        return float(self._logits.double().softmax(0)[self.id])

    @undisturbed
    def candidates(self, k: int = 10, sampling: Sampling | None = None) -> pd.DataFrame:
        """The `k` most probable tokens that could have been drawn: rank, id, token, logit, probability.

        Probabilities are over the whole vocabulary after temperature and filters, as in `Trace.next_tokens`.
        `sampling` gives them for other settings than those of this step (`Sampling()`: the model's own).
        Tokens that the filters removed are left out, so there may be fewer than `k`. At temperature 0 all but
        the first have probability 0.
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
    """Continue `text` (a string or token ids): yield one `Step` per forward pass.

    It ends after `max_new_tokens`, with the model's end-of-text token, or when the new text contains one of
    the strings in `stop` (the last step is yielded, too, and its `ended_by` says why). The same seed gives
    the same tokens: the i-th token is drawn by the i-th number of `Sampling(seed=seed).points(n)`.
    Temperature 0 always takes the most probable token. The model sees the last `context_length` tokens only;
    once the text is longer, positions shift with every step, as in the book.

    The keys and values of each token are kept (a KV cache); with `cache=False` every pass reads the whole
    text again, as the book does. With `captured`, each step has a `Trace` of the tokens that the model read.

    The model's edits are made in every pass. If one of them depends on the whole text, each pass reads all of
    it. The positions of edits are counted from the first token that the model sees.

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
    """`generate` for several seeds at once: the text is read once, and each pass adds a token for every seed.

    Yields lists with one Step per seed, or None for a seed whose text has ended. Raises ValueError as
    `generate` does, and if there are no seeds.
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
    """`generate` for at least one token id, all of them checked already, and a `Sampling`.

    To continue a text that was generated before, `skip` is the number of tokens of it that were drawn: as
    many random numbers of the seed are left out, so that the text goes on as it would have without a break.
    """
    reader = _Captured(lm, cache) if captured else Growing(lm, len(ids) + max_new_tokens, cache)
    for (step,) in _write(reader, [_Writer(lm, ids, sampling, skip, stop)], max_new_tokens):
        if step is not None:
            yield step


@undisturbed
def _write(
    reader: "Growing | _Captured", writers: Sequence["_Writer"], max_new_tokens: int
) -> Iterator[list[Step | None]]:
    """Yield lists with each writer's next Step, None for one that has ended, up to `max_new_tokens` times."""
    for _ in range(max_new_tokens):
        alive = [row for row, writer in enumerate(writers) if not writer.ended]
        logits = reader.read([writers[row].ids for row in alive])  # (number alive, V)
        written: list[Step | None] = [None] * len(writers)
        for row, of_row in zip(alive, logits, strict=True):
            written[row] = writers[row].write(of_row, reader.trace)
        yield written
        if all(writer.ended for writer in writers):
            return


class Growing:
    """Computes the logits after texts that grow by one token between calls, with a KV cache for them."""

    trace: Trace | None = None  # `_Captured` has one

    def __init__(self, lm: Reader, longest: int, cache: bool = True):
        self.lm = lm
        self.context = lm.config.context_length
        # an edit that depends on the whole text changes the earlier tokens with every new one
        self.past = (
            Past(lm.model, room=min(longest, self.context)) if cache and lm.is_causal else None
        )
        self.known: list[tuple[int, ...]] = [()]  # the token ids of each text in the past

    def read(self, texts: Sequence[Sequence[int]]) -> Tensor:
        """The logits after each of these texts, (b, V) float32 on the CPU. All must have the same length."""
        all_texts = [tuple(text) for text in texts]
        distinct = list(dict.fromkeys(all_texts))  # equal texts are computed once
        if self.past is None or len(distinct[0]) > self.context:
            # the context slides, every position shifts: no kept key or value fits any more
            self.past = None
            new = [text[-self.context :] for text in distinct]
        else:
            n = len(self.known[0])
            rows = [self.known.index(text[:n]) for text in distinct]
            if rows != list(range(self.past.batch)):
                self.past = self.past.rows(rows)
            new = [text[n:] for text in distinct]
        self.known = distinct
        idx = torch.tensor(new, device=self.lm.model.tok_emb.weight.device)  # (b, t)
        logits = self.lm.last_logits(idx, self.past).float().cpu()
        return logits[[distinct.index(text) for text in all_texts]]


class _Captured:
    """As `Growing`, for one text; it keeps the Trace of the last pass."""

    def __init__(self, lm: Reader, cache: bool):
        self.lm = lm
        self.cache = cache
        self.trace: Trace | None = None

    def read(self, texts: Sequence[Sequence[int]]) -> Tensor:
        window = texts[0][-self.lm.config.context_length :]
        self.trace = self.lm.trace(window, after=self.trace if self.cache else None)
        return self.trace.logits(-1)[None]  # (1, V)


class _Writer:
    """One text that is being continued: its ids and bytes so far, and the random numbers that draw tokens."""

    def __init__(
        self, lm: Reader, ids: Sequence[int], sampling: Sampling, skip: int, stop: Sequence[str]
    ):
        self.tokenizer = lm.tokenizer
        self.context = lm.config.context_length
        self.ids = list(ids)
        self.sampling = sampling
        self.points = sampling.stream(skip)
        self.text = b"".join(named_bytes(lm.tokenizer, i) for i in ids)
        self.begins = len(self.text)  # where the new text begins, in bytes
        self.stop = [(s, s.encode()) for s in stop]
        self.end = end_of_text(lm)
        self.ended = False

    def write(self, logits: Tensor, trace: Trace | None) -> Step:
        """Choose a token from (V,) logits and append it."""
        chosen, probability, point = _choose(logits, self.sampling, self.points)
        cropped = max(0, len(self.ids) - self.context)
        raw = named_bytes(self.tokenizer, chosen)
        self.ids.append(chosen)
        self.text += raw
        ended_by = self._stop(len(raw))
        if chosen == self.end:
            ended_by = raw.decode()
        self.ended = ended_by is not None
        token = token_text(raw)
        so_far = self.text.decode("utf-8", "replace")
        drawn_from = logits, self.sampling, self.tokenizer
        return Step(
            chosen, token, probability, so_far, point, cropped, ended_by, *drawn_from, trace
        )

    def _stop(self, new: int) -> str | None:
        """The stop string that the last `new` bytes complete, if any. Text of the prompt does not count."""
        for string, sought in self.stop:
            start = max(self.begins, len(self.text) - new - len(sought) + 1)
            if self.text.find(sought, start) >= 0:
                return string
        return None


def _choose(
    logits: Tensor, sampling: Sampling, points: Iterator[float]
) -> tuple[int, float, float | None]:
    """Choose a token from (V,) logits: its id, its probability, and the random number that drew it."""
    if sampling.greedy and torch.isfinite(logits.max()):  # faster than sorting 50,257 logits
        return int(logits.argmax()), 1.0, None  # the lowest id, if several logits are equal
    chances = distribution(logits, sampling)
    point = next(points)
    chosen = draw(chances, point)
    return chosen, float(chances.probabilities[chosen]), point


def _ids(lm: Reader, text: Text, special_tokens: bool) -> list[int]:
    """The token ids of a text. Raises ValueError if it is empty or too short for an edit of the model."""
    ids = ids_of(lm, text, special_tokens)
    if not ids:
        raise ValueError("there is nothing to write on from: the text is empty")
    for edit in lm.edits:
        edit.check(lm.config, min(len(ids), lm.config.context_length))
    return ids


def _stops(stop: str | Iterable[str] | None) -> list[str]:
    """The stop strings as a list. Raises ValueError for an empty string or anything that is no string."""
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
    """The id of the tokenizer's end-of-text token; None if it has none."""
    for name in ENDS_OF_TEXT:
        if name in lm.tokenizer.special_tokens_set:
            return lm.tokenizer.encode_single_token(name)
    return None
