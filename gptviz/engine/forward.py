"""Forward passes: the only module that runs a model on tokens.

Traces (`capture`), text generation (`generate`) and batches of edited passes (`variants`) all call the
functions here. A caller that wants to see or replace numbers inside the model gives a list of `Hook`s.

A model may be shared by many threads, most of them browser sessions. So a pass holds a lock, runs in eval
mode without gradients, calls its hooks in its own thread only, and removes them when it ends, even when it
ends with an exception.

Shapes: b texts in a batch, T tokens, D the embedding dimension, V the vocabulary size. The "residual stream"
is the (b, T, D) tensor to which each transformer block adds its output through the shortcut connections.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from gptviz.engine.architecture import architecture_of
from gptviz.engine.kinds import Model
from gptviz.engine.past import Before, Past, at_work, final_hidden
from gptviz.engine.undisturbed import settled
from gptviz.fast import kernels, one_token
from gptviz.fast.attention import Earlier, Known, attention
from gptviz.model import TransformerBlock

# Only one forward pass at a time in a process: two passes at once, each with several torch threads, take
# many times longer than the same two one after the other.
_LOCK = threading.RLock()
# The multiply-adds from which a pass gets more than one thread in a server. As many as the bundled model
# needs for its whole context, or GPT-2 124M for 19 tokens.
LONG_PASS = 3 * 2**29
# The number of torch's threads during a pass; None: the number that torch is set to anyway.
_pass_threads: int | None = None


# The largest absolute value that the output of a pass may have: products of larger ones could overflow
# float32.
LARGEST = 1e30


class NoNumbers(ValueError):
    """The output of a pass has NaN, infinity or a number above LARGEST in it, so it cannot be shown."""


@dataclass(frozen=True)
class Hook:
    """A function to call during a pass with the first input or the output of one module.

    `module` is the module's path inside the model, such as "trf_blocks.3.att". `visit` is called with the
    model's own tensor and returns a replacement, or None to leave it as it is. Several hooks at one place are
    called in the order of the list; those with `last` are called after all others.
    """

    module: str
    side: Literal["input", "output"]
    visit: Callable[[Tensor], Tensor | None]
    last: bool = False


Hooks = Iterable[Hook]


def hidden(
    model: Model,
    in_idx: Tensor,
    hooks: Hooks = (),
    past: Past | None = None,
    graph: bool = False,
) -> Tensor:
    """Run a pass without the output head: (b, T) ids -> (b, T, D), the output of final_norm.

    With `past`, the tokens come after those of `past`, and their keys and values are appended to it. With
    `graph`, the autograd graph is kept; call it inside `running(model, graph=True)`, and differentiate there.
    Raises what the model raises for ids that it cannot read, and what a hook raises.
    """
    if graph:
        kind = architecture_of(model)
        leaves = [kind.sites[name].module for name in kind.embedded.values()]
        hooks = [*(Hook(module, "output", _leaf) for module in leaves), *hooks]
    with running(model, graph), _watched(model, in_idx, past, hooks) as visits:
        return checked(_pass(model, in_idx, past, None, visits))


def hidden_from(
    model: Model,
    block: int,
    stream: Tensor,
    hooks: Hooks = (),
    row: int | None = None,
    past: Before | None = None,
) -> Tensor:
    """Run a pass from a block on: `stream` (b, T, D), the block's input -> (b, T, D), after final_norm.

    With `row`, only the output at that index of T is computed and returned, (b, D). With `past`, the rows of
    `stream` come after the tokens of `past`. A hook may return a larger batch than it was given, which turns
    one text into several edited copies of it from there on.
    """
    work = multiply_adds(model, stream.shape[:2].numel())
    with (
        running(model),
        _hooked(model, hooks),
        threads(_threads_that_pay(work)),
        nullcontext() if past is None else at_work(model, past, len(past)),
    ):
        if row is None:
            return checked(model.final_norm(model.trf_blocks[block:](stream)))
        last = len(model.trf_blocks) - 1
        stream = model.trf_blocks[block:last](stream)
        if past is None:
            after = None
        else:
            after = partial(past.append, last)
        if block <= last:
            rows = _of_row(model.trf_blocks[last], stream, row, after)  # (b, D)
        else:
            rows = stream[:, row]  # (b, D)
        return checked(model.final_norm(rows))


def _of_row(block: nn.Module, x: Tensor, row: int, after: Earlier | None) -> Tensor:
    """Compute one row of a block's output, (b, T, D) -> (b, D).

    The other rows are only needed for their keys and values, unless a hook looks at the block.
    """
    watched = any(
        module._forward_hooks or module._forward_pre_hooks for module in kernels.modules_of(block)
    )
    if watched or type(block) is not TransformerBlock or not kernels.serves(x):
        return block(x)[:, row]
    x = x[:, : row + 1]  # later tokens are hidden from this row by the causal mask
    middle = x[:, -1:] + attention(block.att, block.norm1(x), after, last=True)  # (b, 1, D)
    return (middle + block.ff(block.norm2(middle)))[:, 0]


def block_again(
    model: Model, block: int, stream: Tensor, known: Known | None, hooks: Hooks, attention: bool
) -> None:
    """Run one block, or only its attention, on the input that it had in an earlier pass, for its hooks.

    `stream` is that input, (b, T, D). `known` are the block's keys and values, if an earlier pass kept them;
    without them, or if the model is not float32, they are computed again.
    """
    module: Any = model.trf_blocks[block]
    work = multiply_adds(model, stream.shape[:2].numel()) // len(model.trf_blocks)
    with running(model, known=known), _hooked(model, hooks), threads(_threads_that_pay(work)):
        module.att(module.norm1(stream)) if attention else module(stream)


def last_logits(
    model: Model,
    idx: Tensor,
    past: Past | None = None,
    position: int | None = None,
    hooks: Hooks = (),
) -> Tensor:
    """Compute the logits after the last token of each text, (b, T) ids -> (b, V).

    With `past`, the tokens come after those of `past`, and their keys and values are appended to it. The
    first of them is embedded at `position`; None is the position right after the past.
    """
    with running(model), _watched(model, idx, past, hooks) as visits, torch.inference_mode():
        return checked(model.out_head(_pass(model, idx, past, position, visits)[:, -1]))


def logits_of(model: Model, final: Tensor, graph: bool = False) -> Tensor:
    """Apply the output head to rows after final_norm: (..., D) -> (..., V), float32 on the CPU.

    With `graph`, the autograd graph is kept.
    """
    head = model.out_head.weight  # (V, D)
    work = head.numel() * final.shape[:-1].numel()
    with running(model, graph), threads(_threads_that_pay(work)):
        return checked(kernels.linear(final.to(head), head).float().cpu())


def checked(rows: Tensor) -> Tensor:
    """Return the rows (..., N) as they are. Raises NoNumbers for NaN and for numbers above LARGEST."""
    # aminmax gives NaN twice if there is one, and NaN < LARGEST is False
    if rows.numel() and not torch.stack(torch.aminmax(rows.detach())).abs().max() < LARGEST:
        raise NoNumbers(
            "this pass ends in NaN or infinity, or near it, not in numbers: weights of the model are broken "
            "or far too large, or what an edit puts in is; weight.isfinite().all() says which weights are "
            "whole"
        )
    return rows


@contextmanager
def running(model: Model, graph: bool = False, known: Known | None = None) -> Iterator[None]:
    """Set up everything that a pass needs, and undo it after the block.

    That is: the lock, torch's settings as in a fresh process (`settled`), eval mode, no gradients, and the
    faster versions of the model's layers (`kernels.fast`, which also takes `known`). With `graph` gradients
    are on, and the layers are the book's own. It may be nested: the lock can be taken again by its thread.
    """
    with (
        settled(),
        alone(),
        torch.set_grad_enabled(graph),
        in_eval_mode(model),
        kernels.fast(model, known),
    ):
        yield


@contextmanager
def in_eval_mode(model: nn.Module) -> Iterator[None]:
    """Put every module in eval mode inside the block; afterwards put those that were training back."""
    training = [module for module in kernels.modules_of(model) if module.training]
    try:
        for module in training:
            module.training = False
        yield
    finally:
        for module in training:
            module.training = True


@contextmanager
def alone() -> Iterator[None]:
    """Hold the lock, with all of torch's threads: for a pass, and for heavy work that would slow one down."""
    with _LOCK, threads(_pass_threads or torch.get_num_threads()):
        yield


