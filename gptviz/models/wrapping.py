"""`wrap()`: a LanguageModel out of a model that is in memory already, of the reader's own code."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from gptviz.engine.blank import blank_of
from gptviz.engine.config import GPTConfig
from gptviz.engine.forward import in_eval_mode
from gptviz.engine.index import whole
from gptviz.engine.kinds import Config, Model
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.llama_config import LlamaConfig
from gptviz.engine.undisturbed import undisturbed
from gptviz.llama import LlamaModel
from gptviz.models.checkpoints import (
    Checkpoint,
    CheckpointError,
    book,
    hugging_face,
    llama,
    nanogpt,
)
from gptviz.models.checkpoints.assemble import Dialect, checked
from gptviz.models.checkpoints.folder import NOT_READ
from gptviz.models.checkpoints.kinds import is_book_llama, is_llama
from gptviz.models.checkpoints.tensors import Tensors
from gptviz.models.checkpoints.wrappers import inner_model
from gptviz.models.loading import tokenizer_for

NEAR = 1e-3  # of the largest logit: how far the two may be apart; what is computed in 16 bits:
NEAR_IN_16_BITS = 5e-2

HEADS = ("num_heads", "n_head", "n_heads")  # how modules call their number of heads


class InMemory(Tensors):
    """The tensors of a model, by their names. Raises CheckpointError for quantised or meta tensors."""

    in_memory = True

    def __init__(self, model: nn.Module):
        path = Path(type(model).__name__)
        self._state = model.state_dict()
        for name, tensor in self._state.items():
            if not isinstance(tensor, torch.Tensor) or tensor.is_quantized:
                raise CheckpointError(
                    f"{path} has quantised layers, whose weights are no plain numbers ({name} is one): "
                    "wrap the model as it was before it was quantised"
                )
            if tensor.is_meta:
                raise CheckpointError(
                    f"{path} has weights on the device meta ({name} is one), which has shapes and no "
                    "numbers: load the model's weights, and then wrap it"
                )
        shapes = {name: tuple(tensor.shape) for name, tensor in self._state.items()}
        super().__init__(path, shapes)

    def read(self, names: Iterable[str]) -> Iterator[tuple[str, torch.Tensor]]:
        return ((name, self._state[name]) for name in names)

    def shares(self, name: str, other: str) -> bool:
        tensor, other_tensor = (self._state[n] for n in (name, other))
        return tensor.data_ptr() == other_tensor.data_ptr() and tensor.shape == other_tensor.shape


@undisturbed
def wrap(
    model: nn.Module,
    tokenizer: Any = None,
    n_heads: int | None = None,
    name: str | None = None,
    drop_surplus: bool = False,
) -> LanguageModel:
    """A LanguageModel of a model in memory: of your own class, of a library's, or of ours.

    Known are the book's GPTModel as you have typed it, transformers' GPT-2, GPT-Neo, Llama, Qwen2 and Qwen3
    (where they have no language model's head, it is tied to the embedding), the GPT of nanoGPT and of minGPT,
    and ours.
    `tokenizer` is a tiktoken.Encoding, one of transformers or tokenizers, or what `load` takes; GPT-2's if
    not given and the vocabulary has its size. `n_heads` is for a model that does not say it itself, as the
    book's attention does (`num_heads`) and nanoGPT's (`n_head`). `drop_surplus` leaves out added tokens that
    the model has no row for.

    Ours is taken as it is. Of another the weights are copied as they are now, so wrap it again after more
    training. Names and shapes are checked. Then the model reads a few tokens itself, which shows its GELU,
    and its logits must be those that these weights give here, since nothing that is shown would be true of it
    otherwise. The model is left as it was. Raises ValueError for a model that cannot be wrapped.
    """
    if not isinstance(model, nn.Module):
        raise CheckpointError(
            f"{model!r} is no model: give an nn.Module, or gptviz.load(...) a name or file"
        )
    if n_heads is not None:
        n_heads = whole("n_heads", n_heads, 1)
    with _in_a_sentence(f"{name or type(model).__name__} cannot be read"):
        model = inner_model(model)
        called = name or type(model).__name__
        tensors = InMemory(model)
        config, dialect = _read(model, tensors, n_heads)
        _check_head(tensors, dialect, config)
        # names and shapes; no number is read
        _, weights = checked(config, dialect, tensors, torch.float32)
        del weights
    if n_heads not in (None, config.n_heads):
        raise CheckpointError(
            f"{tensors.path} has {config.n_heads} heads, not {n_heads}: leave n_heads out"
        )
    with _in_a_sentence(f"{called}: its tokenizer cannot be read"):
        checkpoint = Checkpoint(tensors.path, dialect, config, tensors, lambda: None)
        encoding, chat = tokenizer_for(checkpoint, called, tokenizer, drop_surplus)
    with _in_a_sentence(f"{called} cannot be compared with what its weights give here"):
        if isinstance(config, GPTConfig):
            seen = _run(model, called, config, _feed_forwards(dialect, tensors, config))
            config = replace(config, activation=seen.activation or config.activation)
        else:
            seen = _run(model, called, config, [])
        if isinstance(model, Model):
            _check_numbers(
                LanguageModel(_built_anew(model, config), encoding, config, called), seen, model
            )
            return LanguageModel(model, encoding, config, called, chat=chat)
        checkpoint = replace(checkpoint, config=config)
        wrapped = LanguageModel(checkpoint.model(), encoding, config, called, chat=chat)
        _check_numbers(wrapped, seen, model)
        return wrapped


@contextmanager
def _in_a_sentence(what: str) -> Iterator[None]:
    """Turn any error inside the block into a CheckpointError whose message begins with `what`."""
    try:
        yield
    except CheckpointError:
        raise
    except Exception as error:
        raise CheckpointError(f"{what}: {type(error).__name__}: {error}") from error


# ---- what it is ----


def _read(model: nn.Module, tensors: InMemory, n_heads: int | None) -> tuple[Config, Dialect]:
    """The config of a model and the dialect of its names. Raises CheckpointError for one of no known kind."""
    names = set(tensors.bare.values())
    theirs: Any = getattr(model, "config", None)
    if is_book_llama(names):
        return _books_llama(model, tensors), book.LLAMA_DIALECT
    if is_llama(names) and hasattr(theirs, "to_dict"):
        return _theirs_llama(theirs.to_dict(), tensors), llama.DIALECT
    if book.is_book(names):
        return _config(book.config_of(tensors, _heads(model, n_heads)), model), book.DIALECT
    if nanogpt.has_linears(tensors):
        return _config(nanogpt.config_of(tensors, _heads(model, n_heads)), model), nanogpt.DIALECT
    plain = hugging_face.DIALECT.names(tensors)
    if hasattr(theirs, "to_dict") and not plain.keys().isdisjoint(("wte.weight", "lm_head.weight")):
        # the class of a model in memory is what it is, wherever its config came from
        values = theirs.to_dict() | {"architectures": None}
        config = hugging_face.config_of(values, tensors.path)
        if "wte.weight" in plain and "lm_head.weight" in plain:
            tied = tensors.shares(plain["lm_head.weight"], plain["wte.weight"])
            config = replace(config, tie_embeddings=tied)
        return config, hugging_face.dialect_of(config, values)
    raise CheckpointError(
        f"{tensors.path} has tensors of no model known here, such as {', '.join(sorted(names)[:3])}; "
        "known are the book's GPTModel, transformers' GPT-2, GPT-Neo, Llama and Qwen, and the GPT of nanoGPT "
        "and minGPT"
    )


def _theirs_llama(values: dict[str, Any], tensors: InMemory) -> LlamaConfig:
    """The config of a Llama of transformers in memory. Raises CheckpointError."""
    # the class of a model in memory is what it is, wherever its config came from
    config = llama.config_of(values | {"architectures": None}, tensors.path)
    plain = llama.DIALECT.names(tensors)
    if "lm_head.weight" not in plain:
        return replace(config, tie_embeddings=True)
    tied = tensors.shares(plain["lm_head.weight"], plain["embed_tokens.weight"])
    return replace(config, tie_embeddings=tied)


def _books_llama(model: nn.Module, tensors: InMemory) -> LlamaConfig:
    """The config of our LlamaModel, or of a Llama of the book's that keeps its settings as `cfg`.

    Raises CheckpointError for one that does not: no tensor says how it turns its queries and keys.
    """
    if isinstance(model, LlamaModel):
        return _of_ours(model)
    settings = getattr(model, "cfg", None)
    if not isinstance(settings, Mapping):
        raise CheckpointError(
            f"{tensors.path} has the layers of the book's Llama and does not say its settings: set model.cfg to "
            "the dict that it was made with, as the book's Qwen3Model does, and wrap it again"
        )
    known = {key: value for key, value in settings.items() if key != NOT_READ}
    return llama.shortened(LlamaConfig.from_dict(known))


def _of_ours(model: LlamaModel) -> LlamaConfig:
    block = model.trf_blocks[0]
    return LlamaConfig(
        vocab_size=model.tok_emb.num_embeddings,
        context_length=model.context_length,
        emb_dim=model.tok_emb.embedding_dim,
        n_heads=block.att.num_heads,
        n_layers=len(model.trf_blocks),
        hidden_dim=block.ff.fc1.out_features,
        n_kv_groups=block.att.num_kv_groups,
        head_dim=block.att.head_dim,
        rope_base=block.att.rope_base,
        rope_freq=block.att.rope_freq,
        qk_norm=block.att.q_norm is not None,
        qkv_bias=block.att.W_query.bias is not None,
        tie_embeddings=model.out_head.weight is model.tok_emb.weight,
        norm_eps=model.final_norm.eps,
    )


def _check_head(tensors: InMemory, dialect: Dialect, config: Config) -> None:
    """Raise CheckpointError for a model whose head has not a row for each token: the book's classifier."""
    shape = tensors.shapes.get(dialect.names(tensors).get(dialect.head, ""))
    if shape is not None and shape[:1] != (config.vocab_size,):
        raise CheckpointError(
            f"{tensors.path} gives {shape[0]} numbers at each place of a text, and has {config.vocab_size:,} "
            "tokens: such a head, a classifier's for one, predicts no next token, and that is shown here"
        )


def _heads(model: nn.Module, n_heads: int | None) -> int:
    """The number of heads that the model's attention says, else the one that is given."""
    values = {getattr(module, name, None) for module in model.modules() for name in HEADS}
    numbers = {number for number in values if type(number) is int}
    if len(numbers) == 1:
        return numbers.pop()
    if n_heads is None:
        raise CheckpointError(
            f"{type(model).__name__} does not say how many attention heads it has: "
            "gptviz.wrap(model, tokenizer, n_heads=...)"
        )
    return n_heads


def _config(config: GPTConfig, model: nn.Module) -> GPTConfig:
    """The config with what no shape shows: the epsilon of the norms, which GELU, dropout."""
    exact = any(isinstance(m, nn.GELU) and m.approximate == "none" for m in model.modules())
    eps = {e for m in model.modules() if isinstance(e := getattr(m, "eps", None), float)}
    return replace(
        config,
        activation="gelu" if exact else "gelu_tanh",
        norm_eps=eps.pop() if len(eps) == 1 else config.norm_eps,
        drop_rate=next((m.p for m in model.modules() if isinstance(m, nn.Dropout)), 0.0),
    )


# ---- what it computes ----


@dataclass(frozen=True)
class Seen:
    """What the model itself computed for `ids`: the last rows, (n, V), or without a head (n, D).

    `activation` is the GELU between the matrices of its feed-forwards, None where that could not be seen.
    """

    ids: list[int]
    rows: torch.Tensor
    has_head: bool
    activation: str | None


def _run(
    model: nn.Module, called: str, config: Config, feed_forwards: list[tuple[str, str]]
) -> Seen:
    """The model's own pass over a few tokens of its whole vocabulary. Raises CheckpointError."""
    count = min(8, config.context_length)
    ids = torch.linspace(0, config.vocab_size - 1, count).long()
    first = next(model.parameters())
    with ExitStack() as hung:
        watched = [_watch(model, up, down, hung) for up, down in feed_forwards]
        try:
            with torch.no_grad(), in_eval_mode(model):
                out = model(ids[None].to(first.device))
        except Exception as error:  # of the reader's own code, whatever it is
            raise CheckpointError(
                f"{called} cannot be run on {count} token ids: {error}"
            ) from error
    rows, has_head = _rows_of(out)
    if has_head:
        width = config.vocab_size
    else:
        width = config.emb_dim
    if rows is None or rows.shape not in ((1, count, width), (1, 1, width)):
        if rows is None:
            got = "no tensor"
        else:
            got = f"a tensor of {tuple(rows.shape)}"
        raise CheckpointError(
            f"{called} gives {got} for {count} tokens, where a model of next tokens gives {width:,} numbers "
            f"for each: (1, {count}, {width})"
        )
    return Seen(ids.tolist(), rows[0].float().cpu(), has_head, _activation(called, watched))


def _rows_of(out: Any) -> tuple[torch.Tensor | None, bool]:
    """The rows that a model's forward gives for the tokens, or None, and whether they are logits."""
    hidden = getattr(out, "last_hidden_state", None)
    if isinstance(hidden, torch.Tensor):
        return hidden, False
    for value in (out, getattr(out, "logits", None)):
        if isinstance(value, torch.Tensor):
            return value, True
    # nanoGPT's: logits, loss
    if isinstance(out, tuple | list) and out and isinstance(out[0], torch.Tensor):
        return out[0], True
    if isinstance(out, dict) and isinstance(out.get("logits"), torch.Tensor):
        return out["logits"], True
    return None, True


def _feed_forwards(dialect: Dialect, tensors: InMemory, config: GPTConfig) -> list[tuple[str, str]]:
    """For each block, the names of the modules before and after its GELU."""
    names = dialect.names(tensors)
    modules = {
        copy.target: names[copy.source].removesuffix(".weight") for copy in dialect.table(config)
    }
    prefixes = [f"trf_blocks.{block}.ff.layers" for block in range(config.n_layers)]
    return [(modules[f"{prefix}.0.weight"], modules[f"{prefix}.2.weight"]) for prefix in prefixes]


def _watch(model: nn.Module, up: str, down: str, hung: ExitStack) -> dict[str, torch.Tensor]:
    """A dict that the model's run fills: "before" is the output of `up`, "after" the input of `down`."""
    seen: dict[str, torch.Tensor] = {}

    def leaves(_module: nn.Module, _given: Any, output: torch.Tensor) -> None:
        seen["before"] = output.detach()

    def goes_in(_module: nn.Module, inputs: tuple[torch.Tensor, ...]) -> None:
        seen["after"] = inputs[0].detach()

    hung.enter_context(model.get_submodule(up).register_forward_hook(leaves))
    hung.enter_context(model.get_submodule(down).register_forward_pre_hook(goes_in))
    return seen


def _activation(called: str, watched: list[dict[str, torch.Tensor]]) -> str | None:
    """The GELU that all blocks were seen to have, None where that cannot be seen. Raises CheckpointError."""
    kinds = {_nearer_gelu(seen) for seen in watched}
    if kinds >= {"gelu", "gelu_tanh"}:
        raise CheckpointError(
            f"{called} has the exact GELU in some of its blocks and the one with tanh in others, and such a "
            "model cannot be shown"
        )
    if len(kinds) == 1:
        return kinds.pop()
    return None


def _nearer_gelu(seen: dict[str, torch.Tensor]) -> str | None:
    """The GELU that makes "after" of "before", or nearly so. None if that cannot be decided."""
    if seen.keys() != {"before", "after"} or seen["before"].shape != seen["after"].shape:
        return None
    # what 16 bits round off is more than what the two are apart
    if seen["after"].element_size() < 4:
        return None
    distance = {}
    for name, kind in (("gelu", "none"), ("gelu_tanh", "tanh")):
        output = nn.functional.gelu(seen["before"], approximate=kind)
        distance[name] = float((output - seen["after"]).abs().sum())
    if distance["gelu"] == distance["gelu_tanh"]:
        return None
    return min(distance, key=distance.__getitem__)


def _built_anew(model: Model, config: Config) -> Model:
    """The book's model as its config says it, on the very weights of `model`: none is copied."""
    built = blank_of(config)
    built.load_state_dict(model.state_dict(), assign=True)
    if config.tie_embeddings:
        built.out_head.weight = built.tok_emb.weight
    return built.eval()


def _check_numbers(lm: LanguageModel, seen: Seen, model: nn.Module) -> None:
    """Raise CheckpointError unless `lm` gives what was seen of the model itself."""
    trace = lm.trace(seen.ids, keep=("final",))
    if seen.has_head:
        ours = trace.logits()
    else:
        ours = trace["final"]
    ours = ours[-len(seen.rows) :]
    in_16_bits = any(p.is_floating_point() and p.element_size() < 4 for p in model.parameters())
    tolerance = (NEAR_IN_16_BITS if in_16_bits else NEAR) * float(ours.abs().max())
    difference = float((seen.rows - ours).abs().max())
    if difference <= tolerance:
        return
    why = "with another number of heads"
    if any(module._forward_hooks or module._forward_pre_hooks for module in model.modules()):
        why += ", or with its forward hooks"
    what = "numbers"
    if seen.has_head:
        what = "logits"
    raise CheckpointError(
        f"{lm.name} gives other {what} than its weights do in {type(lm.model).__name__} (by up to "
        f"{difference:.3g}): it computes something else than the book's model, or {why}: it cannot be shown"
    )
