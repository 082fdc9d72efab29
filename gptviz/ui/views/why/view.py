"""Why the model says a token: its logit against the mean as the sum of all writes, and who read what."""

from collections.abc import Callable

import numpy as np
import pandas as pd
import streamlit as st

from gptviz.analysis.shapes import run_first_block
from gptviz.analysis.shares import source_table
from gptviz.figures import shares as figures
from gptviz.figures.ghosts import CHANGED
from gptviz.model import LayerNorm, TransformerBlock
from gptviz.ui.components.cell_clicks import cell_clicks
from gptviz.ui.shell import target
from gptviz.ui.shell.block import block_and_head_inputs
from gptviz.ui.shell.change_menu import menu
from gptviz.ui.shell.details import in_code, in_numbers, program
from gptviz.ui.shell.examples import example_row
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Scene
from gptviz.ui.shell.shown import SHOWN, scene_of, shown_input
from gptviz.ui.shell.state import open_head
from gptviz.ui.views.both import both
from gptviz.ui.views.why import compared, derived, muting, words
from gptviz.ui.views.why.chosen import PART, Chosen, choose, parts_of
from gptviz.ui.views.why.derived import Shares, Sources
from gptviz.ui.views.why.snippet import shares as shares_in_python
from gptviz.ui.views.why.ways import agreement, flow, paths
from gptviz.ui.views.why.words import Source

PARAMS = (*target.PARAMS, SHOWN, PART, muting.MUTE, *paths.PARAMS, *flow.PARAMS)

# more pictures of the same thing, below: each is drawn from the scene, and what is chosen
PANELS: tuple[Callable[[Scene, Chosen], None], ...] = (paths.draw, flow.draw, agreement.draw)


def draw(scene: Scene) -> None:
    """The page under the prompt."""
    found, chosen = _choice(scene)
    sources = _sources(scene, chosen)
    scene.strip(shares=sources.given[chosen.block, chosen.head, : scene.position + 1].tolist())
    prose(_sentence(scene, chosen, found, sources), "logit", "block", "head", "feed-forward")
    if scene.other is not None:
        prose(compared.what_changed(scene, scene.other, chosen, found))
    left, right = st.columns([5, 4], gap="medium")
    with left:
        _waterfall(scene, chosen, found)
    with right:
        shown = shown_input(scene, compared.has_moved(scene, chosen, found), "The maps show")
        _grid(scene, chosen, found, shown)
    prose(
        words.look_for(
            found.spread, scene.lm.model.final_norm.shift is not None, chosen.target.against_shown
        ),
        "residual stream",
        "LayerNorm",
    )
    _notes(found)
    example_row("A copied passage", "A name comes back", "A quotation closes", "He and she")
    _head(scene, chosen, found, sources, shown)
    muting.draw(scene, chosen, found.table)
    for panel in PANELS:
        panel(scene, chosen)
    _details(scene, chosen, found, sources)


# ---- choosing ----


def _choice(scene: Scene) -> tuple[Shares, Chosen]:
    explained = target.target_input(scene)
    found = derived.shares(scene.run, scene.position, explained.token, explained.against)
    return found, choose(scene.lm.config, explained, found.strongest)


def _sources(scene: Scene, chosen: Chosen) -> Sources:
    return derived.sources(scene.run, scene.position, chosen.target.token, chosen.target.against)


def _open_bar() -> None:
    """A click on a bar of the waterfall opens its head."""
    points = st.session_state["why_waterfall"].selection.points
    _, block, head = points[0]["customdata"] if points else (None, -1, -1)
    if block >= 0 <= head:
        open_head(int(block), int(head))


# ---- the sum ----


def _sentence(scene: Scene, chosen: Chosen, found: Shares, sources: Sources) -> str:
    largest, source = found.groups[:2], None
    heads = next((group for group in largest if group.heads), None)
    if heads is not None:
        together = sources.given[heads.block].sum(axis=0)  # (T,): through all heads of that block
        if np.isfinite(together).all() and together.any():
            at = int(np.abs(together).argmax())
            source = Source(scene.labels[at], at, float(together[at]))
    return words.sentence(
        scene.label,
        scene.position,
        chosen.target.shown,
        chosen.target.against_shown,
        found.logit,
        largest,
        source,
    )


def _waterfall(scene: Scene, chosen: Chosen, found: Shares) -> None:
    other, changed = chosen.target.against_shown, scene.other is not None
    said = words.summed(len(found.table), found.total, found.logit, other, changed)
    st.html(
        f'<div data-testid="why_sum" data-parts="{len(found.table)}" data-sum="{found.total}" '
        f'data-logit="{found.logit}">{said}</div>'
    )
    scene.chart(
        figures.waterfall(
            found.steps,
            found.total,
            (chosen.block, chosen.head),
            scene.mode,
            compared.ghosts(scene, chosen, found),
        ),
        key="why_waterfall",
        alt=f"The largest parts of {chosen.said}, and their sum",
        on_select=_open_bar,
    )