@contextmanager
def threads(number: int) -> Iterator[None]:
    """Give torch `number` threads inside the block, in this Python thread; put the number back afterwards."""
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(number)
        yield
    finally:
        torch.set_num_threads(before)


def threads_for_passes_only(number: int | None = None) -> None:
    """Let torch use one thread outside `alone`, in every Python thread that begins after this call.

    Inside `alone` it has `number` threads; None is the number that torch has now. A server calls this because
    it answers each request in a new Python thread: torch would start its helper threads again in each of
    them, even to sort one row of logits, and they would spend more time waiting than working.
    """
    global _pass_threads
    if number is not None or _pass_threads is None:
        _pass_threads = number or torch.get_num_threads()
    torch.set_num_threads(1)


def _leaf(value: Tensor) -> Tensor:
    """Cut a tensor off from what made it, and let gradients begin at it, even if no weight requires any."""
    return value.detach().requires_grad_()


def _pass(
    model: Model,
    in_idx: Tensor,
    past: Past | None,
    position: int | None,
    visits: one_token.Visits | None,
) -> Tensor:
    """Run all blocks and final_norm: (b, T) ids -> (b, T, D). Every full pass of gptviz goes through here."""
    with threads(_threads_that_pay(multiply_adds(model, in_idx.numel()))):
        if past is None:
            return model.final_hidden(in_idx)
        return final_hidden(model, in_idx, past, position, visits)


