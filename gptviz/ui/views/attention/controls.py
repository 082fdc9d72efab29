"""What the Attention page chooses: block, head and key, in controls and in the grid of heads.

The chosen block, head and key are widgets whose values stand in the address (?block=3&head=4&key=7); the
query is the app's selected token.
"""

from collections.abc import Callable, Sequence

import streamlit as st
import torch

from gptviz import Run
from gptviz.analysis.head_formulas import ROLES
from gptviz.ui import heads
from gptviz.ui.components.heads import Thumbnail, head_grid
from gptviz.ui.runs import per_run
from gptviz.ui.shell.params import Param, if_there
from gptviz.ui.shell.scene import Scene
from gptviz.ui.shell.state import open_head
from gptviz.ui.views.attention import change_words, words
from gptviz.ui.views.attention.comparing import PATTERN


def _a_mass(value: int, masses: Sequence[int]) -> int:
    """The nearest that there is."""
    return min(masses, key=lambda mass: abs(mass - value))


KEY: Param[int | None] = Param("key", int, None, if_there)
AVERAGE, HIDE = Param("average", bool, False), Param("hide_first", bool, False)
ARCS = Param("arcs", bool, False)
MASS: Param[int] = Param("mass", int, 90, _a_mass)  # of each row that the arcs draw, in percent
PARAMS = (KEY, AVERAGE, HIDE, ARCS, MASS, PATTERN)
_KEY_QUERY = "attention_key_query"  # the query that the chosen key was chosen for


@per_run
def head_labels(run: Run) -> list[list[Thumbnail]]:
    found = heads.measured(run)
    largest = found.writes.max().item()
    labels: list[list[Thumbnail]] = [
        [
            {
                "kind": role.kind,
                "label": ROLES[role.kind].label,
                "says": words.thumbnail(role, found.writes[b, h].item(), largest),
                "write": round(found.writes[b, h].item(), 4),
            }
            for h, role in enumerate(row)
        ]
        for b, row in enumerate(found.roles)
    ]
    if run.edits:
        for row_of, marks in zip(labels, heads.marks(run), strict=True):
            for thumbnail, mark in zip(row_of, marks, strict=True):
                thumbnail |= mark
                thumbnail["says"] += change_words.thumbnail(mark["moved"], mark["changed"])
    return labels


def _withdrawn(run: Run, labels: list[list[Thumbnail]]) -> list[list[Thumbnail]]:
    """The same; a label that was withdrawn in its trial is struck out (see Heads on trial)."""
    failed = heads.withdrawn(run)
    if not failed:
        return labels
    return [
        [
            {**one, "label": words.struck(one["label"]), "says": f"{words.WITHDRAWN} {one['says']}"}
            if (b, h) in failed
            else one
            for h, one in enumerate(row)
        ]
        for b, row in enumerate(labels)
    ]


# ---- choosing ----


def options() -> tuple[bool, bool, bool]:
    """Whether the average of all heads is drawn, whether without the first token, and whether as arcs."""
    with st.container(horizontal=True, gap="small", key="attention_options"):
        average = AVERAGE.widget(
            st.toggle,
            "Average",
            help="The mean of the weights of all heads of the chosen block.",
        )
        hide = HIDE.widget(
            st.toggle,
            "Hide first token",
            help="Attention to it is left out, and what remains of each row is scaled up to sum to 1 again.",
        )
        as_arcs = ARCS.widget(
            st.toggle,
            "Arcs",
            help="Beside the matrix, lines between the tokens that look and those that are "
            "looked at: of this head, and of the block's others at will.",
        )
    return average, hide, as_arcs


def key_control(scene: Scene, weights: torch.Tensor) -> int:
    """The key: the one that somebody chose for this query, else the one that gets most of its row."""
    query = scene.position
    if st.session_state.setdefault(_KEY_QUERY, query) != query:
        KEY.set(None)  # it was chosen for another query
    st.session_state[_KEY_QUERY] = query
    KEY.within(len(scene.tokens))
    strongest = int(torch.nan_to_num(weights[query, : query + 1], nan=-1).argmax())
    chosen = KEY.widget(
        st.number_input,
        f"Key, 0 to {len(scene.tokens) - 1}",
        min_value=0,
        max_value=len(scene.tokens) - 1,
        value=None,
        step=1,
        placeholder=f"{strongest}, the strongest",
        width=210,
        help="Empty: the key that gets most of the query's attention.",
    )
    return strongest if chosen is None else chosen


def picker(scene: Scene) -> Callable[[int | None, int | None], None]:
    """What a click in a matrix does: select the query for the whole app, and the key here."""

    def pick(query: int | None, key: int | None) -> None:
        if query is not None:
            scene.select(query)
            st.session_state[_KEY_QUERY] = query
            KEY.set(None)
        if key is not None:
            KEY.set(key)

    return pick


def draw_grid(scene: Scene, block: int, head: int) -> None:
    """The grid of heads: a thumbnail each, the chosen one ringed."""
    picture, side = heads.thumbnails(scene.run, scene.mode)
    labels = _withdrawn(scene.run, head_labels(scene.run))
    saved = scene.saved("heads", "All heads: where each looks", scene.lm.name)
    head_grid(picture, side, labels, (block, head), scene.mode, open_head, key="heads", saved=saved)
    if scene.run.edits:
        st.caption(heads.marks_say(scene.run))
