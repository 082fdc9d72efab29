"""Two example sentences with a vector per word, and weights drawn as the book draws them.

The first sentence is from a notebook that this project began with (its "seeds", tests/pages/test_seeds.py),
the second from the book's chapter 3. The weights are what `torch.manual_seed(123)` and
`torch.manual_seed(789)` give in the book's code.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch

from gptviz.engine.undisturbed import undisturbed
from gptviz.lessons.attention import HeadWeights


@dataclass(frozen=True)
class Sentence:
    """`words`, a row of `vectors` for each, and the word whose attention the source works out as its example.

    `query` is the index of that word in `words`, from 0.
    """

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

D_IN = 3  # numbers per word vector
D_OUT = 2  # numbers per query, key and value


@undisturbed
def rand_weights(seed: int, heads: int = 1) -> tuple[HeadWeights, ...]:
    """Draw the weights of the book's SelfAttention_v1: `torch.rand(3, 2)` for each matrix, after this seed.

    `heads` is the number of heads; each has three matrices (3, 2).
    """
    return _heads(seed, heads, lambda generator: torch.rand(D_IN, D_OUT, generator=generator))


@undisturbed
def linear_weights(seed: int, heads: int = 1) -> tuple[HeadWeights, ...]:
    """Draw the weights of the book's SelfAttention_v2 and CausalAttention, after this seed.

    There each matrix is an `nn.Linear(3, 2, bias=False)`; here it is that layer's weight, transposed to (3,
    2). `heads` is the number of heads. A generator of its own gives the same numbers as nn.Linear, and leaves
    torch's global random numbers as they are.
    """
    bound = D_IN**-0.5  # nn.Linear draws its weights evenly from -1/sqrt(d_in) to 1/sqrt(d_in)

    def draw(generator: torch.Generator) -> torch.Tensor:
        weight = torch.empty(D_OUT, D_IN).uniform_(-bound, bound, generator=generator)
        return weight.T  # (d, d_in) -> (d_in, d)

    return _heads(seed, heads, draw)


def _heads(
    seed: int, heads: int, draw: Callable[[torch.Generator], torch.Tensor]
) -> tuple[HeadWeights, ...]:
    """Draw head after head, each in the book's order: W_query, W_key, W_value."""
    generator = torch.Generator().manual_seed(seed)
    return tuple(
        HeadWeights(query=draw(generator), key=draw(generator), value=draw(generator))
        for _ in range(heads)
    )
