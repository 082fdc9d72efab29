"""The logit lens' cells as the browser gets them: of a page's columns, or of a notebook's trace.

And their colours: a measure's values as places on its scale, and what stands at the ends.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gptviz.analysis.lens import Cells
from gptviz.both import Both
from gptviz.digits import fixed
from gptviz.engine.index import one_of
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.names import is_piece, show_id
from gptviz.figures.next_token import surprise_color
from gptviz.figures.theme import Mode, palette
from gptviz.ui.components.lens import Legend, encoded

MEASURES = ("probability", "rank", "entropy", "kl")


def colors_of(measure: str, values: NDArray[Any], vocabulary: int) -> NDArray[np.float32]:
    """A measure's values as places on its scale, 0 to 1: probabilities, ranks from 1, or bits.

    Ranks go by their logarithm, from the last of the vocabulary to the first; bits from 0 to those of a blind
    guess, log2(vocabulary), beyond which all have the last colour. ValueError for another measure.
    """
    one_of("measure", measure, MEASURES)
    scaled = np.asarray(values, dtype=np.float64)
    if measure == "rank":
        scaled = 1 - np.log(scaled) / math.log(max(vocabulary, 2))
    elif measure != "probability":
        scaled = scaled / math.log2(max(vocabulary, 2))
    return np.clip(scaled, 0, 1).astype(np.float32)


def legend_of(title: str, measure: str, vocabulary: int, mode: Mode) -> Legend:
    """The legend of a measure's colours, with the words at its two ends.

    Teal says how much the model is for a token; pink, as for surprise, what it does not know.
    """
    colors = palette(mode)
    blind = f"{fixed(math.log2(max(vocabulary, 2)), 1)} bits"  # of a guess among all tokens
    known = colors.probabilities
    unknown = [(0.0, colors.paper), (1.0, surprise_color(1, 1, mode))]
    return {
        "probability": Legend(title, "0", "1", known),
        "rank": Legend(title, f"{vocabulary:,}", "1", known),
        "entropy": Legend(title, "0 bits: certain", f"{blind}: a blind guess", unknown),
        "kl": Legend(title, "0 bits: the same", f"{blind} or more", unknown),
    }[measure]


def lens_cells(
    lm: LanguageModel,
    found: Both[Cells],
    span: tuple[int, int],
    measure: str,
    ranks: tuple[int, np.ndarray] | None = None,
) -> dict[str, Any]:
    """`encoded` cells of the positions of `span`; `ranks` are those of a token, (R, P), for "rank"."""
    cells = found.now
    unchanged = found.was
    values = {"probability": cells.probabilities[..., 0], "entropy": cells.entropy, "kl": cells.kl}
    numbers = {"entropy": cells.entropy, "to the end": cells.kl}
    named_ids = cells.ids
    ghosts = None
    if unchanged is not None:
        ghosts = (unchanged.ids[..., 0], unchanged.probabilities[..., 0])
        named_ids = np.append(named_ids, unchanged.ids[..., 0])
        numbers["entropy unchanged"] = unchanged.entropy
    if ranks is not None:
        token, values["rank"] = ranks
        numbers[f"{show_id(lm, token)} has rank"] = values["rank"]
    ids = np.unique(named_ids).tolist()
    colors = colors_of(measure, values[measure], lm.config.vocab_size)
    names = {i: show_id(lm, i) for i in ids}
    pieces = [i for i in ids if is_piece(lm, i)]
    return encoded([span], cells.ids, cells.probabilities, colors, numbers, names, pieces, ghosts)
