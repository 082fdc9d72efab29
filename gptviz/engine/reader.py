"""Reader: the methods of a LanguageModel that run a forward pass. The model's own edits are made in each.

An edit replaces numbers inside the model (`Edit`). The values of some edits need a pass of their own first:
"sample", a mean over a sample of texts, and "ids5+17", the numbers that another text has. `ready` runs these
passes. The sample is read without edits. Another text is read with the edits that come before the one that
uses it, so that those edits change both texts alike.

Shapes: b texts in a batch, T tokens, D emb_dim, V the vocabulary size.
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
from gptviz.engine.sites import Key, Wanted, named
from gptviz.engine.trace import Trace
from gptviz.engine.undisturbed import undisturbed
from gptviz.engine.weights import PerWeights
from gptviz.tokenizer.one import OneToken, both_ids, one_token

# the size of each model's cache of traces of other texts, whose numbers edits use
MOST_BYTES = 2**26

Ids = tuple[int, ...]
_Kept = LRUCache[tuple[Ids, tuple[Edit, ...]], Trace]

_texts: PerWeights[_Kept] = PerWeights()
_lock = threading.Lock()


class Reader(Loaded):
    """A loaded model that runs on texts, whole or in pieces, with its edits made in every pass."""

    @undisturbed
    def trace(
        self,
        text: Text,
        keep: Iterable[Wanted] | None = None,
        edits: Iterable[Given] = (),
        special_tokens: bool = False,
        reduce: Iterable[Reduction] = (),
        after: Trace | None = None,
        grad: Towards | None = None,
        at_once: Iterable[str | Key] = (),
    ) -> Trace:
        """Run one forward pass on a text (or token ids), and keep the numbers inside the model as a Trace.

        Args:
            text: a string or token ids, at most as many tokens as the model's context has.
            keep: the sites to keep (see `gptviz.SITES`), by name or as (site, block), or functions
                of the model that name some, such as `sites.start`; None keeps all. For a
                long text, all would take too much memory: the trace then runs a block once more when it is
                asked for a site that it does not hold (see `Trace`).
            edits: edits or their text forms, made after the model's own edits.
            special_tokens: whether "<|endoftext|>" in the text becomes the special token.
            reduce: functions of a site to compute during the pass (`Reduction`); they see edited numbers.
            after: an earlier trace, of a text that begins with the same tokens. Their rows are shared with it
                and only the other tokens are computed. This needs a trace that holds every site to be kept,
                and `k` and `v`, and the same edits, all causal (`Edit.is_causal`: a "mean" over the text is
                not). Otherwise, or if the first tokens differ, everything is computed anew.
            grad: compute a gradient, too: a token (id or text), or (token, against), or (token, against,
                position). `trace.grad["z", 4]` is then the derivative of the logit of `token` minus that of
                `against` (None: minus the mean logit), after `position` (by default the last one), with
                respect to each number of the site. `after` is not used then.
            at_once: sites to hold in the trace of a long text, so that no block is run once more for them.

        With `after`, numbers may differ from those of a whole pass by rounding: by at most 1e-5 of a site's
        largest number and 3e-5 for logits, or 3e-5 and 1e-4 with edits (`benchmarks/rounding.py` measures
        them: 6e-6 and 1e-5 for the bundled model, with edits up to 1.1e-5 and 2.6e-5; in its last residual
        stream, which has numbers up to 500, that is up to 3e-4).

        Raises ValueError for an empty text or one longer than the context, for something that is neither text
        nor ids, for a trace `after` of other weights, and for sites, blocks and ids that do not exist.
        """
        ids = self._ids(text, special_tokens)
        sites = None if keep is None else named(self, keep)
        if after is not None:
            of_kind("after", after, Trace, "give an earlier trace, of a text that begins alike")
        # a copy of an edit, so that a later change of its tensor can be noticed (`Edit._stamp`)
        all_edits = tuple(replace(edit) for edit in (*self.edits, *edits_of(edits)))
        for edit in all_edits:
            edit.check(self.config, len(ids))
        all_edits = tuple(edit.of(self.config) for edit in all_edits)
        ready_edits = ready(self, all_edits)
        if grad is None:
            metric = None
        else:
            metric = self._metric(grad, len(ids))
        return capture(self, ids, sites, all_edits, ready_edits, reduce, after, metric, at_once)

    def _ids(self, text: Text, special_tokens: bool) -> list[int]:
        """The token ids of a text. Raises ValueError if it is empty or longer than the context."""
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
        """Run one block once more for a trace of this model: its attention, or the rest of the block.

        Returns the sites that the trace does not hold. Raises ValueError if the tensor of an edit was changed
        since the trace was made.
        """
        for edit in self.edits:
            if replace(edit) != edit:  # a copy has the stamp of the tensor as it is now
                raise ValueError(
                    f"the tensor of the edit {edit} was written into since this trace was made, and block "
                    f"{block} would be run again with other numbers: trace the text again"
                )
        return again(self, trace, ready(self.plain, self.edits), block, attention)

    def _metric(self, grad: Towards, n_tokens: int) -> Metric:
        """The difference of logits that the parameter `grad` of `trace` describes."""
        if isinstance(grad, tuple):
            parts: list[Any] = list(grad)
        else:
            parts = [grad]
        if not 1 <= len(parts) <= 3:
            raise ValueError(
                f"grad is {grad!r}; give token, (token, against) or (token, against, position)"
            )
        parts += [None, -1][len(parts) - 1 :]
        token, against, position = parts

        def id_of(which: OneToken, _: str) -> int:
            return one_token(self.tokenizer, self.config.vocab_size, which, "grad")

        return Metric(*both_ids(id_of, token, against), index_of("position", position, n_tokens))

    @undisturbed
    def traces(self, texts: Iterable[Text], at_a_time: int = 1, **options: Any) -> list[Trace]:
        """A trace of each text, in order; `options` are those of `trace`.

        Up to `at_a_time` texts are computed in one pass, with shorter texts padded at their end; the numbers
        are the same but for rounding. With edits, or with other options than `at_once` and `special_tokens`,
        each text has its own pass. Raises ValueError if `trace` does for any of the texts.
        """
        texts = listed("texts", texts, "give a list of texts, or trace a single one")
        at_a_time = whole("at_a_time", at_a_time, 1)
        if at_a_time == 1 or self.edits or not options.keys() <= {"at_once", "special_tokens"}:
            return [self.trace(text, **options) for text in texts]
        ids = [self._ids(text, options.get("special_tokens", False)) for text in texts]
        parts = (ids[start : start + at_a_time] for start in range(0, len(ids), at_a_time))
        return [
            trace for part in parts for trace in together(self, part, options.get("at_once", ()))
        ]

    @undisturbed
    def hidden(
        self, in_idx: Tensor, hooks: Iterable[forward.Hook] = (), past: Past | None = None
    ) -> Tensor:
        """`forward.hidden` with the model's edits, which the hooks then see: (b, T) ids -> (b, T, D)."""
        return forward.hidden(self.model, in_idx, [*self._hooks(in_idx, past), *hooks], past)

    @undisturbed
    def last_logits(
        self, idx: Tensor, past: Past | None = None, position: int | None = None
    ) -> Tensor:
        """`forward.last_logits` with the model's edits: (b, T) ids -> (b, V)."""
        return forward.last_logits(
            self.model, idx, past, position, self._hooks(idx, past, position)
        )

    @undisturbed
    def next_logits(self, ids: Sequence[int], past: Past | None = None) -> Tensor:
        """The logits after the tokens `ids`, which follow those of `past`: (V,) float32 on the CPU."""
        return self.last_logits(self.batch(ids), past)[0].float().cpu()  # (1, V) -> (V,)

    def hooks(
        self, n_tokens: int, first: int = 0, entered: int | None = None
    ) -> list[forward.Hook]:
        """The hooks that make the model's edits in a pass: see `editing.edit_hooks`.

        `n_tokens` is the length of the whole text, and `first` the position of the first token in the pass.
        Raises ValueError for an edit of a position that the text does not have, and, if `first` is above 0,
        for an edit that depends on the whole text.
        """
        for edit in self.edits:
            edit.check(self.config, n_tokens)
            if first and not edit.is_causal:
                raise ValueError(
                    f"an edit of {edit.site!r} depends on the whole text: the end of one cannot be read alone"
                )
        return edit_hooks(ready(self, self.edits), self.config, first, entered)

    def _hooks(
        self, in_idx: Tensor, past: Past | None, position: int | None = None
    ) -> list[forward.Hook]:
        """The hooks that make the model's edits in a pass on (b, T) ids, after a past or at a position."""
        if not self.edits:
            return []
        known = 0 if past is None else past.next
        if position is None:
            first = known
        else:
            first = position
        return self.hooks(first + in_idx.shape[1], first)


