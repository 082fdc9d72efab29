"""Methods of a Trace or a LanguageModel that a higher package answers.

The engine imports nothing from above. `gptviz/__init__.py` registers the answers of the analysis and of
the notebook's pictures in `answers`.
"""

from collections.abc import Callable
from typing import Any

answers: dict[str, Callable[..., Any]] = {}


def ask(question: str, *args: Any, **options: Any) -> Any:
    """Call the function that is registered for this question."""
    return answers[question](*args, **options)
