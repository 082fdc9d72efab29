"""LiveConfig: every choice of a training run that somebody watches: the model, its task, the recipe.

`PRESETS` are trainings that are worth a look: one run, or two that differ in one thing. `named` says what a
run is called.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from gptviz.engine.config import GPTConfig
from gptviz.engine.index import check_below, one_of
from gptviz.training.recipe import Recipe

TASKS = {
    "repeats": "random tokens in which a passage repeats: only looking back helps to predict them",
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
    "dropout": (0.0, 0.9),
    "weight_decay": (0.0, 1.0),
}
SWITCHES = ("layer_norm", "shortcut", "positions", "attention", "feed_forward")
ACTIVATIONS = {"gelu": "GELU", "relu": "ReLU"}  # between the two matrices of a feed-forward

Heads = tuple[tuple[int, int], ...]  # block and head of each

BETA2 = 0.98


@dataclass(frozen=True)
class LiveConfig:
    """A small GPTModel, what it learns, and how. Raises ValueError, a sentence, for what is out of range.

    `every`: steps from one point of the curve, and one snapshot, to the next. `muted`: (block, head) pairs
    that are off in training. Without `positions`, `attention` or `feed_forward` those weights are held at 0,
    so that the model is a GPTModel as any other; without `layer_norm` or `shortcut`, or with ReLU, no
    GPTModel's file can say so. `dropout` is the book's `drop_rate`, in its three places.
    `threads` of torch belong to a run for good, and to its forks: more of them add the same numbers in
    another order, so that only as many give the same curve again. What is learnt is the same.
    """

    task: str = "repeats"
    n_layers: int = 2
    n_heads: int = 4
    emb_dim: int = 64
    context_length: int = 64
    layer_norm: bool = True
    shortcut: bool = True
    positions: bool = True
    attention: bool = True
    feed_forward: bool = True
    activation: str = "gelu"
    dropout: float = 0.0
    weight_decay: float = 0.01
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
        one_of("the activation", self.activation, ACTIVATIONS)
        for name, (low, high) in LIMITS.items():
            value = getattr(self, name)
            is_whole = isinstance(low, int)
            kind = int if is_whole else (int, float)
            if not isinstance(value, kind) or isinstance(value, bool) or not low <= value <= high:
                number = "a number"
                if is_whole:
                    number = "a whole number"
                raise ValueError(
                    f"{name} is {value!r}; it must be {number} from {low:,} to {high:,}"
                )
        for name in SWITCHES:
            if not isinstance(getattr(self, name), bool):
                raise ValueError(f"{name} is {getattr(self, name)!r}; it must be True or False")
        self.gpt_config(2)  # width and heads must go together
        object.__setattr__(self, "muted", tuple(sorted({(int(b), int(h)) for b, h in self.muted})))
        for block, head in self.muted:
            check_below("block", block, self.n_layers)
            check_below("head", head, self.n_heads)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "LiveConfig":
        """From `dataclasses.asdict`, or JSON of it. Raises ValueError for unknown choices."""
        unknown = sorted(set(values) - {option.name for option in fields(cls)})
        if unknown:
            raise ValueError(f"a training run has no {', '.join(unknown)}")
        return cls(**values)

    def gpt_config(self, vocab_size: int) -> GPTConfig:
        """The model's own config, for a task with `vocab_size` tokens."""
        sizes = (self.context_length, self.emb_dim, self.n_heads, self.n_layers)
        return GPTConfig(vocab_size, *sizes, drop_rate=self.dropout)

    @property
    def off(self) -> Heads:
        """The heads that write nothing: those that are muted, or all of them without attention."""
        if self.attention:
            return self.muted
        return tuple(
            (block, head) for block in range(self.n_layers) for head in range(self.n_heads)
        )

    def recipe(self) -> Recipe:
        """The recipe for the loop that made the bundled model, from the book's first weights: with GPT-2's
        small ones an induction head takes several times as many steps to form.
        """
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
            weight_decay=self.weight_decay,
            repeat_share=0.0,
            shuffle_share=0.0,
            beta2=BETA2,
            precision="float32",
            init="book",
        )

    def parameters(self, vocab_size: int) -> int:
        """The number of trained parameters."""
        D = self.emb_dim
        blocks = self.n_layers
        norms = (2 * blocks + 1) * 2 * D
        positions = self.context_length * D
        attentions = blocks * (4 * D * D + D)
        feed_forwards = blocks * (8 * D * D + 5 * D)
        parts = (
            (self.layer_norm, norms),
            (self.positions, positions),
            (self.attention, attentions),
            (self.feed_forward, feed_forwards),
        )
        absent = sum(count for is_there, count in parts if not is_there)
        return self.gpt_config(vocab_size).parameters - absent

    @property
    def why_not_elsewhere(self) -> str | None:
        """Why such a model can neither open on the other pages nor be downloaded; None where it can."""
        deviations = []
        if not self.layer_norm:
            deviations.append("no LayerNorm")
        if not self.shortcut:
            deviations.append("no shortcuts")
        if self.activation != "gelu" and self.feed_forward:
            deviations.append(f"{ACTIVATIONS[self.activation]} where a GPTModel has GELU")
        if not deviations:
            return None
        return (
            f"This model has {' and '.join(deviations)}. The file of a GPTModel has no place to say so: "
            "whoever opened it would compute something else. So it stays on this page"
        )


