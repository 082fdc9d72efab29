"""The seeds' ideas by hand: pure functions from numbers to numbers, to be imported in a notebook.

A module an idea. They know no page and no picture, and use the model's and the training's own parts
where there is one: no second implementation.
"""

from gptviz.lessons.attention import multi_head_attention, self_attention, simple_attention
from gptviz.lessons.dropout import drop
from gptviz.lessons.positions import rotate, sinusoidal
from gptviz.lessons.scaling import by_size, gradient_left
from gptviz.lessons.windows import Windows, examples

__all__ = [
    "Windows",
    "by_size",
    "drop",
    "examples",
    "gradient_left",
    "multi_head_attention",
    "rotate",
    "self_attention",
    "simple_attention",
    "sinusoidal",
]
