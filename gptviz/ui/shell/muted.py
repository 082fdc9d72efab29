"""What muting each part in turn takes away from a prediction: worked out with a progress bar, and its map."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gptviz import Run
from gptviz.analysis.abc_means import ABC
from gptviz.analysis.ablation import GIVES as IN_ANY_TEXT, knock_out
from gptviz.analysis.prompts import OF_OTHER
from gptviz.both import Both
from gptviz.figures.shares import share_grid
from gptviz.ui.shell.scene import Scene
from gptviz.ui.shell.slow import read_sample, worked
from gptviz.ui.shell.target import Target

KINDS = ("head", "attention", "feed-forward")
# what a part that is taken out gives instead of its own
GIVES = IN_ANY_TEXT | {
    "mean": "its mean over this text",
    OF_OTHER: "its value in the other text",
}
# and in a set of texts
GIVES_EACH = GIVES | {
    "mean": "its mean over each text",
    OF_OTHER: "its value in each text’s own other text",
    ABC: "its mean over texts like each one with three different names (ABC), position by position",
}

# a measure -> what muting takes away from it: a column of `knock_out`, and its sign. Of a loss it is what it adds
LOST = {"logit": ("effect", -1), "probability": ("lost", 1), "loss": ("rise", 1)}


def lost(table: pd.DataFrame, measure: str) -> NDArray[np.floating]:
    """What muting each part of `knock_out`'s table takes away, by a measure: (n,)."""
    column, sign = LOST[measure]
    return sign * table[column].to_numpy(float)


def knocked(
    scene: Scene,
    target: Target,
    key: str,
    stop: Callable[[], Any],
    baseline: str = "zero",
    run: Run | None = None,
) -> pd.DataFrame:
    """`knock_out` at the selected position; with a progress bar and a button `key`, if it is not known yet.

    `stop` is the button's callback: the page must then not ask again. `run` None: the scene's own.
    """
    run = run or scene.run
    position = scene.position
    if baseline == "sample":
        read_sample(run, f"{key}_sample", stop)
    pair = target.token, target.against
    says = "{} of {} parts tried".format
    return worked(run, knock_out, run.ids, pair, baseline, position, says=says, key=key, stop=stop)


def muted_map(
    scene: Scene,
    values: Both[NDArray[np.floating]],
    opened: tuple[int, int],
    key: str,
    alt: str,
    on_pick: Callable[[int, int], Any],
    verb: str = "takes away",
) -> None:
    """Draw a map, blocks x parts, of what muting each of `knock_out`'s rows takes away (n,).

    A click gives (block, column). The columns after the heads' are the block's attention and its
    feed-forward. A hover says what it takes away in the model without its changes, too.
    """
    # (n_layers, H + 2)
    grids = values.map(lambda one: one.reshape(scene.lm.config.n_layers, -1))
    columns = [*(f"head {h}" for h in range(scene.lm.config.n_heads)), *KINDS[1:]]
    fig = share_grid(
        grids.now, columns, opened, f"switching it off {verb}", scene.mode, unchanged=grids.was
    )
    scene.chart(fig, key=key, alt=alt, on_cell=on_pick)
