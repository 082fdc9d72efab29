"""The seeds' two sentences with a vector a word, and the weight matrices that the book's seeds give."""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from gptviz.engine.undisturbed import undisturbed
from gptviz.lessons.attention import HeadWeights


@dataclass(frozen=True)
class Sentence:
    """`words`, a row of `vectors` for each, and the query that the text works out."""

    words: tuple[str, ...]
    vectors: tuple[tuple[float, ...], ...]
    query: int


SENTENCES = {
    "Hello shiny sun!": Sentence(
        ("Hello", "shiny", "sun"), ((0.34, 0.22, 0.54), (0.53, 0.34, 0.98), (0.29, 0.54, 0.93)), 1
    ),
    "Your journey starts with one step": Sentence(
        ("Your", "journey", "starts", "with", "one", "step"),
        (
            (0.43, 0.15, 0.89),
            (0.55, 0.87, 0.66),
            (0.57, 0.85, 0.64),
            (0.22, 0.58, 0.33),
            (0.77, 0.25, 0.10),
            (0.05, 0.80, 0.55),
        ),
        1,
    ),
}

D_IN = 3  # numbers a token
D_OUT = 2  # numbers of a query, a key and a value


@undisturbed
def rand_weights(seed: int, heads: int = 1) -> tuple[HeadWeights, ...]:
    """The weights of the book's SelfAttention_v1: `torch.rand(3, 2)` after this seed."""
    return _heads(seed, heads, lambda drawing: torch.rand(D_IN, D_OUT, generator=drawing))


@undisturbed
def linear_weights(seed: int, heads: int = 1) -> tuple[HeadWeights, ...]:
    """The weights of SelfAttention_v2 and CausalAttention: `nn.Linear(3, 2)` after this seed.

    A generator of its own draws what nn.Linear draws, so that no other random number of the process changes.
    """
    bound = D_IN**-0.5  # nn.Linear starts with weights even between -1/sqrt(d_in) and 1/sqrt(d_in)
    return _heads(
        seed, heads, lambda drawing: torch.empty(D_OUT, D_IN).uniform_(-bound, bound, generator=drawing).T
    )


def _heads(seed: int, heads: int, draw: Callable[[torch.Generator], torch.Tensor]) -> tuple[HeadWeights, ...]:
    drawing = torch.Generator().manual_seed(seed)
    return tuple(HeadWeights(draw(drawing), draw(drawing), draw(drawing)) for _ in range(heads))
