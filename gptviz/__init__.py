"""gptviz: type text and watch a real GPT work on it.

import gptviz

lm = gptviz.load("mini")
t = lm.trace("The cat sat on the mat")
t["attn", 3]  # (H, T, T)
"""

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


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
