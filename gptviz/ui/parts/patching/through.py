"""Path patching on "Patching": from which heads one reader gets the answer, when nobody else may pass it on."""

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from gptviz import Run
from gptviz.analysis import machine
from gptviz.analysis.activation_patching import DIRECTIONS
from gptviz.analysis.alignment import differing
from gptviz.analysis.patched_paths import LOGITS, Receiver, path_patching, path_positions
from gptviz.both import Both
from gptviz.engine.architecture import architecture_of
from gptviz.engine.kinds import Config
from gptviz.engine.sites import sites_of
from gptviz.ui import runs, sheet, tables, words
from gptviz.ui.buttons import button
from gptviz.ui.components.machine import GUESS, Paths, paths
from gptviz.ui.runs import per_run
from gptviz.ui.shell.params import Param
from gptviz.ui.shell.scene import Scene
from gptviz.ui.words import prose

# whose reading is asked about: "logits", or reads of heads such as "q5.0,k5.1"
INTO = Param("path_into", str, LOGITS)
ALSO = Param("path_also", bool, False)  # whether a click adds a reader
GO = Param("path_go", bool, False)  # for what takes so long that it waits for a click
PARAMS = (INTO, ALSO, GO)

READS = {"q": "queries", "k": "keys", "v": "values"}
NEXT = 2  # heads that are named after the strongest
THREADS = 4  # heads whose paths are drawn as threads: the strongest
MOST = 12  # reads that are asked about at once
MUCH = 0.5  # of a head's effect: so much at one token has a thread, however small it is
ALOUD = 10  # heads of the table for those who do not see the picture
NAMED = 3  # readers that a sentence names, each with its head
_ASKED = "gptviz_path_asked"  # in the session: the texts and the reader that the click was for


def readers(config: Config) -> tuple[Receiver, ...]:
    """The reads that the address names: ("q", 5, 0), ...; none is the logits.

    Where heads share keys and values, the number of one is its group's. Those that do not exist, or that no
    head stands before, are left out.
    """
    sites = sites_of(config)
    return tuple(
        one
        for one in _read_from(INTO.value)
        if 0 < one[1] < config.n_layers and one[2] < sites[one[0]].count(config)
    )


def senders_before(config: Config, chosen: Sequence[Receiver]) -> int:
    """The number of blocks whose heads stand before these readers; before the logits that is all."""
    return max((block for _, block, _ in chosen), default=config.n_layers)


def passes_for(config: Config, chosen: Sequence[Receiver]) -> int:
    """The passes that the paths of all heads to these readers need: one a sender where the logits read it, else two."""
    passes = senders_before(config, chosen) * config.n_heads
    if chosen:
        passes *= 2
    return passes


def heads_with(config: Config, receiver: Receiver) -> list[int]:
    """The heads that read with these queries, keys or values: one, or all of a group."""
    read, _, index = receiver
    site = sites_of(config)[read]
    return [head for head in range(config.n_heads) if site.of_head(head, config) == index]


def _read_from(text: str) -> list[Receiver]:
    """What "q5.0,k5.1" names, or "q.5.0,k.5.1", as an edit writes a head's queries; each once."""
    found = []
    for part in text.split(","):
        named = re.fullmatch(r"([qkv])\.?([0-9]{1,3})\.([0-9]{1,3})", part)
        if named is not None:
            found.append((named[1], int(named[2]), int(named[3])))
    return list(dict.fromkeys(found))[:MOST]


def _written(receivers: Sequence[Receiver]) -> str:
    """The reads as the address names them: "q5.0,k5.1", or "logits"."""
    return ",".join(f"{read}{block}.{head}" for read, block, head in receivers) or LOGITS


def choose(receiver: Receiver, also: bool) -> None:
    """Callback: this read alone is asked about; with `also` it is one more, or one less."""
    chosen = _read_from(INTO.value)
    if not also:
        chosen = [receiver]
    elif receiver in chosen:
        chosen.remove(receiver)
    else:
        chosen.append(receiver)
    INTO.set(_written(chosen[:MOST]))


