"""LiveConfig: every choice of a training run that somebody watches: the model, its task, the recipe.

`PRESETS` are trainings that are worth a look: one run, or two that differ in one thing. `named` says what a
run is called.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from gptviz.engine.config import GPTConfig
from gptviz.engine.index import below, one_of
from gptviz.training.recipe import Recipe

TASKS = {
    "repeats": "random tokens in which a passage repeats: only looking back can foresee them",
    "chapter": "the characters of a chapter of Alice's Adventures in Wonderland",
    "own": "the characters of a text of your own",
}

# for each number the lowest and the highest that it may be
LIMITS: dict[str, tuple[float, float]] = {
    "n_layers": (1, 4),
    "n_heads": (1, 8),
    "emb_dim": (8, 128),
    "context_length": (16, 128),
    "steps": (1, 5000),
    "learning_rate": (1e-6, 10.0),
    "batch_size": (1, 128),
    "warmup": (0, 5000),
    "seed": (0, 2**31 - 1),
    "every": (1, 500),
    "threads": (1, 64),
}
SWITCHES = ("layer_norm", "shortcut", "positions", "feed_forward")

Heads = tuple[tuple[int, int], ...]  # block and head of each

BETA2, WEIGHT_DECAY = 0.98, 0.01


@dataclass(frozen=True)
class LiveConfig:
    """A small GPTModel, what it learns, and how. Raises ValueError, a sentence, for what is out of range.

    `every`: steps from one point of the curve, and one snapshot, to the next. `muted`: (block, head) pairs
    that are off in training. Without `positions` or `feed_forward` those weights are held at 0, so that
    the model is a GPTModel as any other; without `layer_norm` or `shortcut` no GPTModel's file can say so.
    `threads` of torch belong to a run for good, and to its forks: more of them add the same numbers in
    another order, so that only as many give the same curve again. What is learnt is no other for it.
    """

    task: str = "repeats"
    n_layers: int = 2
    n_heads: int = 4
    emb_dim: int = 64
    context_length: int = 64
    layer_norm: bool = True
    shortcut: bool = True
    positions: bool = True
    feed_forward: bool = True
    steps: int = 600
    learning_rate: float = 3e-3
    batch_size: int = 32
    warmup: int = 50
    seed: int = 123
    every: int = 20
    muted: Heads = ()
    threads: int = field(default=1, compare=False)

    def __post_init__(self) -> None:
        one_of("the task", self.task, TASKS)
        for name, (low, high) in LIMITS.items():
            value, whole = getattr(self, name), isinstance(low, int)
            kind = int if whole else (int, float)
            if not isinstance(value, kind) or isinstance(value, bool) or not low <= value <= high:
                number = "a whole number" if whole else "a number"
                raise ValueError(f"{name} is {value!r}; it must be {number} from {low:,} to {high:,}")
        for name in SWITCHES:
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} is {getattr(self, name)!r}; it must be True or False")
        self.gpt_config(2)  # width and heads must go together
        object.__setattr__(self, "muted", tuple(sorted({(int(b), int(h)) for b, h in self.muted})))
        for block, head in self.muted:
            below("block", block, self.n_layers)
            below("head", head, self.n_heads)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "LiveConfig":
        """From `dataclasses.asdict`, or JSON of it. Raises ValueError for choices that there are not."""
        unknown = sorted(set(values) - {option.name for option in fields(cls)})
        if unknown:
            raise ValueError(f"a training run has no {', '.join(unknown)}")
        return cls(**values)

    def gpt_config(self, vocab_size: int) -> GPTConfig:
        """The model's own config, for a task with so many tokens."""
        return GPTConfig(vocab_size, self.context_length, self.emb_dim, self.n_heads, self.n_layers)

    def recipe(self) -> Recipe:
        """For the loop that made the bundled model. The book's first weights: with GPT-2's small ones an
        induction head takes several times as many steps to come."""
        return Recipe(
            steps=self.steps,
            batch_size=self.batch_size,
            stride=self.context_length,
            seed=self.seed,
            warmup=self.warmup,
            decay_share=0.0,
            hidden_optimizer="adamw",
            hidden_lr=self.learning_rate,
            other_lr=self.learning_rate,
            weight_decay=WEIGHT_DECAY,
            repeat_share=0.0,
            shuffle_share=0.0,
            beta2=BETA2,
            precision="float32",
            init="book",
        )

    def parameters(self, vocab_size: int) -> int:
        """Return how many numbers are trained."""
        D, blocks = self.emb_dim, self.n_layers
        norms, positions = (2 * blocks + 1) * 2 * D, self.context_length * D
        feed_forwards = blocks * (8 * D * D + 5 * D)
        absent = norms * (not self.layer_norm) + positions * (not self.positions)
        absent += feed_forwards * (not self.feed_forward)
        return self.gpt_config(vocab_size).parameters - absent

    @property
    def why_not_elsewhere(self) -> str | None:
        """Why such a model can neither open on the other pages nor be downloaded; None where it can."""
        parts = {"LayerNorm": self.layer_norm, "shortcuts": self.shortcut}
        missing = [name for name, there in parts.items() if not there]
        if not missing:
            return None
        return (
            f"This model has no {' and no '.join(missing)}. A GPTModel always has, and its file has no place "
            "to say otherwise: whoever opened it would compute something else. So it stays on this page"
        )


