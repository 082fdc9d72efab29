"""A LanguageModel's passes: each makes the model's edits.

Some edits' values take a pass of their own: a mean over the sample, another text's numbers. The sample is
read by the model without edits. Another text is read by the model as it is where its numbers are put in: with
the edits that stand before (`Edit`), so that what both texts have in common stays so.
"""

import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import takewhile
from typing import Any

from cachetools import LRUCache
from torch import Tensor

from gptviz.engine import forward
from gptviz.engine.capture import again, capture, together
from gptviz.engine.edit_values import TABLES, Named, Plus
from gptviz.engine.editing import edit_hooks
from gptviz.engine.edits import Edit, Given, edits_of
from gptviz.engine.given import Text, ids_of
from gptviz.engine.gradient import Metric, Towards
from gptviz.engine.index import index_of, listed, of_kind, whole
from gptviz.engine.loaded import Loaded
from gptviz.engine.past import Past
from gptviz.engine.reduction import Reduction
from gptviz.engine.sample_means import kept_means
from gptviz.engine.sites import Key
from gptviz.engine.trace import Trace
from gptviz.engine.undisturbed import undisturbed
from gptviz.engine.weights import PerWeights
from gptviz.tokenizer.one import OneToken, both_ids, one_token

MOST_BYTES = 2**26  # of other texts' numbers that a model's next passes may need again

Ids = tuple[int, ...]
_Kept = LRUCache[tuple[Ids, tuple[Edit, ...]], Trace]

_texts: PerWeights[_Kept] = PerWeights()
_lock = threading.Lock()


