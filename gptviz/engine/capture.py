"""The capture: one forward pass of a GPTModel on some tokens, taken down as a Trace.

What is special about a site stands in its row of `sites.SITES`; this module only reads the table.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from gptviz.engine import forward
from gptviz.engine.config import GPTConfig
from gptviz.engine.editing import edit_hooks
from gptviz.engine.edits import Edit
from gptviz.engine.gradient import Gradient, Metric, gradient
from gptviz.engine.loaded import Loaded
from gptviz.engine.past import Past
from gptviz.engine.reduction import Reduction, reductions
from gptviz.engine.rows import Rows
from gptviz.engine.run import alike
from gptviz.engine.sites import INTO_BLOCK, SITES, Key, all_keys, between_blocks, expand, held_keys
from gptviz.engine.tokens import tokens_of
from gptviz.engine.trace import Trace
from gptviz.engine.weights import fingerprint


class CaptureError(RuntimeError):
    """The model did not do what the table of sites says: nothing of that pass can be shown."""


def capture(
    lm: Loaded,
    ids: Sequence[int],
    keep: Iterable[str | Key] | None,
    edits: tuple[Edit, ...],
    ready: Sequence[Edit],
    reduce: Iterable[Reduction],
    after: Trace | None,
    grad: Metric | None = None,
    at_once: Iterable[str | Key] = (),
) -> Trace:
    """Run the model once on `ids`; keep what was asked for (everything, when `keep` is None) and `reduce`.

    Everything of a large pass is a lean Trace: it holds what `held_keys` says, and gives all. What a function
    of Python's edits is not worked out twice: it may do something else the next time.

    The edits are checked already; `ready` are the same as numbers (`gptviz.engine.reader.ready`).
    Only on the tokens that `after` does not have already, as far as it can be used (`LanguageModel.trace`).

    The pass runs in eval mode, without gradients but for those of `grad`; the output head is not part of it,
    but for the row that `grad` looks at. Raises
    ValueError for a site, block or token that does not exist, before anything runs, and CaptureError when a
    site never fired or attention rows do not sum to 1.
    """
    model = lm.model
    config = lm.config
    keys = expand(keep, config)
    held = held_keys(config, len(ids), at_once)
    reduce = reductions(reduce)
    lean = keep is None and grad is None and not any(edit.is_function for edit in edits)
    lean = lean and len(held) < len(keys)
    if lean:
        keys = held
    weights = fingerprint(model)
    before = None
    if after is not None and grad is None:
        before = _beginning(after, lm, ids, edits, keys)
        if before is not None and not before.holds([reduction.site for reduction in reduce]):
            before = None  # what is made of a site in the pass needs its earlier rows there
    known = 0 if before is None else len(before)
    found: Gradient | None = None
    pass_ = _Pass(config, [*keys, ("final", None)], ready, reduce, before, graph=grad is not None)
    if before is None:
        past = None
    else:
        past = before.past(model)
    if known < len(ids):
        of_others = torch.is_inference_mode_enabled() and grad is None  # whoever calls this
        with torch.inference_mode(of_others), forward.running(model, graph=grad is not None):
            in_idx = lm.batch(ids[known:])  # (1, T)
            final = forward.hidden(model, in_idx, pass_.hooks(), past, graph=grad is not None)  # (1, T, D)
            pass_.check()
            if grad is not None:
                logits = forward.logits_of(model, final[0, grad.position], graph=True)
                found = gradient(grad, logits, {key: pass_.live[key] for key in keys}, config)
    else:
        for key in pass_.reductions:  # no token is new: only what is to be made of the sites
            pass_.reduce(key, None)
    if before is None:
        tokens = []
    else:
        tokens = before.tokens
    values = {key: pass_.rows(key, past) for key in keys}
    if lean:
        whole = [pair for pair in between_blocks(config) if pair[1] not in pass_.edited]
        values |= {out: values[into] for out, into in whole}
    tokens = [*tokens, *tokens_of(lm.tokenizer, ids[known:], known)]
    rows = pass_.rows(("final", None), past)
    reduced = {one: pass_.reduced[one] for one in reduce}
    return Trace(lm, weights, tokens, values, rows, edits, reduced, past, found, lean)


def together(lm: Loaded, texts: Sequence[Sequence[int]], at_once: Iterable[str | Key] = ()) -> list[Trace]:
    """A trace of everything of each text, by a model without edits: `capture` in one pass for all of them."""
    model = lm.model
    config = lm.config
    longest = max(texts, key=len)
    held = [held_keys(config, len(ids), at_once) for ids in texts]
    weights = fingerprint(model)
    seen = dict[Key, Tensor]()
    wanted: list[Key] = [*(key for keys in held for key in keys), ("final", None)]
    hooks = [site_hook(key, seen.__setitem__) for key in dict.fromkeys(wanted)]
    # what fills a text up stands behind it, where none of its own rows looks
    in_idx = [[*ids, *longest[len(ids) :]] for ids in texts]  # (b, T)
    with torch.inference_mode(torch.is_inference_mode_enabled()):
        forward.hidden(model, torch.tensor(in_idx, device=model.tok_emb.weight.device), hooks)

    def rows(key: Key, text: int) -> Rows:
        site = SITES[key[0]]
        value = seen[key]
        shown = site.present(value if value.dim() == 2 else value[text, None], config.n_heads)
        piece = Rows([shown.float().cpu()], site.form == "weights").cut(len(texts[text])).joined()
        if site.form == "weights":
            _check_rows(key, piece)
        return Rows([piece.clone()], site.form == "weights")  # of its own, not of the whole batch

    made = []
    for text, (ids, keys) in enumerate(zip(texts, held, strict=True)):
        # sites that are the same numbers share them, as in a pass of its own
        places = {key: (seen[key].data_ptr(), SITES[key[0]].form) for key in [*keys, ("final", None)]}
        own = {place: rows(key, text) for key, place in places.items()}
        values = {key: own[places[key]] for key in keys}
        lean = len(keys) < len(all_keys(config))
        if lean:
            values |= {out: values[into] for out, into in between_blocks(config)}
        tokens = tokens_of(lm.tokenizer, ids)
        final = own[places["final", None]]
        made.append(Trace(lm, weights, tokens, values, final, lean=lean))
    return made


def again(lm: Loaded, trace: Trace, ready: Sequence[Edit], block: int, attention: bool) -> dict[Key, Tensor]:
    """Run one block once more, for what a lean trace of this model does not hold of it.

    From the stream that came into it, with the trace's edits, `ready` as in `capture`. Of what is inside its
    attention, or all else.
    """
    of_block = [key for key in all_keys(lm.config) if key[1] == block and key not in trace.held]
    keys = [key for key in of_block if SITES[key[0]].in_attention == attention]
    pass_ = _Pass(lm.config, keys, [edit for edit in ready if edit.block == block], (), None, entered=block)
    trace = trace.uncopied()
    stream = trace[INTO_BLOCK, block][None].to(lm.model.tok_emb.weight)  # (1, T, D)
    k, v = ((name, block) for name, site in SITES.items() if site.in_past is not None)
    held = k in trace.held and v in trace.held
    known = (trace[k][None], trace[v][None]) if held else None  # (1, H, T, head_dim) each
    forward.block_again(lm.model, block, stream, known, pass_.hooks(), attention)
    pass_.check()
    return pass_.values


def _beginning(
    after: Trace, lm: Loaded, ids: Sequence[int], edits: tuple[Edit, ...], keys: Iterable[Key]
) -> Trace | None:
    """The part of an earlier trace that these ids begin with, if it can be used; else None."""
    after.of(lm.model)
    same = after.config == lm.config and after.edits == edits
    needed = {*keys, *(key for key in all_keys(lm.config) if SITES[key[0]].in_past)}
    if not same or not needed <= set(after.sites()) or not all(edit.is_causal for edit in edits):
        return None
    known = alike([token.id for token in after.tokens], list(ids))
    if known:
        return after.cut(known)
    return None


class _Pass:
    """One forward pass: where it looks, what it replaces, what it caught."""

    def __init__(
        self,
        config: GPTConfig,
        keys: Iterable[Key],
        edits: Sequence[Edit],
        reduce: Sequence[Reduction],
        before: Trace | None,
        graph: bool = False,
        entered: int | None = None,
    ):
        self.entered = entered  # the block in which the pass begins, if not before all of them
        self.live: dict[Key, Tensor] = {}  # with `graph`: the pass's own tensors, to go back to
        self.graph = graph
        self.config = config
        self.n_heads = config.n_heads
        self.before = before  # of the tokens that stand before those of this pass
        if before is None:
            self.first = 0
        else:
            self.first = len(before)
        self.keep = dict.fromkeys(keys)
        self.values: dict[Key, Tensor] = {}
        self.edits = edits
        self.edited = {(one.site, one.block) for edit in edits for one in edit.each(config.n_layers)}
        self.reductions: dict[Key, list[Reduction]] = {}
        self.reduced: dict[Reduction, list[Any]] = {}
        for reduction in reduce:
            if reduction.name in {other.name for other in self.reduced}:
                raise ValueError(f"two reductions are called {reduction.name!r}; give each its own name")
            self.reduced[reduction] = []
            for key in expand([reduction.site], config):
                self.reductions.setdefault(key, []).append(reduction)

    def hooks(self) -> list[forward.Hook]:
        """Those that look come last: they see what the edits have made."""
        weights = [key for key in all_keys(self.config) if SITES[key[0]].form == "weights"]
        watched = [key for key in weights if key in self.edited]
        return [
            *(site_hook(key, _check_rows) for key in watched),
            *edit_hooks(self.edits, self.config, self.first, self.entered),
            *(site_hook(key, self._look) for key in dict.fromkeys([*self.keep, *self.reductions])),
        ]

    def _look(self, key: Key, value: Tensor) -> None:
        """Called at each site that is wanted: take its value down."""
        site = SITES[key[0]]
        if site.form == "weights" and key not in self.edited:
            _check_rows(key, value)
        if self.graph:
            self.live[key] = value
        shown = site.present(value.detach(), self.n_heads).float().cpu()
        if key in self.keep:
            self.values[key] = shown
        self.reduce(key, shown)

    def reduce(self, key: Key, new: Tensor | None) -> None:
        if key in self.reductions:
            whole = self._after(key, new).joined()
            for reduction in self.reductions[key]:
                self.reduced[reduction].append(reduction.of(whole))

    def _after(self, key: Key, new: Tensor | None) -> Rows:
        """A site of all tokens: the earlier ones' rows, and these."""
        if self.before is None:
            assert new is not None
            return Rows([new], SITES[key[0]].form == "weights")
        earlier = self.before.pieces(key)
        if new is None:
            return earlier
        return earlier.then(new)

    def rows(self, key: Key, past: Past | None) -> Rows:
        """The rows that are kept of a site; those of a float32 past are not kept twice."""
        name, block = key
        in_past = SITES[name].in_past
        if past is not None and past.is_float32 and in_past is not None and block is not None:
            return Rows([past.kept(in_past, block)[0]], weights=False)
        return self._after(key, self.values.get(key))

    def check(self) -> None:
        """Raise CaptureError if the pass did not come by everything that was wanted."""
        missing = [key for key in self.keep if key not in self.values]
        for reduction, results in self.reduced.items():
            wanted = [key for key, here in self.reductions.items() if reduction in here]
            missing += wanted[len(results) :]
        if missing:
            raise CaptureError(f"the pass never came by {missing[0]}: it has no numbers, so none are shown")


def site_hook(key: Key, visit: Callable[[Key, Tensor], None]) -> forward.Hook:
    """A hook at a site of a pass: `visit` gets its key and the model's tensor."""
    site = SITES[key[0]]
    return forward.Hook(site.module.format(b=key[1]), site.side, partial(visit, key))


def _check_rows(key: Key, weights: Tensor) -> None:
    worst = (weights.sum(dim=-1, dtype=torch.float32) - 1).abs().max().item()  # (1, H, T)
    if not worst < (1e-3 if weights.dtype == torch.float32 else 2e-2):
        raise CaptureError(f"the rows at {key} do not sum to 1 (off by {worst:.3g}): that is not attention")