# ---- trainings that are worth a look ----

USUAL = LiveConfig()

# The second and the third model of "Let's build GPT": two tables and a linear layer, and then one head
# between them, whose result replaces what it read. Theirs have a context of 8 and a bias in the last layer.
_NOTEBOOK = LiveConfig(
    task="chapter",
    n_layers=1,
    n_heads=1,
    emb_dim=32,
    context_length=16,
    layer_norm=False,
    feed_forward=False,
)
V2 = replace(_NOTEBOOK, attention=False)
V3 = replace(_NOTEBOOK, shortcut=False)


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
        "For a while the loss hardly falls. Watch the heads' scores in the steps in which it drops.",
    ),
    "blocks": Preset(
        "One block against two",
        (LiveConfig(n_layers=1), USUAL),
        "With one block, no head can use what another head found. Does an induction head appear?",
    ),
    "norm": Preset(
        "Without LayerNorm",
        (LiveConfig(layer_norm=False), USUAL),
        "The same model, the same batches, no norms.",
    ),
    "shortcut": Preset(
        "Without shortcuts",
        (LiveConfig(shortcut=False), USUAL),
        "Each block replaces its input instead of adding to it.",
    ),
    "positions": Preset(
        "Without positions",
        (LiveConfig(positions=False), USUAL),
        "No token knows its position. Any sense of order must come from the causal mask.",
    ),
    "rate": Preset(
        "A learning rate too high",
        (LiveConfig(learning_rate=0.1), USUAL),
        "Steps thirty times longer overshoot the goal, again and again.",
    ),
    "chapter": Preset(
        "A chapter of Alice",
        (LiveConfig(task="chapter"),),
        "It learns spaces and frequent letters first, then pieces of words. Compare the bigram's line.",
    ),
    "v2": Preset(
        "No attention: v2",
        (V2,),
        "Two tables and a linear layer: it sees one character and its position. Compare the bigram's line.",
    ),
    "v3": Preset(
        "One head: v3",
        (V3, V2),
        "A single head between the tables and the linear layer: now a character can look at those before it.",
    ),
    "relu": Preset(
        "ReLU or GELU",
        (LiveConfig(activation="relu"), USUAL),
        "ReLU outputs 0 for every negative number. Does the induction head appear at another time?",
    ),
    "dropout": Preset(
        "With dropout",
        (LiveConfig(task="chapter", dropout=0.2), LiveConfig(task="chapter")),
        "A fifth of the numbers is set to 0 at each step. Compare the training loss with the validation loss.",
    ),
}


def watch(*runs: LiveConfig) -> str | None:
    """The advice on what to look for in these runs, where they are a preset's."""
    return next((preset.watch for preset in PRESETS.values() if preset.runs == runs), None)


# ---- what a run is called ----

_SAID = {
    "task": "{}", "n_layers": "{} blocks", "n_heads": "{} heads", "emb_dim": "{} wide",
    "context_length": "context {}", "layer_norm": "no LayerNorm", "shortcut": "no shortcuts",
    "positions": "no positions", "attention": "no attention", "feed_forward": "no feed-forward",
    "activation": "{}", "dropout": "dropout {:g}", "weight_decay": "weight decay {:g}",
    "learning_rate": "rate {:g}", "seed": "seed {}",
}  # fmt: skip
_WORDS = {"chapter": "Alice", "own": "own text"} | ACTIVATIONS


def named(config: LiveConfig) -> str:
    """The name of a run: its task, and in what it differs from the usual one."""
    parts = []
    for name, template in _SAID.items():
        value = getattr(config, name)
        if value != getattr(USUAL, name):
            part = template.format(_WORDS.get(value, value))
            parts.append(part.removesuffix("s") if value == 1 and template.endswith("s") else part)
    if config.muted:
        parts.append("off: " + ", ".join(f"{block}.{head}" for block, head in config.muted))
    return ", ".join(parts) or "2 blocks, 4 heads"
