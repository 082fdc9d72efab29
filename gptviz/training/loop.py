"""The training loop: bf16 autocast, clipping, warm-up and decay, validation, checkpoints, exact resume."""

import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from tqdm import tqdm

from gptviz.engine.blank import init_weights
from gptviz.engine.config import GPTConfig
from gptviz.files.atomic_file import write_atomically, write_text
from gptviz.model import GPTModel
from gptviz.training.datasets import TokenWindows
from gptviz.training.recipe import CHECKPOINT, Recipe

VALIDATION_BATCHES = 8

LossFunction = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
Masks = dict[str, torch.Tensor]  # a parameter's name -> 1 where it learns, 0 where it is held at 0


class Steps(Protocol):
    """A source of batches: number n's inputs and targets, (batch, T) ids each, the same every time."""

    def __getitem__(self, step: int) -> tuple[torch.Tensor, torch.Tensor]: ...


class MuonInFloat32(torch.optim.Muon):
    """torch's Muon with its matrix products in float32 instead of bfloat16.

    Without hardware for bfloat16 one of those products takes a hundred times as long.
    """

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for matrix in group["params"]:
                if matrix.grad is not None:
                    self._one_matrix(matrix, matrix.grad, group)

    def _one_matrix(
        self, matrix: torch.Tensor, gradient: torch.Tensor, group: dict[str, Any]
    ) -> None:
        momentum = group["momentum"]
        state = self.state[matrix]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = torch.zeros_like(matrix)
        buffer = state["momentum_buffer"]
        buffer.lerp_(gradient, 1 - momentum)
        update = gradient.lerp(buffer, momentum)  # Nesterov's
        update = orthogonalized(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
        rows, columns = matrix.shape
        matrix.mul_(1 - group["lr"] * group["weight_decay"])
        matrix.add_(update, alpha=-group["lr"] * max(1, rows / columns) ** 0.5)


def orthogonalized(
    matrix: torch.Tensor, coefficients: tuple[float, float, float], steps: int, eps: float
) -> torch.Tensor:
    """The matrix with all its singular values near 1, by Newton and Schulz's iteration: (n, m) -> (n, m)."""
    a, b, c = coefficients
    if matrix.shape[0] > matrix.shape[1]:
        return orthogonalized(matrix.mT, coefficients, steps, eps).mT
    found = matrix / matrix.norm().clamp(min=eps)
    for _ in range(steps):
        gram = found @ found.mT  # (n, n)
        found = a * found + (b * gram + c * gram @ gram) @ found
    return found


def make_optimizers(model: GPTModel, recipe: Recipe) -> list[torch.optim.Optimizer]:
    """Muon (Jordan et al., 2024) for the blocks' matrices, AdamW for embeddings, norms and biases."""
    hidden = [p for p in model.trf_blocks.parameters() if p.dim() == 2]
    ids = {id(p) for p in hidden}
    other_parameters = [p for p in model.parameters() if id(p) not in ids]
    adam_options: dict[str, Any] = {
        "betas": (0.9, recipe.beta2),
        "weight_decay": recipe.weight_decay,
    }
    optimizers: list[torch.optim.Optimizer] = [
        torch.optim.AdamW(other_parameters, lr=recipe.other_lr, **adam_options)
    ]
    if recipe.hidden_optimizer == "muon":
        muon = torch.optim.Muon
        if recipe.precision == "float32":
            muon = MuonInFloat32
        optimizers.append(muon(hidden, lr=recipe.hidden_lr, weight_decay=recipe.weight_decay))
    else:
        optimizers.append(torch.optim.AdamW(hidden, lr=recipe.hidden_lr, **adam_options))
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            group["peak_lr"] = group["lr"]
    return optimizers


def make_loss(
    model: GPTModel, device: torch.device, compiled: bool, precision: str = "bfloat16"
) -> LossFunction:
    """Mean cross-entropy in nats a token, the forward pass in bf16 where the hardware multiplies it."""
    in_half = precision == "bfloat16"

    def loss(inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=in_half):
            logits = model(inputs)  # (b, T, V)
        return F.cross_entropy(logits.flatten(0, 1).float(), targets.flatten())  # (b*T, V), (b*T,)

    if compiled:
        return torch.compile(loss)
    return loss


@dataclass
class TrainingRun:
    """A training run: the model, its optimizers, how far it is, and what was measured on the way.

    `recent` are the losses since the curve's last point. What a mask of `held` has at 0 stays 0: that part of
    a weight does not exist for this run.
    """

    model: GPTModel
    config: GPTConfig
    recipe: Recipe
    device: torch.device
    folder: Path
    optimizers: list[torch.optim.Optimizer]
    step: int = 0
    seconds: float = 0.0
    curve: list[dict[str, float]] = field(default_factory=list)
    recent: list[float] = field(default_factory=list)
    held: Masks = field(default_factory=dict)
    # compiling takes a minute on a GPU: once a run, and not once a call of `train`
    compiled_loss: LossFunction | None = None

    @classmethod
    def start(
        cls,
        config: GPTConfig,
        recipe: Recipe,
        folder: Path,
        device: str = "cpu",
        make: Callable[[GPTConfig], GPTModel] = GPTModel,
        held: Masks | None = None,
        weights: dict[str, torch.Tensor] | None = None,
    ) -> "TrainingRun":
        """A new run, or the one whose checkpoint lies in `folder`, from the step where it was saved.

        The recipe of a resumed run may have other `steps` and `decay_share` (that is how a run is
        made longer, or brought to its end early); anything else raises ValueError.
        """
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(recipe.seed)
            model = make(config)
        if recipe.init == "gpt2":
            init_weights(model, recipe.seed)
        if weights is not None:
            model.load_state_dict(weights)
        model.to(device)
        run = cls(
            model, config, recipe, torch.device(device), folder, make_optimizers(model, recipe)
        )
        if run.checkpoint.exists():
            run._resume()
        run.held = held or {}
        run._hold()
        return run

    @property
    def checkpoint(self) -> Path:
        return self.folder / CHECKPOINT

    def _resume(self) -> None:
        saved = torch.load(self.checkpoint, map_location=self.device, weights_only=True)
        if saved["config"] != self.config.to_dict() or not self.recipe.may_resume(saved["recipe"]):
            raise ValueError(
                f"{self.checkpoint} was made with {saved['config']} and {saved['recipe']}; it can only be "
                "resumed with the same, apart from --steps and --decay-share"
            )
        self.model.load_state_dict(saved["model"])
        for optimizer, state in zip(self.optimizers, saved["optimizers"], strict=True):
            optimizer.load_state_dict(state)
        self.step = saved["step"]
        self.seconds = saved["seconds"]
        self.curve = saved["curve"]
        self.recent = saved.get("recent", [])

    def state(self) -> dict[str, Any]:
        """The state of the run, from which it can go on."""
        return {
            "config": self.config.to_dict(),
            "recipe": asdict(self.recipe),
            "model": self.model.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "step": self.step,
            "seconds": self.seconds,
            "curve": self.curve,
            "recent": self.recent,
        }

    def save(self) -> None:
        """Write the checkpoint whole or not at all: a killed run leaves the one before."""
        write_atomically(self.checkpoint, lambda path: torch.save(self.state(), path))
        write_text(self.folder / "curve.json", json.dumps(self.curve, indent=1))

    def train(
        self,
        batches: Steps,
        validation: TokenWindows,
        *,
        compiled: bool = False,
        validate_every: int = 250,
        validation_batches: int = VALIDATION_BATCHES,
        stop_at: int | None = None,
        progress: bool = True,
        watch: Callable[["TrainingRun"], bool] | None = None,
    ) -> None:
        """Go on to the recipe's last step, or to `stop_at`; validate and save every `validate_every` steps.

        `watch` is called after every step, with the run's new point of the curve, if there is one, in
        place; the run ends when it returns False. `seconds` are those of the steps and their validation.
        Raises ValueError when the held-out text has no window to validate on.
        """
        if not len(validation):
            raise ValueError(
                f"the held-out books have {len(validation.token_ids)} tokens; "
                f"validation needs at least {validation.max_length + 1}"
            )
        plain_loss = make_loss(self.model, self.device, False, self.recipe.precision)
        loss_function = plain_loss
        if compiled:
            if self.compiled_loss is None:
                self.compiled_loss = make_loss(self.model, self.device, True, self.recipe.precision)
            loss_function = self.compiled_loss
        last = min(self.recipe.steps, stop_at if stop_at is not None else self.recipe.steps)
        bar = tqdm(total=self.recipe.steps, initial=self.step, unit="step", disable=not progress)
        # the next batch is cut while this one is computed: on a GPU it would wait for it
        with bar, ThreadPoolExecutor(1) as ahead:
            upcoming = ahead.submit(batches.__getitem__, self.step)
            while self.step < last:
                began = time.monotonic()
                before = self.seconds
                inputs, targets = upcoming.result()
                upcoming = ahead.submit(batches.__getitem__, self.step + 1)
                self.recent.append(self._one_step(loss_function, inputs, targets))
                self.step += 1
                self.seconds = before + time.monotonic() - began
                bar.update()
                if self.step % validate_every == 0 or self.step == last:
                    # not compiled: another mode of the model would be compiled anew for a few batches
                    self._note(validation, plain_loss, validation_batches)
                    bar.set_postfix(
                        train=self.curve[-1]["train"], validation=self.curve[-1]["validation"]
                    )
                    self.save()
                    self.seconds = before + time.monotonic() - began
                if watch is not None and not watch(self):
                    return

    def _hold(self) -> None:
        parameters = dict(self.model.named_parameters())
        with torch.no_grad():
            for name, mask in self.held.items():
                parameters[name].mul_(mask)

    def _one_step(
        self, loss_function: LossFunction, inputs: torch.Tensor, targets: torch.Tensor
    ) -> float:
        self.model.train()
        factor = self.recipe.lr_factor(self.step)
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = group["peak_lr"] * factor
        loss = loss_function(inputs.to(self.device), targets.to(self.device))
        loss.backward()
        for name, parameter in self.model.named_parameters():
            # a held part must not count in the clipping
            if name in self.held and parameter.grad is not None:
                parameter.grad.mul_(self.held[name])
        nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.clip_norm)
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        self._hold()
        return loss.item()

    def _note(self, validation: TokenWindows, loss_function: LossFunction, batches: int) -> None:
        self.model.eval()
        train_loss = float(np.mean(self.recent))
        self.recent.clear()
        loss = validation_loss(
            loss_function, validation, self.recipe.batch_size, self.device, batches
        )
        point = {
            "step": self.step,
            "tokens": self.step * self.recipe.batch_size * validation.max_length,
            "train": round(train_loss, 4),
            "validation": round(loss, 4),
            "seconds": round(self.seconds, 1),
        }
        self.curve.append(point)


@torch.no_grad()
def validation_loss(
    loss_function: LossFunction,
    dataset: TokenWindows,
    batch_size: int,
    device: torch.device,
    batches: int,
) -> float:
    """Mean loss on `batches` batches spread evenly over the held-out windows, the same ones every time."""
    losses = []
    for windows in validation_windows(dataset, batch_size, batches).to(device):
        losses.append(loss_function(windows[:, :-1], windows[:, 1:]).item())
    return float(np.mean(losses))


def validation_windows(dataset: TokenWindows, batch_size: int, batches: int) -> torch.Tensor:
    """(batches, batch_size, T+1): the held-out windows that a run is validated on."""
    chosen = np.linspace(0, len(dataset) - 1, batches * batch_size).astype(int)
    windows = dataset.windows(chosen)  # (batches * batch_size, T+1)
    return windows.view(batches, batch_size, -1)  # (batches, batch_size, T+1)
