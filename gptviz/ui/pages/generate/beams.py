"""Beam search beside greedy and sampling: the tree, and what each comes to."""

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from gptviz import Run
from gptviz.both import Both
from gptviz.digits import fixed, significant
from gptviz.engine.sampling import Sampling
from gptviz.figures.beams import beam_tree
from gptviz.figures.ghosts import UNCHANGED
from gptviz.ui import sheet
from gptviz.ui.pages.generate.written import (
    Written,
    beam_rounds,
    beams_unchanged,
    log_probability,
    perplexity,
    steps_of,
    text_of,
)
from gptviz.ui.shell.panels import sideways
from gptviz.ui.shell.params import Param, between
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Scene
from gptviz.ui.tables import STYLE, Row, number, table
from gptviz.ui.words import show_id

BEAMS, TOKENS = Param("beams", int, 3, between), Param("beam_tokens", int, 8, between)
PARAMS = (BEAMS, TOKENS)
MOST_BEAMS, MOST_TOKENS = 6, 16
COLUMN = 72  # pixels of a token's column, so that its word stands clear of the next
FIT_A_PHONE = 3  # columns

Way = tuple[str, tuple[int, ...], float]  # how it was found, its ids, ln of its probability


def draw(scene: Scene, written: Written) -> None:
    """The search, after the prompt."""
    lm, base = scene.lm, Run(written.model, written.prompt, written.edits)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        BEAMS.within((1, MOST_BEAMS))
        beams = int(BEAMS.widget(st.number_input, "Beams", min_value=1, max_value=MOST_BEAMS, width=130))
        TOKENS.within((1, MOST_TOKENS))
        tokens = int(TOKENS.widget(st.number_input, "Tokens", min_value=1, max_value=MOST_TOKENS, width=130))
    with st.spinner("Searching …"):
        rounds, old = beam_rounds(base, beams, tokens), None
        own, plain = ways(base, beams, tokens, written.sampling), []
        if base.edits:  # each by its own model
            old, plain = (
                beams_unchanged(base, beams, tokens),
                ways(base.plain, beams, tokens, written.sampling),
            )
    prose(sentence(beams, own), "vocabulary", "perplexity")
    if tokens > FIT_A_PHONE:
        sideways("generate_beam_tree", COLUMN * (tokens + 1))
    tree, alt = (
        beam_tree(rounds, lambda i: show_id(lm, i), scene.mode, old),
        f"Beam search with {beams} beams over {tokens} tokens",
    )
    scene.chart(tree, key="generate_beam_tree", alt=alt, which=(f"beams{beams}",))
    if old is not None:
        st.caption(
            "At the ends: ln p of the whole text, unchanged → changed. Elsewhere both are in the hover."
        )
    rows: list[Row] = []
    for how, ids, ln in [*own, *((f"{UNCHANGED}: {how}", ids, ln) for how, ids, ln in plain)]:
        numbers = str(len(ids)), fixed(ln, 2), significant(perplexity(ln, len(ids)) or 1.0)
        rows.append(Row([how, text_of(lm, ids), *map(number, numbers)], "line" if rows else "chosen"))
    st.html(STYLE + table("beams", ["", "text", "#tokens", "#ln p", "#perplexity"], rows))

    def every() -> Both[pd.DataFrame]:
        found = [
            (
                n,
                kept,
                text_of(lm, beam.ids),
                beam.parent + 1 if n > 1 else None,
                beam.log_probability,
                beam.ids,
            )
            for n, one in enumerate(rounds, 1)
            for kept, some in (("kept", one.kept), ("dropped", one.dropped))
            for beam in some
        ]
        frame = pd.DataFrame(found, columns=["tokens", "kept", "text", "from beam", "ln p", "ids"])
        now = frame.drop(columns="ids").astype({"from beam": "Int64"})
        return Both(now, None if old is None else now.assign(**{"ln p": [old[ids] for ids in frame["ids"]]}))

    told = "Every beam that was kept after each token, and the next ones, which were dropped."
    sheet.numbers_of("generate_beams", every, told, what="every beam, kept and dropped")


def ways(base: Run, beams: int, tokens: int, sampling: Sampling) -> list[Way]:
    """Return what beams, greedy search and, where something is drawn, sampling come to after this text."""
    best = beam_rounds(base, beams, tokens)[-1].kept[0]
    found = [(f"{beams} beam{'s' * (beams > 1)}", best.ids, best.log_probability)]
    drawn = [] if sampling.greedy else [(f"sampling, seed {sampling.seed}", sampling)]
    for name, how in (("greedy", Sampling(0.0)), *drawn):
        steps = steps_of(base, how, (), tokens, "").steps
        found.append((name, tuple(step.id for step in steps), log_probability(steps)))
    return found


def sentence(beams: int, found: Sequence[Way]) -> str:
    """Return what each way comes to: ln p, and the number of tokens where they are not alike."""
    even = len({len(ids) for _, ids, _ in found}) == 1
    said = [fixed(ln, 2) + f" ({len(ids)} token{'s' * (len(ids) != 1)})" * (not even) for _, ids, ln in found]
    start = "A single beam is greedy: the best token each time, which may miss the best text."
    if beams > 1:
        start = (
            "Greedy takes the best token each time, and may miss the best text. Beam search keeps the "
            f"{beams} most probable texts after each token and drops the others."
        )
    drawn = "" if len(said) < 3 else f", the one that the seed draws {said[2]}"
    last = "The more probable text is not always the better one."
    if not even:
        last = "Texts of different lengths are compared by perplexity: it is per token."
    return f"{start} Its best text has ln p {said[0]}, the greedy one {said[1]}{drawn}. {last}"
