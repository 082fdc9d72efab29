"""The strip under the chips: what is changed in the model, and what that did to the selected prediction.

It is drawn wherever a changed model is, and stays in sight while the page scrolls (shell.css).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from gptviz import LanguageModel, Run
from gptviz.analysis.moved import Prediction, prediction
from gptviz.analysis.reach import unseen
from gptviz.digits import significant
from gptviz.engine.edit_text import GRAMMAR
from gptviz.figures.next_token import probability_text
from gptviz.figures.theme import Mode
from gptviz.ui import runs
from gptviz.ui.components.changes import change_strip
from gptviz.ui.components.saved import shortened
from gptviz.ui.runs import per_run
from gptviz.ui.shell import change_words as words
from gptviz.ui.shell import changes, state
from gptviz.ui.shell.changes import Change
from gptviz.ui.words import show_id

# Whether each of several changes did anything takes a pass without it: unasked for no more work than this.
PASSES_OF = 2e10  # parameters x tokens x passes, about a second
LONGEST = 60  # characters of a change as it is written; longer ones are cut in their middle
_TRY = "changes_try"  # in the session: it was asked for


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
    passes = _passes(run, position, lm)
    silent = iter(_silent(run, position, labels, lm, tried=not passes))
    chips, notes = [], []
    for change in found:
        chip = _chip(change, labels, off)
        if chip["state"] == "made" and (why := next(silent)):
            chip["note"] = why
            notes.append([f"{words.capital(chip['says'])}: this {why}."])
        elif change.refusal is not None:
            notes.append(["", shortened(change.text, LONGEST), f" is kept, and not made: {change.refusal}."])
        chips.append(chip)
    if any(change.edit is None for change in found):
        notes.append([f"A change is written {GRAMMAR}."])
    change_strip(
        chips,
        _effect(run, position, labels, lm) if run.edits else None,
        off,
        mode,
        changes.remove,
        {"undo": changes.undo, "clear": changes.clear, "switch": changes.switch, "try": _try},
        notes=notes,
        ask=(words.not_tried(passes), words.TRY) if passes else None,
    )


def _chip(change: Change, labels: Sequence[str], off: bool) -> dict[str, Any]:
    said = shortened(change.text, LONGEST) if change.edit is None else words.says(change.edit, labels)
    if change.refusal is not None:
        return {"text": change.text, "says": said, "state": "refused", "note": change.refusal}
    return {"text": change.text, "says": said, "state": "off" if off else "made", "note": ""}


def _passes(run: Run, position: int, lm: LanguageModel) -> int:
    """How many passes are to be asked for before each edit is known to do something; 0 where none is."""
    layers, tokens = lm.config.n_layers, len(run)
    able = [
        edit for edit in run.edits if unseen(edit, "final", None, layers, tokens, position=position) is None
    ]
    work = sum(p.numel() for p in lm.model.parameters()) * tokens * len(able)
    alone = len(run.edits) == 1  # without it, it is the unchanged model, which is known
    return 0 if alone or work <= PASSES_OF or st.session_state.get(_TRY) else len(able)


def _try() -> None:
    st.session_state[_TRY] = True


def _silent(run: Run, position: int, labels: Sequence[str], lm: LanguageModel, tried: bool) -> list[str]:
    """Of each edit of the run, why it cannot matter for the prediction, or that it did not; "" else."""
    what = words.prediction(labels[position], position)
    notes = []
    for number, edit in enumerate(run.edits):
        why = unseen(edit, "final", None, lm.config.n_layers, len(run), position=position)
        if why is not None:
            notes.append(words.cannot_matter(why, what))
        elif tried and share(run, position, number).nothing:
            notes.append(words.nothing(labels[position], position, len(run.edits) > 1))
        else:
            notes.append("")
    return notes


def _effect(run: Run, position: int, labels: Sequence[str], lm: LanguageModel) -> dict[str, Any]:
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
