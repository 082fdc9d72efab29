"""The panel "What it looked at": a head's row when a token was written, and who looked at one token."""

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from gptviz.analysis import head_roles
from gptviz.analysis.shapes import run_first_block
from gptviz.figures.looked import heads_map
from gptviz.model import MultiHeadAttention
from gptviz.tokenizer import show_token
from gptviz.ui import heads
from gptviz.ui.components.cell_clicks import cell_clicks
from gptviz.ui.components.chips import chips
from gptviz.ui.shell.details import in_code, in_numbers, program
from gptviz.ui.shell.params import Param
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Scene
from gptviz.ui.shell.state import BLOCK, HEAD, open_head
from gptviz.ui.views.block import block_and_head_inputs
from gptviz.ui.views.generate.panels import derived, words
from gptviz.ui.views.generate.panels.links import attention_link, text_so_far
from gptviz.ui.views.generate.panels.looked_snippet import last_row
from gptviz.ui.views.generate.written import Written
from gptviz.ui.views.index_input import index_input
from gptviz.ui.views.panel import panel
from gptviz.ui.views.sideways import sideways
from gptviz.ui.views.slow import is_asked_for
from gptviz.ui.words import Place, show_id

KEY: Param[int | None] = Param("looked", int, None)  # a position of the whole text, prompt and all
PARAMS = (KEY,)


def draw(scene: Scene, written: Written) -> None:
    """The panel, for the chosen step; closed it costs nothing."""
    with panel(
        "What it looked at when it wrote this", ":material/visibility:", "generate_looked_box"
    ) as opened:
        if opened:
            _draw(scene, written)


def _draw(scene: Scene, written: Written) -> None:
    lm, run, slid = scene.lm, written.run, written.slid(written.chosen)
    tokens = lm.tokens(run.ids)
    labels = [show_token(token.raw) for token in tokens]
    query = len(tokens) - 1
    rows = derived.last_rows(run)  # (L, H, T)
    sentence = st.container()
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        block, head = _head(scene)
        row = rows[block, head]
        strongest = int(row[:query].argmax()) if query else 0
        if KEY.value is not None and not slid <= KEY.value <= slid + query:
            KEY.set(None)  # the model did not read it any more, or not yet
        label, empty = f"Looked at, {slid} to {slid + query}", f"{slid + strongest}, by this head"
        chosen = index_input(KEY, label, slid + query + 1, empty, 190)
        key = strongest if chosen is None else max(0, chosen - slid)
        attention_link(scene, run.ids, query, block, head, "generate_looked_link")
    step, most = written.step, Place(labels[strongest], strongest)
    with sentence:
        shown = None if step is None else show_id(lm, step.id)
        first = (most, float(row[strongest])) if query else None
        at = Place(labels[query], query)
        prose(
            words.looked(written.chosen + 1, shown, at, block, head, first, float(row[query])),
            "token",
            "block",
            "head",
            "attention",
        )
    chips(
        tokens,
        query,
        scene.mode,
        lambda position: KEY.set(slid + position),
        key="generate_looked",
        weights=row.tolist(),
        highlight={key: "key", query: "query"},
    )
    st.caption(words.LOOKED_AT)
    table = _map(scene, written, slid + key, Place(labels[key], key), (block, head))
    in_numbers(
        pd.DataFrame({"position": range(query + 1), "token": labels, "weight": row.astype(np.float64)}),
        f"generate-looked-block{block}-head{head}",
        words.ROW_TABLE,
        "where the head looked",
    )
    in_numbers(table, "generate-heads", words.HEADS_TABLE, "who looked at the token")
    in_code(
        [MultiHeadAttention.forward],
        program(last_row, scene.load, **text_so_far(scene, written), block=block, head=head, key=key),
        key="in_code_looked",
        run=lambda: run_first_block(lm, run.ids),
    )


def _head(scene: Scene) -> tuple[int, int]:
    """The app's block and head; as long as nobody has chosen, those that the Attention page begins with."""
    config = scene.lm.config
    block, head = BLOCK.within(config.n_layers), HEAD.within(config.n_heads)
    if block is None or head is None:
        best = head_roles.most_telling(heads.measured(scene.run).roles)
        shown = (best.block if block is None else block), (best.head if head is None else head)
    else:
        shown = block, head
    block_and_head_inputs(config, *shown)
    return shown


def _map(scene: Scene, written: Written, key: int, place: Place, chosen: tuple[int, int]) -> "pd.DataFrame":
    """Every head's weight on one token of the text, at each step that had it before it; its table."""
    n_heads, count = scene.lm.config.n_heads, max(len(written.steps), written.chosen + 1)
    prompt = len(written.prompt)
    had = [i for i in range(count) if prompt + i - 1 >= key >= written.slid(i)]
    alone = [i for i in had if _alone(scene, written, i) and i != written.chosen]
    if is_asked_for(scene.lm, written.context, len(alone)):
        st.caption(words.left_out(len(alone), written.context if scene.lm.is_causal else None))
        if not st.toggle(words.ask_passes(len(alone), len(written.run)), key="generate_looked_all"):
            had = [i for i in had if i not in alone]
    columns = _columns(scene, written, key, had)
    weights = np.stack([columns[i] for i in had], axis=1)  # (L * H, S)
    means = weights.mean(axis=1)
    best = int(means.argmax())
    prose(words.head_map(place, *divmod(best, n_heads), float(means[best]), len(had)), "head")
    new = [show_id(scene.lm, i) for i in written.new] + ["(not written yet)"]
    sideways("generate_heads")
    scene.chart(
        heads_map(
            weights,
            [i + 1 for i in had],
            [new[i] for i in had],
            place.token,
            n_heads,
            (chosen[0] * n_heads + chosen[1], had.index(written.chosen)),
            scene.mode,
        ),
        key="generate_heads",
        alt=f"What every head gave to {place.token} as each token was written",
        which=(f"position{key}",),
    )
    cell_clicks(
        "generate_heads", len(weights), len(had), lambda r, _: open_head(*divmod(r, n_heads)), scene.mode
    )
    rows, steps = weights.shape
    return pd.DataFrame(
        {
            "step": np.tile([i + 1 for i in had], rows),
            "written": [new[i] for i in had] * rows,
            "block": np.repeat(np.arange(rows) // n_heads, steps),
            "head": np.repeat(np.arange(rows) % n_heads, steps),
            "weight": weights.ravel().astype(np.float64),
        }
    )


def _alone(scene: Scene, written: Written, step: int) -> bool:
    """Whether what the model read for this step is no beginning of what it read for the later ones."""
    return bool(written.slid(step)) or not scene.lm.is_causal


def _columns(scene: Scene, written: Written, key: int, steps: list[int]) -> dict[int, NDArray[np.float32]]:
    """For each step (L * H,): one pass for all steps of a context that was not full, else one for each."""
    together = [i for i in steps if not _alone(scene, written, i)]
    found = {}
    if together:
        whole = derived.weights_on(written.read(together[-1]), key)  # (L, H, T)
        for i in together:
            found[i] = whole[:, :, len(written.prompt) + i - 1].reshape(-1)
    for i in steps:
        if i not in found:
            found[i] = derived.weights_on(written.read(i), key - written.slid(i))[:, :, -1].reshape(-1)
    return found