def ready(lm: Reader, edits: Iterable[Edit]) -> list[Edit]:
    """The edits as `Edit.apply` needs them: each of one block, and with numbers as values.

    The numbers come from passes over the sample ("sample") or other texts ("ids5+17"), or from the model's
    weights ("+tok5").
    """
    edits = [block_edit for edit in edits for block_edit in edit.each(lm.config.n_layers)]
    finished: list[Edit] = []
    traces: dict[Ids, Trace] = {}  # of the other texts that the edit before used
    for index, edit in enumerate(edits):
        earlier_traces = traces
        traces = {}
        for ids in _texts_of(edit):
            # Edits in a row that use the same text share one pass over it, since none of them is made in it.
            together = takewhile(lambda later, ids=ids: ids in _texts_of(later), edits[index:])  # type: ignore[misc]
            before = [
                done
                for done, original in zip(finished, edits, strict=False)
                if ids not in _texts_of(original)
            ]
            if ids in earlier_traces:
                traces[ids] = earlier_traces[ids]
            else:
                traces[ids] = _read(lm, ids, before, [later.key for later in together])
        finished.append(_with_numbers(lm, edit, traces))
    return finished


def _texts_of(edit: Edit) -> tuple[Ids, ...]:
    """The ids of the other texts that the edit's value is taken from."""
    if edit.named is None:
        return ()
    return edit.named.texts


