"""Trace: every number that one forward pass of a GPTModel made. `gptviz.engine.capture` makes them."""

import weakref
from collections.abc import Container, Iterable
from functools import cached_property
from html import escape
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from gptviz.engine.copies import copied
from gptviz.engine.edits import Edit
from gptviz.engine.forward import checked
from gptviz.engine.gradient import Gradient
from gptviz.engine.index import index_of, of_kind, whole_number
from gptviz.engine.layer_norms import NormStatistics, kept_norms, norm_statistics
from gptviz.engine.loaded import Loaded
from gptviz.engine.opened import Opened, opened
from gptviz.engine.past import Past
from gptviz.engine.reduction import Reduction, reductions
from gptviz.engine.rows import Rows
from gptviz.engine.sampling import Sampling, next_tokens_of
from gptviz.engine.showing import Showing
from gptviz.engine.sites import SITES, Key, all_keys, check_key, expand, key_of
from gptviz.engine.sizes import nbytes_of
from gptviz.engine.tokens import Token
from gptviz.engine.undisturbed import undisturbed
from gptviz.engine.weights import AModel, Fingerprint, fingerprint, model_of, same, stamp
from gptviz.fast import kernels
from gptviz.model import GPTModel
from gptviz.tokenizer.one import Against, OneToken, one_token


