"""Positions of a model that turns its queries and keys: one pair of numbers as hands, and the score by distance."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from gptviz.analysis import turning
from gptviz.both import Both
from gptviz.figures import positions as figures
from gptviz.figures.marks import Floats
from gptviz.llama import apply_rope, compute_rope_params
from gptviz.ui import heads, sheet, words
from gptviz.ui.shell.block import shared_by

KEY: sheet.Param[int | None] = sheet.Param("pos_key", int, None, sheet.if_there)
PAIR: sheet.Param[int | None] = sheet.Param("pos_pair", int, None, sheet.if_there)
PARAMS = (KEY, PAIR)
SUMS = ("unturned", "turned")
FARTHEST = 64  # tokens apart, if the text's own two are not farther


def page(prompt: sheet.Prompt) -> None:
    """Draw the page, from its first sentence to its details."""
    scene = sheet.trace(prompt, reduce=[heads.scores_of(prompt.tokens)])
    config = scene.lm.config
    query = scene.position
    shares = heads.previous_shares(scene.run)  # (L, H): what each head gives the token just before
    usual = divmod(int(shares.argmax()), config.n_heads)
    block, head = sheet.opened_head(config, lambda: usual)
    site = ("attn", block)
    weights = scene.get((site,))[site][head, query, : query + 1]  # (query + 1,)
    strongest = int(weights.argmax())
    key = KEY.within(query + 1)
    if key is None:
        key = strongest
    both = sheet.of(scene, turning.dials, block, head, query, key)
    dials = both.now
    largest = int(dials["turned"].abs().argmax())
    pair = PAIR.within(len(dials))
    if pair is None:
        pair = largest
    row = dials.iloc[pair]
    distance = query - key
    apart = f"{words.counted(distance, 'token')} apart"
    label = words.as_code(scene.label)
    other = words.as_code(scene.labels[key])
    root = config.head_dim**0.5
    most = min(config.context_length - 1, max(FARTHEST, distance))
    scores = sheet.of(scene, turning.by_distance, block, head, query, key, most)
    score = scores.map(lambda by: float(by[distance])).arrow("3")

    words.prose(
        "**Each position turns queries and keys a bit further: only the distance of two tokens counts.** "
        f"In block {block}, head {head} compares the query of {label} with the key of {other}, {apart}: the score "
        f"is **{score}**. Pair {pair} adds **{words.significant(row['turned'] / root, 3)}** to it, and would add "
        f"{words.significant(row['unturned'] / root, 3)} without turning.",
        "query",
        "key",
        "position",
        "head",
        "block",
    )
    place = st.container()
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        sheet.block_and_head_inputs(config, *usual)
        empty = f"{strongest}, the strongest"
        KEY.index("Key token", query + 1, strongest, empty, width=210)
        PAIR.index("Pair", len(dials), largest, f"{largest}, the largest part", width=210)
    # (query, key) of the chosen pair, as points in its plane
    before, after = _hands(row, query, key)
    turns = words.significant(row["turn"], 3)
    with place:
        scene.chart(
            figures.hands(before, after, scene.mode),
            key="position_hands",
            which=(f"block{block}", f"head{head}", f"pair{pair}"),
            alt=f"Pair {pair} of the query of {scene.label} and of the key of {scene.labels[key]}, before and "
            "after turning",
        )
    size = config.head_dim
    words.prose(
        f"Numbers {pair} and {pair + size // 2} of a head's {size} are a point in a plane, drawn as a hand. This "
        f"pair goes round once in **{turns} tokens**: the query, at position {query}, is turned by "
        f"{words.significant(query * row['frequency'], 3)} radians, the key, at position {key}, by "
        f"{words.significant(key * row['frequency'], 3)}. The pair's part of the score is the product of the "
        f"two lengths and the cosine of the angle between the hands, divided by √{size}. {_normalised(scene)}"
        f"{shared_by(config, head)}",
        "dot product",
    )
    _of_all_pairs(scene, both, pair, root, (block, head))
    _of_distances(scene, scores, distance, (block, head))
    with sheet.details():
        told = "One row per pair: how fast it turns, where both hands point, and its part of the dot product."
        sheet.numbers_of("position_dials", both, told, what="the pairs")
        sheet.numbers_of("position_distance", lambda: scores.map(_by_distance), what="by distance")
        lines: list[str | Callable[..., Any]] = ["attention", apply_rope, compute_rope_params]
        sheet.code_of(scene, lines, turning.by_distance, block, head, query, key, most)


def _normalised(scene: sheet.Scene) -> str:
    """What else is done to queries and keys before they are turned, as a sentence; "" for nothing."""
    if scene.lm.config.to_dict()["qk_norm"]:
        return "This model normalises queries and keys before it turns them. "
    return ""


def _by_distance(scores: Floats) -> pd.DataFrame:
    return pd.DataFrame({"distance": np.arange(len(scores)), "score": scores})


def _of_all_pairs(
    scene: sheet.Scene, both: Both[pd.DataFrame], pair: int, root: float, which: tuple[int, int]
) -> None:
    """Draw each pair's part of the score; a click chooses a pair."""
    st.subheader("Which pairs make the score?", anchor=False)
    dials = both.now
    names = [
        f"pair {number}, round in {words.significant(turn, 3)} tokens"
        for number, turn in zip(dials["pair"], dials["turn"], strict=True)
    ]
    sheet.curves(
        scene,
        "position_pairs",
        {
            "turned": both.map(lambda one: one["turned"] / root),
            "before turning": both.map(lambda one: one["unturned"] / root),
        },
        names,
        "part of the score",
        "Each pair's part of the score, before and after turning",
        lambda place, _: PAIR.set(place),
        which=[f"block{which[0]}", f"head{which[1]}"],
        at=pair,
        rest=0.0,
        axis={
            "title": {"text": "pair: the first turn fast, the last slowly"},
            "tickvals": [*range(0, len(dials), max(1, len(dials) // 16))],
        },
        height=300,
        many=True,
    )
    before, after = (words.significant(float(dials[one].sum()) / root, 3) for one in SUMS)
    words.prose(
        f"The parts of all {len(dials)} pairs sum to the score: **{after}**. Without turning it would be {before}."
    )


def _of_distances(
    scene: sheet.Scene, scores: Both[turning.Floats], distance: int, which: tuple[int, int]
) -> None:
    """Draw the score that the same query and key would have at any distance."""
    st.subheader("What if they were farther apart?", anchor=False)
    by = scores.now
    sheet.curves(
        scene,
        "position_distance",
        {"score": scores},
        [words.counted(apart, "token") + " apart" for apart in range(len(by))],
        "score",
        "The score of this query and key by the distance of their tokens",
        which=[f"block{which[0]}", f"head{which[1]}"],
        at=distance,
        rest=0.0,
        axis={"title": {"text": "how many tokens apart"}},
        height=300,
    )
    best = int(by.argmax())
    words.prose(
        "The query and the key stay as they are before turning; only their positions move. The score would be "
        f"largest at a distance of **{best}**: {words.significant(float(by[best]), 3)}. It is the same at every "
        "place of a text: nothing but the distance counts.",
        "query",
        "key",
    )


def _hands(row: "pd.Series[float]", query: int, key: int) -> tuple[Floats, Floats]:
    """The query's and the key's point of one pair, (2, 2), before and after turning."""
    lengths = np.array([row["query_length"], row["key_length"]])
    angles = np.array([row["query_angle"], row["key_angle"]])
    back = np.array([query, key]) * row["frequency"]
    turned, unturned = (
        np.stack([lengths * np.cos(at), lengths * np.sin(at)], axis=1)
        for at in (angles, angles - back)
    )
    return unturned, turned
