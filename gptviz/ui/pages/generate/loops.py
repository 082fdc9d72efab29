"""Loops and dull text: greedy against temperature, the share that repeats, and the heads that look at it."""

from dataclasses import replace
from html import escape
from typing import NamedTuple

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from gptviz import Run
from gptviz.analysis import repetition as numbers
from gptviz.analysis.repetition import Induction, followed, greedy_shares, other_heads
from gptviz.both import Both
from gptviz.digits import fixed, percent, weight
from gptviz.engine.sampling import Sampling
from gptviz.figures.ghosts import UNCHANGED
from gptviz.figures.next_token import mixed
from gptviz.figures.repetition import repetition
from gptviz.figures.theme import palette
from gptviz.tokenizer import named_bytes, show_token
from gptviz.ui import heads, runs, sheet
from gptviz.ui.pages.generate.looked import attention_link
from gptviz.ui.pages.generate.written import Written, as_text, growing
from gptviz.ui.runs import per_run
from gptviz.ui.shell.details import in_numbers
from gptviz.ui.shell.params import Param, if_there
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Scene
from gptviz.ui.shell.slow import is_asked_for
from gptviz.ui.words import as_code

COUNTS, PIECES = (30, 60, 120), (2, 3, 4, 6)
COUNT, PIECE = Param("loop_tokens", int, 60, if_there), Param("loop_piece", int, 3, if_there)
PARAMS = (COUNT, PIECE)

GREEDY = Sampling(temperature=0)
WEIGHT_BYTES = 2**29  # to read so many of a model's weights for 120 tokens takes some seconds

Heads = tuple[tuple[int, int], ...]


class Text(NamedTuple):
    """What was written with some settings: all ids, and `repeats` of those that are new."""

    name: str
    ids: tuple[int, ...]
    table: pd.DataFrame


@per_run
def induction(run: Run) -> Induction | None:
    return numbers.induction(runs.model(run), heads.measured(run).roles)


@per_run
def followed_by(run: Run, block: int, head: int) -> NDArray[np.float32]:
    """Return what a head gave to the tokens that followed earlier copies: (T,), NaN where there are none."""
    reduction = followed(runs.model(run).tokens(run.ids))
    return np.asarray(runs.get(run, (), (reduction,)).reduced(reduction.name)[block][head])


@per_run
def without_heads(run: Run, muted: Heads) -> NDArray[np.float64]:
    return numbers.without_heads(runs.model(run), run.ids, muted)


def draw(scene: Scene, written: Written) -> None:
    """Two texts after the same prompt, and why one of them goes round."""
    lm, start = scene.lm, len(written.prompt)
    sentence = st.container()
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        COUNT.within(COUNTS)
        PIECE.within(PIECES)
        count = COUNT.widget(st.selectbox, "Tokens", options=COUNTS, width=110)
        told = "So many tokens that stood together before."
        n = PIECE.widget(st.selectbox, "Pieces of", options=PIECES, width=110, help=told)
    warm = written.sampling if not written.sampling.greedy else replace(written.sampling, temperature=1.0)
    texts, full = (4 if written.edits else 2), max(0, start + count - written.context)
    slow = lm.nbytes > WEIGHT_BYTES or is_asked_for(lm, written.context, texts * full)
    ask = f"Write them: {texts} texts of {count} tokens, which takes a while"
    if slow and not st.toggle(ask, key="generate_loops_ask"):
        return

    def write(sampling: Sampling, base: Run, who: str = "") -> Text:
        name, bar, ids = f"{who}temperature {sampling.temperature:g}", st.empty(), base.ids
        for found in growing(base, sampling, (), count, ""):
            ids = base.ids + tuple(step.id for step in found.steps)
            if slow:
                bar.progress((len(ids) - start) / count, name)
        bar.empty()
        return Text(name, ids, numbers.repeats(lm, ids, start, n))

    base = Run(written.model, written.prompt, written.edits)
    greedy, drawn = (
        Both(write(how, base), write(how, base.plain, f"{UNCHANGED}, ") if base.edits else None)
        for how in (GREEDY, warm)
    )
    now, loop = greedy.now, numbers.loop(greedy.now.ids)
    with sentence:
        shares = [
            text.map(lambda one: percent(float(one.table["share"].iloc[-1]))) for text in (greedy, drawn)
        ]
        lengths = [len(text.now.table) for text in (greedy, drawn)]
        other = "" if lengths[1] == lengths[0] else f" of {lengths[1]}"
        prose(
            f"Of {lengths[0]} tokens written at temperature 0, {shares[0]} end a piece of {n} that stood in "
            f"the text before;{other} at temperature {warm.temperature:g} (seed {warm.seed}) {shares[1]} do.",
            "temperature",
            "token",
        )
        said = "The greedy text does not end in a loop, as far as it was written."
        if loop is not None:
            first = max(loop.start, start)  # a prompt may go round already
            piece = b"".join(named_bytes(lm.tokenizer, i) for i in now.ids[first : first + loop.period])
            same = "token" if loop.period == 1 else f"{loop.period} tokens"
            said = (
                f"From token {first - start + 1} on the greedy text goes round and round, the same {same} "
                f"again: {as_code(show_token(piece))}."
            )
        st.markdown(said)
    for place, text in zip(st.columns(2, gap="medium"), (greedy.now, drawn.now), strict=True):
        place.html(as_html(scene, text, start))
    st.caption("Marked: tokens that end a piece that stood in the text, or in the prompt, before.")
    run = Run(written.model, now.ids[-written.context :], written.edits)
    if induction(run) is None:
        st.info("No token stood in the text before: there is nothing that followed it.")
    else:
        draw_heads(scene, written, greedy, drawn.now, run, goes_round=loop is not None)
    every = [text for both in zip(greedy.all[::-1], drawn.all[::-1], strict=True) for text in both]
    table = pd.concat([text.table.assign(text=text.name) for text in every], ignore_index=True)
    told = "A row per written token: whether it ends a piece that stood there before, and the share so far."
    in_numbers(table[["text", *now.table]], "generate-loops", told, "what repeats")
    lines = (numbers.repeated, numbers.loop, numbers.without_heads)
    sheet.code_of(scene, lines, greedy_shares, as_text(lm, written.prompt), count, n, key="in_code_loops")


