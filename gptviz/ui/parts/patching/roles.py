"""Patches by role over many sentences with two names: a map of block and role, whatever their lengths."""

from collections.abc import Callable
from functools import partial

import pandas as pd

from gptviz import Run
from gptviz.analysis.role_patches import ROLES, role_patching, roles_of
from gptviz.ui import many, runs
from gptviz.ui.shell.bench import Question
from gptviz.ui.shell.scene import Scene
from gptviz.ui.shell.slow import worked

BY_ROLE = "roles"  # among what is patched in a set of texts

CAPTION = (
    f"{many.OF_ROLES} They stand at other positions in other sentences; all other positions have no role and are left "
    "out. A hover says the standard error."
)


def section(
    scene: Scene,
    explained: Question,
    clean_and_corrupt: tuple[Run, Run],
    answers: tuple[int, int],
    way: str,
    size: str,
    choice: Callable[[], object],
) -> None:
    """Draw the section of many texts with a map of block and role; `choice` draws what is patched.

    `answers` are the answer of this page's clean text, and the word against which it stands; `size` is the column
    that the page shows of its two texts: "effect", or "change" where they are too close for shares.
    """
    blocks = range(scene.lm.config.n_layers)
    many.section(
        scene,
        explained,
        role_patching,
        {"direction": way},
        ["logit", "change"],
        ("change", 1),
        partial(_here, clean_and_corrupt, answers, way, size, scene.position),
        [f"block {block} at {role}" for block in blocks for role in ROLES],
        ("what a patch of the residual stream into {} moves", "logits"),
        len(blocks) * len(ROLES),
        choice,
        grid=many.Grid(
            [f"into {block}" for block in blocks],
            [*ROLES],
            CAPTION,
            f"What a patch of the residual stream into each block moves, by role ({way})",
            in_place_of_bars=True,
        ),
    )


def _here(
    clean_and_corrupt: tuple[Run, Run], answers: tuple[int, int], way: str, size: str, at: int
) -> pd.DataFrame:
    """What patches move in this page's two texts; no rows where the clean one has no two names with these roles."""
    clean, corrupt = (run.ids[: at + 1] for run in clean_and_corrupt)
    run = clean_and_corrupt[0]
    try:
        roles_of(runs.model(run), clean, answers)
    except ValueError:
        return pd.DataFrame()
    says = "{} of {} places patched".format
    key = "patching_roles_stop"
    table = worked(run, role_patching, clean, corrupt, answers, says=says, key=key, direction=way)
    return table.filter([*{"change", size}])
