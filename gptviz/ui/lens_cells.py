"""The logit lens' cells as the browser gets them: of a page's columns, or of a notebook's trace."""

from typing import Any

import numpy as np

from gptviz.analysis.lens import Cells
from gptviz.both import Both
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.names import is_piece, show_id
from gptviz.figures.lens import colors_of
from gptviz.ui.components.lens import encoded


def lens_cells(
    lm: LanguageModel,
    found: Both[Cells],
    span: tuple[int, int],
    measure: str,
    ranks: tuple[int, np.ndarray] | None = None,
) -> dict[str, Any]:
    """`encoded` cells of the positions of `span`; `ranks` are those of a token, (R, P), for "rank"."""
    now, was = found.now, found.was
    values = {"probability": now.probabilities[..., 0], "entropy": now.entropy, "kl": now.kl}
    numbers, named, ghosts = {"entropy": now.entropy, "to the end": now.kl}, now.ids, None
    if was is not None:
        ghosts, named = (was.ids[..., 0], was.probabilities[..., 0]), np.append(named, was.ids[..., 0])
        numbers["entropy unchanged"] = was.entropy
    if ranks is not None:
        token, values["rank"] = ranks
        numbers[f"{show_id(lm, token)} has rank"] = values["rank"]
    ids = np.unique(named).tolist()
    return encoded(
        [span],
        now.ids,
        now.probabilities,
        colors_of(measure, values[measure], lm.config.vocab_size),
        numbers,
        {i: show_id(lm, i) for i in ids},
        [i for i in ids if is_piece(lm, i)],
        ghosts,
    )
