"""Capture: run a model on a text once, and keep the numbers inside it as a Trace.

A "site" is a place in the model whose numbers can be kept or replaced, such as the attention weights of a
block; `sites.sites_of` gives the table of them, and this module reads from it where each one is. A key is a site
and its block, such as ("attn", 3). A trace of a long text is "lean": it keeps only some sites, and
`again` runs a block once more when somebody asks for another site of it.

Shapes: T tokens, D emb_dim, H heads, K groups of heads, d head_dim.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from gptviz.engine import forward
from gptviz.engine.architecture import architecture_of
from gptviz.engine.editing import edit_hooks
from gptviz.engine.edits import Edit
from gptviz.engine.gradient import Gradient, Metric, gradient
from gptviz.engine.kinds import Config
from gptviz.engine.loaded import Loaded
from gptviz.engine.past import Past
from gptviz.engine.reduction import Reduction, reductions
from gptviz.engine.rows import Rows
from gptviz.engine.run import common_prefix
from gptviz.engine.site import Site
from gptviz.engine.sites import (
    INTO_BLOCK,
    Key,
    all_keys,
    between_blocks,
    expand,
    held_keys,
    sites_of,
)
from gptviz.engine.tokens import tokens_of
from gptviz.engine.trace import Trace
from gptviz.engine.weights import fingerprint


class CaptureError(RuntimeError):
    """The model has no such module as the table of sites says, or its attention weights do not sum to 1."""


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
    """Run the model once on `ids` and return the Trace. The parameters are those of `LanguageModel.trace`.

    Args:
        keep: the sites to keep; None for all. All sites of a long text make a lean Trace, which holds only
            what `held_keys` says. An edit by a Python function makes no lean Trace, as running a block again
            might call a function that does something else the next time.
        edits: the edits, already checked.
        ready: the same edits with their values as numbers (`gptviz.engine.reader.ready`).
        reduce: reductions to compute during the pass.
        after: an earlier trace; the tokens that both texts begin with are not run again, if possible.
        grad: a difference of logits to differentiate. Only then is the output head part of the pass.

    Raises ValueError for a site, block or token that does not exist, before anything runs; CaptureError if a
    site was never reached or attention rows do not sum to 1.
    """
    model = lm.model
    config = lm.config
    keys = expand(keep, config)
    keys_held = held_keys(config, len(ids), at_once)
    reduce = reductions(reduce)
    lean = keep is None and grad is None and not any(edit.is_function for edit in edits)
    lean = lean and len(keys_held) < len(keys)
    if lean:
        keys = keys_held
    weights = fingerprint(model)
    before = None
    if after is not None and grad is None:
        before = _beginning(after, lm, ids, edits, keys)
        if before is not None and not before.holds([wanted.site for wanted in reduce]):
            # a reduction needs the site's earlier rows, which this trace does not hold
            before = None
    n_known = 0 if before is None else len(before)
    gradients: Gradient | None = None
    pass_ = _Pass(config, [*keys, ("final", None)], ready, reduce, before, graph=grad is not None)
    if before is None:
        past = None
    else:
        past = before.past(model)
    if n_known < len(ids):
        callers_mode = torch.is_inference_mode_enabled() and grad is None
        with torch.inference_mode(callers_mode), forward.running(model, graph=grad is not None):
            in_idx = lm.batch(ids[n_known:])  # (1, T)
            # (1, T, D)
            final = forward.hidden(model, in_idx, pass_.hooks(), past, graph=grad is not None)
            pass_.check()
            if grad is not None:
                logits = forward.logits_of(model, final[0, grad.position], graph=True)
                gradients = gradient(grad, logits, {key: pass_.live[key] for key in keys}, config)
    else:
        for key in pass_.reductions:  # no token is new, so only the reductions are left to compute
            pass_.reduce(key, None)
    if before is None:
        tokens = []
    else:
        tokens = before.tokens
    values = {key: pass_.rows(key, past) for key in keys}
    if lean:
        unedited = [pair for pair in between_blocks(config) if pair[1] not in pass_.edited]
        values |= {out: values[into] for out, into in unedited}
    tokens = [*tokens, *tokens_of(lm.tokenizer, ids[n_known:], n_known)]
    rows = pass_.rows(("final", None), past)
    reduced = {reduction: pass_.reduced[reduction] for reduction in reduce}
    return Trace(lm, weights, tokens, values, rows, edits, reduced, past, gradients, lean)


def together(
    lm: Loaded, texts: Sequence[Sequence[int]], at_once: Iterable[str | Key] = ()
) -> list[Trace]:
    """Trace several texts in one pass of a model without edits. Shorter texts are padded at their end."""
    model = lm.model
    config = lm.config
    sites = sites_of(config)
    longest = max(texts, key=len)
    keys_held = [held_keys(config, len(ids), at_once) for ids in texts]
    weights = fingerprint(model)
    seen = dict[Key, Tensor]()
    wanted: list[Key] = [*(key for keys in keys_held for key in keys), ("final", None)]
    hooks = [site_hook(sites, key, seen.__setitem__) for key in dict.fromkeys(wanted)]
    # pad with tokens of the longest text; the causal mask hides them from the text's own tokens
    in_idx = [[*ids, *longest[len(ids) :]] for ids in texts]  # (b, T)
    with torch.inference_mode(torch.is_inference_mode_enabled()):
        forward.hidden(model, torch.tensor(in_idx, device=model.tok_emb.weight.device), hooks)

    def rows(key: Key, text: int) -> Rows:
        name, _ = key
        site = sites[name]
        value = seen[key]  # (b, T, D) or (b, H, T, T); for pos_emb (T, D)
        shown = site.present(value if value.dim() == 2 else value[text, None], config)
        piece = Rows([shown.float().cpu()], site.form == "weights").cut(len(texts[text])).joined()
        if site.form == "weights":
            _check_rows(key, piece)
        # a clone, which does not keep the batch alive
        return Rows([piece.clone()], site.form == "weights")

    traces = []
    for text, (ids, keys) in enumerate(zip(texts, keys_held, strict=True)):
        # sites with the same numbers (a block's output, the next one's input) share their memory
        places = {
            key: (seen[key].data_ptr(), sites[key[0]].form) for key in [*keys, ("final", None)]
        }
        rows_at = {place: rows(key, text) for key, place in places.items()}
        values = {key: rows_at[places[key]] for key in keys}
        lean = len(keys) < len(all_keys(config))
        if lean:
            values |= {out: values[into] for out, into in between_blocks(config)}
        tokens = tokens_of(lm.tokenizer, ids)
        final = rows_at[places["final", None]]
        traces.append(Trace(lm, weights, tokens, values, final, lean=lean))
    return traces


def again(
    lm: Loaded, trace: Trace, ready: Sequence[Edit], block: int, attention: bool
) -> dict[Key, Tensor]:
    """Run one block again for the sites of it that a lean trace does not hold, and return their numbers.

    `attention` says which: the sites inside the block's attention, or all others. The block starts from its
    input, the residual stream, which the trace holds; the edits in `ready` are made again.
    """
    missing = [key for key in all_keys(lm.config) if key[1] == block and key not in trace.held]
    sites = sites_of(lm.config)
    keys = [key for key in missing if sites[key[0]].in_attention == attention]
    pass_ = _Pass(
        lm.config, keys, [edit for edit in ready if edit.block == block], (), None, entered=block
    )
    trace = trace.uncopied()
    stream = trace[INTO_BLOCK, block][None].to(lm.model.tok_emb.weight)  # (1, T, D)
    k, v = ((name, block) for name in architecture_of(lm.config).past)
    has_both = k in trace.held and v in trace.held
    known = (trace[k][None], trace[v][None]) if has_both else None  # (1, H, T, d) each
    forward.block_again(lm.model, block, stream, known, pass_.hooks(), attention)
    pass_.check()
    return pass_.values


def _beginning(
    after: Trace, lm: Loaded, ids: Sequence[int], edits: tuple[Edit, ...], keys: Iterable[Key]
) -> Trace | None:
    """The part of an earlier trace that these ids begin with, if it can be used; else None."""
    after.of(lm.model)
    same = after.config == lm.config and after.edits == edits
    sites = sites_of(lm.config)
    needed = {*keys, *(key for key in all_keys(lm.config) if sites[key[0]].in_past)}
    if not same or not needed <= set(after.sites()) or not all(edit.is_causal for edit in edits):
        return None
    n_known = common_prefix([token.id for token in after.tokens], list(ids))
    if n_known:
        return after.cut(n_known)
    return None


class _Pass:
    """The hooks of one forward pass, and the numbers that they keep.

    `hooks` is given to `forward.hidden`. Afterwards `values` has the tensor of each kept site, as a Trace
    hands it out, and `reduced` the results of each reduction.
    """

    def __init__(
        self,
        config: Config,
        keys: Iterable[Key],
        edits: Sequence[Edit],
        reduce: Sequence[Reduction],
        before: Trace | None,
        graph: bool = False,
        entered: int | None = None,
    ):
        self.entered = entered  # the block at which the pass begins; None: at the embeddings
        # with `graph`: the model's own tensors, to differentiate by
        self.live: dict[Key, Tensor] = {}
        self.graph = graph
        self.config = config
        self.sites = sites_of(config)
        self.before = before  # the trace of the tokens that stand before those of this pass
        if before is None:
            self.first = 0
        else:
            self.first = len(before)
        self.keep = dict.fromkeys(keys)
        self.values: dict[Key, Tensor] = {}
        self.edits = edits
        self.edited = {
            (block_edit.site, block_edit.block)
            for edit in edits
            for block_edit in edit.each(config.n_layers)
        }
        self.reductions: dict[Key, list[Reduction]] = {}
        self.reduced: dict[Reduction, list[Any]] = {}
        for reduction in reduce:
            if reduction.name in {other.name for other in self.reduced}:
                raise ValueError(
                    f"two reductions are called {reduction.name!r}; give each its own name"
                )
            self.reduced[reduction] = []
            for key in expand([reduction.site], config):
                self.reductions.setdefault(key, []).append(reduction)

    def hooks(self) -> list[forward.Hook]:
        """The hooks of this pass; those that record come last, so that they see the edited values."""
        weights = [key for key in all_keys(self.config) if self.sites[key[0]].form == "weights"]
        watched = [key for key in weights if key in self.edited]
        return [
            # before the edits, which may break the sums
            *(site_hook(self.sites, key, _check_rows) for key in watched),
            *edit_hooks(self.edits, self.config, self.first, self.entered),
            *(
                site_hook(self.sites, key, self._record)
                for key in dict.fromkeys([*self.keep, *self.reductions])
            ),
        ]

    def _record(self, key: Key, value: Tensor) -> None:
        """Keep the model's tensor at a site, and compute the reductions of it; a hook calls this."""
        site = self.sites[key[0]]
        if site.form == "weights" and key not in self.edited:
            _check_rows(key, value)
        if self.graph:
            self.live[key] = value
        shown = site.present(value.detach(), self.config).float().cpu()
        if key in self.keep:
            self.values[key] = shown
        self.reduce(key, shown)

    def reduce(self, key: Key, new: Tensor | None) -> None:
        """Compute the reductions of a site, from its earlier rows and `new` ones (None: there are none)."""
        if key in self.reductions:
            value = self._after(key, new).joined()
            for reduction in self.reductions[key]:
                self.reduced[reduction].append(reduction.of(value))

    def _after(self, key: Key, new: Tensor | None) -> Rows:
        """A site's rows for all tokens: those of the trace before, then the new ones."""
        if self.before is None:
            assert new is not None
            return Rows([new], self.sites[key[0]].form == "weights")
        earlier = self.before.pieces(key)
        if new is None:
            return earlier
        return earlier.then(new)

    def rows(self, key: Key, past: Past | None) -> Rows:
        """A site's rows as the Trace keeps them. Keys and values share their memory with a float32 `past`."""
        name, block = key
        in_past = self.sites[name].in_past
        if past is not None and past.is_float32 and in_past is not None and block is not None:
            return Rows([past.kept(in_past, block)[0]], weights=False)
        return self._after(key, self.values.get(key))

    def check(self) -> None:
        """Raise CaptureError if a site that was to be kept or reduced was never reached."""
        missing = [key for key in self.keep if key not in self.values]
        for reduction, results in self.reduced.items():
            wanted = [key for key, at_key in self.reductions.items() if reduction in at_key]
            missing += wanted[len(results) :]
        if missing:
            raise CaptureError(
                f"the pass never came by {missing[0]}: it has no numbers, so none are shown"
            )


def site_hook(
    sites: Mapping[str, Site], key: Key, visit: Callable[[Key, Tensor], None]
) -> forward.Hook:
    """A hook that calls `visit` with the key of a site of this table and the model's tensor there."""
    site = sites[key[0]]
    return forward.Hook(site.module.format(b=key[1]), site.side, partial(visit, key))


def _check_rows(key: Key, weights: Tensor) -> None:
    """Raise CaptureError unless each row of the attention weights, (..., T, K), sums to 1."""
    worst = (weights.sum(dim=-1, dtype=torch.float32) - 1).abs().max().item()  # of (..., T) sums
    if not worst < (1e-3 if weights.dtype == torch.float32 else 2e-2):
        raise CaptureError(
            f"the rows at {key} do not sum to 1 (off by {worst:.3g}): that is not attention"
        )
