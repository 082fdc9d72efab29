"""Beam search beside greedy and sampling: the tree, and what each comes to."""

from collections.abc import Mapping, Sequence

import pandas as pd
import streamlit as st

from gptviz import Run
from gptviz.digits import fixed, significant
from gptviz.engine.sampling import Sampling
from gptviz.figures.beams import beam_tree
from gptviz.figures.ghosts import UNCHANGED
from gptviz.ui.shell.details import in_numbers
from gptviz.ui.shell.params import Param, between
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Scene
from gptviz.ui.tables import STYLE, Row, number, table
from gptviz.ui.views.both import both, caption
from gptviz.ui.views.generate import derived, play, words
from gptviz.ui.views.generate.keeping import text_of
from gptviz.ui.views.generate.written import WrittenStep, log_probability, perplexity
from gptviz.ui.views.sideways import sideways
from gptviz.ui.words import show_id

BEAMS = Param("beams", int, 3, between)
TOKENS = Param("beam_tokens", int, 8, between)
COLUMN = 72  # pixels of a token's column, so that its word stands clear of the next
FIT_A_PHONE = 3  # columns
PARAMS = (BEAMS, TOKENS)
MOST_BEAMS, MOST_TOKENS = 6, 16

Way = tuple[str, tuple[int, ...], float]  # how it was found, its ids, ln of its probability


def panel(scene: Scene, sampling: Sampling) -> None:
    """Opens on demand: nothing is searched before."""
    box = st.expander("Beam search", icon=":material/account_tree:", on_change="rerun", key="generate_beams")
    if box.open:
        with box:
            _draw(scene, sampling)


def _draw(scene: Scene, sampling: Sampling) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        BEAMS.within((1, MOST_BEAMS))
        beams = BEAMS.widget(st.number_input, "Beams", min_value=1, max_value=MOST_BEAMS, step=1, width=130)
        TOKENS.within((1, MOST_TOKENS))
        tokens = TOKENS.widget(
            st.number_input, "Tokens", min_value=1, max_value=MOST_TOKENS, step=1, width=130
        )
    base = play.base(scene)
    with st.spinner("Searching …"):
        rounds = derived.beam_rounds(base, int(beams), int(tokens))
        own = found = _ways(base, int(beams), int(tokens), sampling)
        if base.edits:  # each by its own model
            plain = _ways(base.plain, int(beams), int(tokens), sampling)
            found = [*own, *((f"{UNCHANGED}: {how}", ids, ln) for how, ids, ln in plain)]
        old = derived.beams_unchanged(base, int(beams), int(tokens)) if base.edits else None
    best, greedy, *sampled = [(len(ids), ln) for _, ids, ln in own]
    prose(words.beams(int(beams), best, greedy, sampled[0] if sampled else None), "vocabulary", "perplexity")
    if tokens > FIT_A_PHONE:
        sideways("generate_beam_tree", COLUMN * (int(tokens) + 1))
    scene.chart(
        beam_tree(rounds, lambda i: show_id(scene.lm, i), scene.mode, old),
        key="generate_beam_tree",
        alt=f"Beam search with {beams} beams over {tokens} tokens",
        which=(f"beams{beams}",),
    )
    if old is not None:
        st.caption(words.BEAM_ENDS)
    st.html(STYLE)
    rows = [
        Row(
            [how, text_of(scene.lm, ids), *(number(x) for x in _numbers(ids, ln))],
            "chosen" if how == found[0][0] else "line",
        )
        for how, ids, ln in found
    ]
    st.html(table("beams", ["", "text", "#tokens", "#ln p", "#perplexity"], rows))
    in_numbers(
        lambda: _table(scene, rounds, old),
        "generate_beams",
        caption(words.BEAMS, old),
        "every beam, kept and dropped",
    )


def _ways(base: Run, beams: int, tokens: int, sampling: Sampling) -> list[Way]:
    """What beams, greedy search and, where something is drawn, sampling come to after this text."""
    best = derived.beam_rounds(base, beams, tokens)[-1].kept[0]
    greedy = derived.steps_of(base, Sampling(0.0), (), tokens, "").steps
    found: list[Way] = [
        (f"{beams} beam{'s' * (beams > 1)}", best.ids, best.log_probability),
        ("greedy", *_of(greedy)),
    ]
    if not sampling.greedy:
        sampled = derived.steps_of(base, sampling, (), tokens, "").steps
        found.append((f"sampling, seed {sampling.seed}", *_of(sampled)))
    return found


def _of(steps: Sequence[WrittenStep]) -> tuple[tuple[int, ...], float]:
    return tuple(step.id for step in steps), log_probability(steps)


def _numbers(ids: Sequence[int], ln: float) -> tuple[str, str, str]:
    return str(len(ids)), fixed(ln, 2), significant(perplexity(ln, len(ids)) or 1.0)


def _table(
    scene: Scene, rounds: Sequence[derived.Round], old: Mapping[tuple[int, ...], float] | None
) -> pd.DataFrame:
    every = [beam for found in rounds for beam in (*found.kept, *found.dropped)]
    unchanged = None if old is None else pd.DataFrame({"ln p": [old[beam.ids] for beam in every]})
    table = pd.DataFrame(
        [
            {
                "tokens": number,
                "kept": kept,
                "text": text_of(scene.lm, beam.ids),
                "from beam": beam.parent + 1 if number > 1 else None,
                "ln p": beam.log_probability,
            }
            for number, found in enumerate(rounds, 1)
            for kept, beams in (("kept", found.kept), ("dropped", found.dropped))
            for beam in beams
        ]
    ).astype({"from beam": "Int64"})
    return both(table, unchanged, ["ln p"])