class Trace(Showing):
    """The numbers that one forward pass computed. What it hands out is a copy: write into it as you like.

    `trace["attn", 3]` is a site of a block (-1: the last one), `trace["attn"]` that of all blocks, with one
    dimension more, and `trace["embed"]` one outside the blocks; `sites()` lists what there is,
    `reduced(name)` gives what was made of a site during the pass, `edits` are those of the pass. Tensors are
    CPU float32. It belongs to the weights that made it: see `of`.

    Of a long text everything is too much to hold: 1.2 GB for 1,024 tokens of GPT-2. A trace of everything
    then holds each block's stream, keys and values (126 MB), and works out what else somebody asks for: the
    block is run once more, by the same weights, which must be there and as they were. The last blocks that
    were opened stay (`gptviz.engine.opened`).

    It holds its model, for what needs more of it (`lm`, `show`, `attribution`); one that is `released` holds
    only the output head's weights (the same tensor, no copy) and the LayerNorms', so that logits and
    statistics can be worked out where somebody asks for them. `nbytes` is what it holds beyond those.

    A trace that was taken after another (`lm.trace(ids, after=earlier)`) shares the earlier rows with it; a
    site that has come in pieces is put together each time that somebody asks for it, `rows` for less.
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
        self._final = final
        self._head = lm.model.out_head.weight.detach()
        self._head_was = stamp(self._head)  # it is used as it is now, or not at all
        self._norms = kept_norms(lm.model)
        self.edits = edits
        if reduced is None:
            self._reduced = {}
        else:
            self._reduced = reduced
        self._past = past  # of all its tokens, if they were read in pieces
        self._grad = grad
        self._lean = lean  # what is not held is worked out
        self._opened = Opened()
        self.hands_out_copies = True
        self._weights = weights  # that made it: the model may be trained on
        self._held: GPTModel | None = lm.model
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

        A site is a row of `gptviz.SITES`; `t.sites()` lists those of this trace. Blocks count from 0, -1 is
        the last one. Shapes: (T, D) for rows of the stream, (H, T, D/H) for `q`, `k`, `v` and `z`, (H, T, T)
        for `attn`, (T, 4D) inside the feed-forward; of all blocks with one dimension more in front. A head, a
        token, a dimension are then indexed as in any tensor: `t["attn", 3][1, -1]` is where head 1's last
        token looks.

        Raises ValueError for a site or a block that does not exist, and for one that was not kept.
        """
        if isinstance(key, str) and key in SITES and SITES[key].per_block:
            return torch.stack([self._values_of((key, block)) for block in range(self.config.n_layers)])
        found = self._rows_of(check_key(*key_of(key), self.config.n_layers))
        if self.hands_out_copies:
            return found.copied()
        return found.joined()

    def _ipython_key_completions_(self) -> list[str | Key]:
        """What an editor offers behind `t["`: each site, then each site and block."""
        keys = self.sites()
        return [*dict.fromkeys(site for site, _ in keys), *(key for key in keys if key[1] is not None)]

    def rows(self, site: str, block: int | None = None, start: int = 0, stop: int | None = None) -> Tensor:
        """The rows of the tokens from `start` to before `stop` (as in a slice, None is the end).

        (n, D), (H, n, D/H) or, for `attn`, (H, n, stop): over the keys before `stop`. The rest need not be
        put together for it: `trace.rows("attn", 3, -1)` is (H, 1, T), where its last token looks.
        """
        found = self._rows_of(check_key(site, block, self.config.n_layers))
        ends = (None if end is None else index_of("position", end, None) for end in (start, stop))
        first, end, _ = slice(*ends).indices(len(self))
        if first >= end:
            raise ValueError(f"there are no tokens from {start} to before {stop} among {len(self)}")
        rows = found.between(first, end)
        if self.hands_out_copies:
            return rows.clone()
        return rows

    def uncopied(self) -> "Trace":
        """The same numbers, handed out as they are kept: for functions that write into nothing.

        A block's attention weights are 48 MB at 1,024 tokens of GPT-2, and a copy of them takes as long as
        many of the numbers that are made of them.
        """
        if not self.hands_out_copies:
            return self
        return self._with(_opened=self._opened, hands_out_copies=False)

    def _values_of(self, key: Key) -> Tensor:
        return self._rows_of(key).joined()

    def pieces(self, key: Key) -> Rows:
        """A site as it is held, for a trace that goes on from this one."""
        if key == ("final", None):
            return self._final
        return self._rows_of(key)

    def of(self, model: AModel) -> GPTModel:
        """The model, if its weights made this trace (see `gptviz.engine.weights`); ValueError otherwise."""
        model = model_of(model)
        same(model, self._weights, f"this trace of {self.name} was", "trace the text")
        return model

    def _rows_of(self, key: Key) -> Rows:
        if key not in self._values:
            if self._lean:
                return Rows([opened(self, self._opened, key)], SITES[key[0]].form == "weights")
            kept = ", ".join(dict.fromkeys(site for site, _ in self._values)) or "none"
            raise ValueError(f"{key} was not kept in this trace (it has {kept}); trace again and keep it")
        return self._values[key]

    @property
    def grad(self) -> Gradient:
        """The gradient of a difference of two logits with respect to each number.

        ValueError where `lm.trace` was not asked.
        """
        if self._grad is None:
            raise ValueError('this trace has no gradient; trace with grad=(" mill", " barn"), or one token')
        return self._grad

    def sites(self) -> list[Key]:
        """The (site, block) pairs that there are, held or to be worked out, in the order of the pass."""
        if self._lean:
            return all_keys(self.config)
        return list(self._values)

    @property
    def held(self) -> Container[Key]:
        """The sites that are at hand, without running a block once more."""
        return self._values.keys()

    @undisturbed
    def reduced(self, name: str | Reduction) -> list[Any]:
        """The results of the reduction called `name`: one a block, in order.

        One that is given itself is made now, if the pass did not.
        """
        for reduction, results in self._reduced.items():
            if name in (reduction.name, reduction):
                if self.hands_out_copies:
                    return copied(results)
                return list(results)
        if isinstance(name, Reduction):
            made = [name.of(self._values_of(key)) for key in expand([name.site], self.config)]
            if self.hands_out_copies:
                return copied(made)
            return made
        kept = ", ".join(reduction.name for reduction in self._reduced) or "none"
        raise ValueError(f"this trace has no reduction {name!r}, but {kept}; trace again with reduce=[...]")

    def holds(self, keep: Iterable[str | Key] | None = None, reduce: Iterable[Reduction] = ()) -> bool:
        """Whether all of this was kept by the pass.

        Raises ValueError for sites and blocks that do not exist.
        """
        made = self._reduced.keys() >= set(reductions(reduce))
        return made and self._values.keys() >= set(expand(keep, self.config))

    def joined(self, other: "Trace") -> "Trace":
        """One trace with all that either holds, of two that were taken of the same pass.

        Raises ValueError if they belong to different texts, models or edits, or if two different
        reductions have one name. Nothing is copied.
        """
        of_kind("other", other, Trace, "give a trace of the same pass")
        for what, one, two in (
            ("models", self.name, other.name),
            ("models", self.config, other.config),
            ("tokens", [token.id for token in self._tokens], [token.id for token in other._tokens]),
            ("edits", self.edits, other.edits),
        ):
            if one != two:
                raise ValueError(f"these traces cannot be joined: their {what} differ, {one} and {two}")
        if self._weights != other._weights:
            raise ValueError(
                f"these traces cannot be joined: two different models are called {self.name!r}, or its "
                "weights were changed in between"
            )
        names = {reduction.name: reduction for reduction in self._reduced}
        for reduction in other._reduced:
            if names.get(reduction.name, reduction) != reduction:
                raise ValueError(f"these traces do not join: each has its own reduction {reduction.name!r}")
        values = other._values | self._values
        return self._with(
            _values={key: values[key] for key in all_keys(self.config) if key in values},
            _reduced=other._reduced | self._reduced,
            _past=self._past or other._past,
            _lean=self._lean or other._lean,
            _grad=self._grad or other._grad,
        )

    def cut(self, n: int) -> "Trace":
        """The trace of the first n tokens, with no pass: what stands before sees nothing of what comes after.

        It shares these rows and has no reductions, which are of all tokens. Raises ValueError for another
        number than from 1 to all, and if an edit was one that looks at the whole text.
        """
        if not 1 <= (whole_number(n) or 0) <= len(self):
            raise ValueError(f"this trace has {len(self)} tokens; it cannot be cut to {n!r}")
        unlike = next((edit for edit in self.edits if not edit.is_causal), None)
        if unlike is not None and n < len(self):
            raise ValueError(f"the edit {unlike} depends on the whole text: trace the beginning by itself")
        return self._with(
            _tokens=self._tokens[:n],
            _values={key: rows.cut(n) for key, rows in self._values.items()},
            _final=self._final.cut(n),
            _reduced={},
            _grad=None,
            _past=None if self._past is None else self._past.cut(n),
        )

    def _with(self, **changed: Any) -> "Trace":
        made = object.__new__(Trace)
        made.__dict__.update(self.__dict__ | {"_opened": Opened()} | changed)
        made.__dict__.pop("nbytes", None)
        return made

    def __deepcopy__(self, memo: object = None) -> "Trace":
        return self  # its numbers are not to be written into, and its model is the one that is there

    __copy__ = __deepcopy__

    def __getstate__(self) -> dict[str, Any]:
        """For a pickle. ValueError for all but one that was `sent`."""
        if self._model is not None:
            raise ValueError(
                f"a trace of {self.name} belongs to a model in memory, and cannot be pickled: keep the text "
                "or its ids, and trace them again where the model is"
            )
        return self.__dict__

    def only(self, key: Key) -> "Trace":
        """The same with a site at hand and no block to be opened: for use in the middle of another pass.

        Nothing is copied: a pass writes into nothing.
        """
        if self._lean:
            held = {key: self._rows_of(key)}
        else:
            held = self._values
        return self._with(_lean=False, _values=held, hands_out_copies=False)

    def released(self) -> "Trace":
        """The same, holding no model: for who keeps traces longer than their model. Rows are shared."""
        return self._with(_held=None)

    def sent(self) -> "Trace":
        """The same without all that stands in its model, for another process that has the model: `received`.

        Nothing can be asked of it but its tokens and sites.
        """
        in_model = ("tokenizer", "_head", "_norms", "_weights", "_held", "_model", "_past")
        return self._with(**dict.fromkeys(in_model))

    def received(self, lm: Loaded) -> "Trace":
        """A trace of this model, of the weights as they are now, from what a process has `sent`."""
        weights = fingerprint(lm.model)
        parts = (self._tokens, self._values, self._final)
        return Trace(lm, weights, *parts, self.edits, self._reduced, lean=self._lean)

    @undisturbed
    def past(self, model: AModel) -> Past:
        """The keys and values of all blocks, to read on from: needs `k` and `v`, and the model of this trace.

        The text's own, edits included. Raises ValueError if they were not kept, and for another model.
        """
        model = self.of(model)
        if self._past is not None:
            return self._past.cut(len(self))
        blocks = range(self.config.n_layers)
        keys, values = ([self._values_of((site, b)) for b in blocks] for site in ("k", "v"))
        return Past.of(model, keys, values)

    @cached_property
    def nbytes(self) -> int:
        """Bytes of what it holds; two names of one memory (resid_post 0, resid_pre 1) count once.

        Blocks that were opened do not count. Rows that it shares with another trace count in each of them.
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
        """(T, vocab_size): the logits after every token, in one product; (vocab_size,): after one of them.

        ValueError if there is no such position, if the model's output head was changed since the pass, and
        where the logits are NaN or infinite.
        """
        if stamp(self._head) != self._head_was:
            raise ValueError("the model's output head was changed since this trace: trace the text again")
        if position is None:
            at = 0
        else:
            at = self.place_of(position)
        final = self._final.between(at, len(self) if position is None else at + 1).to(self._head)
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

        Probabilities are over the whole vocabulary, after temperature, top-k and top-p: what the
        rows lack to 1 is the mass of the tokens that are not shown. The logits are the model's own.
        """
        return next_tokens_of(
            self.tokenizer, self.logits(self.place_of(position)), k, Sampling(temperature, top_k, top_p)
        )

    @undisturbed
    def loss(self) -> float:
        """The mean loss of the text in nats per token: minus the logarithm of each next token's probability.

        It is the book's cross entropy, over all tokens but the first, which nothing announces; its
        exponential is the perplexity. ValueError for a text of one token.
        """
        if len(self) < 2:
            raise ValueError("a text of one token has no next token, and so no loss: trace two or more")
        targets = torch.tensor([token.id for token in self.tokens[1:]])
        return float(torch.nn.functional.cross_entropy(self.logits()[:-1], targets))

    @undisturbed
    def table(self, site: str, block: int | None = None, head: int | None = None) -> pd.DataFrame:
        """A site's numbers as a table, a row a token: `t.table("attn", 3, 1)`, `t.table("resid_post", 3)`.

        Of attention weights the columns are the tokens that are looked at (what the causal mask hides is 0);
        of all else they are the dimensions, from 0. Sites of heads (attn, q, k, v, z) need a `head`.

        Raises ValueError for a site, a block or a head that does not exist, and for one too few or too many.
        """
        key = check_key(site, block, self.config.n_layers)
        form = SITES[site].form
        if form == "rows" and head is not None:
            raise ValueError(f"{site} has no heads: ask for t.table({site!r}, ...) without the head {head!r}")
        if form != "rows" and head is None:
            last = self.config.n_heads - 1
            raise ValueError(
                f"{site} has a table for each head, from 0 to {last}: t.table({site!r}, {block}, head)"
            )
        found = self[key]
        if form != "rows":
            found = found[index_of("head", head, self.config.n_heads)]
        names = [token.shown for token in self.tokens]
        if form == "weights":
            queries = pd.Index(names, name="query")
            return pd.DataFrame(found.numpy(), queries, pd.Index(names, name="key"))
        return pd.DataFrame(found.numpy(), pd.Index(names, name="token"))

    @undisturbed
    def norms(self) -> pd.DataFrame:
        """A row per LayerNorm and position: mean and (biased) variance over the D numbers, before and after.

        Columns: norm, block (<NA> for the final one), position, token, mean, variance, mean_after,
        variance_after. "After" is after scale and shift. Needs resid_pre, resid_mid and the last
        resid_post in the trace.
        """
        found = self.norm_statistics()
        tokens = len(self)
        return pd.DataFrame(
            {
                "norm": np.repeat(found.names, tokens).astype(object),
                "block": pd.array([norm.block for norm in self._norms for _ in range(tokens)], dtype="Int64"),
                "position": np.tile(np.arange(tokens), len(found.names)),
                "token": [token.shown for token in self._tokens] * len(found.names),
                **{column: found.grid(column).ravel() for column in NormStatistics.COLUMNS},
            }
        )

    @undisturbed
    def norm_statistics(self) -> "NormStatistics":
        """The numbers of `norms()` as arrays, a row a norm and a column a token."""
        return norm_statistics(self._norms, self._values_of)

    # ---- what is asked of its model as well: what stands on higher floors is found by its name ----

    @property
    def lm(self) -> Any:
        """The LanguageModel that made it, with the edits of the pass. ValueError where nobody holds it any
        longer.
        """
        model = self._model()
        if model is None:
            raise ValueError(
                f"the model of this trace of {self.name} was released, and nobody holds it any longer: "
                "trace the text again"
            )
        made_by = resolve_name("gptviz.engine.language_model:LanguageModel")
        return made_by(self.of(model), self.tokenizer, self.config, self.name, self.edits)

    def to_html(self, path: str | Path) -> Path:
        """Write `show()` as one file, which any browser opens offline; gives back where it is."""
        return self.show().to_html(path)

    def _repr_html_(self) -> str:
        """The tokens and all heads; what was kept, where that is not enough for them."""
        if self._has_heads:
            return self.show()._repr_html_()
        return f"<code>{escape(repr(self))}</code>"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """The same in each kind that a notebook keeps: see `gptviz.ui.notebook.Picture`."""
        if self._has_heads:
            shown = self.show()._repr_mimebundle_()
        else:
            shown = {"text/html": self._repr_html_()}
        return shown | {"text/plain": repr(self)}

    @property
    def _has_heads(self) -> bool:
        return self._lean or self.holds(["attn", "z"])

    def attribution(self, token: OneToken, against: Against = None, position: int = -1) -> pd.DataFrame:
        """Each part's share of the token's logit: see `gptviz.analysis.attribution`."""
        return resolve_name("gptviz.analysis:attribution")(self, self.lm, token, against, position)

    def source_tokens(self, token: OneToken, against: Against = None, position: int = -1) -> Tensor:
        """(L, H, T): what each earlier token gave through each head: see `gptviz.analysis.source_tokens`."""
        return resolve_name("gptviz.analysis:source_tokens")(self, self.lm, token, against, position)

    def logit_lens(self, position: int = -1) -> Tensor:
        """(rows, vocab_size): the logits at every depth: see `gptviz.analysis.logit_lens`."""
        return resolve_name("gptviz.analysis:logit_lens")(self, self.lm, position)

    def token_id(self, token: OneToken, what: str = "token") -> int:
        """The id of a token of the vocabulary, given by it or by its text; see `tokenizer.one.one_token`."""
        return one_token(self.tokenizer, self.config.vocab_size, token, what)

    def place_of(self, position: int) -> int:
        """The same counted from 0. ValueError if the text does not have it."""
        return index_of("position", position, len(self))
