"""A small neural language model with a fixed context, its gradients written out by hand.

The last n characters are looked up in one table of embeddings, laid side by side, and passed through a
hidden layer of tanh units: Bengio et al., A Neural Probabilistic Language Model, 2003 (without its direct
connections). It reads further back than a bigram, and what it learns of a character in one place of the
context it does not know in another: that is what attention is for.

Shapes: V characters, n context, d embedding, h hidden units, b examples.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gptviz.engine.index import whole
from gptviz.lessons.adam import Adam, Weights

Ids = NDArray[np.int64]
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Recipe:
    """Every choice of the model and of its training. Raises ValueError for sizes that no model has."""

    context: int = 3
    embedding: int = 10
    hidden: int = 64
    steps: int = 600
    batch: int = 128
    learning_rate: float = 0.01  # falls to 0 over the last 40 % of the steps
    decay: float = 0.1
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("context", "embedding", "hidden", "steps", "batch"):
            whole(name, getattr(self, name), 1)

    def rate(self, step: int) -> float:
        """The learning rate of a step, counted from 0."""
        return self.learning_rate * min(1.0, (self.steps - step) / (0.4 * self.steps))

    def parameters(self, size: int) -> int:
        """The number of parameters for a vocabulary of `size` characters."""
        width = self.context * self.embedding
        return size * self.embedding + (width + 1) * self.hidden + (self.hidden + 1) * size


def examples(ids: Ids, context: int) -> tuple[Ids, Ids]:
    """Every place of a text (N,): the `context` ids before it (N - n, n), and the id there (N - n,).

    The first `context` characters are context only. Raises ValueError for a text that is no longer than it.
    """
    if len(ids) <= context:
        raise ValueError(
            f"the text has {len(ids)} characters; a context of {context} needs more than that"
        )
    return np.lib.stride_tricks.sliding_window_view(ids, context)[:-1], ids[context:]


@dataclass(frozen=True)
class MLP:
    """`weights`: embedding (V, d), hidden (n d, h), hidden_bias (h,), output (h, V), output_bias (V,)."""

    weights: Weights
    context: int

    @classmethod
    def start(cls, size: int, recipe: Recipe) -> "MLP":
        """Random weights, of such a size that tanh is neither flat nor full; no character is preferred."""
        rng = np.random.default_rng(recipe.seed)
        width = recipe.context * recipe.embedding
        drawn = {
            "embedding": rng.normal(size=(size, recipe.embedding)),
            "hidden": rng.normal(size=(width, recipe.hidden)) * (5 / 3) / width**0.5,
            "hidden_bias": np.zeros(recipe.hidden),
            "output": rng.normal(size=(recipe.hidden, size)) * 0.01,
            "output_bias": np.zeros(size),
        }
        return cls(
            {name: value.astype(np.float32) for name, value in drawn.items()}, recipe.context
        )

    def log_probabilities(self, before: Ids) -> Floats:
        """(b, n) contexts -> (b, V)."""
        return self._forward(before)[2]

    def nats(self, ids: Ids) -> Floats:
        """-log P of ids[n:], each from the n before it: (N,) -> (N - n,)."""
        contexts, targets = examples(ids, self.context)
        return -self.log_probabilities(contexts)[np.arange(len(targets)), targets]

    def loss_and_gradients(self, before: Ids, came: Ids) -> tuple[float, Weights]:
        """Mean cross-entropy in nats, and its gradient by every weight: the chain rule, from the end back."""
        rows = np.arange(len(came))
        joined, active, log_p = self._forward(before)
        logit_gradient = np.exp(log_p)  # d loss / d logits = (p - 1 at the target) / b
        logit_gradient[rows, came] -= 1
        logit_gradient /= len(came)
        slope = 1 - active**2  # of tanh: 1 - tanh^2
        hidden_gradient = (logit_gradient @ self.weights["output"].T) * slope
        # (b, h) x (h, n d) -> (b, n d) -> (b, n, d)
        joined_gradient = (hidden_gradient @ self.weights["hidden"].T).reshape(*before.shape, -1)
        embedding = np.zeros_like(self.weights["embedding"])
        # a character that stands twice in a context gets both gradients
        np.add.at(embedding, before, joined_gradient)
        gradients: Weights = {
            "embedding": embedding,
            "hidden": joined.T @ hidden_gradient,
            "hidden_bias": hidden_gradient.sum(axis=0),
            "output": active.T @ logit_gradient,
            "output_bias": logit_gradient.sum(axis=0),
        }
        return float(-log_p[rows, came].mean()), gradients

    def _forward(self, contexts: Ids) -> tuple[Floats, Floats, Floats]:
        """(b, n) -> embeddings side by side (b, n d), hidden units (b, h), log probabilities (b, V)."""
        # (b, n, d) -> (b, n d)
        joined = self.weights["embedding"][contexts].reshape(len(contexts), -1)
        active = np.tanh(joined @ self.weights["hidden"] + self.weights["hidden_bias"])
        logits = active @ self.weights["output"] + self.weights["output_bias"]
        logits = logits - logits.max(axis=1, keepdims=True)
        return joined, active, logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))


@dataclass(frozen=True)
class Learnt:
    """The state of a training after `step` steps; `loss` is that of the step's batch in nats, None at 0."""

    step: int
    model: MLP
    loss: float | None


def train(ids: Ids, size: int, recipe: Recipe) -> Iterator[Learnt]:
    """Train on a text of ids below `size`; yield the state before the first step, and after each.

    The same seed gives the same model.
    """
    contexts, targets = examples(ids, recipe.context)
    model = MLP.start(size, recipe)
    rng = np.random.default_rng((recipe.seed, 1))
    adam = Adam(model.weights, decay=recipe.decay)
    yield Learnt(0, model, None)
    for step in range(recipe.steps):
        chosen = rng.integers(0, len(targets), recipe.batch)
        loss, gradients = model.loss_and_gradients(contexts[chosen], targets[chosen])
        model = MLP(adam.step(model.weights, gradients, recipe.rate(step)), recipe.context)
        yield Learnt(step + 1, model, loss)


def write(model: MLP, start: list[int], length: int, seed: int = 0) -> list[int]:
    """Draw on after the ids `start` (at least a context of them), one by one: `length` ids."""
    rng = np.random.default_rng(seed)
    ids = list(start)
    for point in rng.random(length):
        summed = np.exp(model.log_probabilities(np.array([ids[-model.context :]]))[0]).cumsum()
        ids.append(
            min(int(np.searchsorted(summed, point * summed[-1], side="right")), len(summed) - 1)
        )
    return ids[len(start) :]
