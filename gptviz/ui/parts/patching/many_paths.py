"""Path patching over many texts: a map of the heads that pass the answer to the reader, whatever the texts' lengths."""

from collections.abc import Callable
from functools import partial

import pandas as pd

from gptviz.analysis.patched_paths import LOGITS, path_patching
from gptviz.ui import many
from gptviz.ui.parts.patching import through
from gptviz.ui.shell.bench import Question
from gptviz.ui.shell.scene import Scene

BY_PATH = "paths"  # among what is patched in a set of texts


def section(
    scene: Scene,
    explained: Question,
    here: pd.DataFrame,
    way: str,
    choice: Callable[[], object],
) -> None:
    """Draw the section of many texts with a map of the senders; `choice` draws what is patched.

    The reader is that of `through`, and so is `here`, the paths of this page's two texts: without a column that the
    page does not show of them.
    """
    config = scene.lm.config
    chosen = through.readers(config)
    reader = through.called(config, chosen)
    blocks = range(through.senders_before(config, chosen))
    heads = range(config.n_heads)
    caption = (
        f"The reader: {reader}, chosen above. A cell is what a head’s path to it moves, the mean over the texts. A "
        "hover says the standard error. A click on a head makes its queries the reader."
    )
    many.section(
        scene,
        explained,
        path_patching,
        {"receivers": chosen or LOGITS, "direction": way},
        ["logit", "change"],
        ("change", 1),
        lambda: here,
        [f"head {block}·{head}" for block in blocks for head in heads],
        (f"what {{}} passes to {reader}", "logits"),
        through.passes_for(config, chosen),
        choice,
        grid=many.Grid(
            [f"block {block}" for block in blocks],
            [f"head {head}" for head in heads],
            caption,
            f"What each head passes to {reader} alone ({way})",
            in_place_of_bars=True,
            pick=partial(
                through.read_by,
                also=through.ALSO.value,
                size=config.n_heads // config.n_kv_groups,
            ),
        ),
    )
