"""Recipe: every choice of a training run, as it is stored in its checkpoints and printed in the card."""

from dataclasses import asdict, dataclass
from typing import Any

from gptviz.engine.index import one_of

CHECKPOINT = "checkpoint.pt"  # in a run's folder


@dataclass(frozen=True)
class Recipe:
    """Every choice but the model's sizes. Raises ValueError for choices that no run can have.

    Learning rates rise linearly for `warmup` steps, hold, and fall linearly to 0 over the last
    `decay_share` of the steps.
    """

    steps: int = 12_000
    batch_size: int = 16
    stride: int = 256
    seed: int = 123
    warmup: int = 200
    decay_share: float = 0.3
    hidden_optimizer: str = "muon"  # for the blocks' matrices; "adamw" for the same everywhere
    hidden_lr: float = 0.02
    other_lr: float = 2e-3  # embeddings, LayerNorms, biases: always AdamW
    weight_decay: float = 0.01
    clip_norm: float = 1.0
    repeat_share: float = 0.1
    shuffle_share: float = 0.25
    beta2: float = 0.95  # AdamW's memory of the gradients' squares
    # of the windows, those of the small world; the others are of the books
    world_share: float = 0.0
    world_noise: float = 0.0  # see Batches.noise; in the windows of the small world
    world_repeat_share: float = 0.0  # of the small world's windows, those that say a passage again
    precision: str = "bfloat16"  # of the forward pass; "float32" is the faster one for a tiny model
    # the first weights: GPT-2's, or "book": those of torch.manual_seed(seed); GPTModel(config)
    init: str = "gpt2"
    begun_with: str = ""  # SHA-256 of the exported weights that the run goes on from, where it does

    def __post_init__(self) -> None:
        one_of("hidden_optimizer", self.hidden_optimizer, ("muon", "adamw"))
        one_of("precision", self.precision, ("bfloat16", "float32"))
        one_of("init", self.init, ("gpt2", "book"))
        if not 0 <= self.world_share < 1:
            raise ValueError(
                f"world_share is {self.world_share}; it is a share of the windows, 0 or more and below 1"
            )
        if self.steps < 1 or not 0 <= self.decay_share <= 1:
            raise ValueError(
                f"steps is {self.steps} (1 or more), decay_share {self.decay_share} (0 to 1)"
            )

    def window_counts(self) -> tuple[int, int]:
        """How many windows of a batch are of the books, and how many of the small world."""
        of_world = round(self.batch_size * self.world_share)
        return self.batch_size - of_world, of_world

    def lr_factor(self, step: int) -> float:
        """The factor of the learning rates at a step, counted from 0."""
        rise = 1.0
        if self.warmup:
            rise = (step + 1) / self.warmup
        fall = 1.0
        if self.decay_share:
            fall = (self.steps - step) / max(1.0, self.steps * self.decay_share)
        return min(1.0, rise, fall)

    def may_resume(self, saved: dict[str, Any]) -> bool:
        """Whether a run that was saved with these choices can go on with this recipe.

        Mine may have other `steps` and `decay_share`; a choice that the saved run does not know had the
        value that is the default now.
        """
        free = {"steps": self.steps, "decay_share": self.decay_share}
        return asdict(Recipe()) | saved | free == asdict(self)
