"""Loops and dull text: greedy against temperature, the share that repeats, and the heads that look at it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from itertools import zip_longest

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from gptviz import Edit, Run
from gptviz.analysis import repetition as numbers
from gptviz.analysis.head_roles import HeadRole
from gptviz.analysis.next_token import losses
from gptviz.analysis.repetition import Head, given_to_followed, greedy_repeats, induction
from gptviz.both import Both
from gptviz.digits import fixed, percent, weight
from gptviz.engine.sampling import Sampling
from gptviz.figures.marks import UNCHANGED, token_ticks
from gptviz.figures.theme import mixed, palette
from gptviz.tokenizer import named_bytes, show_token, token_text
from gptviz.ui import heads, sheet
from gptviz.ui.parts.generate.looked import attention_link
from gptviz.ui.parts.generate.written import Written, as_text, growing
from gptviz.ui.sheet import Param, Scene, if_there, is_asked_for
from gptviz.ui.words import as_code, prose

COUNTS = (30, 60, 120)
PIECES = (2, 3, 4, 6)
COUNT = Param("loop_tokens", int, 60, if_there)
PIECE = Param("loop_piece", int, 3, if_there)
PARAMS = (COUNT, PIECE)

GREEDY = Sampling(temperature=0)
WEIGHT_BYTES = 2**29  # to read so many of a model's weights for 120 tokens takes some seconds
TRIED = 5  # heads that are muted at most

Floats = NDArray[np.floating]


def named(how: Sampling) -> str:
    """Return "temperature 0.8, top-k 5": the settings that make a text what it is, but for the seed."""
    filters = {"top-k": how.top_k, "top-p": how.top_p}
    set_filters = [f"{name} {value:g}" for name, value in filters.items() if value is not None]
    return ", ".join([f"temperature {how.temperature:g}", *set_filters])


def draw(scene: Scene, written: Written) -> None:
    """Draw two texts after the same prompt, and why one of them repeats itself."""
    lm = scene.lm
    base = written.base
    start = len(written.base)
    sentence = st.container()
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        count = COUNT.choose("Tokens", COUNTS, st.selectbox, width=110)
        hint = "The length of a piece, in tokens, that must have been in the text before."
        n = PIECE.choose("Pieces of", PIECES, st.selectbox, width=110, help=hint)
    if not written.sampling.greedy:
        warm = written.sampling
    else:
        warm = replace(written.sampling, temperature=1.0)
    text_count = 4 if base.edits else 2
    full = max(0, start + count - written.context)
    slow = lm.nbytes > WEIGHT_BYTES or is_asked_for(lm, written.context, text_count * full)
    ask = f"Write them: {text_count} texts of {count} tokens, which takes a while"
    if slow and not st.toggle(ask, key="generate_loops_ask"):
        return

    def write(sampling: Sampling, base: Run) -> pd.DataFrame:
        bar = st.empty()
        ids = base.ids
        for so_far in growing(base, sampling, (), count, ""):
            ids = base.ids + tuple(step.id for step in so_far.steps)
            if slow:
                bar.progress((len(ids) - start) / count, named(sampling))
        bar.empty()
        return numbers.repeats(lm, ids, start, n)

    runs = Both(base, base.plain if base.edits else None)
    texts = {
        named(settings): runs.map(lambda run, settings=settings: write(settings, run))  # type: ignore[misc]
        for settings in (GREEDY, warm)
    }
    greedy, drawn = texts.values()
    ids = base.ids + tuple(greedy.now["id"])
    loop = numbers.loop(ids)
    with sentence:
        shares = [
            text.map(lambda table: percent(table["share"].iloc[-1])) for text in (greedy, drawn)
        ]
        lengths = [len(text.now) for text in (greedy, drawn)]
        if lengths[1] == lengths[0]:
            of_length = ""
        else:
            of_length = f" of {lengths[1]}"
        ending = "it does not end in a loop, as far as it was written."
        if loop is not None:
            loop_start = max(loop.start, start)  # a prompt may go round already
            piece = b"".join(
                named_bytes(lm.tokenizer, i) for i in ids[loop_start : loop_start + loop.period]
            )
            if loop.period == 1:
                unit_words = "token"
            else:
                unit_words = f"{loop.period} tokens"
            ending = (
                f"from token {loop_start - start + 1} on it repeats itself, "
                f"always the same {unit_words}: "
            )
            ending += f"{as_code(show_token(piece))}."
        summary = f"At temperature 0, {shares[0]} of {lengths[0]} tokens complete a piece of {n} that was in the "
        summary += f"text before; at {named(warm)} (seed {warm.seed}), {shares[1]}{of_length}. "
        summary += f"The greedy text: {ending}"
        prose(summary, "temperature", "token")
    for place, (name, text) in zip(st.columns(2, gap="medium"), texts.items(), strict=True):
        place.html(as_html(scene, name, text.now))
    st.caption(
        "Marked: tokens that complete a piece that was in the text, or in the prompt, before."
    )
    text_names = [
        f"{prefix}{name}"
        for name, text in texts.items()
        for prefix in ("", f"{UNCHANGED}, ")[: len(text.all)]
    ]
    tables = [table for text in texts.values() for table in text.all[::-1]]
    names = [
        f"token {number}, {' or '.join(dict.fromkeys(filter(None, alternatives)))}"
        for number, alternatives in enumerate(zip_longest(*(table["token"] for table in tables)), 1)
    ]

    def lines(
        key: str, values: Mapping[str, Both[Floats]], unit: str, alt: str, dots: bool = False
    ) -> None:
        """Draw a line for each text, over the tokens of the longest."""
        padded = {
            name: pair.map(lambda v: np.append(v, gap)[: len(names)])
            for name, pair in values.items()
        }
        axis = token_ticks(names, 0, range(1, len(names) + 1), "token written")
        sheet.curves(
            scene, key, padded, names, unit, alt, many=True, axis=axis, height=240, dots=dots
        )

    gap = np.full(count, np.nan)
    repeated = {
        name: text.map(lambda table: table["share"].to_numpy()) for name, text in texts.items()
    }
    lines("generate_loops", repeated, "share that repeats", "The share of each text that repeats")
    run = replace(base, ids=ids[-written.context :])
    roles = induction(lm, heads.measured(run).roles)
    if not roles:
        st.info("No token was in the text before, so nothing followed it there.")
    else:
        block = roles[0].block
        head = roles[0].head
        say_heads(scene, run, roles)

        def followed(table: pd.DataFrame) -> Floats:
            """The head's weight on the tokens that followed before, seen from each written token.

            NaN for the tokens whose place is no longer in the context.
            """
            text = replace(base, ids=(base.ids + tuple(table["id"]))[-written.context :])
            weights = sheet.once(text, given_to_followed, block, head)[:-1][-len(table) :]
            return np.append(gap[: len(table) - len(weights)], weights)

        to_followed = {name: Both(followed(text.now)) for name, text in texts.items()}
        alt = "A head's attention to what followed before"
        lines("generate_loops_head", to_followed, f"block {block}, head {head}", alt, dots=True)
        if len(ids) > written.context:
            st.caption(
                f"The heads were asked about the last {written.context:,} tokens, in one pass."
            )
        elif not lm.is_causal:
            st.caption("A change here depends on the whole text: the heads were asked in one pass.")
        try_without(scene, run, roles, min(len(greedy.now), len(run) - 1))
        attention_link(scene, run.ids, len(run) - 1, block, head, "generate_loops_link")
    table = pd.concat(
        [frame.assign(text=name) for name, frame in zip(text_names, tables, strict=True)]
    )
    note = "A row per written token: whether it completes a piece that was there before, and the share so far."
    with sheet.details("what repeats"):
        sheet.numbers_of("generate-loops", table[["text", *greedy.now]], note, "what repeats")
        used = (numbers.repeated, numbers.loop, numbers.repeats)
        sheet.code_of(
            scene, used, greedy_repeats, as_text(lm, base.ids), count, n, key="in_code_loops"
        )


def say_heads(scene: Scene, run: Run, found: Sequence[HeadRole]) -> None:
    """Say which head looks most at what followed before, in the greedy text as the model reads its end."""
    best = found[0]
    clear_count = sum(role.kind == "induction" for role in found)
    head_name = f"block {best.block}, head {best.head}"
    share = weight(best.shares["induction"] or 0.0)
    clause = f"it gives {share} of its attention, on average, to what followed then"
    sentence = (
        f"No head clearly looks at what followed last time. The closest is {head_name}: {clause}."
    )
    if clear_count:
        count_note = ""
        if clear_count > 1:
            count_note = f" ({clear_count} heads do so clearly)"
        sentence = "**Who looks at what was said?** An induction head, "
        sentence += f"{head_name}: at a token that was there before, {clause}{count_note}."
    if run.edits and (plain := induction(scene.lm.plain, heads.measured(run.plain).roles)):
        share = weight(plain[0].shares["induction"] or 0.0)
        sentence += f" Before your change, block {plain[0].block}, head {plain[0].head} looked there most: {share}."
    prose(sentence, "induction head", "block", "head")


def try_without(scene: Scene, run: Run, found: Sequence[HeadRole], some: int) -> None:
    """Say the mean probability of the last `some` tokens without these heads, and without random others."""

    def mean(run: Run, muted: Sequence[Head] = ()) -> float:
        edits = (Edit("z", block, "zero", (head,)) for block, head in muted)
        rows = sheet.once(run.edited(*edits), losses)
        return float(rows["probability"].iloc[-some:].mean())

    clear = [(role.block, role.head) for role in found if role.kind == "induction"]
    muted = clear[:TRIED] or [(found[0].block, found[0].head)]
    before = Both(mean(run), mean(run.plain) if run.edits else None)
    names = ", ".join(f"{b}.{h}" for b, h in muted)
    muted_heads = "the heads"
    control_words = f"{len(muted)} other heads"
    if len(muted) == 1:
        muted_heads = "head"
        control_words = "another head"
    text = f"**The test:** with {muted_heads} {names} (block.head) off, "
    text += f"the greedy text's {some} tokens have a mean probability of "
    text += f"{fixed(mean(run, muted), 2)} instead of {before.arrow('.2')}."
    sets = numbers.other_heads(scene.lm, muted, clear)
    if sets:
        random = fixed(float(np.mean([mean(run, head_set) for head_set in sets])), 2)
        text += (
            f" Without {control_words} at random it is {random} (the mean of {len(sets)} tries)."
        )
    st.markdown(text)


def as_html(scene: Scene, name: str, text: pd.DataFrame) -> str:
    """HTML of the text with what repeats marked; a piece of a character is named by its bytes."""
    colors = palette(scene.mode)
    mark = f'<span style="background: {mixed(colors.paper, colors.positive, 0.35)}">'
    body = ""
    for row in text.itertuples():
        token = escape(token_text(named_bytes(scene.lm.tokenizer, row.id))).replace("\n", "⏎\n")
        if row.repeats:
            body += f"{mark}{token}</span>"
        else:
            body += token
    return (
        f'<div data-testid="loop_text" data-repeats="{text["repeats"].sum()}"><b>{name}</b>'
        f'<p style="white-space: pre-wrap; margin: 0.2rem 0">{body}</p></div>'
    )
