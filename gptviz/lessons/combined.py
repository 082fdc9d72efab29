"""The book's final `MultiHeadAttention`, on its six words: every tensor on the way, and what it prints.

Raschka, Build a Large Language Model (From Scratch), section 3.6.2.

Shapes in comments: b batch, T tokens, H heads, d numbers of one head.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gptviz.engine.undisturbed import undisturbed
from gptviz.lessons.sentences import SENTENCES
from gptviz.model import MultiHeadAttention

SEED = 123
D_OUT = 2
HEADS = 2

# what the book prints for both texts of its batch, which are the same
PRINTED = (
    (0.3190, 0.4858), (0.2943, 0.3897), (0.2856, 0.3593),
    (0.2693, 0.3873), (0.2639, 0.3928), (0.2575, 0.4028),
)  # fmt: skip


@dataclass(frozen=True)
class Combined:
    """All that one MultiHeadAttention computes, in its order."""

    x: Tensor  # (b, T, d_in)
    queries: Tensor  # (b, T, H d), as W_query gives them
    keys: Tensor
    values: Tensor
    scores: Tensor  # (b, H, T, T), nothing masked yet
    weights: Tensor  # (b, H, T, T)
    context: Tensor  # (b, T, H d): the heads' contexts side by side
    output: Tensor  # (b, T, H d): mixed by out_proj


@undisturbed
def books_batch() -> Tensor:
    """ "Your journey starts with one step", twice: (2, 6, 3)."""
    inputs = torch.tensor(SENTENCES["Your journey starts with one step"].vectors)
    return torch.stack((inputs, inputs), dim=0)  # 2 of (6, 3) -> (2, 6, 3)


def books_attention(
    d_in: int, context_length: int, d_out: int = D_OUT, num_heads: int = HEADS, seed: int = SEED
) -> MultiHeadAttention:
    """The class as it begins after `torch.manual_seed(seed)`; the global random state stays as it is."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        attention = MultiHeadAttention(d_in, d_out, context_length, 0.0, num_heads=num_heads)
    return attention.eval()


@torch.no_grad()
def combined(seed: int = SEED, num_heads: int = HEADS) -> Combined:
    """Run the class on the book's batch, and catch what goes through its parts with hooks."""
    x = books_batch()
    attention = books_attention(x.shape[2], x.shape[1], num_heads=num_heads, seed=seed)
    caught: dict[str, Tensor] = {}

    def keep(name: str, from_input: bool) -> None:
        def hook(_: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
            caught[name] = (inputs[0] if from_input else output).clone()

        attention.get_submodule(name).register_forward_hook(hook)

    for name in ("W_query", "W_key", "W_value"):
        keep(name, from_input=False)
    keep("dropout", from_input=True)  # the attention weights
    keep("out_proj", from_input=True)
    output = attention(x)
    queries, keys = (
        caught[name].view(*x.shape[:2], num_heads, attention.head_dim).transpose(1, 2)
        for name in ("W_query", "W_key")
    )  # (b, T, H d) -> (b, H, T, d)
    scores = queries @ keys.transpose(2, 3)  # (b, H, T, T)
    return Combined(
        x=x,
        queries=caught["W_query"],
        keys=caught["W_key"],
        values=caught["W_value"],
        scores=scores,
        weights=caught["dropout"],
        context=caught["out_proj"],
        output=output,
    )


def shapes(found: Combined) -> list[tuple[str, tuple[int, ...], str]]:
    """A row for each step: what it is, its shape, and what the shape says."""
    b, T, width = found.queries.shape
    heads = found.weights.shape[1]
    d = width // heads
    return [
        ("x", tuple(found.x.shape), "batch, words, numbers of a word"),
        ("queries = W_query(x)", tuple(found.queries.shape), "keys and values likewise"),
        (
            "queries, split among the heads",
            (b, heads, T, d),
            "batch, heads, words, numbers of a head",
        ),
        (
            "attn_scores = queries @ keys.transpose(2, 3)",
            tuple(found.scores.shape),
            "one per head and pair",
        ),
        ("attn_weights, masked and softmaxed", tuple(found.weights.shape), "each row adds up to 1"),
        ("attn_weights @ values", (b, heads, T, d), "each head's context vectors"),
        (
            "context_vec, the heads side by side",
            tuple(found.context.shape),
            "as wide as the queries",
        ),
        ("out_proj(context_vec)", tuple(found.output.shape), "the heads mixed by one more matrix"),
    ]
