"""The strip under the chips: what is changed in the model, and what that did to the selected prediction.

It is drawn wherever a changed model is, and stays in sight while the page scrolls (shell.css).
"""

from collections.abc import Sequence
from dataclasses import replace

from gptviz import LanguageModel, Run
from gptviz.analysis.moved import Prediction, prediction
from gptviz.analysis.reach import unseen
from gptviz.digits import significant
from gptviz.figures.next_token import probability_text
from gptviz.figures.theme import Mode
from gptviz.ui import runs
from gptviz.ui.components.changes import Chip, Effect, change_strip
from gptviz.ui.runs import per_run
from gptviz.ui.shell import change_words as words
from gptviz.ui.shell import changes, state
from gptviz.ui.shell.changes import Change
from gptviz.ui.words import show_id

# Whether each of several changes did anything takes a pass without it: as much work as this, at most.
PASSES_OF = 4e9  # parameters x tokens x passes


@per_run
def effect(run: Run, position: int) -> Prediction:
    """The prediction at this position, of the model as it is and of the changed one."""
    return prediction(runs.get(run.plain, ()).logits(position), runs.get(run, ()).logits(position))


@per_run
def share(run: Run, position: int, number: int) -> Prediction:
    """The same for one of the edits alone: the others made, without it and with it."""
    others = replace(run, edits=(*run.edits[:number], *run.edits[number + 1 :]))
    return prediction(runs.get(others, ()).logits(position), runs.get(run, ()).logits(position))


def draw(
    run: Run, found: Sequence[Change], position: int, labels: Sequence[str], lm: LanguageModel, mode: Mode
) -> None:
    """The strip for this run, selected position and list of changes; nothing where the list is empty."""
    if not found:
        return
    off = state.EDITS_OFF.value
    silent = iter(_silent(run, position, labels, lm))
    chips, notes = [], []
    for change in found:
        chip = _chip(change, labels, off)
        if chip["state"] == "made" and (why := next(silent)):
            chip["note"] = why
            notes.append([f"{words.capital(chip['says'])}: this {why}."])
        elif change.refusal is not None:
            notes.append(["", change.text, f" is kept, and not made: {change.refusal}."])
        chips.append(chip)
    change_strip(
        chips,
        _effect(run, position, labels, lm) if run.edits else None,
        off,
        mode,
        changes.remove,
        {"undo": changes.undo, "clear": changes.clear, "switch": changes.switch},
        notes=notes,
    )


def _chip(change: Change, labels: Sequence[str], off: bool) -> Chip:
    said = change.text if change.edit is None else words.says(change.edit, labels)
    if change.refusal is not None:
        return {"text": change.text, "says": said, "state": "refused", "note": change.refusal}
    return {"text": change.text, "says": said, "state": "off" if off else "made", "note": ""}


def _silent(run: Run, position: int, labels: Sequence[str], lm: LanguageModel) -> list[str]:
    """Of each edit of the run, why it cannot matter for the prediction, or that it did not; "" else."""
    what = words.prediction(labels[position], position)
    notes = []
    size = sum(p.numel() for p in lm.model.parameters())
    tried = len(run.edits) == 1 or size * len(run) * len(run.edits) <= PASSES_OF
    for number, edit in enumerate(run.edits):
        why = unseen(edit, "final", None, lm.config.n_layers, len(run), position=position)
        if why is not None:
            notes.append(words.cannot_matter(why, what))
        elif tried and share(run, position, number).nothing:
            notes.append(words.nothing(labels[position], position))
        else:
            notes.append("")
    return notes


def _effect(run: Run, position: int, labels: Sequence[str], lm: LanguageModel) -> Effect:
    found = effect(run, position)
    return {
        "after": labels[position],
        "position": position,
        "token": show_id(lm, found.token),
        "before": found.before,
        "before_text": probability_text(found.before),
        "now": found.after,
        "now_text": probability_text(found.after),
        "top": show_id(lm, found.now),
        "top_now": found.now_after,
        "top_text": probability_text(found.now_after),
        "kl": found.kl,
        "kl_text": significant(found.kl, 2),
        "nothing": found.nothing,
    }
