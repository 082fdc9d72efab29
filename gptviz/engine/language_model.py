"""LanguageModel: a model, its tokenizer, its name. `gptviz.load` makes one."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import tiktoken
import torch

from gptviz.engine import forward
from gptviz.engine.capture import capture
from gptviz.engine.config import GPTConfig
from gptviz.engine.editing import edit_hooks
from gptviz.engine.edits import Edit, Given, edits_of
from gptviz.engine.generate import generate as write_on
from gptviz.engine.given import ids_of
from gptviz.engine.past import Past
from gptviz.engine.reduction import Reduction
from gptviz.engine.sources import ready
from gptviz.engine.trace import Token, Trace, tokens_of
from gptviz.model import GELU, GPTModel, LayerNorm, MultiHeadAttention
from gptviz.tokenizer import check_well_formed, encode, named_bytes


@dataclass(frozen=True)
class LanguageModel:
    """A GPTModel in eval mode with the tokenizer that its ids belong to.

    `edits` are made in every pass (see `edited`); `plain` is the same without them. `model` itself knows of
    none: a pass that has them is one of `trace`, `generate`, `hidden` and `last_logits`.

    Raises ValueError for a config that is not the model's.
    """

    model: GPTModel
    tokenizer: tiktoken.Encoding
    config: GPTConfig
    name: str
    edits: tuple[Edit, ...] = ()

    def __post_init__(self) -> None:
        for name, built in _built_with(self.model):
            if self.config[name] != built:
                raise ValueError(
                    f"the config has {name} {self.config[name]!r}, and the model {built!r}: give the config "
                    "that the model was built with"
                )

    def edited(self, *edits: Given) -> "LanguageModel":
        """The same model with these edits (or their text forms) in every pass, after those it has already.

        No weight is copied. What takes a LanguageModel makes them, or refuses in a sentence. Raises
        ValueError for what no text of this model could have.
        """
        more = edits_of(edits)
        for edit in more:
            edit.check(self.config)
        return replace(self, edits=(*self.edits, *more)) if more else self

    @property
    def plain(self) -> "LanguageModel":
        """The model as it is, without edits."""
        return replace(self, edits=()) if self.edits else self

    @property
    def is_causal(self) -> bool:
        """Whether what stands before stays as it was when a text goes on: see `Edit.is_causal`."""
        return all(edit.is_causal for edit in self.edits)

    def check_plain(self, what: str) -> None:
        """Raise a ValueError if it has edits, where `what` can be done with the model as it is only."""
        if self.edits:
            count = "an edit" if len(self.edits) == 1 else f"{len(self.edits)} edits"
            raise ValueError(f"{what} is for a model as it is, and this one has {count}: give lm.plain")

    @property
    def nbytes(self) -> int:
        """What the weights and buffers take in memory; tied ones count once."""
        tensors = [*self.model.parameters(), *self.model.buffers()]
        return sum({t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}.values())

    @property
    def dtype(self) -> str:
        """What the model computes in: "float32", or "bfloat16" on request."""
        return str(self.model.tok_emb.weight.dtype).removeprefix("torch.")

    def encode(self, text: str, special_tokens: bool = False) -> list[int]:
        """Token ids. `<|endoftext|>` in the text is text, unless `special_tokens` makes it the special id.

        Raises ValueError for a lone surrogate, which is no text: it says where it stands and what to do.
        """
        check_well_formed(text)
        return encode(self.tokenizer, text, special_tokens)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of these ids: U+FFFD for broken UTF-8, `<id N>` for an id without a token."""
        return b"".join(named_bytes(self.tokenizer, i) for i in ids).decode("utf-8", "replace")

    def tokens(self, ids: Sequence[int]) -> list[Token]:
        return tokens_of(self.tokenizer, ids)

    def trace(
        self,
        text: str | Sequence[int],
        keep: Iterable[str | tuple[str, int]] | None = None,
        edits: Iterable[Given] = (),
        special_tokens: bool = False,
        reduce: Iterable[Reduction] = (),
        after: Trace | None = None,
    ) -> Trace:
        """One forward pass on a text (or on token ids), captured.

        `keep` lists the sites to keep, by name or as (site, block) pairs: None keeps all of them;
        see `gptviz.SITES`. `edits`, or their text forms, replace what sites pass on, after the model's
        own. `reduce` looks at sites, edited ones included, and keeps only what is made of them.

        `after` is an earlier trace: where the text begins as that one did, its rows are shared to the bit and
        only the other tokens go through the model. It must hold all that is to be kept, and `k` and `v`, and
        be of the same edits; these must be causal (see `Edit.is_causal`: a "mean" over the text is not).
        Otherwise, or if the first token is another, all is computed anew. Of other weights it is refused.

        The same numbers as of a whole pass in float32 but for rounding: of a site's largest number 1e-5 at
        most, of logits 3e-5; with edits 3e-5 and 5e-5 (`benchmarks/rounding.py`: the bundled model has 6e-6
        and 1e-5, with edits up to 1.1e-5 and 2.4e-5; in its last residual stream, which has numbers up to
        500, that is up to 3e-4).

        Raises ValueError for a trace `after` that other weights made, for an empty text, one that is longer
        than the context, what is neither text nor ids, and for sites, blocks and ids that do not exist.
        """
        ids = ids_of(self, text, special_tokens)
        if not ids:
            raise ValueError("the text is empty: a trace needs at least one token")
        if len(ids) > self.config.context_length:
            raise ValueError(
                f"the text has {len(ids)} tokens; {self.name} reads at most {self.config.context_length}: "
                f"shorten it, or trace lm.encode(text)[:{self.config.context_length}]"
            )
        every = tuple(replace(edit) for edit in (*self.edits, *edits_of(edits)))  # with tensors as they are
        for edit in every:
            edit.check(self.config, len(ids))
        made = ready(self, every)
        return capture(
            self.model, self.tokenizer, self.config, self.name, ids, keep, every, reduce, after, made
        )

    def hidden(
        self, in_idx: torch.Tensor, hooks: Iterable[forward.Hook] = (), past: Past | None = None
    ) -> torch.Tensor:
        """`forward.hidden` with the model's edits, which the hooks then see: (b, T) ids -> (b, T, D)."""
        return forward.hidden(self.model, in_idx, [*self._hooks(in_idx, past), *hooks], past)

    def last_logits(
        self, idx: torch.Tensor, past: Past | None = None, position: int | None = None
    ) -> torch.Tensor:
        """`forward.last_logits` with the model's edits: (b, T) ids -> (b, V)."""
        return forward.last_logits(self.model, idx, past, position, self._hooks(idx, past, position))

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

    def _hooks(
        self, in_idx: torch.Tensor, past: Past | None, position: int | None = None
    ) -> list[forward.Hook]:
        if not self.edits:
            return []
        known = 0 if past is None else past.next
        first = known if position is None else position
        return self.hooks(first + in_idx.shape[1], first)

    generate = write_on


def _built_with(model: GPTModel) -> Iterator[tuple[str, object]]:
    """What its modules say of a model's config; of a part that is none of the book's, nothing."""
    yield "vocab_size", model.tok_emb.num_embeddings
    yield "emb_dim", model.tok_emb.embedding_dim
    yield "context_length", model.pos_emb.num_embeddings
    yield "n_layers", len(model.trf_blocks)
    yield "tie_embeddings", model.out_head.weight is model.tok_emb.weight
    for module in model.modules():
        if isinstance(module, MultiHeadAttention):
            yield "n_heads", module.num_heads
            yield "qkv_bias", module.W_query.bias is not None
            yield "linear_bias", module.out_proj.bias is not None
        elif isinstance(module, LayerNorm):
            yield "norm_eps", module.eps
            yield "norm_bias", module.shift is not None
        elif isinstance(module, GELU | torch.nn.GELU):
            yield "activation", "gelu" if getattr(module, "approximate", "tanh") == "none" else "gelu_tanh"
