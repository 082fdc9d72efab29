"""What the Attention page chooses: the sheet, block, head and key, and what is cached between reruns.

The chosen block, head and key are widgets whose values stand in the address (?block=3&head=4&key=7); the
query is the app's selected token.
"""

from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st
import torch

from gptviz.analysis import head_roles
from gptviz.analysis.attention import mean_writes
from gptviz.analysis.head_roles import HeadRole
from gptviz.analysis.head_scores import SHARES, Targets, block_scores
from gptviz.figures.sheet import thumbnails
from gptviz.tokenizer import show_token
from gptviz.ui.components.heads import Thumbnail, sheet
from gptviz.ui.shell.page import Scene
from gptviz.ui.views.attention import words

BLOCK, HEAD, KEY, AVERAGE, HIDE = "block", "head", "key", "average", "hide_first"
CHOICES = {BLOCK: int, HEAD: int, KEY: int}
_KEY_QUERY = "attention_key_query"  # the query that the chosen key was chosen for


def shown(scene: Scene) -> list[str]:
    """The tokens as the screen shows them."""
    return [show_token(token.raw) for token in scene.tokens]


# ---- what is worked out once for a prompt ----


@dataclass(frozen=True)
class Measured:
    """What is said of the heads: a role each, their mean writes and first token's shares, (n_layers, H)."""

    roles: list[list[HeadRole]]
    writes: torch.Tensor
    first: torch.Tensor


def measured(scene: Scene) -> Measured:
    return _measured(scene.key, tuple(token.id for token in scene.tokens), scene)


@st.cache_data(max_entries=64, show_spinner=False)
def _measured(name: str, ids: tuple[int, ...], _scene: Scene) -> Measured:
    trace = _scene.trace
    targets = Targets.of(trace.tokens)
    scores = [block_scores(trace["attn", b], targets.keys) for b in range(trace.config.n_layers)]
    first = torch.stack([block[:, SHARES.index("first")] for block in scores])
    return Measured(head_roles.roles_of(scores, targets), mean_writes(trace, _scene.lm.model), first)


@st.cache_data(max_entries=64, show_spinner=False)
def _thumbnails(name: str, ids: tuple[int, ...], mode: str, _scene: Scene) -> tuple[bytes, int]:
    trace = _scene.trace
    return thumbnails((trace["attn", b].numpy() for b in range(trace.config.n_layers)), _scene.mode)


@st.cache_data(max_entries=64, show_spinner=False)
def _labels(name: str, ids: tuple[int, ...], _scene: Scene) -> list[list[Thumbnail]]:
    found = measured(_scene)
    largest = found.writes.max().item()
    return [
        [
            {
                "kind": role.kind,
                "label": words.LABELS[role.kind],
                "says": words.thumbnail(role, found.writes[b, h].item(), largest),
                "write": round(found.writes[b, h].item(), 4),
            }
            for h, role in enumerate(row)
        ]
        for b, row in enumerate(found.roles)
    ]


# ---- choosing ----


def controls(scene: Scene) -> tuple[int, int]:
    """Block and head: two numbers, and buttons for the head before and the head after."""
    config = scene.trace.config
    best = head_roles.most_telling(measured(scene).roles)
    for name, count, default in ((BLOCK, config.n_layers, best.block), (HEAD, config.n_heads, best.head)):
        if name not in st.session_state:
            st.session_state[name] = default
        elif st.session_state.get(name) is not None:
            st.session_state[name] = min(st.session_state[name], count - 1)  # the model before had more
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="attention_controls"):
        st.button(
            "‹",
            key="head_before",
            help="The head before",
            on_click=_step,
            args=(-1, config.n_layers, config.n_heads),
        )
        numbers = [
            st.number_input(
                label,
                min_value=0,
                max_value=count - 1,
                value=None,
                step=1,
                key=name,
                persist_state="session",
                width=110,
                placeholder=str(default),
            )
            for label, name, count, default in (
                (f"Block, 0 to {config.n_layers - 1}", BLOCK, config.n_layers, best.block),
                (f"Head, 0 to {config.n_heads - 1}", HEAD, config.n_heads, best.head),
            )
        ]
        st.button(
            "›",
            key="head_after",
            help="The head after",
            on_click=_step,
            args=(1, config.n_layers, config.n_heads),
        )
    block, head = numbers
    return (best.block if block is None else block), (best.head if head is None else head)


def _step(by: int, n_layers: int, n_heads: int) -> None:
    """To the next head, from a block's last to the next block's first, and round at the end."""
    place = ((st.session_state[BLOCK] or 0) * n_heads + (st.session_state[HEAD] or 0) + by) % (
        n_layers * n_heads
    )
    open_head(*divmod(place, n_heads))


def open_head(block: int, head: int) -> None:
    st.session_state[BLOCK], st.session_state[HEAD] = block, head


def options() -> tuple[bool, bool]:
    with st.container(horizontal=True, gap="small", key="attention_options"):
        average = st.toggle(
            "Average over heads",
            key=AVERAGE,
            bind="query-params",
            persist_state="session",
            help="The mean of the weights of all heads of the chosen block.",
        )
        hide = st.toggle(
            "Hide the first token",
            key=HIDE,
            bind="query-params",
            persist_state="session",
            help="Attention to it is left out, and what remains of each row is scaled up to sum to 1 again.",
        )
    return average, hide


def key_control(scene: Scene, weights: torch.Tensor) -> int:
    """The key: the one that somebody chose for this query, else the one that gets most of its row."""
    query = scene.position
    if st.session_state.setdefault(_KEY_QUERY, query) != query or (st.session_state.get(KEY) or 0) >= len(
        scene.tokens
    ):
        st.session_state[KEY] = None  # it was chosen for another query, or another text
    st.session_state[_KEY_QUERY] = query
    strongest = int(torch.nan_to_num(weights[query, : query + 1], nan=-1).argmax())
    chosen = st.number_input(
        f"Key, 0 to {len(scene.tokens) - 1}",
        min_value=0,
        max_value=len(scene.tokens) - 1,
        value=None,
        step=1,
        key=KEY,
        persist_state="session",
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
            st.session_state[KEY] = None
        if key is not None:
            st.session_state[KEY] = key

    return pick


def draw_sheet(scene: Scene, block: int, head: int) -> None:
    ids = tuple(token.id for token in scene.tokens)
    picture, side = _thumbnails(scene.key, ids, scene.mode, scene)
    sheet(picture, side, _labels(scene.key, ids, scene), (block, head), scene.mode, open_head)