def _with_numbers(lm: Reader, edit: Edit, read: dict[Ids, Trace]) -> Edit:
    """The edit with its value as numbers, from this model and the traces of the texts in `read`."""

    def numbers(part: Named) -> Tensor | Trace:
        if part.name in TABLES:
            # (1, D)
            return lm.model.get_parameter(f"{TABLES[part.name]}.weight")[part.numbers[0]][None]
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
        sources = [
            p.numbers.only(edit.key) if isinstance(p.numbers, Trace) else p.numbers
            for p in edit.value
        ]
        return replace(edit, value=tuple(map(Plus, sources, (part.factor for part in edit.value))))
    return edit


def _read(lm: Reader, ids: Ids, edits: Sequence[Edit], keys: list[Key]) -> Trace:
    """A trace of these ids, with these edits, that holds these sites; from the cache, if it has one."""
    edits_here = tuple(fit for edit in edits if (fit := edit.within(len(ids))) is not None)
    # a function may do something else each time: no cache
    if any(edit.is_function for edit in edits_here):
        return lm.plain.trace(ids, keep=keys, edits=edits_here)
    traces = _texts.get(lm.model, lambda: _Kept(MOST_BYTES, lambda trace: trace.nbytes))
    cache_key = (ids, edits_here)
    with _lock:
        cached = traces.get(cache_key)
    missing = [key for key in keys if cached is None or key not in cached.sites()]
    if cached is not None and not missing:
        return cached
    trace = lm.plain.trace(ids, keep=missing, edits=edits_here).released().uncopied()
    if cached is not None:
        trace = cached.joined(trace)
    # LRUCache raises it for a trace that is larger than the whole cache
    with _lock, suppress(ValueError):
        traces[cache_key] = trace
    return trace
