"""A recorded training as a film: one head's attention, its score and the loss, step by step.

Each frame is a step that was recorded, and nothing is drawn between two. It plays once by itself, in the browser
alone; a hand at the slider, or a click on the picture, stops it. Nothing is sent back.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from gptviz.tokenizer import show_token
from gptviz.ui.components.kernel import Component, packed
from gptviz.ui.components.saved import Saved

_component = Component("birth")


def draw_birth(
    key: str,
    weights: Sequence[Sequence[int]],
    text: str,
    period: int,
    steps: Sequence[int],
    scores: Sequence[float],
    losses: Sequence[float],
    levels: Sequence[tuple[str, float]],
    after: int,
    alt: str,
    *,
    saved: Saved | None = None,
) -> None:
    """Draw a point of each of these a frame: `weights` in percent, what the causal mask leaves of (T, T).

    `text` has T characters, a passage of `period` of them again and again. `levels` are losses to compare with,
    by name. The step `after` which the head is born gets a mark.
    """
    data: dict[str, Any] = {
        "weights": packed(np.array(weights), "u1"),
        "tokens": [show_token(character.encode()) for character in text],
        "period": period,
        "steps": list(steps),
        "scores": list(scores),
        "losses": list(losses),
        "levels": [list(level) for level in levels],
        "after": after,
        "alt": alt,
    }
    _component(key, data, saved=saved)
