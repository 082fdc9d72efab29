"""The one module that runs a model: the capture, the writing on, and everything batched stand on it.

A model may be shared by many threads, most of them browser sessions. While one runs it, a lock is held
from the first hook to the last; the pass is in eval mode and without gradients; a hook looks at the
pass of its own thread only; and all hooks are gone when the pass ends, however it ends.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from gptviz.engine.past import Before, Past, at_work, final_hidden
from gptviz.engine.undisturbed import settled
from gptviz.fast import kernels, one_token
from gptviz.fast.attention import Earlier, Known, attention
from gptviz.model import GPTModel, TransformerBlock

# One forward at a time per process: passes side by side, each with several torch threads, are many
# times slower than one after the other.
_LOCK = threading.RLock()
LONG_PASS = 3 * 2**29  # multiply-adds: the bundled model's whole context, 19 tokens of GPT-2 124M
_pass_threads: int | None = None  # torch's threads while a pass runs; None: as many as at any other time


LARGEST = 1e30  # of a row's numbers: what is made of larger ones may leave the range of float32


class NoNumbers(ValueError):
    """A pass did not end in numbers: nothing of it can be shown."""


@dataclass(frozen=True)
class Hook:
    """Where to look: at a module (a path inside GPTModel), at its first input or at its output.

    `visit` gets the tensor as the model has it and returns a replacement, or None to leave it alone. Hooks of
    one place follow each other in the order in which they are given, those that are `last` after all others.
    """

    module: str
    side: Literal["input", "output"]
    visit: Callable[[Tensor], Tensor | None]
    last: bool = False


Hooks = Iterable[Hook]


def hidden(
    model: GPTModel, in_idx: Tensor, hooks: Hooks = (), past: Past | None = None, graph: bool = False
) -> Tensor:
    """All of a pass but the output head, looked at by `hooks`: (b, T) ids -> (b, T, D), after final_norm.

    After the tokens of `past`, which then has these, too. Raises what the model does for ids that it
    cannot read, and what a hook raises. With `graph` there are gradients: to be called within `running`, too.
    """
    if graph:
        hooks = [*(Hook(name, "output", _leaf) for name in ("tok_emb", "pos_emb")), *hooks]
    with running(model, graph), _watched(model, in_idx, past, hooks) as visits:
        return checked(_pass(model, in_idx, past, None, visits))


def hidden_from(
    model: GPTModel,
    block: int,
    stream: Tensor,
    hooks: Hooks = (),
    row: int | None = None,
    past: Before | None = None,
) -> Tensor:
    """The rest of a pass: what comes into a block (b, T, D) -> (b, T, D), after final_norm; of `row` (b, D).

    A hook may return more texts than it was given: the stream into the block is then that of each of them.
    The rows come after the tokens of `past`. Where only a row is asked for, the last block works on no other.
    """
    work = multiply_adds(model, stream.shape[:2].numel())
    with (
        running(model),
        _hooked(model, hooks),
        threads(_threads_that_pay(work)),
        nullcontext() if past is None else at_work(model, past),
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
            rows = _of_row(model.trf_blocks[last], stream, row, after)
        else:
            rows = stream[:, row]
        return checked(model.final_norm(rows))


def _of_row(block: nn.Module, x: Tensor, row: int, after: Earlier | None) -> Tensor:
    """One row of what a block gives, (b, T, D) -> (b, D): of the others nobody asks but keys and values."""
    watched = any(module._forward_hooks or module._forward_pre_hooks for module in kernels.modules_of(block))
    if watched or type(block) is not TransformerBlock or not kernels.serves(x):
        return block(x)[:, row]
    x = x[:, : row + 1]
    middle = x[:, -1:] + attention(block.att, block.norm1(x), after, last=True)
    return (middle + block.ff(block.norm2(middle)))[:, 0]


def block_again(
    model: GPTModel, block: int, stream: Tensor, known: Known | None, hooks: Hooks, attention: bool
) -> None:
    """One block of a pass from what came into it (b, T, D), or its attention only: for who looks on.

    Its keys and values are worked out again where they are not `known`, or in other numbers than float32.
    """
    module: Any = model.trf_blocks[block]
    work = multiply_adds(model, stream.shape[:2].numel()) // len(model.trf_blocks)
    with running(model, known=known), _hooked(model, hooks), threads(_threads_that_pay(work)):
        module.att(module.norm1(stream)) if attention else module(stream)


def last_logits(
    model: GPTModel, idx: Tensor, past: Past | None = None, position: int | None = None, hooks: Hooks = ()
) -> Tensor:
    """The last position's logits, (b, T) ids -> (b, V), without the head's work at the others.

    After the tokens of `past`, which then has these, too; the first of them is embedded at `position`, if
    one is given, and else where the past ends.
    """
    with running(model), _watched(model, idx, past, hooks) as visits, torch.inference_mode():
        return checked(model.out_head(_pass(model, idx, past, position, visits)[:, -1]))


def logits_of(model: GPTModel, final: Tensor, graph: bool = False) -> Tensor:
    """Apply the output head to rows after final_norm: (..., D) -> (..., V), float32 on the CPU.

    With `graph` there are gradients.
    """
    head = model.out_head.weight
    work = head.numel() * final.shape[:-1].numel()
    with running(model, graph), threads(_threads_that_pay(work)):
        return checked(kernels.linear(final.to(head), head).float().cpu())


def checked(rows: Tensor) -> Tensor:
    """The same (..., N), where a pass made numbers. Raises NoNumbers for NaN, and infinity or nearly so."""
    # NaN is both ends, and smaller than nothing
    if rows.numel() and not torch.stack(torch.aminmax(rows.detach())).abs().max() < LARGEST:
        raise NoNumbers(
            "this pass ends in NaN or infinity, or near it, not in numbers: weights of the model are broken "
            "or far too large, or what an edit puts in is; weight.isfinite().all() says which weights are "
            "whole"
        )
    return rows


@contextmanager
def running(model: GPTModel, graph: bool = False, known: Known | None = None) -> Iterator[None]:
    """Alone, undisturbed, the fast kernels, eval mode, and no gradients: what every pass is wrapped in.

    With `graph` there are gradients, and the book's own lines. It may be entered again from within. `known`
    is for `kernels.fast`.
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
    """Every module in eval mode within; those that were in training mode are so again afterwards."""
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
    """The lock and all of torch's threads: for a pass, and for work as heavy that must not run beside one."""
    with _LOCK, threads(_pass_threads or torch.get_num_threads()):
        yield


