"""From a training run's checkpoint to the folder that `gptviz.load` reads.

Beside it ships what was measured of the model's heads: see `gptviz.files.disk_cache.SHIPPED`.
"""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any, cast

import torch
from safetensors.torch import load_file, save

from gptviz.analysis import head_general, head_trial
from gptviz.engine.config import GPTConfig
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.progress import Progress, ignore_progress
from gptviz.files.atomic_file import write_atomically, write_text
from gptviz.tokenizer.encodings import ranks_of_file
from gptviz.tokenizer.steps import bpe
from gptviz.training.corpus import TOKENIZER_FILE
from gptviz.training.recipe import CHECKPOINT

Ranks = dict[bytes, int]  # a token's bytes -> its id

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
EMBEDDING = "tok_emb.weight"
TIED = "out_head.weight"  # the same tensor as the embedding: stored once


def export(work: Path, out: Path, preliminary: bool = False) -> dict[str, str]:
    """Write config.json, model.safetensors (float16) and tokenizer.tiktoken; return the weights' metadata.

    Each file appears whole or not at all, so that a folder can be written over while somebody
    reads it. Raises FileNotFoundError without a checkpoint, and ValueError for a run that has not
    come to its last step (the learning rate has not come down yet) unless `preliminary`, and for
    weights that float16 cannot hold.
    """
    saved = read_checkpoint(work)
    steps = saved["recipe"]["steps"]
    if saved["step"] < steps and not preliminary:
        raise ValueError(
            f"the run in {work} is at step {saved['step']} of {steps}; finish it, or say --preliminary "
            "for what there is"
        )
    config = GPTConfig.from_dict(saved["config"])
    metadata = describe(saved, config)
    out.mkdir(parents=True, exist_ok=True)
    write_text(out / CONFIG, json.dumps(config.to_dict(), indent=2) + "\n")
    write_atomically(
        out / TOKENIZER_FILE, lambda path: shutil.copyfile(work / TOKENIZER_FILE, path)
    )
    weights = half_weights(saved["model"], config)
    write_atomically(out / WEIGHTS, lambda path: path.write_bytes(save(weights, metadata)))
    return metadata


def read_checkpoint(work: Path) -> dict[str, Any]:
    """The checkpoint of the run in `work`, as `loop.TrainingRun.save` wrote it, on the CPU."""
    path = work / CHECKPOINT
    if not path.exists():
        raise FileNotFoundError(
            f"no {path}: run `python -m gptviz.training model --work {work} ...`"
        )
    return torch.load(path, map_location="cpu", weights_only=True)


def describe(saved: dict[str, Any], config: GPTConfig) -> dict[str, str]:
    """Return safetensors metadata of the weights (text to text): how far, by which recipe, how good."""
    recipe = saved["recipe"]
    last = saved["curve"][-1]
    return {
        "format": "pt",
        "made_by": "python -m gptviz.training",
        "step": str(saved["step"]),
        "tokens": str(saved["step"] * recipe["batch_size"] * config.context_length),
        "validation_loss": str(last["validation"]),
        "recipe": json.dumps(recipe),
    }


def half_weights(state: dict[str, torch.Tensor], config: GPTConfig) -> dict[str, torch.Tensor]:
    """The state dict in float16, without the output head where it is the token embedding."""
    half = {
        name: tensor.to(torch.float16).contiguous()
        for name, tensor in state.items()
        if not (config.tie_embeddings and name == TIED)
    }
    overflown = [name for name, tensor in half.items() if not tensor.isfinite().all()]
    if overflown:
        names = ", ".join(overflown)
        raise ValueError(
            f"float16 reaches 65504; these weights do not fit or are not numbers: {names}"
        )
    return half


def full_weights(folder: Path, config: GPTConfig, tokenizer: Path) -> dict[str, torch.Tensor]:
    """The state dict in float32 of what `export` wrote, for a run that goes on from it.

    `tokenizer` is the folder of the run's own tokenizer, which may be another one: see `rows_for`.
    """
    state = {name: tensor.float() for name, tensor in load_file(folder / WEIGHTS).items()}
    before, after = (ranks_of_file(place / TOKENIZER_FILE) for place in (folder, tokenizer))
    for name in (EMBEDDING, TIED):
        if name in state:
            state[name] = rows_for(after, state[name], before)
    if config.tie_embeddings:
        state[TIED] = state[EMBEDDING]
    return state


def rows_for(after: Ranks, rows: torch.Tensor, before: Ranks) -> torch.Tensor:
    """A row for each token of a tokenizer, from the rows of the one before: (V before, D) -> (V, D).

    A token that both have keeps its row. Any other gets the mean of its pieces' rows, about as long as they are.
    """
    made = []
    for token in sorted(after, key=after.__getitem__):
        pieces = [token]
        if token not in before:
            _, pieces = bpe(before, token)
        of_pieces = rows[[before[piece] for piece in pieces]]  # (pieces, D)
        row = of_pieces.mean(dim=0)  # (D,)
        if len(pieces) > 1:
            # unlike directions partly cancel in a mean; a new token is rarer than its pieces
            row = row * 0.9 * of_pieces.norm(dim=1).mean() / row.norm()
        made.append(row)
    made.append(rows[len(before)])  # of <|endoftext|>, the last one
    return torch.stack(made)


def sha256_of(folder: Path) -> str:
    """The SHA-256 of the folder's weights, by which a card knows them again."""
    return hashlib.sha256((folder / WEIGHTS).read_bytes()).hexdigest()


# ---- what was measured of its heads ----

DIGITS = 6  # of a number, that mean something


def measured_heads(lm: LanguageModel, progress: Progress = ignore_progress) -> dict[str, Any]:
    """Measure what all heads do in general, and try the labels that follow, by their names on disk.

    All of it is measured, whatever is on disk. `progress(done, of)` is called after each label's trial.
    """
    general = head_general.general(lm, disk=False)
    measured: dict[str | None, Any] = {general.key: head_general.to_json(general)}
    name = head_trial.names(lm, head_trial.passages_of(lm))
    labelled = general.table[general.table["role"].isin(head_trial.TESTABLE)]
    claims = [(row.block, row.head, row.role) for row in labelled.itertuples()]
    for done, claim in enumerate(claims, 1):
        measured[name(*claim)] = head_trial.to_json(
            head_trial.trial(lm, *claim, known=general, disk=False)
        )
        progress(done, len(claims))
    assert None not in measured, "a model without edits has a name"
    return cast(dict[str, Any], _rounded(measured))


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_rounded(part) for part in value]
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    return value
