"""What the model does when its own positions are changed: a pass with an edit, beside the one without it.

Where something is changed in the model for the whole app, both have it: this page's edit comes after.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st
import torch

from gptviz import Edit, LanguageModel, Run
from gptviz.analysis.head_formulas import SHARES
from gptviz.analysis.moved import pattern_moved
from gptviz.both import alike
from gptviz.engine.reduction import Reduction
from gptviz.engine.trace import Token
from gptviz.ui import heads, runs
from gptviz.ui.components.matrix import attention_panel, matrix
from gptviz.ui.runs import Keep, per_run
from gptviz.ui.shell import changes
from gptviz.ui.shell.params import Param, between, if_there
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Scene
from gptviz.ui.shell.state import BLOCK, HEAD
from gptviz.ui.views.block import block_and_head_inputs
from gptviz.ui.views.both import both
from gptviz.ui.views.next_token.derived import mean_loss, prompt_surprises
from gptviz.ui.views.positions import tables, words
from gptviz.ui.words import show_id

WHAT = Param("pos_what", str, "shuffle", if_there)
SEED = Param("pos_seed", int, 1, between)
PARAMS = (WHAT, SEED)

LOSS_TOKENS = 256  # a longer text's losses, a row of logits each, are worked out only in *In numbers*
FIRST = 5  # tokens of each of the two predictions that are listed


def edit() -> Edit:
    """What is done to the position rows, as chosen."""
    WHAT.within(words.WHAT_IF)
    value = f"shuffle{SEED.value}" if WHAT.value == "shuffle" else WHAT.value
    return Edit("pos_emb", value=value)


@dataclass(frozen=True)
class Head:
    """Which head is compared."""

    block: int
    head: int


def keep(lm: LanguageModel, tokens: Sequence[Token]) -> tuple[Keep, tuple[Reduction, ...]]:
    """What the page's pass gives: nothing but what is measured of the heads."""
    return (), (heads.scores_of(tokens),)


@per_run
def previous_shares(run: Run) -> np.ndarray:
    """(n_layers, H): what each head gives the token just before, on average; 0 where there is none."""
    scores = heads.scores_of(runs.model(run).tokens(run.ids))
    blocks = runs.get(run, (), (scores,)).reduced(scores.name)
    return np.nan_to_num(np.stack([block[:, SHARES.index("previous")].numpy() for block in blocks]))


@per_run
def following(run: Run, position: int) -> np.ndarray:
    """(V,): the probability of every token after this position."""
    return torch.softmax(runs.get(run, ()).logits(position).double(), dim=-1).numpy()


def chosen_head(scene: Scene) -> Head:
    """The app's block and head; where none is chosen, the one that gives the token just before the most."""
    config, shares = scene.lm.config, previous_shares(scene.run)
    BLOCK.within(config.n_layers)
    HEAD.within(config.n_heads)
    block = int(shares.max(axis=1).argmax()) if BLOCK.value is None else BLOCK.value
    return Head(block, int(shares[block].argmax()) if HEAD.value is None else HEAD.value)


def head_of_block_0(scene: Scene) -> int:
    """The app's head, or the one of block 0 that gives the token just before the most."""
    return int(previous_shares(scene.run)[0].argmax()) if HEAD.value is None else HEAD.value


def draw(scene: Scene) -> Head:
    """The controls, both passes' attention, and both predictions; gives the head that is compared."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        WHAT.widget(
            st.segmented_control,
            "Its positions",
            options=list(words.WHAT_IF),
            format_func=words.WHAT_IF.__getitem__,
            required=True,
        )
        if WHAT.value == "shuffle":
            SEED.within((0, 999))
            SEED.widget(
                st.number_input, "Order", min_value=0, max_value=999, step=1, width=110, help=words.ORDER
            )
        seen = chosen_head(scene)
        block_and_head_inputs(scene.lm.config, seen.block, seen.head)
        st.button(words.KEEP_IT, key="pos_keep", help=f"`{edit()}`", on_click=_keep)
    changed = scene.run.edited(edit())
    attns = [_attention(run, seen) for run in (scene.run, changed)]
    _say(scene, changed, seen, attns)
    own = words.AS_IT_IS if scene.other is None else words.WITH_CHANGES
    for column, name, title, attn in zip(
        st.columns(2, gap="medium"),
        ("own", "changed"),
        (own, f"Its positions: {words.WHAT_IF[WHAT.value].lower()}"),
        attns,
        strict=True,
    ):
        with column:
            st.markdown(f"**{title}**")
            _matrix(scene if name == "own" else replace(scene, run=changed), name, title, attn, seen)
    st.html(tables.predictions(predictions(scene, changed), words.WHAT_IF[WHAT.value].lower()))
    return seen


def _keep() -> None:
    """Make the page's own change for the whole app."""
    changes.add(edit())


