"""The strip under the chips: what is changed in the model, and what that did to the selected prediction.

It is drawn wherever a changed model is, and stays in sight while the page scrolls (shell.css).
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from gptviz import LanguageModel, Run
from gptviz.analysis.moved import Prediction, prediction
from gptviz.analysis.reach import Unseen, unseen
from gptviz.digits import significant
from gptviz.engine.edit_values import GRAMMAR
from gptviz.figures.next_token import probability_text
from gptviz.ui import runs
from gptviz.ui.components.changes import change_strip
from gptviz.ui.components.saved import shortened
from gptviz.ui.runs import per_run
from gptviz.ui.shell import change_words as words, changes, state
from gptviz.ui.shell.changes import Change
from gptviz.ui.words import capital, show_id

# Whether each of several changes did anything takes a pass without it: unasked for no more work than this.
PASSES_OF = 2e10  # parameters x tokens x passes, about a second
LONGEST = 60  # characters of a change as it is written; longer ones are cut in their middle
_TRY = "changes_try"  # in the session: it was asked for


@per_run
def effect(run: Run, before: Run, position: int) -> Prediction:
    """The prediction at this position of a run, and of the same with fewer edits, or none, before."""
    return prediction(runs.get(before, ()).logits(position), runs.get(run, ()).logits(position))


def draw(
    run: Run, listed: Sequence[Change], position: int, labels: Sequence[str], lm: LanguageModel
) -> None:
    """Draw the strip for this run, selected position and list of changes; nothing if the list is empty."""
    if not listed:
        return
    is_off = state.EDITS_OFF.value
    config = lm.config
    tokens = len(run)
    reasons = [unseen(edit, "final", None, config, tokens, position=position) for edit in run.edits]
    passes = _passes(run, reasons.count(None), lm)
    silent = _silent(run, position, labels, reasons, tried=not passes)
    chips = []
    notes = []
    for change in listed:
        status = "off" if is_off else "made"
        if change.refusal is not None:
            status = "refused"
        short = shortened(change.text, LONGEST)
        if change.edit is None:
            sentence = short
        else:
            sentence = words.says(change.edit, labels, partial(show_id, lm), lm.config)
        if status == "made":
            note = next(silent)
        else:
            note = change.refusal or ""
        if status == "refused":
            notes.append(["", short, f" is not applied: {note}. It stays in the list."])
        elif note:
            notes.append([f"{capital(sentence)}: this {note}."])
        chips.append({"text": change.text, "says": sentence, "state": status, "note": note})
    if any(change.edit is None for change in listed):
        notes.append([f"Write a change as {GRAMMAR}."])
    look = partial(st.session_state.__setitem__, _TRY, True)
    acts: dict[str, Callable[[], None]] = {"undo": changes.undo, "clear": changes.clear}
    acts |= {"switch": changes.switch, "try": look}
    moved = None
    if run.edits:
        moved = _effect(run, position, labels, lm)
    ask = None
    if passes:
        ask = (
            f"Does each of these changes have an effect? Checking takes {passes} more passes of the model.",
            "Check",
        )
    change_strip(chips, moved, is_off, changes.remove, acts, notes=notes, ask=ask)


def _passes(run: Run, able: int, lm: LanguageModel) -> int:
    """The number of passes that must be asked for to know which edits do something by themselves.

    `able` is how many edits can do anything. 0 if their passes are quick, or already asked for.
    """
    alone = len(run.edits) == 1  # without it, it is the unchanged model, which is known
    quick = lm.config.parameters * len(run) * able <= PASSES_OF
    if alone or quick or st.session_state.get(_TRY):
        return 0
    return able


def _silent(
    run: Run, position: int, labels: Sequence[str], why: Sequence[Unseen | None], tried: bool
) -> Iterator[str]:
    """Yield, for each edit of the run, why it cannot matter for the prediction, or that it changed nothing;
    "" if it did.
    """
    what = f"the prediction after “{labels[position]}” (position {position})"
    beside = ""
    if len(run.edits) > 1:
        beside = " beyond the other changes"
    for number, reason in enumerate(why):
        without = replace(run, edits=(*run.edits[:number], *run.edits[number + 1 :]))
        had_no_effect = reason is None and tried and effect(run, without, position).nothing
        changed = ""
        if had_no_effect:
            changed = f"has no effect on {what}{beside}"
        yield changed if reason is None else words.cannot_matter(reason, what)


def _effect(run: Run, position: int, labels: Sequence[str], lm: LanguageModel) -> dict[str, Any]:
    moved = effect(run, run.plain, position)
    texts = {"before_text": moved.before, "now_text": moved.after, "top_text": moved.now_after}
    return {
        "after": labels[position],
        "position": position,
        "token": show_id(lm, moved.token),
        "before": moved.before,
        "now": moved.after,
        "top": show_id(lm, moved.now),
        "top_now": moved.now_after,
        "kl": moved.kl,
        "kl_text": significant(moved.kl, 2),
        "nothing": moved.nothing,
    } | {name: probability_text(p) for name, p in texts.items()}
