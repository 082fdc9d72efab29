"""What it looked at: a head's row when a token was written, and who looked at one token, step by step."""

from collections.abc import Sequence
from dataclasses import replace
from urllib.parse import urlencode

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from gptviz import Run
from gptviz.analysis import head_roles, looked
from gptviz.analysis.logit_attribution import read_at
from gptviz.analysis.shapes import run_first_block
from gptviz.digits import weight
from gptviz.figures.looked import heads_map
from gptviz.model import MultiHeadAttention
from gptviz.tokenizer import show_token
from gptviz.ui import heads, runs, sheet
from gptviz.ui.components.cell_clicks import cell_clicks
from gptviz.ui.components.chips import chips
from gptviz.ui.pages.generate.written import Written, as_text
from gptviz.ui.runs import per_run
from gptviz.ui.shell import params, state
from gptviz.ui.shell.block import block_and_head_inputs
from gptviz.ui.shell.details import in_numbers
from gptviz.ui.shell.panels import sideways
from gptviz.ui.shell.params import Param
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Scene
from gptviz.ui.shell.slow import is_asked_for
from gptviz.ui.shell.state import BLOCK, EDITS, HEAD, LINK_CHARACTERS, open_head
from gptviz.ui.words import Place, as_code, show_id

KEY: Param[int | None] = Param("looked", int, None)  # a position of the whole text, prompt and all
PARAMS = (KEY,)


@per_run
def attention(run: Run, to: int | None = None) -> NDArray[np.float32]:
    """Return where every head looks from the last token that the model read: (L, H, T).

    With `to` what every head gives to that position, from every token.
    """
    lm, wanted = runs.model(run), read_at(len(run) - 1) if to is None else looked.towards(to)
    # all of it where that is little, so that another head or token is there at a click
    whole = heads.fit_whole(lm.config, len(run))
    trace = runs.get(run, ("attn",) if whole else (), () if whole else (wanted,))
    return np.asarray(looked.taken(trace, wanted), dtype=np.float32)


def draw(scene: Scene, written: Written) -> None:
    """Where a head looked for the chosen step, and which heads looked at one token."""
    lm, run, slid = scene.lm, written.run, written.slid(written.chosen)
    tokens = lm.tokens(run.ids)
    places = [Place(show_token(token.raw), token.position) for token in tokens]
    query = len(tokens) - 1
    sentence = st.container()
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        block, head = head_of(scene)
        row = attention(run)[block, head]  # (T,)
        strongest = int(row[:query].argmax()) if query else 0
        if KEY.value is not None and not slid <= KEY.value <= slid + query:
            KEY.set(None)  # the model did not read it any more, or not yet
        label, empty = f"Looked at, {slid} to {slid + query}", f"{slid + strongest}, by this head"
        asked = KEY.index(label, slid + query + 1, empty, 190)
        key = strongest if asked is None else max(0, asked - slid)
        attention_link(scene, run.ids, query, block, head, "generate_looked_link")
    with sentence:
        what = "the next token is" if written.step is None else f"{as_code(show_id(lm, written.step.id))} was"
        there = "every head could look only at itself: nothing stands before it"
        if query:
            most = f"{weight(float(row[strongest]))} of its attention to {places[strongest]}"
            there = f"block {block}, head {head} gave {most}, and {weight(float(row[query]))} to itself"
        said = f"**Token {written.chosen + 1}:** {what} written from {places[query]}. There {there}."
        prose(said, "token", "block", "head", "attention")
    marked, pick = {key: "key", query: "query"}, lambda position: KEY.set(slid + position)
    chips(tokens, query, scene.mode, pick, key="generate_looked", weights=row.tolist(), highlight=marked)
    st.caption("The stronger the colour, the more attention. Click a token: which heads looked at it?")
    table = draw_map(scene, written, slid + key, places[key], (block, head))
    own = {
        "position": range(query + 1),
        "token": [place.token for place in places],
        "weight": row.astype(np.float64),
    }
    told = "The chosen head's attention from the last token that the model read; it sums to 1."
    in_numbers(pd.DataFrame(own), f"generate-looked-block{block}-head{head}", told, "where the head looked")
    told = "A row per head and step: what it gave to this token when that step was written."
    in_numbers(table, "generate-heads", told, "who looked at the token")
    # what the model read, as a text of its own; of a changed one the unchanged model wrote another
    read = replace(scene, run=run, other=None, text=lm.decode(run.ids), truncated=False)
    read = replace(read, tokens=tuple(tokens), position=query)
    lines, again = [MultiHeadAttention.forward], lambda: run_first_block(lm, run.ids)
    sheet.code_of(read, lines, looked.last_row, block, head, key="in_code_looked", run=again)


