"""Embeddings in small: the book's first table, looked up and multiplied, and the shapes of a batch.

Raschka, Build a Large Language Model (From Scratch), sections 2.7 and 2.8.
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from gptviz.engine.undisturbed import undisturbed

# six tokens of three numbers each
ROWS = 6
COLUMNS = 3
SEED = 123
# of the table that follows it
BOOKS_VOCABULARY = 50257
BOOKS_DIMENSIONS = 256

# what the book prints after torch.manual_seed(123)
PRINTED = (
    (0.3374, -0.1778, -0.1690), (0.9178, 1.5810, 1.3010), (1.2753, -0.2010, -0.1606),
    (-0.4015, 0.9666, -1.1481), (-1.1589, 0.3255, -0.6315), (-2.8400, -0.7849, -1.4096),
)  # fmt: skip


@undisturbed
def first_table(rows: int = ROWS, columns: int = COLUMNS, seed: int = SEED) -> Tensor:
    """The weights of `torch.manual_seed(seed); nn.Embedding(rows, columns)`, (rows, columns).

    The global random state stays as it is.
    """
    drawing = torch.Generator().manual_seed(seed)
    return torch.empty(rows, columns).normal_(generator=drawing)


@dataclass(frozen=True)
class LookedUp:
    """One token's row in two ways: `row` (D,) looked up; `product` (D,) is `one_hot` (V,) times the table."""

    one_hot: Tensor
    row: Tensor
    product: Tensor


@undisturbed
def looked_up(table: Tensor, id: int) -> LookedUp:
    """Row `id` of a table (V, D), looked up and as a linear layer without bias gives it.

    Raises ValueError for an id that the table does not have.
    """
    if not 0 <= id < len(table):
        raise ValueError(f"the id is {id}; the table has rows 0 to {len(table) - 1}")
    one_hot = torch.zeros(len(table), dtype=table.dtype)
    one_hot[id] = 1
    linear = nn.utils.skip_init(nn.Linear, *table.shape, bias=False)
    with torch.no_grad():
        linear.weight.copy_(table.T)  # nn.Linear keeps the transpose: (D, V)
        product = linear(one_hot)  # (V,) -> (D,)
    return LookedUp(one_hot, table[id], product)


@undisturbed
def batch_shapes(inputs: Tensor, vocab_size: int, dimensions: int) -> dict[str, tuple[int, ...]]:
    """The shapes of a batch on its way into a model: `inputs` (b, T) ids, and what two tables make of them.

    The tables are all zeros, and share one: a vocabulary of any size takes no memory.
    """
    T = inputs.shape[1]
    tok_emb = nn.Embedding.from_pretrained(torch.zeros(1, 1).expand(vocab_size, dimensions))
    pos_emb = nn.Embedding.from_pretrained(torch.zeros(1, 1).expand(T, dimensions))
    token_embeddings = tok_emb(inputs)  # (b, T, D)
    pos_embeddings = pos_emb(torch.arange(T))  # (T, D)
    tensors = {
        "inputs": inputs,
        "tok_emb(inputs)": token_embeddings,
        "pos_emb(torch.arange(T))": pos_embeddings,
        "their sum": token_embeddings + pos_embeddings,
    }
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}
