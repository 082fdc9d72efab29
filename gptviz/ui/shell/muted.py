"""What muting each part in turn takes away from a prediction: worked out with a progress bar, and its map."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gptviz import Run
from gptviz.analysis import shares as numbers
from gptviz.analysis.ablation import knock_out
from gptviz.figures import shares as figures
from gptviz.ui import runs
from gptviz.ui.components.cell_clicks import cell_clicks
from gptviz.ui.shell.sample import read_sample
from gptviz.ui.shell.scene import Scene
from gptviz.ui.shell.slow import watched
from gptviz.ui.shell.target import Target

KINDS = ("head", "attention", "feed-forward")


def knocked(
    scene: Scene,
    target: Target,
    key: str,
    stop: Callable[[], Any],
    baseline: str = "zero",
    run: Run | None = None,
) -> pd.DataFrame:
    """`knock_out` at the selected position; with a progress bar and a button `key`, where it is not known.

    `stop` is the button's callback: the page must then not ask again. `run` is the scene's own if it is none.
    """
    run, position = run or scene.run, scene.position
    if baseline == "sample":
        read_sample(runs.model(run), f"{key}_sample", stop)
    pair = target.token, target.against
    return watched(
        (f"{__name__}.knocked", position, pair, baseline),
        run,
        lambda progress: knock_out(runs.model(run), run.ids, pair, baseline, position, progress=progress),
        lambda done, of: f"{done} of {of} parts muted",
        key,
        stop,
    )


def muted_map(
    scene: Scene,
    muted: pd.DataFrame,
    lost: NDArray[np.floating],
    opened: tuple[int, int] | None,
    key: str,
    alt: str,
    on_pick: Callable[[int, int], Any],
    unchanged: NDArray[np.floating] | None = None,
) -> None:
    """Blocks x parts: what muting each of `knock_out`'s rows takes away (n,). A click is (block, column).

    The columns after the heads' are the block's attention and its feed-forward. `unchanged`, (n,), is what it
    takes away in the model without its changes: a hover says it, too.
    """
    config = scene.lm.config
    table = muted[["kind", "block", "head"]].rename(columns={"kind": "part"})

    def grid_of(values: NDArray[np.floating]) -> tuple[NDArray[np.floating], list[str]]:
        return numbers.grid(table.assign(contribution=values), config.n_layers, config.n_heads, KINDS[1:])

    grid, columns = grid_of(lost)
    old = None if unchanged is None else grid_of(unchanged)[0]
    scene.chart(
        figures.share_grid(grid, columns, opened, "muting it takes away", scene.mode, unchanged=old),
        key=key,
        alt=alt,
    )
    cell_clicks(key, len(grid), len(columns), on_pick, scene.mode)
