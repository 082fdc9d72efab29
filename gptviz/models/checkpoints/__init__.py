"""Where weights come from: one small reader per format, and `recognise`, which says what a path is.

    folder         ours: the layout of the bundled model
    hugging_face   a GPT2LMHeadModel's or GPTNeoForCausalLM's folder, in one file or in shards
    book           torch.save(model.state_dict()) of the book's GPTModel
    nanogpt        ckpt.pt, with meta.pkl for a character vocabulary; build-nanogpt's, minGPT's, bare ones
    tensorflow     OpenAI's own folder, which the book downloads

Each has a table of names; `assemble` checks all of it before it copies a number. What stands around a model
comes off in `wrappers`; what is none of these is told by `kinds`, a table with what to do. Files are data: no
code in them is ever run.
"""

from gptviz.models.checkpoints.detect import Checkpoint, recognise
from gptviz.models.checkpoints.errors import (
    CheckpointError,
    HeadsMissing,
    SurplusTokens,
    TokenizerMissing,
)

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "HeadsMissing",
    "SurplusTokens",
    "TokenizerMissing",
    "recognise",
]