def head_of(scene: Scene) -> tuple[int, int]:
    """The app's block and head; until somebody chooses, those that the Attention page begins with."""
    config = scene.lm.config
    block, head = BLOCK.within(config.n_layers), HEAD.within(config.n_heads)
    if block is None or head is None:
        best = head_roles.most_telling(heads.measured(scene.run).roles)
        block, head = (best.block if block is None else block), (best.head if head is None else head)
    block_and_head_inputs(config, block, head)
    return block, head


def draw_map(scene: Scene, written: Written, key: int, place: Place, chosen: tuple[int, int]) -> pd.DataFrame:
    """Draw each head's weight on one token of the text, at each step that had it before it; its table."""
    n_heads, count = scene.lm.config.n_heads, max(len(written.steps), written.chosen + 1)
    prompt = len(written.prompt)
    had = [i for i in range(count) if prompt + i - 1 >= key >= written.slid(i)]
    # what the model read for these steps is no beginning of what it read for later ones
    alone = [i for i in had if written.slid(i) or not scene.lm.is_causal]
    wait = [i for i in alone if i != written.chosen]
    if is_asked_for(scene.lm, written.context, len(wait)):
        why = "the context was full" if scene.lm.is_causal else "a change here depends on the whole text"
        st.caption(f"{len(wait)} steps are left out: {why}, so each takes a pass of its own.")
        ask = f"Take them in: {len(wait)} passes of {len(written.run):,} tokens"
        if not st.toggle(ask, key="generate_looked_all"):
            had = [i for i in had if i not in wait]
    together = [i for i in had if i not in alone]  # one pass for all of these, for the others one each
    columns = {i: attention(written.read(i), key - written.slid(i))[:, :, -1] for i in had if i in alone}
    if together:
        whole = attention(written.read(together[-1]), key)  # (L, H, T)
        columns |= {i: whole[:, :, prompt + i - 1] for i in together}
    weights = np.stack([columns[i].reshape(-1) for i in had], axis=1)  # (L * H, S)
    means, rows = weights.mean(axis=1), len(weights)
    block, head = divmod(int(means.argmax()), n_heads)
    over = "in this step" if len(had) == 1 else f"on average over {len(had)} steps"
    prose(
        f"**Who looked at {place}?** Block {block}, head {head} gave it most: {weight(float(means.max()))} "
        f"{over}. A row is a head, a column a written token. Click a row to choose its head.",
        "head",
    )
    new = [*(show_id(scene.lm, i) for i in written.new), "(not written yet)"]
    steps, words, frame = (
        [i + 1 for i in had],
        [new[i] for i in had],
        (chosen[0] * n_heads + chosen[1], had.index(written.chosen)),
    )
    sideways("generate_heads")
    scene.chart(
        heads_map(weights, steps, words, place.token, n_heads, frame, scene.mode),
        key="generate_heads",
        alt=f"What every head gave to {place.token} as each token was written",
        which=(f"position{key}",),
    )
    size = rows, len(had)
    cell_clicks("generate_heads", *size, lambda row, _: open_head(*divmod(row, n_heads)), scene.mode)
    where = {"block": np.arange(rows) // n_heads, "head": np.arange(rows) % n_heads}
    table = {"step": np.tile(steps, rows), "written": words * rows}
    table |= {name: np.repeat(values, len(had)) for name, values in where.items()}
    return pd.DataFrame(table | {"weight": weights.ravel().astype(np.float64)})


def attention_link(scene: Scene, ids: Sequence[int], position: int, block: int, head: int, key: str) -> None:
    """A button to a new tab, where these ids' text is read as these ids and is short enough for a link.

    With the changes that the scene's run has: those that are left out here would be made there.
    """
    text = as_text(scene.lm, ids, scene.special)
    if not isinstance(text, str) or len(text) > LINK_CHARACTERS:
        return
    prompt, edits = (
        state.Prompt(text, position, state.current().model, scene.special),
        map(str, scene.run.edits),
    )
    here = {BLOCK.name: block, HEAD.name: head, EDITS.name: ",".join(edits)}
    query = urlencode(state.address_of(prompt) | params.in_link((BLOCK, HEAD, EDITS), here))
    label = f"Block {block}, head {head} on the Attention page"
    st.link_button(label, f"attention?{query}", icon=":material/open_in_new:", key=key)
