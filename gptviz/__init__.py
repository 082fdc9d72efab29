"""gptviz: type text and watch a real GPT work on it.

import gptviz

lm = gptviz.load("mini")
t = lm.trace("The cat sat on the mat")
t["attn", 3]  # (H, T, T)
"""

from collections.abc import Callable
from pkgutil import resolve_name
from typing import Any

from gptviz.engine import above
from gptviz.engine.capture import CaptureError
from gptviz.engine.config import GPTConfig
from gptviz.engine.edit_values import Plus
from gptviz.engine.edits import Edit
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.reduction import Reduction
from gptviz.engine.run import Run
from gptviz.engine.sites import SITES
from gptviz.engine.tokens import Token
from gptviz.engine.trace import Trace
from gptviz.model import GPT_CONFIG_124M, GPTModel
from gptviz.models.checkpoints import CheckpointError
from gptviz.models.loading import KNOWN_MODELS, load
from gptviz.models.wrapping import wrap

__version__ = "0.1.0"

__all__ = [
    "GPT_CONFIG_124M",
    "KNOWN_MODELS",
    "SITES",
    "CaptureError",
    "CheckpointError",
    "Edit",
    "GPTConfig",
    "GPTModel",
    "LanguageModel",
    "Plus",
    "Reduction",
    "Run",
    "Token",
    "Trace",
    "load",
    "wrap",
]

# methods of a Trace or a LanguageModel, and the function above the engine that answers each
_ANSWERED_BY = {
    "lm.attribution": "gptviz.analysis:attributions",
    "lm.circuit": "gptviz.analysis:circuit",
    "lm.knock_out": "gptviz.analysis:knock_out",
    "lm.patching": "gptviz.analysis:patching",
    "lm.path_patching": "gptviz.analysis:path_patching",
    "lm.which_part": "gptviz.analysis.which_part:which_part",
    "trace.attribution": "gptviz.analysis:attribution",
    "trace.logit_lens": "gptviz.analysis:logit_lens",
    "trace.show": "gptviz.ui.notebook:show",
    "trace.source_tokens": "gptviz.analysis:source_tokens",
}


def _imported_when_asked(name: str) -> Callable[..., Any]:
    """A function that imports `name` when it is called, since a notebook's pictures need the app."""

    def answer(*args: Any, **options: Any) -> Any:
        return resolve_name(name)(*args, **options)

    return answer


above.answers.update({asked: _imported_when_asked(name) for asked, name in _ANSWERED_BY.items()})


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
