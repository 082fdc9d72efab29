"""What is asked of a Trace or a LanguageModel, and answered by a room above the engine.

The engine imports nothing from above. Whoever answers says so here: `gptviz/__init__.py`, for the
analysis and the notebook's pictures.
"""

from collections.abc import Callable
from typing import Any

answers: dict[str, Callable[..., Any]] = {}


def ask(question: str, *args: Any, **options: Any) -> Any:
    """The answer of the room that said it would answer."""
    return answers[question](*args, **options)
