"""The stream of the selected token as a ladder, of all tokens as maps, and the two shortcuts of a block."""

import math

import numpy as np
import pandas as pd
import streamlit as st

from gptviz import Run
from gptviz.analysis import stream as numbers
from gptviz.analysis.shapes import run_first_block
from gptviz.analysis.stream import Apart, Block, Stream
from gptviz.both import alike
from gptviz.figures.ghosts import UNCHANGED
from gptviz.figures.stream import end_shares, ladder
from gptviz.figures.stream_maps import Table, stream_changes, stream_maps
from gptviz.model import TransformerBlock
from gptviz.ui import runs
from gptviz.ui.components.cell_clicks import cell_clicks
from gptviz.ui.runs import per_run
from gptviz.ui.shell.details import in_code, in_numbers, program
from gptviz.ui.shell.examples import example_row
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.same import why_same
from gptviz.ui.shell.scene import Scene
from gptviz.ui.shell.shown import DIFFERENCE, SHOWN, scene_of, shown_input
from gptviz.ui.shell.state import BLOCK
from gptviz.ui.tables import STYLE
from gptviz.ui.views.block import block_input
from gptviz.ui.views.both import both
from gptviz.ui.views.change import Part, menu
from gptviz.ui.views.residual_stream import tables, words
from gptviz.ui.views.residual_stream.snippet import ladder as ladder_in_python
from gptviz.ui.words import as_code

KEEP = numbers.SITES
PARAMS = (SHOWN,)
CHANGED_SITES = ("attn_out", "mlp_out", "resid_pre", "resid_mid", "resid_post")  # that the menu offers
COMPARED = ("stream", "write", "ratio", "cosine", "along", "turn", "after", "share")
COMPARED_ALL = ("write", "ratio", "cosine", "turn", "after")


@per_run
def stream_of(run: Run) -> Stream:
    return numbers.stream(runs.get(run, KEEP))


@per_run
def apart(run: Run) -> Apart:
    """How far a changed run's stream is from the unchanged one's."""
    return numbers.apart(runs.get(run, KEEP), runs.get(run.plain, KEEP))


@per_run
def at_work(run: Run, block: int, position: int) -> Block:
    return numbers.block_at_work(runs.get(run, KEEP), runs.model(run).model, block, position)


def draw(scene: Scene) -> None:
    """The page under the strip of chips."""
    found, layers = stream_of(scene.run), scene.lm.config.n_layers
    sentences = st.container()
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        block = block_input(layers, found.most_changed(scene.position), "which turns it most", width=300)
        sites = [Part("site", block, position=scene.position, site=site) for site in CHANGED_SITES]
        menu(scene, *sites, key="stream")
    with sentences:
        _say(scene, found)
    _ladder(scene, found, block)
    _maps(scene, found, block)
    _shortcuts(scene, found, block)
    _without(scene, found, block)
    _details(scene, found)


def _say(scene: Scene, found: Stream) -> None:
    sizes, writes = found.sizes[:, scene.position], found.writes[:, scene.position]
    largest = int(writes.argmax())
    prose(
        words.what_to_see(
            scene.label,
            float(sizes[0]),
            float(sizes[-1]),
            largest,
            float(writes[largest]),
            float(sizes[largest]),
        ),
        *("residual stream", "block", "attention", "feed-forward"),
    )
    if scene.other is not None:
        prose(_what_changed(scene, found, stream_of(scene.other)))


def _what_changed(scene: Scene, found: Stream, old: Stream) -> str:
    """What the app's changes did to the selected token's stream; or why they did nothing to it."""
    at, moved = scene.position, apart(scene.run)
    distances = moved.distances[:, at]
    same = np.isclose(distances, 0, atol=1e-5)
    if same.all():
        sites = [(site, b) for b in range(scene.lm.config.n_layers) for site in KEEP]
        return why_same(scene, words.stream_of(scene.label), sites, at)
    names = numbers.step_names(scene.lm.config.n_layers)
    first = int((~same).argmax())
    return words.what_changed(
        scene.label,
        words.step(names[first]),
        float(old.sizes[-1, at]),
        float(found.sizes[-1, at]),
        float(distances[-1]),
        float(moved.angles[-1, at]),
    )


def _ladder(scene: Scene, found: Stream, block: int) -> None:
    at, label = scene.position, scene.label
    sizes, writes = found.sizes[:, at], found.writes[:, at]
    ghosts = None
    if scene.other is not None:
        old = stream_of(scene.other)
        ghosts = old.sizes[:, at], old.writes[:, at], old.cosines[:, at]
    scene.chart(
        ladder(sizes, writes, found.cosines[:, at], found.turns[:, at], label, block, scene.mode, ghosts),
        key="stream_ladder",
        alt=words.ladder_alt(label, at, len(found.writes)),
        on_select=_pick_block,
        which=(f"block{block}",),
    )
    said = []
    for write in (2 * block, 2 * block + 1):
        size, cosine = float(writes[write]), float(found.cosines[write, at])
        before, after = float(sizes[write]), float(sizes[write + 1])
        part, turn = numbers.PARTS[write % 2], float(found.turns[write, at])
        said.append(words.write(part, before, size, cosine, numbers.does(cosine), turn, after))
    if scene.other is not None:
        said.append(_block_unchanged(scene, found, stream_of(scene.other), block))
    prose(f"**Block {block}.** {' '.join(said)}", "cosine")
    st.caption(words.LOOK_FOR)
    example_row("A copied passage", "He and she", "Once upon a time")