class Reader(Loaded):
    """A model that reads a text, whole or in pieces; the edits are made in every pass."""

    @undisturbed
    def trace(
        self,
        text: Text,
        keep: Iterable[str | Key] | None = None,
        edits: Iterable[Given] = (),
        special_tokens: bool = False,
        reduce: Iterable[Reduction] = (),
        after: Trace | None = None,
        grad: Towards | None = None,
        at_once: Iterable[str | Key] = (),
    ) -> Trace:
        """One forward pass on a text (or on token ids), captured.

        `keep` lists the sites to keep, by name or as (site, block) pairs: None gives all of them;
        see `gptviz.SITES`. Of a long text all are too many to hold: the trace works out what it is asked for
        (see `Trace`), but for sites that are listed in `at_once`, which the pass takes down. `edits`, or
        their text forms, replace what sites pass on, after the model's own. `reduce` looks at sites, edited
        ones included, and keeps only what is made of them.

        `after` is an earlier trace: where the text begins as that one did, its rows are shared to the bit and
        only the other tokens go through the model. It must hold all that is to be kept, and `k` and `v`, and
        be of the same edits; these must be causal (see `Edit.is_causal`: a "mean" over the text is not).
        Otherwise, or if the first token is another, all is computed anew. Of other weights it is refused.

        The same numbers as of a whole pass in float32 but for rounding: of a site's largest number 1e-5 at
        most, of logits 3e-5; with edits 3e-5 and 1e-4 (`benchmarks/rounding.py`: the bundled model has 6e-6
        and 1e-5, with edits up to 1.1e-5 and 2.6e-5; in its last residual stream, which has numbers up to
        500, that is up to 3e-4).

        `grad` is a token, by id or text, or a pair (token, against), or (token, against, position): then
        `trace.grad["z", 4]` has what each number of a kept site does to the logit of `token` minus that of
        `against`, or minus the mean of all, after that position, the last one by itself. One pass forward
        and one back, through the book's own lines; nothing of `after` is used.

        Raises ValueError for a trace `after` that other weights made, for an empty text, one that is longer
        than the context, what is neither text nor ids, and for sites, blocks and ids that do not exist.
        """
        ids = self._ids(text, special_tokens)
        if after is not None:
            of_kind("after", after, Trace, "give an earlier trace, of a text that begins alike")
        every = tuple(replace(edit) for edit in (*self.edits, *edits_of(edits)))  # with tensors as they are
        for edit in every:
            edit.check(self.config, len(ids))
        every = tuple(edit.of(self.config) for edit in every)
        made = ready(self, every)
        if grad is None:
            metric = None
        else:
            metric = self._metric(grad, len(ids))
        return capture(self, ids, keep, every, made, reduce, after, metric, at_once)

    def _ids(self, text: Text, special_tokens: bool) -> list[int]:
        ids = ids_of(self, text, special_tokens)
        if not ids:
            raise ValueError("the text is empty: a trace needs at least one token")
        if len(ids) > self.config.context_length:
            raise ValueError(
                f"the text has {len(ids)} tokens; {self.name} reads at most {self.config.context_length}: "
                f"shorten it, or trace lm.encode(text)[:{self.config.context_length}]"
            )
        return ids

    @undisturbed
    def again(self, trace: Trace, block: int, attention: bool) -> dict[Key, Tensor]:
        """Run one block once more for a trace of this model: its attention, or all else."""
        for edit in self.edits:
            if replace(edit) != edit:  # a new one is stamped with what its tensor holds now
                raise ValueError(
                    f"the tensor of the edit {edit} was written into since this trace was made, and block "
                    f"{block} would be run again with other numbers: trace the text again"
                )
        return again(self, trace, ready(self.plain, self.edits), block, attention)

    def _metric(self, grad: Towards, n_tokens: int) -> Metric:
        if isinstance(grad, tuple):
            given: list[Any] = list(grad)
        else:
            given = [grad]
        if not 1 <= len(given) <= 3:
            raise ValueError(f"grad is {grad!r}; give token, (token, against) or (token, against, position)")
        given += [None, -1][len(given) - 1 :]
        token, against, position = given

        def id_of(one: OneToken, _: str) -> int:
            return one_token(self.tokenizer, self.config.vocab_size, one, "grad")

        return Metric(*both_ids(id_of, token, against), index_of("position", position, n_tokens))

    @undisturbed
    def traces(self, texts: Iterable[Text], at_a_time: int = 1, **options: Any) -> list[Trace]:
        """A trace of each text, in order; `options` are those of `trace`.

        So many `at_a_time` go through the model in one pass, filled up behind their ends: the same numbers
        but for rounding. Not where there are edits, or other options than `at_once` and `special_tokens`.
        Raises ValueError, as `trace` does for any of them.
        """
        texts = listed("texts", texts, "give a list of texts, or trace a single one")
        at_a_time = whole("at_a_time", at_a_time, 1)
        if at_a_time == 1 or self.edits or not options.keys() <= {"at_once", "special_tokens"}:
            return [self.trace(text, **options) for text in texts]
        ids = [self._ids(text, options.get("special_tokens", False)) for text in texts]
        parts = (ids[start : start + at_a_time] for start in range(0, len(ids), at_a_time))
        return [trace for part in parts for trace in together(self, part, options.get("at_once", ()))]

    @undisturbed
    def hidden(self, in_idx: Tensor, hooks: Iterable[forward.Hook] = (), past: Past | None = None) -> Tensor:
        """`forward.hidden` with the model's edits, which the hooks then see: (b, T) ids -> (b, T, D)."""
        return forward.hidden(self.model, in_idx, [*self._hooks(in_idx, past), *hooks], past)

    @undisturbed
    def last_logits(self, idx: Tensor, past: Past | None = None, position: int | None = None) -> Tensor:
        """`forward.last_logits` with the model's edits: (b, T) ids -> (b, V)."""
        return forward.last_logits(self.model, idx, past, position, self._hooks(idx, past, position))

    @undisturbed
    def next_logits(self, ids: Sequence[int], past: Past | None = None) -> Tensor:
        """(V,): the logits after one text, behind what is of `past`, in float32 on the CPU."""
        return self.last_logits(self.batch(ids), past)[0].float().cpu()  # (1, V) -> (V,)

    def hooks(self, n_tokens: int, first: int = 0, entered: int | None = None) -> list[forward.Hook]:
        """The edits as the first hooks of a pass over texts of so many tokens: see `editing.edit_hooks`.

        Raises ValueError for what such a text does not have, and with `first` for an edit that depends on the
        whole text.
        """
        for edit in self.edits:
            edit.check(self.config, n_tokens)
            if first and not edit.is_causal:
                raise ValueError(
                    f"an edit of {edit.site!r} depends on the whole text: the end of one cannot be read alone"
                )
        return edit_hooks(ready(self, self.edits), self.config, first, entered)

    def _hooks(self, in_idx: Tensor, past: Past | None, position: int | None = None) -> list[forward.Hook]:
        if not self.edits:
            return []
        known = 0 if past is None else past.next
        if position is None:
            first = known
        else:
            first = position
        return self.hooks(first + in_idx.shape[1], first)


