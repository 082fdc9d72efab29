"""Trainings that are worth a look: one run, or two that differ in one thing; and what a run is called."""

from dataclasses import dataclass

from gptviz.training.live.config import LiveConfig

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

_SAID = {
    "task": "{}", "n_layers": "{} blocks", "n_heads": "{} heads", "emb_dim": "{} wide",
    "context_length": "context {}", "layer_norm": "no LayerNorm", "shortcut": "no shortcuts",
    "positions": "no positions", "feed_forward": "no feed-forward", "learning_rate": "rate {:g}",
    "seed": "seed {}",
}  # fmt: skip
_TASKS = {"chapter": "Alice", "own": "own text"}


def watch(*runs: LiveConfig) -> str | None:
    """Return what to look for in these runs, where they are a preset's."""
    return next((preset.watch for preset in PRESETS.values() if preset.runs == runs), None)


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