def _block_unchanged(scene: Scene, found: Stream, old: Stream, block: int) -> str:
    """The two writes of the unchanged model; where they are no others, why."""
    here = slice(2 * block, 2 * block + 2), scene.position
    both_of = [np.array([s.writes[here], s.cosines[here]]) for s in (found, old)]
    if alike(*both_of):
        sites = [(site, block) for site in ("attn_out", "mlp_out")]
        return why_same(scene, words.writes_of(block, scene.label), sites, scene.position)
    sizes, cosines = both_of[1].tolist()
    return words.unchanged_writes(sizes, cosines)


def _pick_block() -> None:
    """A click on a bar chooses its block; that at the end the last one."""
    points = st.session_state["stream_ladder"].selection.points
    if points:
        BLOCK.set(math.floor(round(float(points[0]["x"])) / 2))


def _maps(scene: Scene, found: Stream, block: int) -> None:
    layers = scene.lm.config.n_layers
    names = numbers.step_names(layers)
    labels = scene.labels

    def pick(row: int, column: int) -> None:
        BLOCK.set(max(0, row - 1) // 2)
        scene.select(column)

    st.subheader("Every token, write by write", anchor=False)
    has_moved = scene.other is not None and not alike(apart(scene.run).distances, np.zeros(1))
    shown = shown_input(scene, has_moved)
    table = Table(names, labels, 2 * block + 2, scene.position)
    if scene.other is not None and shown == DIFFERENCE:
        st.caption(words.CHANGES)
        moved, old = apart(scene.run), stream_of(scene.other)
        drawn = stream_changes(moved.distances, moved.angles, found.writes, old.writes, table, scene.mode)
        alt = f"How far a change has moved every token's stream after each of {len(names)} steps"
    else:
        st.caption(words.MAPS)
        one = stream_of(scene.other) if scene.other is not None and shown == UNCHANGED else found
        drawn = stream_maps(one.sizes, one.ratios, table, scene.mode)
        alt = f"The size of every token's stream after each of {len(names)} steps, and each write's beside it"
    scene_of(scene, shown).chart(
        drawn,
        key="stream_maps",
        alt=f"{alt} ({shown})" if scene.other else alt,
        which=(shown,) if scene.other else (),
    )
    cell_clicks("stream_maps", len(names), len(labels), pick, scene.mode)


def _shortcuts(scene: Scene, found: Stream, block: int) -> None:
    work = at_work(scene.run, block, scene.position)
    st.subheader(f"The two shortcuts of block {block}", anchor=False)
    prose(words.shortcuts(block, scene.label))
    st.html(STYLE)
    left, right = st.columns([5, 6], gap="large")
    with left:
        st.html(tables.lines(work))
    with right:
        st.html(tables.additions(work))
        if found.is_broken:
            prose(words.edited(block, work, found.difference))
        else:
            size, dtype = scene.lm.config.emb_dim, scene.lm.dtype
            prose(words.identity(block, work, size, found.difference, dtype), "dimension")


def _without(scene: Scene, found: Stream, block: int) -> None:
    work, names = at_work(scene.run, block, scene.position), numbers.step_names(scene.lm.config.n_layers)
    shares = found.shares[:, scene.position]
    largest = int(shares[1:].argmax()) + 1
    st.subheader("What if there were no shortcut?", anchor=False)
    prose(words.without(block, scene.lm.config.n_layers - 1, work), "LayerNorm", "cosine")
    rest = 1 - float(shares.sum())  # of a pass whose stream was changed on the way
    rest_said = rest if abs(rest) > 1e-3 else None
    prose(
        words.shares(float(shares[0]), _named(names[largest]), float(shares[largest]), rest_said), "embedding"
    )
    old = None if scene.other is None else stream_of(scene.other).shares[:, scene.position]
    scene.chart(
        end_shares(shares, names, block, scene.mode, old),
        key="stream_shares",
        alt=f"What the embedding and each write gave of {scene.label}'s stream at the end",
    )
    st.caption(words.NOT_ANOTHER_MODEL)


def _named(step: str) -> str:
    block, part = step.split(" · ")
    return f"the {part} of {block}"


def _details(scene: Scene, found: Stream) -> None:
    position = scene.position

    other = scene.other

    def one() -> pd.DataFrame:
        old = None if other is None else numbers.ladder_table(stream_of(other), position)
        table = both(numbers.ladder_table(found, position), old, COMPARED)
        return table if other is None else table.assign(**_moved(scene, position))

    def every() -> pd.DataFrame:
        old = None if other is None else numbers.all_tokens_table(stream_of(other), runs.get(other, KEEP))
        table = both(numbers.all_tokens_table(found, scene.trace), old, COMPARED_ALL)
        return table if other is None else table.assign(**_moved(scene))

    in_numbers(one, "residual-stream", words.TABLE, f"the way of {as_code(scene.label)}", missing="–")
    in_numbers(
        every,
        "residual-stream-all",
        words.ALL,
        "every token",
        missing="–",
    )
    in_code(
        [TransformerBlock.forward],
        program(
            ladder_in_python, scene.load, text=scene.text, position=position, special_tokens=scene.special
        ),
        run=lambda: run_first_block(scene.lm, scene.run.ids),
    )


def _moved(scene: Scene, position: int | None = None) -> dict[str, np.ndarray]:
    """Columns for a table: how far the stream after each step is from the unchanged one's."""
    at = slice(None) if position is None else position
    found = apart(scene.run)
    return {"moved": found.distances[:, at].ravel(), "moved by degrees": found.angles[:, at].ravel()}