def read_by(block: int, head: int, also: int, size: int = 1) -> None:
    """Callback of a click on a head, whose queries become the reader; or on the guess.

    With `also` the head is one more reader, of what the last one reads, or it is none any more. So many heads,
    `size`, share a key and a value.
    """
    if block == GUESS:
        INTO.set(LOGITS)
        return
    if block == 0:  # no head stands before it
        return
    chosen = _read_from(INTO.value)
    if not also or not chosen:
        INTO.set(_written([("q", block, head)]))
        return
    own = {read: head if read == "q" else head // size for read in READS}
    others = [one for one in chosen if one[1:] != (block, own[one[0]])]
    if len(others) == len(chosen):
        read = chosen[-1][0]
        others.append((read, block, own[read]))
    INTO.set(_written(others[:MOST]))


@per_run
def machine_of(run: Run, position: int, shown: Any) -> machine.Level:
    """The whole machine of a run for the token at a position, as *Overview* draws it."""
    lm = runs.model(run)
    trace = runs.get(run, machine.reading(lm), machine.LENGTHS)
    return machine.level(lm, trace, "", position, shown)


def draw(
    scene: Scene,
    texts: Both[tuple[Run, Run]],
    answers: tuple[int, int],
    way: str,
    size: str,
    says: tuple[Callable[[float], str], Callable[[float], str]],
) -> pd.DataFrame:
    """Draw the section; return `path_patching` of this model, without rows as long as it waits for a click.

    `texts` are the clean and the corrupt run, with the model as it is and without its changes. `size` is the
    column of `path_patching` that is shown. `says` write a number into a sentence, and into a cell.
    """
    config = scene.lm.config
    in_sentence, in_cell = says
    st.subheader("Through which head does it come?", anchor=False)
    chosen = readers(config)
    INTO.set(_written(chosen))  # "q05.0" is head 5·0 as well, and what is not there is the guess
    prose(
        "**Path patching** is narrower: only *one reader* gets a head's value from the other text, and all "
        "other heads keep theirs. What moves then has come along this very path. Feed-forward layers and "
        f"{scene.norm}s on the way are worked out anew, so what they pass on counts as this path.",
        "head",
        scene.norm,
    )
    _choose_readers(config, chosen)
    receivers: str | Sequence[Receiver] = chosen or LOGITS
    passes = passes_for(config, chosen) * len(texts.all)
    places = _places(texts.now, scene.position, bool(chosen))
    options = receivers, way, scene.position
    slow = sheet.is_asked_for(scene.lm, scene.position + 1, passes + 2 * THREADS * len(places))
    if slow and not _is_wanted((texts.all, answers, options)):
        button(f"Patch every path ({passes:,} passes)", "path_start", GO.set, True)
        return pd.DataFrame()

    def patched(pair: tuple[Run, Run], key: str) -> pd.DataFrame:
        """The table of one model; `key` is its button's."""
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
            key=key,
            stop=stop,
        )

    found = Both(patched(texts.now, "path_stop"))
    if texts.was is not None:
        found = Both(found.now, patched(texts.was, "path_stop_unchanged"))
    effects = found.map(lambda table: table[size].to_numpy(float).reshape(-1, config.n_heads))
    order = np.argsort(-np.abs(effects.now), axis=None, kind="stable")[:THREADS]
    strongest = [divmod(int(i), config.n_heads) for i in order]
    # as in the cells: one that is too small for a number has no name either
    named = {place: effect for place in strongest if in_cell(effect := float(effects.now[place]))}
    reader = called(config, chosen)
    if not named:
        prose(f"No head passes the answer to {reader} by itself.")
    else:
        said = [f"head {b}·{h} ({in_sentence(effect)})" for (b, h), effect in named.items()]
        (block, head), largest = next(iter(named.items()))
        sentence = f"To {reader} most comes from {said[0]}."
        if (largest > 0) != (way == DIRECTIONS[0]):
            value = in_sentence(largest).removesuffix(" the other way")
            sentence = (
                f"By its path to {reader}, head {block}·{head} moves the answer most, the "
                f"other way ({value})."
            )
        if len(said) > 1:
            sentence += f" Next: {' and '.join(said[1 : 1 + NEXT])}."
        prose(sentence, "head", "query", "key", "value")
    threads = [(*place, scene.position, effect) for place, effect in named.items()]
    if named and (chosen or scene.run.edits):
        clean, corrupt = texts.now
        written = sheet.worked(
            clean,
            path_positions,
            clean.ids,
            corrupt.ids,
            tuple(named),
            places,
            answers,
            *options,
            says="{} of {} positions patched".format,
            key="path_where",
        )
        threads = _threads(written, named, size, in_cell)
    _picture(scene, effects, chosen, threads, found.now, answers, way, size, in_cell)
    more = ""
    if len(chosen) > 1:
        more = " With several readers, a number is that of all of them together."
    without = {*named} - {(block, head) for block, head, _, _ in threads}
    if without:
        heads = words.listed([f"head {block}·{head}" for block, head in sorted(without)])
        more += f" No thread for {heads}: none of the tokens drawn here carries it by itself."
    st.caption(
        "The machine as on *Overview*: a ribbon for each token, a column for each block, and below it the "
        "block’s heads. A thread runs from each of the strongest heads to the token where it writes, along its "
        f"ribbon, and on to the reader.{more} Click a head to ask from whom *its* queries, keys and values "
        "come; with Shift, it is one more reader. Heads of block 0 read the tokens alone."
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
        sheet.code_of(scene, ["attention"], path_patching, *arguments, key="in_code_path")
    return found.now


def _choose_readers(config: Config, chosen: Sequence[Receiver]) -> None:
    """Draw who reads: the guess, or of each chosen head what it reads, by itself or with its group."""
    asked = {(block, head) for read, block, head in chosen if read == "q"}
    heads: dict[tuple[int, int], None] = {}
    for receiver in chosen:
        own = [(receiver[1], head) for head in heads_with(config, receiver)]
        # of a group whose keys or values alone are chosen, the first head
        heads |= dict.fromkeys([one for one in own if one in asked] or own[:1])
    sites = sites_of(config)
    offered = dict.fromkeys(
        (read, block, sites[read].of_head(head, config)) for block, head in heads for read in READS
    )
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="set_path"):
        st.caption("The reader:", width="content")
        button("the model’s guess", "path_logits", INTO.set, LOGITS, primary=not chosen)
        for receiver in offered:
            label = _name(config, receiver)
            key = "path_{}_{}_{}".format(*receiver)
            button(label, key, choose, receiver, ALSO.value, primary=receiver in chosen)
        told = "A click on a head, or here, adds a reader, or takes it away."
        ALSO.widget(st.toggle, "and also", help=told)