@contextmanager
def threads(number: int) -> Iterator[None]:
    """So many of torch's threads within, in this thread of Python; as many as before afterwards."""
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(number)
        yield
    finally:
        torch.set_num_threads(before)


def threads_for_passes_only(number: int | None = None) -> None:
    """From now on torch works with one thread, in every thread that begins after this, except `alone`.

    There it has `number` threads, or as many as it had. For a server that gives each of its runs a thread:
    torch would start its helpers anew in each, for a sort of one row of logits, and they wait for more work
    longer than they worked.
    """
    global _pass_threads
    if number is not None or _pass_threads is None:
        _pass_threads = number or torch.get_num_threads()
    torch.set_num_threads(1)


def _leaf(value: Tensor) -> Tensor:
    """A leaf tensor, at which gradients begin, whether the weights require any or not."""
    return value.detach().requires_grad_()


def _pass(
    model: GPTModel, in_idx: Tensor, past: Past | None, position: int | None, visits: one_token.Visits | None
) -> Tensor:
    """The only lines of gptviz that run all blocks."""
    with threads(_threads_that_pay(multiply_adds(model, in_idx.numel()))):
        if past is None:
            return model.final_hidden(in_idx)
        return final_hidden(model, in_idx, past, position, visits)


def multiply_adds(model: GPTModel, n_tokens: int) -> int:
    """About how many multiply-adds so many tokens take in all blocks."""
    return 12 * len(model.trf_blocks) * model.tok_emb.embedding_dim**2 * n_tokens


def _threads_that_pay(multiply_adds: int) -> int:
    """In a server a short pass has one thread: two begin anew in each run, and are no sooner done."""
    if _pass_threads is not None and multiply_adds < LONG_PASS:
        return 1
    return torch.get_num_threads()


@contextmanager
def _watched(
    model: GPTModel, in_idx: Tensor, past: Past | None, hooks: Hooks
) -> Iterator[one_token.Visits | None]:
    """The hooks hung on the model; or, where the token goes the short way, who is to be asked on it."""
    hooks = sorted(hooks, key=lambda hook: hook.last)
    visits = None
    if past is not None and one_token.serves(model, in_idx):
        visits = one_token.visits_at(model, ((hook.module, hook.side, hook.visit) for hook in hooks))
    with _hooked(model, hooks if visits is None else ()):
        yield visits


@contextmanager
def _hooked(model: GPTModel, hooks: Hooks) -> Iterator[None]:
    thread = threading.get_ident()
    with ExitStack() as hung:  # torch's handle of a hook removes it where it is left
        for hook in sorted(hooks, key=lambda hook: hook.last):
            module = _submodule(model, hook.module)
            visit = partial(_visit, hook, thread)
            hang = module.register_forward_hook if hook.side == "output" else module.register_forward_pre_hook
            hung.enter_context(hang(visit))
        yield


def _submodule(model: GPTModel, path: str) -> nn.Module:
    module: nn.Module | None = model
    for part in path.split("."):  # what get_submodule does, in a tenth of the time: a trace has 150 hooks
        if module is not None:
            module = module._modules.get(part)
    return model.get_submodule(path) if module is None else module  # which says what there is not


def _visit(
    hook: Hook, thread: int, _module: object, given: tuple[Tensor, ...], *output: Tensor
) -> Tensor | None:
    """Ask a hook: of the module's output, or before there is one of what it is given."""
    # another thread's is somebody else's pass on the same model
    if threading.get_ident() == thread:
        return hook.visit(*output or given[:1])
    return None
