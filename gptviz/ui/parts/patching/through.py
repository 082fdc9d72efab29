"""Path patching on "Patching": from which heads one reader gets the answer, when nobody else may pass it on."""

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from gptviz import Run
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


def reader(n_layers: int, n_heads: int) -> Receiver | None:
    """The read that the address names: ("q", 5, 0); None for the logits, and for one that no head stands before."""
    named = re.fullmatch(r"([qkv])(\d{1,3})\.(\d{1,3})", INTO.value)
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
    prose(
        "**Path patching** is narrower: only *one reader* gets a head's value from the other text, and all "
        "other heads keep theirs. What moves then has come along this very path.",
        "head",
    )
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="set_path"):
        st.caption("The reader:", width="content")
        button("the model’s guess", "path_logits", INTO.set, LOGITS, primary=receiver is None)
        if receiver is not None:
            _, block, head = receiver
            for read, name in READS.items():
                label = f"the {name} of head {block}·{head}"
                here = read == receiver[0]
                button(label, f"path_{read}", INTO.set, f"{read}{block}.{head}", primary=here)
    receivers: str | Sequence[Receiver] = LOGITS
    senders = config.n_layers * config.n_heads
    if receiver is not None:
        receivers = (receiver,)
        senders = receiver[1] * config.n_heads
    options = receivers, way, scene.position
    slow = sheet.is_asked_for(scene.lm, scene.position + 1, 2 * senders)
    if slow and not GO.value:
        button(f"Patch every path ({2 * senders:,} passes)", "path_start", GO.set, True)
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
    named = [divmod(int(i), config.n_heads) for i in order]
    values = [in_sentence(float(effects.now[place])) for place in named]
    if not in_cell(float(effects.now[named[0]])):
        prose(f"No head passes the answer to {_called(receiver)} by itself.")
    else:
        said = [f"head {b}·{h} ({value})" for (b, h), value in zip(named, values, strict=True)]
        sentence = f"To {_called(receiver)} most comes from {said[0]}."
        if len(said) > 1:
            sentence += f" Next: {' and '.join(said[1:])}."
        prose(sentence, "head", "query", "key", "value")
    place = None
    if receiver is not None:
        place = receiver[1:]
    fig = paths_into(whole.now, place, word, in_cell, scene.mode, whole.was)
    alt = f"What each head passes to {_called(receiver)} alone ({way})"

    def read_by(block: int, head: int) -> None:
        """A click on a head makes it the reader."""
        if block > 0:
            INTO.set(f"q{block}.{head}")

    scene.chart(fig, key="path_map", alt=alt, which=(way, INTO.value), on_cell=read_by)
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
