"""What a LanguageModel is, without a pass: a model, its tokenizer, its config, its name, its edits."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import tiktoken
import torch

from gptviz.engine.config import GPTConfig
from gptviz.engine.edits import Edit, Given, edits_of
from gptviz.engine.index import of_kind
from gptviz.engine.tokens import Token, token_ids, tokens_of
from gptviz.fast.kernels import modules_of
from gptviz.model import GELU, GPTModel, LayerNorm, MultiHeadAttention
from gptviz.text.as_html import table
from gptviz.tokenizer import check_well_formed, encode, named_bytes


@dataclass(frozen=True)
class Loaded:
    """A GPTModel in eval mode with the tokenizer that its ids belong to, and the edits of its passes.

    `activation_is_assumed`: its files do not say which GELU it has, and nobody has said it either.
    Raises ValueError for a config that is not the model's.
    """

    model: GPTModel
    tokenizer: tiktoken.Encoding
    config: GPTConfig
    name: str
    edits: tuple[Edit, ...] = ()
    activation_is_assumed: bool = False

    def __post_init__(self) -> None:
        of_kind(
            "model", self.model, GPTModel, "give a GPTModel; gptviz.load and gptviz.wrap find all the rest"
        )
        of_kind("config", self.config, GPTConfig, "give GPTConfig.from_dict(...) of the model's")
        for name, built in _built_with(self.model):
            if self.config[name] != built:
                raise ValueError(
                    f"the config has {name} {self.config[name]!r}, and the model {built!r}: give the config "
                    "that the model was built with"
                )

    def __repr__(self) -> str:
        config = self.config
        edits = "".join(f", {edit}" for edit in self.edits)
        size = f"{config.n_layers} blocks x {config.n_heads} heads, {config.emb_dim} wide"
        return f"{type(self).__name__}({self.name!r}, {size}{edits})"

    def _repr_html_(self) -> str:
        sizes = {name: f"{value:,}" for name, value in self.config.to_dict().items() if type(value) is int}
        rows = {"model": self.name, **sizes, "parameters": f"{self.config.parameters:,}"}
        if self.activation_is_assumed:
            rows["activation"] = f"{self.config.activation}, which is assumed: its files do not say it"
        if self.edits:
            rows["edits"] = ", ".join(map(str, self.edits))
        return table(rows)

    def edited(self, *edits: Given) -> Self:
        """The same model with these edits (or their text forms) in every pass, after those it has already.

        No weight is copied. What takes a LanguageModel makes them, or refuses in a sentence. Raises
        ValueError for what no text of this model could have.
        """
        more = edits_of(edits)
        for edit in more:
            edit.check(self.config)
        if more:
            return replace(self, edits=(*self.edits, *(edit.of(self.config) for edit in more)))
        return self

    @property
    def plain(self) -> Self:
        """The model as it is, without edits."""
        if self.edits:
            return replace(self, edits=())
        return self

    @property
    def is_causal(self) -> bool:
        """Whether a text's numbers stay when the text goes on: see `Edit.is_causal`."""
        return all(edit.is_causal for edit in self.edits)

    @property
    def nbytes(self) -> int:
        """The memory of the weights and buffers in bytes; tied ones count once."""
        tensors = [*self.model.parameters(), *self.model.buffers()]
        return sum({t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors}.values())

    @property
    def dtype(self) -> str:
        """The dtype that the model computes in: "float32", or "bfloat16" on request."""
        return str(self.model.tok_emb.weight.dtype).removeprefix("torch.")

    def encode(self, text: str, special_tokens: bool = False) -> list[int]:
        """Token ids. `<|endoftext|>` in the text is text, unless `special_tokens` makes it the special id.

        Raises ValueError for a lone surrogate, which is no text: it says where it stands and what to do.
        """
        check_well_formed(of_kind("text", text, str, "give a string; of a list of them encode each"))
        return encode(self.tokenizer, text, special_tokens)

    def decode(self, ids: Sequence[int]) -> str:
        """The text of these ids: U+FFFD for broken UTF-8, `<id N>` for an id without a token."""
        return b"".join(named_bytes(self.tokenizer, i) for i in token_ids(ids)).decode("utf-8", "replace")

    def batch(self, ids: Sequence[int]) -> torch.Tensor:
        """One text's ids as the model takes them: (1, T), where its weights are."""
        return torch.tensor([token_ids(ids)], device=self.model.tok_emb.weight.device)

    def tokens(self, ids: Sequence[int]) -> list[Token]:
        return tokens_of(self.tokenizer, token_ids(ids))


def _built_with(model: GPTModel) -> Iterator[tuple[str, object]]:
    """Yield what its modules say of a model's config; of a part that is none of the book's, nothing."""
    yield "vocab_size", model.tok_emb.num_embeddings
    yield "vocab_size", model.out_head.weight.shape[0]  # a classifier's has a row for each class
    yield "emb_dim", model.tok_emb.embedding_dim
    yield "context_length", model.pos_emb.num_embeddings
    yield "n_layers", len(model.trf_blocks)
    yield "tie_embeddings", model.out_head.weight is model.tok_emb.weight
    for module in modules_of(model):
        if isinstance(module, MultiHeadAttention):
            yield "n_heads", module.num_heads
            yield "qkv_bias", module.W_query.bias is not None
            yield "linear_bias", module.out_proj.bias is not None
        elif isinstance(module, LayerNorm):
            yield "norm_eps", module.eps
            yield "norm_bias", module.shift is not None
        elif isinstance(module, GELU | torch.nn.GELU):
            yield "activation", "gelu" if getattr(module, "approximate", "tanh") == "none" else "gelu_tanh"