def _places(texts: tuple[Run, Run], position: int, by_head: bool) -> tuple[int, ...]:
    """The positions that a head's writing is looked for at: those of the picture that can matter."""
    if not by_head:
        return (position,)  # what the logits read
    clean, corrupt = texts
    first = next(iter(differing(clean.ids, corrupt.ids)), 0)
    drawn = machine.window(len(clean.ids), position)
    return tuple(place for place in drawn if first <= place <= position) or (position,)


def _threads(
    written: pd.DataFrame,
    named: Mapping[tuple[int, int], float],
    size: str,
    in_cell: Callable[[float], str],
) -> list[tuple[int, int, int, float]]:
    """(block, head, position, effect) of what is drawn: all with a number, and what is much of its head's."""
    threads = []
    for block, head, position, effect in zip(
        written["block"], written["head"], written["position"], written[size], strict=True
    ):
        much = abs(effect) >= MUCH * abs(named[block, head])
        if much or in_cell(float(effect)):
            threads.append((int(block), int(head), int(position), float(effect)))
    return threads


def _picture(
    scene: Scene,
    effects: Both[NDArray[np.float64]],
    chosen: Sequence[Receiver],
    threads: list[tuple[int, int, int, float]],
    table: pd.DataFrame,
    answers: tuple[int, int],
    way: str,
    size: str,
    in_cell: Callable[[float], str],
) -> None:
    """Draw the machine with the paths on it."""
    # what the readers then carry to the selected token, where the thread lies at an earlier one
    config = scene.lm.config
    carried = {
        (receiver[1], head, place)
        for receiver in chosen
        for head in heads_with(config, receiver)
        for sender, _, place, _ in threads
        if receiver[0] in "kv" and sender < receiver[1] and place < scene.position
    }
    shown = tuple(sorted(carried)), tuple(dict.fromkeys(answers))
    levels = Both(scene.run, scene.other).map(lambda run: machine_of(run, scene.position, shown))
    whole = effects.map(lambda some: _of_all_blocks(some, config.n_layers))
    word = " − ".join(words.show_id(scene.lm, answer) for answer in answers)
    unit = " of the texts’ difference"
    signs = "orange: towards the other text’s answer; blue: away from it"
    if way != DIRECTIONS[0]:
        signs = "orange: your answer gets stronger; blue: it breaks"
    if size == "change":
        unit = " logits"
        signs = f"orange: raises {word}; blue: lowers it"
    key = [signs, "a thread: as thick as its effect is large"]
    if carried:
        key.append("purple: what the reader then brings to the selected token, as on Overview")
    drawn = Paths(
        effects=whole,
        written=[[in_cell(float(effect)) for effect in row] for row in np.nan_to_num(whole.now)],
        readers=[(one[0], one[1], head) for one in chosen for head in heads_with(config, one)],
        threads=threads,
        unit=unit,
        word=word,
        key=key,
        also=ALSO.value,
    )
    alt = f"What each head passes to {called(config, chosen)} alone ({way})"
    strongest = table[size].abs().nlargest(ALOUD).index
    paths(
        levels,
        drawn,
        table.loc[strongest, ["block", "head", size]],
        alt,
        architecture_of(config).named.words,
        scene.labels,
        scene.position,
        partial(read_by, size=config.n_heads // config.n_kv_groups),
        "path_map",
        scene.saved("path_map", alt, way, _written(chosen).replace(",", "-")),
    )


def _is_wanted(asked: Hashable) -> bool:
    """Whether somebody clicked for these texts and this reader; a link's click is for whatever it opens."""
    if GO.value and st.session_state.setdefault(_ASKED, asked) != asked:
        GO.set(False)
    if not GO.value:
        st.session_state.pop(_ASKED, None)
    return GO.value


def _name(config: Config, receiver: Receiver) -> str:
    """One reader: "the keys of head 5·0", or of group 5·0 where heads share them."""
    read, block, index = receiver
    part = "head"
    if len(heads_with(config, receiver)) > 1:
        part = "group"
    return f"the {READS[read]} of {part} {block}·{index}"


def called(config: Config, chosen: Sequence[Receiver]) -> str:
    """The readers in a sentence."""
    if not chosen:
        return "the model’s guess"
    if len(chosen) > NAMED:
        return f"these {len(chosen)} readers"
    return words.listed([_name(config, receiver) for receiver in chosen])


def _of_all_blocks(effects: NDArray[np.float64], n_layers: int) -> NDArray[np.float64]:
    """(b, H) of the blocks that stand before a reader -> (L, H), NaN for the others."""
    whole = np.full((n_layers, effects.shape[1]), np.nan)
    whole[: len(effects)] = effects
    return whole
