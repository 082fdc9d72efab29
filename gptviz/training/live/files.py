"""A trained model as files: the book's `model.pth`, and what one needs to read it again."""

import io
import json
import pickle
import zipfile

import torch

from gptviz.checkpoints.folder import BOOK_WEIGHTS, CONFIG, META
from gptviz.training.live.run import LiveRun


def model_files(run: LiveRun, step: int) -> dict[str, bytes]:
    """Name -> content, for `gptviz.load` of a folder with them, or the file picker with all three.

    `model.pth` is what the book has one save, `torch.save(model.state_dict(), "model.pth")`; `config.json`
    has the book's config; `meta.pkl` is nanoGPT's table of the characters. Raises ValueError for a model that
    these files cannot describe, and for a step of which there is no snapshot.
    """
    lm = run.lm(step)
    weights = io.BytesIO()
    torch.save(lm.model.state_dict(), weights)
    characters = run.task.characters
    table = {
        "vocab_size": len(characters),
        "itos": dict(enumerate(characters)),
        "stoi": {character: id for id, character in enumerate(characters)},
    }
    return {
        BOOK_WEIGHTS: weights.getvalue(),
        CONFIG: (json.dumps(lm.config.to_dict(), indent=2) + "\n").encode(),
        META: pickle.dumps(table, protocol=4),
    }


def archive(files: dict[str, bytes]) -> bytes:
    """The files as a zip."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as into:
        for name, content in files.items():
            into.writestr(name, content)
    return packed.getvalue()
