"""The stream of the selected token as a ladder, of all tokens as maps, and the two shortcuts of a block."""

import math

import pandas as pd
import streamlit as st

from gptviz import Run
from gptviz.analysis import stream as numbers
from gptviz.analysis.shapes import run_first_block
from gptviz.analysis.stream import Block, Stream
from gptviz.figures.stream import end_shares, ladder, stream_maps
from gptviz.model import TransformerBlock
from gptviz.ui import runs
from gptviz.ui.components.cell_clicks import cell_clicks
from gptviz.ui.runs import per_run
from gptviz.ui.shell.details import in_code, in_numbers, program
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Scene
from gptviz.ui.shell.state import BLOCK
from gptviz.ui.tables import STYLE
from gptviz.ui.views.block import block_input
from gptviz.ui.views.examples import example_row
from gptviz.ui.views.residual_stream import tables, words
from gptviz.ui.views.residual_stream.snippet import ladder as ladder_in_python
from gptviz.ui.words import as_code

KEEP = numbers.SITES


@per_run
def stream_of(run: Run) -> Stream:
    return numbers.stream(runs.get(run, KEEP))


@per_run
def at_work(run: Run, block: int, position: int) -> Block:
    return numbers.block_at_work(runs.get(run, KEEP), runs.model(run).model, block, position)


def draw(scene: Scene) -> None:
    """The page under the strip of chips."""
    found, layers = stream_of(scene.run), scene.lm.config.n_layers
    sentences = st.container()
    block = block_input(layers, found.most_changed(scene.position), "which turns it most", width=300)
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


def _ladder(scene: Scene, found: Stream, block: int) -> None:
    at, label = scene.position, scene.label
    sizes, writes = found.sizes[:, at], found.writes[:, at]
    scene.chart(
        ladder(sizes, writes, found.cosines[:, at], found.turns[:, at], label, block, scene.mode),
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
    prose(f"**Block {block}.** {' '.join(said)}", "cosine")
    st.caption(words.LOOK_FOR)
    example_row("A copied passage", "He and she", "Once upon a time")


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
    st.caption(words.MAPS)
    scene.chart(
        stream_maps(found.sizes, found.ratios, names, labels, 2 * block + 2, scene.position, scene.mode),
        key="stream_maps",
        alt=f"The size of every token's stream after each of {len(names)} steps, and each write's beside it",
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
        if scene.run.edits:
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
    prose(words.shares(float(shares[0]), _named(names[largest]), float(shares[largest])), "embedding")
    scene.chart(
        end_shares(shares, names, block, scene.mode),
        key="stream_shares",
        alt=f"What the embedding and each write gave of {scene.label}'s stream at the end",
    )
    st.caption(words.NOT_ANOTHER_MODEL)


def _named(step: str) -> str:
    block, part = step.split(" · ")
    return f"the {part} of {block}"


def _details(scene: Scene, found: Stream) -> None:
    position = scene.position

    def one() -> pd.DataFrame:
        return numbers.ladder_table(found, position)

    in_numbers(one, "residual-stream", words.TABLE, f"the way of {as_code(scene.label)}", missing="–")
    in_numbers(
        lambda: numbers.all_tokens_table(found, scene.trace),
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
