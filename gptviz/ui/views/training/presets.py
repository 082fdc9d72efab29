"""Trainings that are worth a look: one run, or two that differ in one thing."""

from dataclasses import dataclass

from gptviz.training.live import LiveConfig


@dataclass(frozen=True)
class Preset:
    """`runs` are started together, the first is the one that is looked at; `watch` says what to look for."""

    label: str
    runs: tuple[LiveConfig, ...]
    watch: str


USUAL = LiveConfig()

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
    """What to look for in these runs, where they are a preset's."""
    return next((preset.watch for preset in PRESETS.values() if preset.runs == runs), None)


def named(config: LiveConfig) -> str:
    """What a run is called: its task, and in what it differs from the usual one."""
    parts = []
    if config.task != USUAL.task:
        parts.append({"chapter": "Alice", "own": "own text"}[config.task])
    if config.n_layers != USUAL.n_layers:
        parts.append("1 block" if config.n_layers == 1 else f"{config.n_layers} blocks")
    if config.n_heads != USUAL.n_heads:
        parts.append("1 head" if config.n_heads == 1 else f"{config.n_heads} heads")
    if config.emb_dim != USUAL.emb_dim:
        parts.append(f"{config.emb_dim} wide")
    if config.context_length != USUAL.context_length:
        parts.append(f"context {config.context_length}")
    for switch, word in (
        ("layer_norm", "LayerNorm"),
        ("shortcut", "shortcuts"),
        ("positions", "positions"),
        ("feed_forward", "feed-forward"),
    ):
        if not getattr(config, switch):
            parts.append(f"no {word}")
    if config.learning_rate != USUAL.learning_rate:
        parts.append(f"rate {config.learning_rate:g}")
    if config.seed != USUAL.seed:
        parts.append(f"seed {config.seed}")
    if config.muted:
        parts.append("off: " + ", ".join(f"{block}.{head}" for block, head in config.muted))
    return ", ".join(parts) or "2 blocks, 4 heads"