def draw_heads(
    scene: Scene, written: Written, greedy: Both[Text], drawn: Text, run: Run, goes_round: bool
) -> None:
    """The head that looks most at what followed before, along both texts, and what is lost without it."""
    found = induction(run)
    assert found is not None
    block, head, share = found.block, found.head, weight(found.share)
    does = f"it gives {share} of its attention, on average, to what followed then"
    if found.clear:
        others = f" ({len(found.clear)} heads do so clearly)" if len(found.clear) > 1 else ""
        who, last = (
            "looks at what was said",
            "Where a text goes round, such heads do it; this one does not, or not yet.",
        )
        if goes_round:
            who, last = "makes it go round", "That is how what was said once comes to be said again."
        prose(
            f"**Who {who}?** Block {block}, head {head} is an induction head: at a token that stood there "
            f"before, {does}{others}. {last}",
            *("induction head", "block", "head"),
        )
    else:
        st.markdown(
            f"No head looks clearly at what followed last time. Most does block {block}, head {head}: {does}."
        )
    plain = induction(run.plain) if run.edits else None
    if plain is not None:
        where = f"block {plain.block}, head {plain.head}"
        st.markdown(f"**Unchanged**, {where} looks there most on the same text: {weight(plain.share)}.")
    start, texts = len(written.prompt), (greedy.now, drawn)

    def given(
        text: Text,
    ) -> NDArray[np.float32]:  # by the head, to what had followed before, for each new token
        window = Run(written.model, text.ids[-written.context :], written.edits)
        at = np.arange(start - 1, len(text.ids) - 1) - (
            len(text.ids) - len(window)
        )  # where it was written from
        return np.where(at >= 0, followed_by(window, block, head)[np.maximum(at, 0)], np.nan).astype(
            np.float32
        )

    scene.chart(
        repetition(
            {text.name: text.table["share"].to_numpy() for text in texts},
            {text.name: given(text) for text in texts},
            {text.name: text.table["token"].tolist() for text in texts},
            f"block {block}, head {head}",
            scene.mode,
            None if greedy.was is None else (greedy.was.name, greedy.was.table["share"].to_numpy()),
        ),
        key="generate_loops",
        alt="The share of each text that repeats, and a head's attention to what followed before",
    )
    if len(greedy.now.ids) > written.context:
        st.caption(
            f"The heads were asked about the last {written.context:,} tokens: more cannot be read at once."
        )
    if not scene.lm.is_causal:
        st.caption("A change here depends on the whole text: the heads were asked in one pass over its end.")
    some = min(len(greedy.now.table), len(run) - 1)

    def mean(run: Run, muted: Heads = ()) -> float:
        return float(without_heads(run, muted)[-some:].mean())

    muted, before = found.muted(), Both(mean(run), mean(run.plain) if run.edits else None)
    names, one = ", ".join(f"{b}.{h}" for b, h in muted), len(muted) == 1
    said = (
        f"**Tried out:** with {'head' if one else 'the heads'} {names} (block.head) giving nothing, the "
        f"greedy text's {some} tokens have a mean probability of {fixed(mean(run, muted), 2)} instead of "
        f"{before:.2}."
    )
    if sets := other_heads(scene.lm, muted, found.clear + found.silent):
        other = "another head" if one else f"{len(muted)} other heads"
        random = float(np.mean([mean(run, heads) for heads in sets]))
        said += (
            f" Without {other}, drawn at random, it is {fixed(random, 2)} (the mean of {len(sets)} tries)."
        )
    st.markdown(said)
    attention_link(scene, run.ids, len(run) - 1, block, head, "generate_loops_link")


def as_html(scene: Scene, text: Text, start: int) -> str:
    """Return the text with what repeats marked; a character that lacks bytes is the replacement sign."""
    colors, lm, again = palette(scene.mode), scene.lm, text.table["repeats"]
    shown = [escape(lm.decode([i])).replace("\n", "⏎\n") for i in text.ids[start:]]
    mark = f'<span style="background: {mixed(colors.paper, colors.positive, 0.35)}">'
    body = "".join(
        f"{mark}{token}</span>" if twice else token for token, twice in zip(shown, again, strict=True)
    )
    return (
        f'<div data-testid="loop_text" data-repeats="{int(again.sum())}"><b>{escape(text.name)}</b>'
        f'<p style="white-space: pre-wrap; margin: 0.2rem 0">{body}</p></div>'
    )
