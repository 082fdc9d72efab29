"""Loaded: a model with its tokenizer, config, name and edits, and all that needs no forward pass.

It is the base class of `gptviz.engine.reader.Reader`, which runs passes, and so of
`gptviz.engine.language_model.LanguageModel`, which is what `gptviz.load` returns. Shapes: T tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import tiktoken
import torch

from gptviz.engine.architecture import ARCHITECTURES, architecture_of
from gptviz.engine.edits import Edit, Given, edits_of
from gptviz.engine.index import of_kind
from gptviz.engine.kinds import Config, Model
from gptviz.engine.tokens import Token, token_ids, tokens_of
from gptviz.text.as_html import table
from gptviz.tokenizer import begins_of, check_well_formed, encode, named_bytes
from gptviz.tokenizer.chat import NO_CHAT, Chat


@dataclass(frozen=True)
class Loaded:
    """A model in eval mode, the tokenizer that its token ids belong to, and edits.

    `edits` are the interventions (`gptviz.engine.edits.Edit`) that every forward pass makes. Nothing of them
    is in `model` itself. `activation_is_assumed` is True if neither the model's files nor the caller said
    which GELU it has. `chat` has the tokenizer's chat templates, as texts: no pass reads them.
    Raises ValueError for a config that does not fit the model.
    """

    model: Model
    tokenizer: tiktoken.Encoding
    config: Config
    name: str
    edits: tuple[Edit, ...] = ()
    activation_is_assumed: bool = False
    chat: Chat = NO_CHAT

    def __post_init__(self) -> None:
        if not isinstance(self.model, Model):
            raise ValueError(
                f"model is {self.model!r}; give a {_any_model()}; gptviz.load and gptviz.wrap make the rest"
            )
        architecture = architecture_of(self.model)
        config = architecture.config.__name__
        of_kind(
            "config",
            self.config,
            architecture.config,
            f"give {config}.from_dict(...) with the model's settings",
        )
        for name, value in architecture.built_with(self.model):
            if self.config[name] != value:
                raise ValueError(
                    f"the config has {name} {self.config[name]!r}, and the model {value!r}: give the config "
                    "that the model was built with"
                )

    def __repr__(self) -> str:
        config = self.config
        edits = "".join(f", {edit}" for edit in self.edits)
        size = f"{config.n_layers} blocks x {config.n_heads} heads, {config.emb_dim} wide"
        return f"{type(self).__name__}({self.name!r}, {size}{edits})"

    def _repr_html_(self) -> str:
        sizes = {
            name: f"{value:,}"
            for name, value in self.config.to_dict().items()
            if type(value) is int
        }
        rows = {"model": self.name, **sizes, "parameters": f"{self.config.parameters:,}"}
        if self.activation_is_assumed:
            rows["activation"] = (
                f"{self.config['activation']}, which is assumed: the model's files do not say it"
            )
        if self.chat.templates:
            rows["chat template"] = "lm.chat_template, a text that is applied to nothing"
        if self.edits:
            rows["edits"] = ", ".join(map(str, self.edits))
        return table(rows)

    def edited(self, *edits: Given) -> Self:
        """Return this model with more edits, which every pass makes after those it has already.

        An edit is an Edit or its text form. The weights are shared, not copied. Functions that take a
        LanguageModel make its edits too, or raise a ValueError that says why they cannot. Raises ValueError
        for a site, block, head, position or id that no text of this model can have.
        """
        added = edits_of(edits)
        for edit in added:
            edit.check(self.config)
        if not added:
            return self
        # edit.of counts a negative block from 0, so that equal edits are written alike
        counted = [edit.of(self.config) for edit in added]
        return replace(self, edits=(*self.edits, *counted))

    @property
    def plain(self) -> Self:
        """The same model without edits (itself if it has none); the weights are shared."""
        if self.edits:
            return replace(self, edits=())
        return self

    @property
    def chat_template(self) -> str | None:
        """The tokenizer's chat template, a program in Jinja, as a text; None without one.

        It is never applied to a text that you give: the model reads that as it is. Templates with names of
        their own are in `chat.templates`.
        """
        return self.chat.template

    @property
    def is_causal(self) -> bool:
        """Whether the numbers at a token stay the same when the text gets longer.

        False if an edit depends on later tokens: see `Edit.is_causal`.
        """
        return all(edit.is_causal for edit in self.edits)

    @property
    def nbytes(self) -> int:
        """The memory of the weights and buffers in bytes; tensors that share memory count once."""
        tensors = [*self.model.parameters(), *self.model.buffers()]
        storages = [tensor.untyped_storage() for tensor in tensors]
        bytes_at = {storage.data_ptr(): storage.nbytes() for storage in storages}
        return sum(bytes_at.values())

    @property
    def dtype(self) -> str:
        """The dtype of the weights, in which passes compute: "float32", or "bfloat16" on request."""
        return str(self.model.tok_emb.weight.dtype).removeprefix("torch.")

    def encode(self, text: str, special_tokens: bool = False, *, begin: bool = True) -> list[int]:
        """Return the token ids of a text.

        `<|endoftext|>` in it is cut like any other text; with `special_tokens` it becomes the one special id.
        Where the tokenizer puts a token before every text, as Llama 3's does, it is the first one; without
        `begin` it is left out, as for a word that is a part of a text.
        Raises ValueError for a lone surrogate (half of a UTF-16 pair, which is no character): the message
        says where it stands and what to do.
        """
        check_well_formed(
            of_kind("text", text, str, "give a string; encode each string of a list by itself")
        )
        return encode(self.tokenizer, text, special_tokens, begin)

    def decode(self, ids: Sequence[int], *, begin: bool = True) -> str:
        """Return the text of these ids: U+FFFD for broken UTF-8, `<id N>` for an id without a token.

        Without `begin` it is the text that they were made of: what the tokenizer put before it is left out.
        """
        shown_ids = token_ids(ids)
        first = begins_of(self.tokenizer)
        if not begin and tuple(shown_ids[: len(first)]) == first:
            shown_ids = shown_ids[len(first) :]
        return b"".join(named_bytes(self.tokenizer, i) for i in shown_ids).decode(
            "utf-8", "replace"
        )

    def batch(self, ids: Sequence[int]) -> torch.Tensor:
        """One text's ids as the model takes them: (1, T), on the device of its weights."""
        return torch.tensor([token_ids(ids)], device=self.model.tok_emb.weight.device)

    def tokens(self, ids: Sequence[int]) -> list[Token]:
        """The tokens of these ids, with their positions from 0, texts and bytes."""
        return tokens_of(self.tokenizer, token_ids(ids))


def _any_model() -> str:
    """The names of the classes of model that there are, in words."""
    return " or a ".join(kind.model.__name__ for kind in ARCHITECTURES)