def multiply_adds(model: Model, n_tokens: int) -> int:
    """The approximate number of multiply-adds that `n_tokens` tokens take in all blocks.

    They are as many as numbers in the blocks' matrices. In GPT-2 a block has 12 D^2: 4 D^2 in its attention,
    8 D^2 in its feed-forward.
    """
    if model not in _numbers:
        matrices = [weight for weight in model.trf_blocks[0].parameters() if weight.dim() == 2]
        _numbers[model] = len(model.trf_blocks) * sum(weight.numel() for weight in matrices)
    return _numbers[model] * n_tokens


_numbers: WeakKeyDictionary[nn.Module, int] = WeakKeyDictionary()  # in the blocks' matrices


def _threads_that_pay(multiply_adds: int) -> int:
    """The number of threads for a pass: one for a short pass in a server, since more would save no time."""
    if _pass_threads is not None and multiply_adds < LONG_PASS:
        return 1
    return torch.get_num_threads()


@contextmanager
def _watched(
    model: Model, in_idx: Tensor, past: Past | None, hooks: Hooks
) -> Iterator[one_token.Visits | None]:
    """Register the hooks on the model inside the block.

    A single token after a past is computed by `gptviz.fast.one_token` without calling the modules, where
    hooks would not fire. Then nothing is registered, and what that function calls instead is yielded.
    """
    hooks = sorted(hooks, key=lambda hook: hook.last)
    visits = None
    if past is not None and one_token.serves(model, in_idx):
        visits = one_token.visits_at(
            model, ((hook.module, hook.side, hook.visit) for hook in hooks)
        )
    with _hooked(model, hooks if visits is None else ()):
        yield visits


@contextmanager
def _hooked(model: Model, hooks: Hooks) -> Iterator[None]:
    """Register the hooks for passes of this thread; remove them after the block."""
    thread = threading.get_ident()
    # a handle, as torch returns it, removes its hook when the block is left
    with ExitStack() as handles:
        for hook in sorted(hooks, key=lambda hook: hook.last):
            module = _submodule(model, hook.module)
            visit = partial(_visit, hook, thread)
            if hook.side == "output":
                handle = module.register_forward_hook(visit)
            else:
                handle = module.register_forward_pre_hook(visit)
            handles.enter_context(handle)
        yield


def _submodule(model: Model, path: str) -> nn.Module:
    module: nn.Module | None = model
    # the same as get_submodule in a tenth of the time, which counts: a trace has 150 hooks
    for part in path.split("."):
        if module is not None:
            module = module._modules.get(part)
    if module is None:
        return model.get_submodule(path)  # raises an error that says which module is missing
    return module


def _visit(
    hook: Hook, thread: int, _module: object, inputs: tuple[Tensor, ...], *output: Tensor
) -> Tensor | None:
    """Call a hook with the module's output, or with its first input if there is no output yet.

    torch calls it for every pass of the model; a pass in another thread is another caller's.
    """
    if threading.get_ident() == thread:
        return hook.visit(*output or inputs[:1])
    return None
