"""The panel "Do they agree?": five ways to say which earlier token counts, side by side."""

import itertools

import pandas as pd
import streamlit as st

from gptviz.analysis import agreement
from gptviz.analysis.shapes import run_first_block
from gptviz.figures.agreement import correlation_matrix, rank_map
from gptviz.model import MultiHeadAttention
from gptviz.ui.shell.details import in_code, in_numbers, program
from gptviz.ui.shell.panels import panel, sideways
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Scene
from gptviz.ui.shell.slow import is_asked_for
from gptviz.ui.shell.target import Target
from gptviz.ui.views.why.chosen import Chosen
from gptviz.ui.views.why.ways import derived, words
from gptviz.ui.views.why.ways.agreement_snippet import side_by_side
from gptviz.ui.words import Place


def draw(scene: Scene, chosen: Chosen) -> None:
    """The panel, for the page's word; closed it costs nothing."""
    with panel(
        "Do they agree? Five ways to rank the earlier tokens", ":material/balance:", "why_agreement_box"
    ) as opened:
        if opened:
            _draw(scene, chosen.target)


def _draw(scene: Scene, target: Target) -> None:
    if scene.position == 0:
        st.info(words.NOTHING_BEFORE)
        return
    labels = scene.labels
    word = (scene.position, target.token, target.against)
    everything = derived.measures(scene.run, *word)
    places = agreement.to_mute(everything)
    sentence = st.container()
    table = everything[everything["position"].isin(places)].reset_index(drop=True)
    losses = _losses(scene, target, places)
    if losses is not None:
        table = agreement.with_muting(table, losses)
        everything = agreement.with_muting(everything, losses)
    ranks, alike = agreement.ranks(table), agreement.rank_correlations(table)
    with sentence:
        prose(_sentence(ranks, alike, labels), "token")
    left, right = st.columns([3, 2], gap="medium")
    with left:
        sideways("why_ranks")
        scene.chart(
            rank_map(table, ranks, labels, scene.mode),
            key="why_ranks",
            alt=f"The ranks of the tokens before {labels[scene.position]} by {len(alike)} ways",
        )
        st.caption(words.compared(len(places), scene.position))
    with right:
        scene.chart(
            correlation_matrix(alike, scene.mode),
            key="why_alike",
            alt=f"How alike {len(alike)} ways rank the tokens before {labels[scene.position]}",
        )
        st.caption(words.CORRELATIONS)
    prose(words.WHAT_THEY_ARE, "head", "block", "attention")
    in_numbers(
        lambda: _table(everything, ranks, labels),
        "why-agreement.csv",
        words.AGREEMENT_TABLE,
        "each way's number and rank",
        missing="–",
    )
    in_code(
        [MultiHeadAttention.forward],
        program(
            side_by_side,
            scene.load,
            text=scene.text,
            token=target.token,
            against=target.against,
            position=scene.position,
            special_tokens=scene.special,
        ),
        key="in_code_agreement",
        run=lambda: run_first_block(scene.lm, scene.run.ids),
    )


def _losses(scene: Scene, target: Target, places: list[int]) -> list[tuple[int, float]] | None:
    """What muting each token takes; None where that takes long and nobody has asked for it yet."""
    n_tokens = scene.position + 1
    slow = is_asked_for(scene.lm, n_tokens, len(places))
    if slow and not st.toggle(words.ask(len(places), n_tokens), key="why_mute_tokens", help=words.ASK_HELP):
        return None
    progress = st.progress(0.0) if slow else None
    found: list[tuple[int, float]] = []
    for some in derived.muting(scene.run, scene.position, target.token, target.against, places):
        found += some
        if progress is not None:
            progress.progress(len(found) / len(places))
    if progress is not None:
        progress.empty()
    return found


def _sentence(ranks: pd.DataFrame, alike: pd.DataFrame, labels: list[str]) -> str:
    firsts = []
    for way in alike:
        if ranks[way].isna().all():  # an edit put in what comes from no token: see `source_tokens`
            continue
        first = int(ranks.loc[ranks[way].idxmin(), "position"])
        firsts.append((way, Place(labels[first], first)))
    pairs = [
        (one, two, float(alike.loc[one, two]))
        for one, two in itertools.combinations(alike, 2)
        if not pd.isna(alike.loc[one, two])
    ]
    best = max(pairs, key=lambda pair: pair[2], default=None)
    worst = min(pairs, key=lambda pair: pair[2], default=None)
    return words.agreement(firsts, best, worst)


def _table(everything: pd.DataFrame, ranks: pd.DataFrame, labels: list[str]) -> pd.DataFrame:
    """Every earlier token: each way's number, then its rank among those that are compared."""
    table = everything.copy()
    table.insert(1, "token", [labels[p] for p in table["position"]])
    ranked = ranks.rename(columns={way: f"{way} rank" for way in ranks if way != "position"})
    return table.merge(ranked, on="position", how="left")
