"""Beam search beside greedy and sampling: the tree, and what each comes to."""

import pandas as pd
import streamlit as st

from gptviz import LanguageModel
from gptviz.both import Both
from gptviz.digits import fixed
from gptviz.engine.beams import beside, given
from gptviz.figures.beams import beam_tree
from gptviz.ui import sheet
from gptviz.ui.parts.generate.written import Written, perplexity, text_of
from gptviz.ui.sheet import Param, Scene, between, sideways, worked
from gptviz.ui.words import prose, show_id

BEAMS = Param("beams", int, 3, between)
TOKENS = Param("beam_tokens", int, 8, between)
PARAMS = (BEAMS, TOKENS)
MOST_BEAMS = 6
MOST_TOKENS = 16
COLUMN = 72  # pixels of a token's column, so that its word stands clear of the next
FIT_A_PHONE = 3  # columns


def ways(lm: LanguageModel, found: dict[str, tuple[tuple[int, ...], float]]) -> pd.DataFrame:
    """A table of the texts that the ways of writing came to (their ids and ln p): a row a way."""
    rows = [
        (name, text_of(lm, ids), len(ids), ln, perplexity(ln, len(ids)))
        for name, (ids, ln) in found.items()
    ]
    return pd.DataFrame(rows, columns=["", "text", "tokens", "ln p", "perplexity"])


def draw(scene: Scene, written: Written) -> None:
    """Draw the search, after the prompt."""
    lm = scene.lm
    base = written.base
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        beams = int(BEAMS.number(st.number_input, "Beams", 1, MOST_BEAMS, width=130))
        tokens = int(TOKENS.number(st.number_input, "Tokens", 1, MOST_TOKENS, width=130))
    arguments = (base.ids, beams, tokens, written.sampling)
    says = "{} of {} tokens searched".format
    searched = Both(base, base.plain if base.edits else None).map(
        lambda run: worked(run, beside, *arguments, says=says)
    )
    rounds = searched.now[0]
    unchanged = None
    if base.edits:
        unchanged = worked(
            base.plain, given, base.ids, tuple(rounds), says="{} of {} tokens read".format
        )
    tables = searched.map(lambda result: ways(lm, result[1]))
    same_length = tables.now["tokens"].nunique() == 1
    scores = []
    for _, way in tables.now.iterrows():
        score = fixed(way["ln p"], 2)
        if not same_length:
            if way["tokens"] == 1:
                length = "1 token"
            else:
                length = f"{way['tokens']} tokens"
            score += f" ({length})"
        scores.append(score)
    sentences = ["With one beam, the search is greedy: it may miss the most probable text."]
    if beams > 1:
        sentences = [
            f"Beam search keeps the {beams} most probable texts after each token, greedy search only one. "
            "Both may miss the most probable text."
        ]
    compared = f"Its best text has ln p {scores[0]}, the greedy one {scores[1]}"
    if len(scores) >= 3:
        compared += f", the text drawn with the seed {scores[2]}"
    sentences.append(f"{compared}.")
    if not same_length:
        sentences.append(
            "ln p sums over tokens, which favours a short text; perplexity is per token."
        )
    prose(" ".join(sentences), "perplexity")
    if tokens > FIT_A_PHONE:
        sideways("generate_beam_tree", COLUMN * (tokens + 1))
    fig = beam_tree(rounds, lambda i: show_id(lm, i), scene.mode, unchanged)
    alt = f"Beam search with {beams} beams over {tokens} tokens"
    scene.chart(fig, key="generate_beam_tree", alt=alt, which=(f"beams{beams}",))
    if unchanged is not None:
        st.caption("At the ends: ln p of the whole text, before → after your change.")
    sheet.table("beams", tables, chosen=0)

    def all_beams() -> Both[pd.DataFrame]:
        pairs = [
            (n, beam)
            for n, beam_round in enumerate(rounds, 1)
            for beam in (*beam_round.kept, *beam_round.dropped)
        ]
        frame = pd.DataFrame({"tokens": [n for n, _ in pairs]})
        frame["kept"] = ["kept" if beam in rounds[n - 1].kept else "dropped" for n, beam in pairs]
        frame["text"] = [text_of(lm, beam.ids) for _, beam in pairs]
        frame["from beam"] = pd.array(
            [beam.parent + 1 if n > 1 else None for n, beam in pairs], dtype="Int64"
        )
        frame["ln p"] = [beam.log_probability for _, beam in pairs]
        return Both(
            frame,
            None
            if unchanged is None
            else frame.assign(**{"ln p": [unchanged[beam.ids] for _, beam in pairs]}),
        )

    with sheet.details("the beams"):
        sheet.numbers_of("generate_beams", all_beams, what="every beam, kept and dropped")
