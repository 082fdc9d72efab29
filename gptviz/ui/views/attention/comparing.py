"""The Attention page where something is changed in the model: which pattern is drawn, and what moved."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import streamlit as st
import torch

from gptviz import Edit, Trace
from gptviz.analysis.moved import pattern_moved
from gptviz.analysis.reach import unseen
from gptviz.figures.ghosts import CHANGED, UNCHANGED
from gptviz.ui import heads, runs
from gptviz.ui.components.matrix import MASKED, Panel
from gptviz.ui.runs import Keep
from gptviz.ui.shell import change_words as edits_in_words
from gptviz.ui.shell.params import Param, if_there
from gptviz.ui.shell.scene import Scene
from gptviz.ui.views.attention import change_words as words
from gptviz.ui.views.attention.choice import Choice

DIFFERENCE = "difference"
PATTERNS = (UNCHANGED, CHANGED, DIFFERENCE)

PATTERN = Param("pattern", str, CHANGED, if_there)

MOVED = 1e-6  # mean total variation below this is rounding


@dataclass(frozen=True)
class Compared:
    """What is chosen of two patterns, (T, T) each: the model's as it is, and the changed one's.

    `own` are the weights themselves, `drawn` what is drawn of them (see `Choice.weights`).
    """

    which: str
    own: tuple[torch.Tensor, torch.Tensor]
    drawn: tuple[torch.Tensor, torch.Tensor]

    @property
    def picture(self) -> torch.Tensor:
        """What the large matrix holds; NaN where one of the two has nothing to show."""
        if self.which == DIFFERENCE:
            return self.drawn[1] - self.drawn[0]
        return self.drawn[PATTERNS.index(self.which)]

    @property
    def moved(self) -> float:
        """The mean total variation of the rows, of the weights themselves."""
        return pattern_moved(*self.own)


def choose(scene: Scene) -> str:
    """The control over the picture; there is none where nothing is changed."""
    if scene.other is None:
        return CHANGED
    PATTERN.within(PATTERNS)
    PATTERN.widget(
        st.segmented_control,
        "Pattern",
        options=PATTERNS,
        format_func=str.capitalize,
        label_visibility="collapsed",
        required=True,
        width="stretch",
    )
    return PATTERN.value


def compared(scene: Scene, chosen: Choice, trace: Trace, keep: Keep, which: str) -> Compared | None:
    """The chosen head of both runs; None where nothing is changed. Holds no trace."""
    if scene.other is None:
        return None
    before, before_drawn = chosen.weights(runs.get(scene.other, keep, scene.reduce))
    after, after_drawn = chosen.weights(trace)
    return Compared(which, (before, after), (before_drawn, after_drawn))


def difference_panel(values: torch.Tensor) -> Panel:
    """Changed minus unchanged, blue where less is looked at, orange where more."""
    reach = float(np.nanmax(np.abs(values.numpy()), initial=0.0)) or 1.0
    return Panel(
        "weights", "weights", "query", "key", "signed", -reach, reach,
        label="Changed minus unchanged attention: rows are queries, columns are keys",
        says="{query} to {key}: changed minus unchanged is {value}",
        says_masked=MASKED, says_nothing=words.HIDDEN, masked=True, digits="weight",
    )  # fmt: skip


def says(scene: Scene, chosen: Choice, found: Compared) -> str:
    """What the change did to the pattern that is looked at; why it could not, where it could not."""
    config, run = scene.lm.config, scene.run
    head = None if chosen.average else chosen.head
    own = () if chosen.average else heads.changed_in(run, chosen.block, chosen.head)
    off = [edit for edit in own if edit.site == "z"]
    reasons = [unseen(edit, "attn", chosen.block, config.n_layers, len(run), head) for edit in run.edits]
    parts = [words.output(edits_in_words.says(edit, scene.labels)) for edit in off]
    if None not in reasons:
        others = {reason for reason in reasons if reason is not None}
        parts += [words.out_of_reach(others)] if len(run.edits) > len(off) else []
    elif found.moved <= MOVED:
        parts.append(words.UNMOVED)
    else:
        parts.append(words.moved(found.moved, chosen.average))
    return " ".join(parts)


def replaced(scene: Scene, block: int, head: int) -> list[Literal["attn", "z"]]:
    """Which of a head's own later numbers are replaced: its steps do not lead to those."""
    sites: tuple[Literal["attn", "z"], ...] = ("attn", "z")
    own: tuple[Edit, ...] = heads.changed_in(scene.run, block, head)
    return [site for site in sites if any(edit.site == site for edit in own)]
