"""gptviz: type text and watch a real GPT work on it.

import gptviz

lm = gptviz.load("mini")
t = lm.trace("The cat sat on the mat")
t["attn", 3]  # (H, T, T)
"""

from gptviz.capture import CaptureError
from gptviz.checkpoints import CheckpointError
from gptviz.config import GPTConfig
from gptviz.edits import Edit
from gptviz.language_model import LanguageModel
from gptviz.loading import KNOWN_MODELS, load
from gptviz.model import GPT_CONFIG_124M, GPTModel
from gptviz.reduction import Reduction
from gptviz.run import Run
from gptviz.sites import SITES
from gptviz.trace import Token, Trace

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
    "Reduction",
    "Run",
    "Token",
    "Trace",
    "load",
]
