"""What excites a unit in other texts: the model reads a small sample, window by window, when asked to."""

import streamlit as st

from gptviz import LanguageModel, Run
from gptviz.analysis.feed_forward import PEAKS, Peaks
from gptviz.engine.sample import Window, passages, windows
from gptviz.tokenizer import show_token
from gptviz.ui import runs
from gptviz.ui.runs import per_run
from gptviz.ui.shell.params import Param
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Scene
from gptviz.ui.views.feed_forward import tables, words

SAMPLE = Param("ff_sample", bool, False)
SHOWN = 6  # windows, those with the largest activations


@per_run
def peaks(run: Run) -> list[Peaks]:
    """Every block's units in one text, in one pass that keeps nothing else."""
    return runs.get(run, (), (PEAKS,)).reduced(PEAKS.name)


def draw(scene: Scene, block: int, unit: int) -> None:
    """The switch, and behind it what the sample says of the unit."""
    if not SAMPLE.widget(st.toggle, "In other texts: read the sample", help=words.SAMPLE_HELP):
        return
    lm = scene.lm
    found, tokens = windows(lm.encode, lm.config.context_length)
    if not readable(lm, found):
        st.info(words.no_sample(lm.name))
        return
    read = _read(scene, found)
    value = [float(of[block].value[unit]) for of in read]
    fired = sum(int(of[block].fired[unit]) for of in read)
    looked_at = sum(len(window.ids) - 1 for window in found)
    prose(words.sample(unit, fired, looked_at, tokens, len(passages())))
    if left_out := sum(not edit.is_of_any_text for edit in scene.run.edits):
        st.caption(words.left_out(left_out))
    rows = []
    for i in sorted(range(len(found)), key=lambda i: -value[i])[:SHOWN]:
        shown = [show_token(token.raw) for token in lm.tokens(found[i].ids)]
        rows.append((value[i], shown, int(read[i][block].position[unit]), found[i].title))
    st.html(tables.excerpts(rows))


def is_read(lm: LanguageModel) -> bool:
    """Whether it is asked for, and can be had."""
    return SAMPLE.value and readable(lm, windows(lm.encode, lm.config.context_length)[0])


def readable(lm: LanguageModel, found: list[Window]) -> bool:
    """Whether the model has all these tokens: one of characters knows only those it was shown."""
    return all(max(window.ids) < lm.config.vocab_size for window in found)


def _read(scene: Scene, found: list[Window]) -> list[list[Peaks]]:
    """All windows: each is kept by itself, so that what was read before a stop need not be read again."""
    bar = st.progress(0.0)
    read, edits = [], tuple(edit for edit in scene.run.edits if edit.is_of_any_text)
    for number, window in enumerate(found):
        bar.progress(number / len(found), words.progress(number + 1, len(found)))
        read.append(peaks(Run(scene.run.model, window.ids, edits)))
    bar.empty()
    return read