# ---- trainings that are worth a look ----

USUAL = LiveConfig()


@dataclass(frozen=True)
class Preset:
    """`runs` are started together, the first is the one that is looked at; `watch` says what to look for."""

    label: str
    runs: tuple[LiveConfig, ...]
    watch: str


PRESETS = {
    "birth": Preset(
        "An induction head is born",
        (USUAL,),
        "For a while the loss hardly falls. See what the heads' scores do in the steps in which it drops.",
    ),
    "blocks": Preset(
        "One block against two",
        (LiveConfig(n_layers=1), USUAL),
        "With one block no head can read what another head wrote. Does an induction head come?",
    ),
    "norm": Preset(
        "Without LayerNorm",
        (LiveConfig(layer_norm=False), USUAL),
        "The same model, the same batches, no norms.",
    ),
    "shortcut": Preset(
        "Without shortcuts",
        (LiveConfig(shortcut=False), USUAL),
        "Each block replaces what it was given instead of adding to it.",
    ),
    "positions": Preset(
        "Without positions",
        (LiveConfig(positions=False), USUAL),
        "No token is told where it stands. What order there is must come from the causal mask.",
    ),
    "rate": Preset(
        "A learning rate too high",
        (LiveConfig(learning_rate=0.1), USUAL),
        "Steps thirty times as long go over the goal, again and again.",
    ),
    "chapter": Preset(
        "A chapter of Alice",
        (LiveConfig(task="chapter"),),
        "First blanks and the frequent letters, then pieces of words. Compare the bigram's line.",
    ),
}


def watch(*runs: LiveConfig) -> str | None:
    """Return what to look for in these runs, where they are a preset's."""
    return next((preset.watch for preset in PRESETS.values() if preset.runs == runs), None)


# ---- what a run is called ----

_SAID = {
    "task": "{}", "n_layers": "{} blocks", "n_heads": "{} heads", "emb_dim": "{} wide",
    "context_length": "context {}", "layer_norm": "no LayerNorm", "shortcut": "no shortcuts",
    "positions": "no positions", "feed_forward": "no feed-forward", "learning_rate": "rate {:g}",
    "seed": "seed {}",
}  # fmt: skip
_TASKS = {"chapter": "Alice", "own": "own text"}


def named(config: LiveConfig) -> str:
    """Return what a run is called: its task, and in what it differs from the usual one."""
    parts = []
    for name, said in _SAID.items():
        value = getattr(config, name)
        if value != getattr(USUAL, name):
            part = said.format(_TASKS.get(value, value))
            parts.append(part.removesuffix("s") if value == 1 and said.endswith("s") else part)
    if config.muted:
        parts.append("off: " + ", ".join(f"{block}.{head}" for block, head in config.muted))
    return ", ".join(parts) or "2 blocks, 4 heads"