def _attention(run: Run, seen: Head) -> torch.Tensor:
    return runs.get(run, (("attn", seen.block),))["attn", seen.block][seen.head]  # (T, T)


def _say(scene: Scene, changed: Run, seen: Head, attns: list[torch.Tensor]) -> None:
    several = len(scene.tokens) > 1
    moved = pattern_moved(attns[0], attns[1])  # of the rows that have a token just before them, as `shares`
    shares = [float(attn.diagonal(-1).mean()) if several else None for attn in attns]
    own, now = (following(run, scene.position) for run in (scene.run, changed))
    best = int(own.argmax())
    loss = None
    if 1 < len(scene.tokens) <= LOSS_TOKENS:
        loss = mean_loss(scene.run), mean_loss(changed)
    if scene.other is not None:
        _say_on_top(scene, scene.other, own, best)
    prose(
        words.what_if(WHAT.value)
        + words.attention_moved(seen.block, seen.head, shares[0], shares[1], moved)
        + " "
        + words.prediction(
            scene.label,
            show_id(scene.lm, best),
            float(own[best]),
            float(now[best]),
            show_id(scene.lm, int(now.argmax())),
            loss,
        )
        + (f" {words.NOTHING_MORE}" if alike(own, now) else ""),
        "attention",
        "token",
    )


def _say_on_top(scene: Scene, other: Run, own: np.ndarray, best: int) -> None:
    """That what is changed for the whole app is in both passes; `own` is the first one's prediction."""
    before = following(other, scene.position)
    first = int(before.argmax())
    said = [words.on_top(scene.label, show_id(scene.lm, first), float(before[first]), float(own[first]))]
    if any(made.site == "pos_emb" for made in scene.run.edits):
        said.append(words.same_site(WHAT.value))
    prose(" ".join(said))


def predictions(scene: Scene, changed: Run) -> pd.DataFrame:
    """The first tokens of both predictions: token, id, own, changed; of a changed model unchanged, too."""
    own, now = (following(run, scene.position) for run in (scene.run, changed))
    first = [*np.argsort(-own, kind="stable")[:FIRST], *np.argsort(-now, kind="stable")[:FIRST]]
    before = None if scene.other is None else following(scene.other, scene.position)
    if before is not None:
        first += [*np.argsort(-before, kind="stable")[:FIRST]]
    ids = list(dict.fromkeys(int(i) for i in first))
    table = pd.DataFrame(
        {
            "token": [show_id(scene.lm, i) for i in ids],
            "id": ids,
            "own": own[ids],
            "changed": now[ids],
        }
    )
    return table if before is None else table.assign(unchanged=before[ids])


def losses(scene: Scene) -> pd.DataFrame:
    """A row a token of the text: its loss in the model as it is, and in the changed pass."""
    own, changed = (prompt_surprises(run) for run in (scene.run, scene.run.edited(edit())))
    table = pd.DataFrame(
        {
            "position": own["position"],
            "token": scene.labels,
            "loss": own["nats"],
            "loss, changed": changed["nats"],
            "edit": str(edit()),
        }
    )
    if scene.other is None:
        return table
    old = pd.DataFrame({"loss": prompt_surprises(scene.other)["nats"]})
    return both(table, old, ["loss"])


def _matrix(scene: Scene, name: str, title: str, attn: torch.Tensor, seen: Head) -> None:
    def pick(query: int | None, key: int | None) -> Any:
        scene.select(query if query is not None else key or 0)

    said = f"{title}: attention of block {seen.block}, head {seen.head}"
    saved = scene.saved(f"positions_{name}", said, f"block{seen.block}", f"head{seen.head}")
    panels, weights = [attention_panel(title)], {"weights": attn.numpy()}
    matrix(
        f"positions_{name}",
        panels,
        weights,
        scene.labels,
        scene.position,
        None,
        scene.mode,
        pick,
        saved=saved,
    )
