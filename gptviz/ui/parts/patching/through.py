"""Path patching on "Patching": from which heads one reader gets the answer, when nobody else may pass it on."""

import re
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from gptviz import Run
from gptviz.analysis.activation_patching import DIRECTIONS
from gptviz.analysis.patched_paths import LOGITS, Receiver, path_patching
from gptviz.both import Both
from gptviz.figures.shares import paths_into
from gptviz.model import MultiHeadAttention
from gptviz.ui import sheet, tables
from gptviz.ui.buttons import button
from gptviz.ui.shell.params import Param
from gptviz.ui.shell.scene import Scene
from gptviz.ui.words import prose

# whose reading is asked about: "logits", or a read of a head such as "q5.0"
INTO = Param("path_into", str, LOGITS)
GO = Param("path_go", bool, False)  # for what takes so long that it waits for a click
PARAMS = (INTO, GO)

READS = {"q": "queries", "k": "keys", "v": "values"}
NEXT = 2  # heads that are named after the strongest
_ASKED = "gptviz_path_asked"  # in the session: the texts and the reader that the click was for


def reader(n_layers: int, n_heads: int) -> Receiver | None:
    """The read that the address names: ("q", 5, 0); None for the logits, and for one that no head stands before."""
    named = re.fullmatch(r"([qkv])([0-9]{1,3})\.([0-9]{1,3})", INTO.value)
    if named is None:
        return None
    block = int(named[2])
    head = int(named[3])
    if not 0 < block < n_layers or head >= n_heads:
        return None
    return named[1], block, head


def draw(
    scene: Scene,
    texts: Both[tuple[Run, Run]],
    answers: tuple[int, int],
    way: str,
    size: str,
    word: str,
    says: tuple[Callable[[float], str], Callable[[float], str]],
) -> None:
    """Draw the section.

    `texts` are the clean and the corrupt run, with the model as it is and without its changes. `size` is the
    column of `path_patching` that is shown, `word` what the two answers are called. `says` write a number
    into a sentence, and into a cell.
    """
    config = scene.lm.config
    in_sentence, in_cell = says
    st.subheader("Through which head does it come?", anchor=False)
    receiver = reader(config.n_layers, config.n_heads)
    INTO.set(_written(receiver))  # "q05.0" is head 5·0 as well, and what is not there is the guess
    prose(
        "**Path patching** is narrower: only *one reader* gets a head's value from the other text, and all "
        "other heads keep theirs. What moves then has come along this very path. Feed-forward layers and "
        "LayerNorms on the way are worked out anew, so what they pass on counts as this path.",
        "head",
        "LayerNorm",
    )
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="set_path"):
        st.caption("The reader:", width="content")
        button("the model’s guess", "path_logits", INTO.set, LOGITS, primary=receiver is None)
        if receiver is not None:
            _, block, head = receiver
            for read, name in READS.items():
                label = f"the {name} of head {block}·{head}"
                here = read == receiver[0]
                written = _written((read, block, head))
                button(label, f"path_{read}", INTO.set, written, primary=here)
    receivers: str | Sequence[Receiver] = LOGITS
    passes = config.n_layers * config.n_heads  # one a sender, where the logits read it
    if receiver is not None:
        receivers = (receiver,)
        passes = 2 * receiver[1] * config.n_heads
    passes *= len(texts.all)
    options = receivers, way, scene.position
    slow = sheet.is_asked_for(scene.lm, scene.position + 1, passes)
    if slow and not _is_wanted((texts.all, answers, options)):
        button(f"Patch every path ({passes:,} passes)", "path_start", GO.set, True)
        return

    def patched(pair: tuple[Run, Run]) -> pd.DataFrame:
        """The table of one model."""
        clean, corrupt = pair
        stop = (lambda: GO.set(False)) if slow else None
        return sheet.worked(
            clean,
            path_patching,
            clean.ids,
            corrupt.ids,
            answers,
            *options,
            says="{} of {} paths patched".format,
            key="path_stop",
            stop=stop,
        )

    found = texts.map(patched)
    effects = found.map(lambda table: table[size].to_numpy(float).reshape(-1, config.n_heads))
    whole = effects.map(lambda some: _of_all_blocks(some, config.n_layers))
    order = np.argsort(-np.abs(effects.now), axis=None, kind="stable")[: 1 + NEXT]
    strongest = [divmod(int(i), config.n_heads) for i in order]
    # as on the map: one that is too small for a number has no name either
    named = {place: effect for place in strongest if in_cell(effect := float(effects.now[place]))}
    if not named:
        prose(f"No head passes the answer to {_called(receiver)} by itself.")
    else:
        said = [f"head {b}·{h} ({in_sentence(effect)})" for (b, h), effect in named.items()]
        (block, head), largest = next(iter(named.items()))
        sentence = f"To {_called(receiver)} most comes from {said[0]}."
        if (largest > 0) != (way == DIRECTIONS[0]):
            value = in_sentence(largest).removesuffix(" the other way")
            sentence = (
                f"By its path to {_called(receiver)}, head {block}·{head} moves the answer most, the "
                f"other way ({value})."
            )
        if len(said) > 1:
            sentence += f" Next: {' and '.join(said[1:])}."
        prose(sentence, "head", "query", "key", "value")
    place = None
    if receiver is not None:
        place = receiver[1:]
    unit = " of the texts’ difference"
    if size == "change":
        unit = " logits"
    fig = paths_into(whole.now, place, word, in_cell, scene.mode, whole.was, unit)
    alt = f"What each head passes to {_called(receiver)} alone ({way})"

    def read_by(block: int, head: int) -> None:
        """A click on a head makes it the reader."""
        if block > 0:
            INTO.set(f"q{block}.{head}")

    scene.chart(fig, key="path_map", alt=alt, which=(way, _written(receiver)), on_cell=read_by)
    st.caption(
        "A thread runs from each of the strongest heads to the reader. Click a head to ask from whom *its* "
        "queries, keys and values come; heads of block 0 read the tokens alone."
    )
    with sheet.details("the paths"):
        sheet.numbers_of(
            "path-patching",
            lambda: tables.joined(found),
            "logit: the difference of the two logits with this path patched; change: that minus the one without.",
            "every path",
            "–",
        )
        clean, corrupt = texts.now
        arguments: list[Any] = [list(clean.ids), list(corrupt.ids), answers, *options]
        sheet.code_of(
            scene, [MultiHeadAttention.forward], path_patching, *arguments, key="in_code_path"
        )


def _written(receiver: Receiver | None) -> str:
    """The reader as the address names it: "q5.0", or "logits"."""
    if receiver is None:
        return LOGITS
    read, block, head = receiver
    return f"{read}{block}.{head}"


def _is_wanted(asked: Hashable) -> bool:
    """Whether somebody clicked for these texts and this reader; a link's click is for whatever it opens."""
    if GO.value and st.session_state.setdefault(_ASKED, asked) != asked:
        GO.set(False)
    if not GO.value:
        st.session_state.pop(_ASKED, None)
    return GO.value


def _called(receiver: Receiver | None) -> str:
    """The reader in a sentence."""
    if receiver is None:
        return "the model’s guess"
    read, block, head = receiver
    return f"the {READS[read]} of head {block}·{head}"


def _of_all_blocks(effects: np.ndarray, n_layers: int) -> np.ndarray:
    """(b, H) of the blocks that stand before a reader -> (L, H), NaN for the others."""
    whole = np.full((n_layers, effects.shape[1]), np.nan)
    whole[: len(effects)] = effects
    return whole
