"""Adam, and AdamW, in six lines: for the lessons whose gradients are written out by hand."""

import numpy as np
from numpy.typing import NDArray

Weights = dict[str, NDArray[np.floating]]


class Adam:
    """Running means of each gradient and of its square (Kingma and Ba, 2015); decay as in AdamW.

    The same steps as `torch.optim.AdamW` with these settings.
    """

    betas = (0.9, 0.99)
    eps = 1e-8

    def __init__(self, weights: Weights, decay: float = 0.0):
        self.decay = decay
        self.steps = 0
        self._mean = {name: np.zeros_like(value) for name, value in weights.items()}
        self._square = {name: np.zeros_like(value) for name, value in weights.items()}

    def step(self, weights: Weights, gradients: Weights, learning_rate: float) -> Weights:
        """New weights; the old ones are left as they were."""
        self.steps += 1
        first, second = self.betas
        moved: Weights = {}
        for name, gradient in gradients.items():
            self._mean[name] = first * self._mean[name] + (1 - first) * gradient
            self._square[name] = second * self._square[name] + (1 - second) * gradient**2
            mean = self._mean[name] / (1 - first**self.steps)  # both began at 0
            square = self._square[name] / (1 - second**self.steps)
            decayed = weights[name] * (1 - learning_rate * self.decay)
            moved[name] = decayed - learning_rate * mean / (np.sqrt(square) + self.eps)
        return moved
