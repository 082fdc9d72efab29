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
from gptviz.ui.words import listed

# among what is patched in a set of texts: by role at one of these sites, with what a row of the map is
BY_ROLE = {"roles": "resid_pre", "roles_attn_out": "attn_out", "roles_mlp_out": "mlp_out"}
ROWS = {"resid_pre": "into {}", "attn_out": "block {}", "mlp_out": "block {}"}

CAPTION = (
    f"{many.OF_ROLES} They stand at other positions in other sentences; all other positions have no role and are left "
    "out. A hover says the standard error. Of the other texts above, *swap the two names* changes the token signal "
    "alone, *the other order* the position signal alone."
)


def section(
    scene: Scene,
    explained: Question,
    clean_and_corrupt: tuple[Run, Run],
    answers: tuple[int, int],
    way: str,
    size: str,
    of_many: str,
    called: str,
    choice: Callable[[], object],
) -> None:
    """Draw the section of many texts with a map of block and role; `choice` draws what is patched.

    That is `of_many`, a key of `BY_ROLE`, and `called` "the residual stream into", say. `answers` are the answer of
    this page's clean text, and the word against which it stands; `size` is the column that the page shows of its two
    texts: "effect", or "change" where they are too close for shares.
    """
    site = BY_ROLE[of_many]
    blocks = range(scene.lm.config.n_layers)
    many.section(
        scene,
        explained,
        role_patching,
        {"site": site, "direction": way},
        ["logit", "change"],
        ("change", 1),
        partial(_here, clean_and_corrupt, answers, site, way, size, scene.position),
        [f"block {block} at {role}" for block in blocks for role in ROLES],
        (f"what a patch of {called} {{}} moves", "logits"),
        len(blocks) * len(ROLES),
        choice,
        _nothing_at,
        grid=many.Grid(
            [ROWS[site].format(block) for block in blocks],
            [*ROLES],
            CAPTION,
            f"What a patch of {called} each block moves, by role ({way})",
            in_place_of_bars=True,
        ),
    )


def _nothing_at(table: pd.DataFrame) -> str:
    """A sentence with a blank before it about the roles at which the texts of no pair differ; "" without such."""
    moves = table["change"].abs().groupby(table["role"], sort=False).max()
    still = moves.index[moves == 0]
    if still.empty:
        return ""
    return (
        f" Nothing moves at {listed([*still])}: up to there the two texts of a pair are the same."
    )


def _here(
    clean_and_corrupt: tuple[Run, Run],
    answers: tuple[int, int],
    site: str,
    way: str,
    size: str,
    at: int,
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
    table = worked(run, role_patching, clean, corrupt, answers, site, way, says=says, key=key)
    return table.filter([*{"change", size}])
