"""Adam, and AdamW, in six lines: for the lessons whose gradients are written out by hand."""

import numpy as np
from numpy.typing import NDArray

# Arrays of any shapes by name: a lesson's weights, or the gradients of the loss by them, which have the same
# names and shapes.
Weights = dict[str, NDArray[np.floating]]


class Adam:
    """Running means of each gradient and of its square (Kingma and Ba, 2015); decay as in AdamW.

    The same steps as `torch.optim.AdamW` with these settings.
    """

    # A running mean with the factor beta is over about the last 1 / (1 - beta) steps: 10 gradients and 100
    # squares. With the usual 0.999 it would be 1,000 squares, more than the lessons' 400 and 600 steps.
    betas = (0.9, 0.99)
    eps = 1e-8  # keeps the division finite where all gradients were 0

    def __init__(self, weights: Weights, decay: float = 0.0):
        self.decay = decay
        self.steps = 0
        self._mean = {name: np.zeros_like(value) for name, value in weights.items()}
        self._square = {name: np.zeros_like(value) for name, value in weights.items()}

    def step(self, weights: Weights, gradients: Weights, learning_rate: float) -> Weights:
        """Return the new weights; the old arrays are left as they were.

        `gradients` must have the gradient of every weight: one without a gradient is missing from the result.
        """
        self.steps += 1
        beta_mean, beta_square = self.betas
        moved: Weights = {}
        for name, gradient in gradients.items():
            self._mean[name] = beta_mean * self._mean[name] + (1 - beta_mean) * gradient
            self._square[name] = beta_square * self._square[name] + (1 - beta_square) * gradient**2
            # both began at 0, and are too small by these factors: hardly so after many steps
            mean = self._mean[name] / (1 - beta_mean**self.steps)
            square = self._square[name] / (1 - beta_square**self.steps)
            decayed = weights[name] * (1 - learning_rate * self.decay)
            moved[name] = decayed - learning_rate * mean / (np.sqrt(square) + self.eps)
        return moved
