"""Trace: the numbers inside a model during one forward pass on one text.

`gptviz.engine.capture` makes traces. A trace hands out each site's numbers as a tensor (a "site" is a place
in the model, such as the attention weights of a block: see `gptviz.SITES`), and works out what follows from
them: logits, next tokens, the loss, tables. A trace of a long text is "lean": it holds only some sites, and
runs a block once more when another one is asked for.

Shapes: T tokens, L blocks, D emb_dim, H heads.
"""

import weakref
from collections.abc import Container, Iterable
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from gptviz.engine.above import ask
from gptviz.engine.architecture import architecture_of
from gptviz.engine.copies import copied
from gptviz.engine.edits import Edit
from gptviz.engine.forward import checked
from gptviz.engine.gradient import Gradient
from gptviz.engine.index import index_of, of_kind, whole_number
from gptviz.engine.kinds import Model
from gptviz.engine.layer_norms import NormStatistics, kept_norms, norm_statistics
from gptviz.engine.loaded import Loaded
from gptviz.engine.opened import Opened, opened
from gptviz.engine.past import Past
from gptviz.engine.reduction import Reduction, reductions
from gptviz.engine.rows import Rows
from gptviz.engine.sampling import Sampling, next_tokens_of
from gptviz.engine.showing import Showing
from gptviz.engine.sites import Key, all_keys, check_key, expand, key_of, sites_of
from gptviz.engine.sizes import nbytes_of
from gptviz.engine.tokens import Token
from gptviz.engine.undisturbed import undisturbed
from gptviz.engine.weights import AModel, Fingerprint, fingerprint, model_of, same, stamp
from gptviz.fast import kernels
from gptviz.tokenizer.one import Against, OneToken, one_token