def ready(lm: Reader, edits: Iterable[Edit]) -> list[Edit]:
    """The edits as a pass can make them: of one block each, what a model or another text gives as numbers."""
    edits = [one for edit in edits for one in edit.each(lm.config.n_layers)]
    made: list[Edit] = []
    read: dict[Ids, Trace] = {}  # what the edit before took numbers from
    for at, edit in enumerate(edits):
        known = read
        read = {}
        for ids in _texts_of(edit):
            # all that follow each other read it at once: none of them is made in it
            together = takewhile(lambda one, ids=ids: ids in _texts_of(one), edits[at:])  # type: ignore[misc]
            before = [one for one, given in zip(made, edits, strict=False) if ids not in _texts_of(given)]
            if ids in known:
                read[ids] = known[ids]
            else:
                read[ids] = _read(lm, ids, before, [one.key for one in together])
        made.append(_with_numbers(lm, edit, read))
    return made


def _texts_of(edit: Edit) -> tuple[Ids, ...]:
    """Return the ids of the other texts that the value is taken from."""
    if edit.named is None:
        return ()
    return edit.named.texts


def _with_numbers(lm: Reader, edit: Edit, read: dict[Ids, Trace]) -> Edit:
    """The edit with what its value is in this model, and in these texts."""

    def numbers(part: Named) -> Tensor | Trace:
        if part.name in TABLES:
            return lm.model.get_parameter(f"{TABLES[part.name]}.weight")[part.numbers[0]][None]  # (1, D)
        other = read[part.numbers]
        if part.name == "ids":
            return other
        return other.uncopied()[edit.key].mean(dim=-2, keepdim=True)

    value = edit.named
    if value is not None and value.name == "sample":
        return replace(edit, value=kept_means(lm)[edit.key])
    if value is not None and value.name == "ids":
        return replace(edit, value=read[value.numbers])
    if value is not None and value.terms:
        return replace(edit, value=tuple(Plus(numbers(part), part.factor) for part in value.terms))
    if isinstance(edit.value, Trace):
        return replace(edit, value=edit.value.only(edit.key))
    if isinstance(edit.value, tuple):
        given = [p.numbers.only(edit.key) if isinstance(p.numbers, Trace) else p.numbers for p in edit.value]
        return replace(edit, value=tuple(map(Plus, given, (part.factor for part in edit.value))))
    return edit


def _read(lm: Reader, ids: Ids, edits: Sequence[Edit], keys: list[Key]) -> Trace:
    """A trace of these ids with these edits that has these sites, from before if they were read before."""
    here = tuple(fit for edit in edits if (fit := edit.within(len(ids))) is not None)
    if any(edit.is_function for edit in here):  # it may do something else today
        return lm.plain.trace(ids, keep=keys, edits=here)
    kept = _texts.get(lm.model, lambda: _Kept(MOST_BYTES, lambda trace: trace.nbytes))
    what = (ids, here)
    with _lock:
        known = kept.get(what)
    missing = [key for key in keys if known is None or key not in known.sites()]
    if known is not None and not missing:
        return known
    trace = lm.plain.trace(ids, keep=missing, edits=here).released().uncopied()
    if known is not None:
        trace = known.joined(trace)
    with _lock, suppress(ValueError):  # it has more than all of them may have
        kept[what] = trace
    return trace
