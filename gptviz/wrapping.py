"""`wrap()`: a LanguageModel out of a model that is in memory already, of the reader's own code."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from gptviz.checkpoints import Checkpoint, CheckpointError, book, hugging_face
from gptviz.checkpoints.tensors import Tensors
from gptviz.engine.config import GPTConfig
from gptviz.engine.forward import in_eval_mode
from gptviz.engine.index import whole
from gptviz.engine.language_model import LanguageModel
from gptviz.loading import tokenizer_for
from gptviz.model import GPTModel

NEAR = 1e-3  # of the largest logit: how far the two may be apart; what is computed in 16 bits:
NEAR_IN_16_BITS = 5e-2


class InMemory(Tensors):
    """The tensors of a model, by the names of its state dict."""

    def __init__(self, model: nn.Module):
        self._state = model.state_dict()
        shapes = {name: tuple(tensor.shape) for name, tensor in self._state.items()}
        super().__init__(Path(type(model).__name__), shapes)

    def read(self, names: Iterable[str]) -> Iterator[tuple[str, torch.Tensor]]:
        return ((name, self._state[name]) for name in names)

    def shares(self, name: str, other: str) -> bool:
        one, two = (self._state[n] for n in (name, other))
        return one.data_ptr() == two.data_ptr() and one.shape == two.shape


def wrap(
    model: nn.Module,
    tokenizer: Any = None,
    n_heads: int | None = None,
    name: str | None = None,
    drop_surplus: bool = False,
) -> LanguageModel:
    """A LanguageModel of the book's GPTModel from your file, of transformers' GPT-2 or GPT-Neo, or of ours.

    `tokenizer` is a tiktoken.Encoding, one of transformers or tokenizers, or what `load` takes; GPT-2's if
    not given and the vocabulary has its size. `n_heads` is for a model that does not say it itself, as the
    book's attention does (`num_heads`). `drop_surplus` leaves out added tokens that the model has no row for.

    Ours is taken as it is. Of another the weights are copied as they are now, so wrap it again after more
    training; names and shapes are checked, and then the logits of a few tokens: ValueError where the model
    gives others than these weights do here, since nothing that is shown would be true of it.
    """
    if not isinstance(model, nn.Module):
        raise CheckpointError(f"{model!r} is no model: give an nn.Module, or gptviz.load(...) a name or file")
    n_heads = None if n_heads is None else whole("n_heads", n_heads, 1)
    tensors = InMemory(model)
    names, config = set(tensors.shapes), getattr(model, "config", None)
    called = name or type(model).__name__
    if book.is_book(names):
        read, dialect = _config(book.config_of(tensors, _heads(model, n_heads)), model), book.DIALECT
    elif config is not None and "lm_head.weight" in names:
        read = hugging_face.config_of(config.to_dict(), tensors.path)
        dialect = hugging_face.dialect_of(read)
    else:
        raise CheckpointError(
            f"{tensors.path} has tensors of no model known here, such as {', '.join(sorted(names)[:3])}; "
            "known are the book's GPTModel, and transformers' GPT2LMHeadModel and GPTNeoForCausalLM"
        )
    if n_heads not in (None, read.n_heads):
        raise CheckpointError(f"{tensors.path} has {read.n_heads} heads, not {n_heads}: leave n_heads out")
    found = Checkpoint(tensors.path, dialect, read, tensors, lambda: None)
    encoding = tokenizer_for(found, called, tokenizer, drop_surplus)
    if isinstance(model, GPTModel):
        return LanguageModel(model, encoding, read, called)
    wrapped = LanguageModel(found.model(), encoding, read, called)
    _check_numbers(wrapped, model)
    return wrapped


def _heads(model: nn.Module, given: int | None) -> int:
    """Return the number of heads that the book's attention says, else the one that is given."""
    said = {n for m in model.modules() if isinstance(n := getattr(m, "num_heads", None), int)}
    if len(said) == 1:
        return said.pop()
    if given is None:
        raise CheckpointError(
            f"{type(model).__name__} does not say how many attention heads it has: "
            "gptviz.wrap(model, tokenizer, n_heads=...)"
        )
    return given


def _config(config: GPTConfig, model: nn.Module) -> GPTConfig:
    """The same with what is in no shape: the epsilon of the norms, which GELU, dropout."""
    exact = any(isinstance(m, nn.GELU) and m.approximate == "none" for m in model.modules())
    eps = {e for m in model.modules() if isinstance(e := getattr(m, "eps", None), float)}
    return replace(
        config,
        activation="gelu" if exact else "gelu_tanh",
        norm_eps=eps.pop() if len(eps) == 1 else config.norm_eps,
        drop_rate=next((m.p for m in model.modules() if isinstance(m, nn.Dropout)), 0.0),
    )


def _check_numbers(lm: LanguageModel, model: nn.Module) -> None:
    """Raise CheckpointError unless both give the same logits for a few tokens of the whole vocabulary."""
    count = min(8, lm.config.context_length)
    ids = torch.linspace(0, lm.config.vocab_size - 1, count).long()
    first = next(model.parameters())
    try:
        with torch.no_grad(), in_eval_mode(model):
            out = model(ids[None].to(first.device))
    except Exception as error:  # of the reader's own code, whatever it is
        raise CheckpointError(f"{lm.name} cannot be run on {count} token ids: {error}") from error
    theirs, ours = getattr(out, "logits", out)[0].float().cpu(), lm.trace(ids.tolist(), keep=()).logits()
    near = (NEAR if first.dtype == torch.float32 else NEAR_IN_16_BITS) * float(ours.abs().max())
    off = float((theirs - ours).abs().max()) if theirs.shape == ours.shape else float("nan")
    if not off <= near:
        raise CheckpointError(
            f"{lm.name} gives other logits than its weights do in GPTModel (by up to {off:.3g}): it computes "
            "something else than the book's model, or with another number of heads: it cannot be shown"
        )