class Trace(Showing):
    """The numbers that one forward pass computed. What it hands out is a copy: write into it as you like.

    `trace["attn", 3]` is a site of one block (-1: the last one), `trace["attn"]` the same site of all blocks,
    with one dimension more in front, and `trace["embed"]` a site outside the blocks. `sites()` lists the
    sites that there are. `reduced(name)` gives what a reduction computed during the pass. `edits` are the
    edits of the pass. Tensors are float32 on the CPU. A trace belongs to the weights that made it: see `of`.

    All sites of a long text would take too much memory: 1.2 GB for 1,024 tokens of GPT-2. Such a trace is
    lean: it holds the input, keys and values of each block (126 MB). For any other site it runs the block
    once more, with the same weights, which must still be in memory and unchanged. The blocks that were run
    most recently are kept (`gptviz.engine.opened`).

    A trace holds its model, for the methods that need it (`lm`, `show`, `attribution`). One that is
    `released` holds only the weights of the output head (the same tensor, no copy) and of the LayerNorms, for
    logits and LayerNorm statistics. `nbytes` counts what it holds beyond those.

    A trace that was taken after another (`lm.trace(ids, after=earlier)`) shares the earlier rows with it. A
    site that is held in several pieces is joined each time that somebody asks for it; `rows` joins only some.
    """

    def __init__(
        self,
        lm: Loaded,
        weights: Fingerprint,
        tokens: list[Token],
        values: dict[Key, Rows],
        final: Rows,
        edits: tuple[Edit, ...] = (),
        reduced: dict[Reduction, list[Any]] | None = None,
        past: Past | None = None,
        grad: Gradient | None = None,
        lean: bool = False,
    ):
        self.name = lm.name
        self.config = lm.config
        self._tokens = tokens
        self.tokenizer = lm.tokenizer
        self._values = values
        self._final = final  # for the logits, even if `keep` leaves the site out
        self._head = lm.model.out_head.weight.detach()
        self._head_was = stamp(self._head)  # to refuse logits once the head has changed
        self._norms = kept_norms(lm.model)
        self.edits = edits
        if reduced is None:
            self._reduced = {}
        else:
            self._reduced = reduced
        self._past = past  # keys and values of all its tokens, if the pass came after another trace
        self._grad = grad
        # whether a site that is not held is worked out by running its block again
        self._lean = lean
        self._opened = Opened()
        self.hands_out_copies = True
        # the fingerprint of the weights that made it, which may change later
        self._weights = weights
        self._held: Model | None = lm.model  # keeps the model in memory, until `released`
        self._model = weakref.ref(lm.model)

    def __len__(self) -> int:
        return len(self._tokens)

    @property
    def tokens(self) -> list[Token]:
        """The tokens of the text, in order."""
        return list(self._tokens)

    def __repr__(self) -> str:
        edits = ""
        if self.edits:
            if len(self.edits) == 1:
                edits = ", 1 edit"
            else:
                edits = f", {len(self.edits)} edits"
        return f"Trace({self.name!r}, {len(self)} tokens{edits}, {self.nbytes / 2**20:.1f} MB)"

    def __getitem__(self, key: str | Key) -> Tensor:
        """The numbers of a site: `t["attn", 3]` of block 3, `t["attn"]` of all blocks, `t["embed"]`.

        A site is a row of `gptviz.SITES`; `t.sites()` lists those of this trace. Blocks count from 0; -1 is
        the last one. Shapes: (T, D) for embeddings and for what goes into, between and out of the blocks,
        (H, T, D/H) for `q`, `k`, `v` and `z`, (H, T, T) for `attn`, (T, 4D) inside the feed-forward; of all
        blocks with one dimension more in front. Where heads share a key and a value, those are (K, T, d).
        Index a head, a token or a dimension as in any tensor:
        `t["attn", 3][1, -1]` are the attention weights of the last token in head 1.

        Raises ValueError for a site or a block that does not exist, and for one that was not kept.
        """
        sites = sites_of(self.config)
        if isinstance(key, str) and key in sites and sites[key].per_block:
            # L tensors of the site's shape -> (L, ...)
            return torch.stack(
                [self._values_of((key, block)) for block in range(self.config.n_layers)]
            )
        rows = self._rows_of(check_key(*key_of(key), self.config))
        if self.hands_out_copies:
            return rows.copied()
        return rows.joined()

    def _ipython_key_completions_(self) -> list[str | Key]:
        """What IPython offers to complete `trace["` with: each site, then each (site, block)."""
        keys = self.sites()
        return [
            *dict.fromkeys(site for site, _ in keys),
            *(key for key in keys if key[1] is not None),
        ]

    def rows(
        self, site: str, block: int | None = None, start: int = 0, stop: int | None = None
    ) -> Tensor:
        """A site's rows for the tokens from `start` to before `stop` (as in a slice, None is the end).

        n rows are (n, D), (H, n, D/H) or, for `attn`, (H, n, stop): the weights of the keys before `stop`.
        It is cheaper than `trace[site, block]`, since no other rows are joined: `trace.rows("attn", 3, -1)`
        is (H, 1, T), the attention weights of the last token.
        """
        site_rows = self._rows_of(check_key(site, block, self.config))
        ends = (None if end is None else index_of("position", end, None) for end in (start, stop))
        first, end, _ = slice(*ends).indices(len(self))
        if first >= end:
            raise ValueError(f"there are no tokens from {start} to before {stop} among {len(self)}")
        rows = site_rows.between(first, end)
        if self.hands_out_copies:
            return rows.clone()
        return rows

    def uncopied(self) -> "Trace":
        """The same trace, but it hands out its own tensors, not copies: for functions that only read them.

        The attention weights of one block are 48 MB at 1,024 tokens of GPT-2; to copy them often takes as
        long as the computation that needs them.
        """
        if not self.hands_out_copies:
            return self
        return self._with(_opened=self._opened, hands_out_copies=False)

    def _values_of(self, key: Key) -> Tensor:
        return self._rows_of(key).joined()

    def pieces(self, key: Key) -> Rows:
        """A site's rows in the pieces in which they are held, for a trace that goes on from this one."""
        if key == ("final", None):
            return self._final
        return self._rows_of(key)

    def of(self, model: AModel) -> Model:
        """The model, if its weights made this trace (see `gptviz.engine.weights`); ValueError otherwise."""
        model = model_of(model)
        same(model, self._weights, f"this trace of {self.name} was", "trace the text")
        return model

    def _rows_of(self, key: Key) -> Rows:
        if key not in self._values:
            if self._lean:
                return Rows(
                    [opened(self, self._opened, key)],
                    sites_of(self.config)[key[0]].form == "weights",
                )
            kept_sites = ", ".join(dict.fromkeys(site for site, _ in self._values)) or "none"
            raise ValueError(
                f"{key} was not kept in this trace (it has {kept_sites}); trace again and keep it"
            )
        return self._values[key]

    @property
    def grad(self) -> Gradient:
        """The gradient of a difference of two logits with respect to each number.

        Raises ValueError if `lm.trace` was called without `grad`.
        """
        if self._grad is None:
            raise ValueError(
                'this trace has no gradient; trace with grad=(" mill", " barn"), or one token'
            )
        return self._grad

    def sites(self) -> list[Key]:
        """The (site, block) pairs that this trace can give, in the order of the pass."""
        if self._lean:
            return all_keys(self.config)
        return list(self._values)

    @property
    def held(self) -> Container[Key]:
        """The (site, block) pairs that this trace can give without running a block once more."""
        return self._values.keys()

    @undisturbed
    def reduced(self, name: str | Reduction) -> list[Any]:
        """The results of the reduction called `name`: a list with one per block, in order.

        Given a Reduction instead of a name, compute it now if the pass did not. Raises ValueError for a name
        that the pass had no reduction of.
        """
        for reduction, results in self._reduced.items():
            if name in (reduction.name, reduction):
                if self.hands_out_copies:
                    return copied(results)
                return list(results)
        if isinstance(name, Reduction):
            computed = [name.of(self._values_of(key)) for key in expand([name.site], self.config)]
            if self.hands_out_copies:
                return copied(computed)
            return computed
        names = ", ".join(reduction.name for reduction in self._reduced) or "none"
        raise ValueError(
            f"this trace has no reduction {name!r}, but {names}; trace again with reduce=[...]"
        )

    def holds(
        self, keep: Iterable[str | Key] | None = None, reduce: Iterable[Reduction] = ()
    ) -> bool:
        """Whether the trace holds all these sites (None: every site) and these reductions.

        Raises ValueError for sites and blocks that do not exist.
        """
        has_reductions = self._reduced.keys() >= set(reductions(reduce))
        return has_reductions and self._values.keys() >= set(expand(keep, self.config))

    def joined(self, other: "Trace") -> "Trace":
        """One trace with everything that this one and `other` hold. Nothing is copied.

        Both must be of the same text, model and edits; raises ValueError otherwise, or if two different
        reductions have the same name, or if both have a gradient.
        """
        of_kind("other", other, Trace, "give a trace of the same pass")
        for what, mine, theirs in (
            ("models", self.name, other.name),
            ("models", self.config, other.config),
            ("tokens", [token.id for token in self._tokens], [token.id for token in other._tokens]),
            ("edits", self.edits, other.edits),
        ):
            if mine != theirs:
                raise ValueError(
                    f"these traces cannot be joined: their {what} differ, {mine} and {theirs}"
                )
        if self._weights != other._weights:
            raise ValueError(
                f"these traces cannot be joined: two different models are called {self.name!r}, or its "
                "weights were changed in between"
            )
        names = {reduction.name: reduction for reduction in self._reduced}
        for reduction in other._reduced:
            if names.get(reduction.name, reduction) != reduction:
                raise ValueError(
                    f"these traces cannot be joined: each has its own reduction {reduction.name!r}"
                )
        if self._grad is not None and other._grad is not None and self._grad is not other._grad:
            raise ValueError(
                "these traces cannot be joined: each has its own gradient; leave grad out of one"
            )
        values = other._values | self._values
        return self._with(
            _values={key: values[key] for key in all_keys(self.config) if key in values},
            _reduced=other._reduced | self._reduced,
            _past=self._past or other._past,
            _lean=self._lean or other._lean,
            _grad=self._grad or other._grad,
        )

    def cut(self, n: int) -> "Trace":
        """The trace of the first n tokens, without a pass: later tokens change nothing before them.

        The two traces share their rows. The new one has no reductions, since those are of all tokens. Raises
        ValueError unless n is from 1 to the number of tokens, and if an edit depends on the whole text.
        """
        if not 1 <= (whole_number(n) or 0) <= len(self):
            raise ValueError(f"this trace has {len(self)} tokens; it cannot be cut to {n!r}")
        not_causal = next((edit for edit in self.edits if not edit.is_causal), None)
        if not_causal is not None and n < len(self):
            raise ValueError(
                f"the edit {not_causal} depends on the whole text: trace the beginning by itself"
            )
        return self._with(
            _tokens=self._tokens[:n],
            _values={key: rows.cut(n) for key, rows in self._values.items()},
            _final=self._final.cut(n),
            _reduced={},
            _grad=None,
            _past=None if self._past is None else self._past.cut(n),
        )

    def _with(self, **changed: Any) -> "Trace":
        trace = object.__new__(Trace)
        trace.__dict__.update(self.__dict__ | {"_opened": Opened()} | changed)
        trace.__dict__.pop("nbytes", None)  # the cached number of the old one
        return trace

    def __deepcopy__(self, memo: object = None) -> "Trace":
        return self  # nobody can change a trace, and a copy would need a copy of the model

    __copy__ = __deepcopy__

    def __getstate__(self) -> dict[str, Any]:
        """The state to pickle. Raises ValueError unless the trace was made by `sent`."""
        if self._model is not None:
            raise ValueError(
                f"a trace of {self.name} belongs to a model in memory, and cannot be pickled: keep the text "
                "or its ids, and trace them again where the model is"
            )
        return self.__dict__

    def only(self, key: Key) -> "Trace":
        """The same trace with this site held, and no block ever run again, for use inside another pass.

        There, to run a block would be a pass within the pass, on the same model. A lean trace gives only this
        site. Tensors are handed out without a copy, as a pass writes into none.
        """
        if self._lean:
            values = {key: self._rows_of(key)}
        else:
            values = self._values
        return self._with(_lean=False, _values=values, hands_out_copies=False)

    def released(self) -> "Trace":
        """The same trace without its model, so that keeping the trace does not keep the model in memory."""
        return self._with(_held=None)

    def sent(self) -> "Trace":
        """The same trace without anything of its model, to be pickled for another process that has the model.

        That process calls `received` on it. Until then it can only give its tokens and the sites that it holds.
        """
        in_model = ("tokenizer", "_head", "_norms", "_weights", "_held", "_model", "_past")
        return self._with(**dict.fromkeys(in_model))

    def received(self, lm: Loaded) -> "Trace":
        """The trace again, after another process has `sent` it; `lm` is the same model in this one.

        Its gradient is left out, and `past` is made anew when it is asked for. That `lm` has the same weights
        is not checked.
        """
        weights = fingerprint(lm.model)
        parts = (self._tokens, self._values, self._final)
        return Trace(lm, weights, *parts, self.edits, self._reduced, lean=self._lean)

    @undisturbed
    def past(self, model: AModel) -> Past:
        """The keys and values of all blocks, for a pass over more tokens after these (a KV cache).

        They are those of the pass, with its edits. Raises ValueError if the sites `k` and `v` were not kept,
        and for another model than the one that made this trace.
        """
        model = self.of(model)
        if self._past is not None:
            return self._past.cut(len(self))  # a new one: a pass appends to the one it is given
        blocks = range(self.config.n_layers)
        keys, values = (
            [self._values_of((site, b)) for b in blocks] for site in architecture_of(model).past
        )
        return Past.of(model, keys, values)

    @cached_property
    def nbytes(self) -> int:
        """Bytes of what it holds. Sites that share memory (resid_post of block 0, resid_pre of 1) count once.

        Blocks that were run once more do not count. Rows that two traces share count in each of them.
        """
        pieces = [part for rows in (*self._values.values(), self._final) for part in rows.parts]
        if self._past is None:
            memory = []
        else:
            memory = [self._past.memory()]
        if self._grad is None:
            grads = []
        else:
            grads = [self._grad]
        reduced = [result for results in self._reduced.values() for result in results]
        return nbytes_of(*pieces, *memory, *grads, *reduced)

    @undisturbed
    def logits(self, position: int | None = None) -> Tensor:
        """The logits after every token, (T, vocab_size); with a `position`, those after it, (vocab_size,).

        Raises ValueError for a position out of range, if the model's output head was changed since the pass,
        and for logits that are NaN or infinite.
        """
        if stamp(self._head) != self._head_was:
            raise ValueError(
                "the model's output head was changed since this trace: trace the text again"
            )
        if position is None:
            first = 0
        else:
            first = self.place_of(position)
        final = self._final.between(first, len(self) if position is None else first + 1).to(
            self._head
        )
        # (T, D) or (1, D), x (V, D) -> (T, V) or (1, V)
        rows = checked(kernels.linear(final, self._head).float().cpu())
        if position is None:
            return rows
        return rows[0]

    @undisturbed
    def next_tokens(
        self,
        k: int = 10,
        position: int = -1,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
    ) -> pd.DataFrame:
        """The `k` most probable next tokens: rank (from 1), id, token, logit, probability.

        Probabilities are over the whole vocabulary, after temperature, top-k and top-p, so the rows sum to
        less than 1 when other tokens have a probability, too. The logits are the model's own.
        """
        return next_tokens_of(
            self.tokenizer,
            self.logits(self.place_of(position)),
            k,
            Sampling(temperature, top_k, top_p),
        )

    @undisturbed
    def loss(self) -> float:
        """The mean loss of the text in nats per token: minus the logarithm of each next token's probability.

        It is the book's cross entropy, over all tokens but the first, which is predicted by nothing; its
        exponential is the perplexity. Raises ValueError for a text of one token.
        """
        if len(self) < 2:
            raise ValueError(
                "a text of one token has no next token, and so no loss: trace two or more"
            )
        targets = torch.tensor([token.id for token in self.tokens[1:]])
        return float(torch.nn.functional.cross_entropy(self.logits()[:-1], targets))

    @undisturbed
    def table(self, site: str, block: int | None = None, head: int | None = None) -> pd.DataFrame:
        """A site's numbers as a table with a row per token.

        Examples: `t.table("attn", 3, 1)`, `t.table("resid_post", 3)`. The columns of attention weights are
        the keys (0 where the causal mask hides one); those of all other sites are the dimensions, from 0.
        Sites that are split by heads (attn, q, k, v, z) need a `head`.

        Raises ValueError for a site, a block or a head that does not exist, is missing, or is one too many.
        """
        key = check_key(site, block, self.config)
        row = sites_of(self.config)[site]
        form = row.form
        count = row.count(self.config)
        if form == "rows" and head is not None:
            raise ValueError(
                f"{site} has no heads: ask for t.table({site!r}, ...) without the head {head!r}"
            )
        if form != "rows" and head is None:
            raise ValueError(
                f"{site} has a table for each {row.part}, from 0 to {count - 1}: "
                f"t.table({site!r}, {block}, {row.part})"
            )
        numbers = self[key]
        if form != "rows":
            numbers = numbers[index_of(row.part, head, count)]
        names = [token.shown for token in self.tokens]
        if form == "weights":
            queries = pd.Index(names, name="query")
            return pd.DataFrame(numbers.numpy(), queries, pd.Index(names, name="key"))
        return pd.DataFrame(numbers.numpy(), pd.Index(names, name="token"))

    @undisturbed
    def norms(self) -> pd.DataFrame:
        """A row per LayerNorm and position: mean and (biased) variance over the D numbers, before and after.

        Columns: norm, block (<NA> for the final one), position, token, mean, variance, mean_after,
        variance_after. "After" is after scale and shift. Needs resid_pre, resid_mid and the last
        resid_post in the trace.
        """
        statistics = self.norm_statistics()
        tokens = len(self)
        return pd.DataFrame(
            {
                "norm": np.repeat(statistics.names, tokens).astype(object),
                "block": pd.array(
                    [norm.block for norm in self._norms for _ in range(tokens)], dtype="Int64"
                ),
                "position": np.tile(np.arange(tokens), len(statistics.names)),
                "token": [token.shown for token in self._tokens] * len(statistics.names),
                **{column: statistics.grid(column).ravel() for column in NormStatistics.COLUMNS},
            }
        )

    @undisturbed
    def norm_statistics(self) -> "NormStatistics":
        """The numbers of `norms()` as arrays with a row per LayerNorm and a column per token."""
        return norm_statistics(self._norms, self._values_of)

    # ---- what needs the model as well: `ask` calls functions of modules that this one cannot import, since they
    # import it (see `gptviz.engine.above`) ----

    @property
    def lm(self) -> Any:
        """The LanguageModel that made it, with the edits of the pass.

        Raises ValueError if the model is no longer in memory.
        """
        model = self._model()
        if model is None:
            raise ValueError(
                f"the model of this trace of {self.name} was released, and nobody holds it any longer: "
                "trace the text again"
            )
        return ask("trace.lm", self.of(model), self.tokenizer, self.config, self.name, self.edits)

    def to_html(self, path: str | Path) -> Path:
        """Write `show()` as one HTML file, which any browser opens offline, and return its path."""
        return self.show().to_html(path)

    def _repr_html_(self) -> str:
        """The tokens and all heads, or the text of `repr` if the trace did not keep the heads."""
        if self._has_heads:
            return self.show()._repr_html_()
        return f"<code>{escape(repr(self))}</code>"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """The same picture in each format that a notebook keeps: see `gptviz.ui.notebook.Picture`."""
        if self._has_heads:
            shown = self.show()._repr_mimebundle_()
        else:
            shown = {"text/html": self._repr_html_()}
        return shown | {"text/plain": repr(self)}

    @property
    def _has_heads(self) -> bool:
        return self._lean or self.holds(["attn", "z"])

    def attribution(
        self, token: OneToken, against: Against = None, position: int = -1
    ) -> pd.DataFrame:
        """What each part of the model adds to the token's logit: see `gptviz.analysis.attribution`."""
        return ask("trace.attribution", self, self.lm, token, against, position)

    def source_tokens(self, token: OneToken, against: Against = None, position: int = -1) -> Tensor:
        """What each earlier token adds to the logit through each head, (L, H, T).

        See `gptviz.analysis.source_tokens`.
        """
        return ask("trace.source_tokens", self, self.lm, token, against, position)

    def logit_lens(self, position: int = -1) -> Tensor:
        """The logits at every depth of the model, (depths, vocab_size): see `gptviz.analysis.logit_lens`."""
        return ask("trace.logit_lens", self, self.lm, position)

    def token_id(self, token: OneToken, what: str = "token") -> int:
        """The id of a token of the vocabulary, given as an id or as text; see `tokenizer.one.one_token`."""
        return one_token(self.tokenizer, self.config.vocab_size, token, what)

    def place_of(self, position: int) -> int:
        """The position counted from 0. Raises ValueError if the text does not have it."""
        return index_of("position", position, len(self))