def _grid(scene: Scene, chosen: Chosen, found: Shares, shown: str) -> None:
    drawn, columns = compared.grid(scene, chosen, found, shown), found.columns
    st.caption(drawn.caption)
    scene_of(scene, shown).chart(
        figures.share_grid(drawn.values, columns, (chosen.block, chosen.head), drawn.says, scene.mode),
        key="why_grid",
        alt=f"What every head and feed-forward wrote to {chosen.said}{_which_run(scene, shown)}",
        which=(shown,) if scene.other else (),
    )

    def pick(block: int, column: int) -> None:
        chosen.open(block, column, columns)

    cell_clicks("why_grid", len(drawn.values), len(columns), pick, scene.mode)
    menu(scene, *parts_of(chosen.block, chosen.head), key="why")


def _which_run(scene: Scene, shown: str) -> str:
    return f" ({shown})" if scene.other else ""


def _notes(found: Shares) -> None:
    parts = set(found.table["part"])
    for part, said in (("edit", words.EDITED), ("rounding", words.ROUNDED)):
        if part in parts:
            st.markdown(said)


# ---- a head, opened ----


def _head(scene: Scene, chosen: Chosen, found: Shares, sources: Sources, shown: str) -> None:
    block, head, explained = chosen.block, chosen.head, chosen.target
    st.subheader(f"What block {block}, head {head} read", anchor=False)
    _head_controls(scene, chosen)
    own = sources.given[block, head]
    share = float(found.grid[block, head])
    read = _read(scene, chosen, own)
    said = words.head(block, head, share, explained.shown, explained.against_shown, read[:1])
    if scene.other is not None:
        said += " " + words.head_unchanged(
            float(compared.shares_in(scene.other, scene, chosen).grid[block, head])
        )
    prose(said)
    if not read:
        st.markdown(words.no_sources(muted=bool(np.isfinite(own).all())))
        if shown == CHANGED:
            return
    if read and read[-1].position != read[0].position:
        st.markdown(words.rests(read[-1]))
    drawn = compared.source_map(scene, chosen, sources, shown)
    old = compared.sources_in(scene.other, scene, chosen).given[block] if scene.other else None
    scene_of(scene, shown).chart(
        figures.source_map(
            drawn.values,
            scene.labels,
            block,
            head,
            scene.position,
            scene.mode,
            old if shown == CHANGED else None,
            drawn.says,
        ),
        key="why_sources",
        alt=f"What each token gave to {chosen.said} through the heads of block {block}"
        + _which_run(scene, shown),
        which=(f"block{block}", f"head{head}", *([shown] if scene.other else [])),
    )
    cell_clicks(
        "why_sources",
        scene.lm.config.n_heads,
        scene.position + 1,
        lambda row, _column: chosen.open(block, row),
        scene.mode,
    )
    prose(drawn.caption, "attention weight", "value")
    if sources.bias[block, head]:
        st.markdown(words.value_bias(float(sources.bias[block, head])))


def _read(scene: Scene, chosen: Chosen, own: np.ndarray) -> list[Source]:
    """The token that gave most, and the one that got most attention; none where no token gave anything."""
    if not np.isfinite(own).all() or not own.any():
        return []
    attention = derived.attention_row(scene.run, scene.position, chosen.block)[chosen.head]
    return [
        Source(scene.labels[i], i, float(own[i]), float(attention[i]))
        for i in (int(np.abs(own).argmax()), int(attention.argmax()))
    ]


def _head_controls(scene: Scene, chosen: Chosen) -> None:
    with st.container(horizontal=True, gap="small"):
        block_and_head_inputs(scene.lm.config, chosen.block, chosen.head)


# ---- the details ----


def _details(scene: Scene, chosen: Chosen, found: Shares, sources: Sources) -> None:
    block, explained = chosen.block, chosen.target
    in_numbers(lambda: _table(scene, chosen, found), "why", words.NUMBERS, "every part")
    in_numbers(
        lambda: _source_table(scene, chosen, sources),
        f"why-block{block}",
        words.SOURCE_NUMBERS,
        "what was read",
    )
    in_code(
        [TransformerBlock.forward, LayerNorm.formula],
        program(
            shares_in_python,
            scene.load,
            text=scene.text,
            position=scene.position,
            token=explained.token,
            against=explained.against,
            block=block,
            head=chosen.head,
            muted=muting.MUTE.value,
            special_tokens=scene.special,
        ),
        run=lambda: run_first_block(scene.lm, scene.run.ids),
    )


def _table(scene: Scene, chosen: Chosen, found: Shares) -> pd.DataFrame:
    """Every part of the run's sum, and of the unchanged model's: a change may have added a part."""
    table = _with_ends(found)
    if scene.other is None:
        return table
    keys = ["part", "block", "head"]
    old = table[keys].merge(_with_ends(compared.shares_in(scene.other, scene, chosen)), "left", keys)
    return both(table, old.fillna({"contribution": 0.0}), ["contribution"])


def _with_ends(found: Shares) -> pd.DataFrame:
    ends = [
        {"part": "sum", "contribution": found.total},
        {"part": "the model's own", "contribution": found.logit},
    ]
    return pd.concat([found.table, pd.DataFrame(ends)], ignore_index=True)


def _source_table(scene: Scene, chosen: Chosen, sources: Sources) -> pd.DataFrame:
    block, labels = chosen.block, scene.labels
    table, old = source_table(sources.given[block], labels, block), None
    if scene.other is not None:
        old = source_table(compared.sources_in(scene.other, scene, chosen).given[block], labels, block)
    return both(table, old, list(table.columns[2:]))
