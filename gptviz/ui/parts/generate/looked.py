"""What the model looked at: a head's row when a token was written, and the heads that looked at one token."""

from collections.abc import Sequence
from dataclasses import replace
from html import escape
from urllib.parse import urlencode

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from gptviz import Run
from gptviz.analysis.attention import last_row
from gptviz.analysis.shapes import run_first_block
from gptviz.both import Both
from gptviz.digits import weight
from gptviz.figures.maps import Map, maps
from gptviz.tokenizer import show_token
from gptviz.ui import heads, runs, sheet
from gptviz.ui.components.chips import chips
from gptviz.ui.parts.generate.written import Written, as_text
from gptviz.ui.runs import per_run
from gptviz.ui.sheet import Param, Scene, if_there, is_asked_for, sideways
from gptviz.ui.shell import params, state
from gptviz.ui.shell.block import block_and_head_inputs, opened_head, telling_head
from gptviz.ui.shell.state import BLOCK, EDITS, HEAD, LINK_CHARACTERS, open_head
from gptviz.ui.words import Place, as_code, prose, show_id

# a position of the whole text, prompt and all
KEY: Param[int | None] = Param("looked", int, None, if_there)
PARAMS = (KEY,)


@per_run
def attention(run: Run, to: int | None = None) -> NDArray[np.float32]:
    """Every head's attention weights from the last token that the model read: (L, H, T).

    With `to` the weights on that position instead, from every token.
    """
    trace = runs.get(run, ())
    blocks = range(runs.model(run).config.n_layers)
    return np.stack(
        [trace["attn", b][:, -1] if to is None else trace["attn", b][..., to] for b in blocks]
    )


def draw(scene: Scene, written: Written) -> None:
    """Draw where a head looked for the chosen step, and which heads looked at one token."""
    lm = scene.lm
    run = written.run
    slid = written.slid(written.chosen)
    tokens = lm.tokens(run.ids)
    config = lm.config
    places = [Place(show_token(token.raw), token.position) for token in tokens]
    query = len(tokens) - 1
    sentence = st.container()
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        block, head = opened_head(config, lambda: telling_head(scene))  # as on the Attention page
        block_and_head_inputs(config, block, head)
        row = attention(run)[block, head]  # (T,)
        strongest = 0
        if query:
            strongest = int(row[:query].argmax())
        placeholder = f"{slid + strongest}, by this head"
        seen = range(slid, slid + query + 1)  # the model did not read others any more, or not yet
        key = KEY.index("Looked at", seen, slid + strongest, placeholder, width=190) - slid
        attention_link(scene, run.ids, query, block, head, "generate_looked_link")
    with sentence:
        if written.step is None:
            subject = "the next token"
        else:
            subject = as_code(show_id(lm, written.step.id))
        clause = "every head could look only at this token: nothing comes before it"
        if query:
            most = f"{weight(float(row[strongest]))} of its attention to {places[strongest]}"
            clause = f"block {block}, head {head} gave {most}, and {weight(float(row[query]))} to the token itself"
        summary = f"**Token {written.chosen + 1}:** the model predicts {subject} at {places[query]}. There {clause}."
        prose(summary, "token", "block", "head", "attention")
    marked = {key: "key", query: "query"}

    def pick(position: int) -> None:
        KEY.set(slid + position)

    chips(tokens, query, pick, key="generate_looked", weights=row.tolist(), highlight=marked)
    caption = (
        "The stronger the colour, the more attention. Click a token: which heads looked at it?"
    )
    if slid:
        caption += (
            f" Positions are the model's; the box counts from the text's beginning, {slid:,} more."
        )
    st.caption(caption)
    table = draw_map(scene, written, slid + key, places[key], (block, head))
    columns = {"token": [place.token for place in places], "weight": row.astype(np.float64)}
    note = "The chosen head's attention from the last token that the model read"
    if heads.scaled(run, block, head):
        note += "."
    else:
        note += "; it sums to 1."
    frame = pd.DataFrame({"position": range(query + 1)} | columns)
    with sheet.details("who looked"):
        sheet.numbers_of(
            f"generate-looked-block{block}-head{head}", frame, note, "where the head looked"
        )
        note = "A row per head and step: what it gave to this token when that step was written."
        sheet.numbers_of("generate-heads", table, note, "who looked at the token")
        # what the model read, as a text of its own; of a changed one the unchanged model wrote another
        reading = replace(
            scene, run=run, other=None, text=lm.decode(run.ids, begin=False), truncated=False
        )
        reading = replace(reading, tokens=tuple(tokens), position=query)

        def again() -> None:
            run_first_block(lm, run.ids)

        sheet.code_of(
            reading, ["attention"], last_row, block, head, key="in_code_looked", run=again
        )


def draw_map(
    scene: Scene, written: Written, key: int, place: Place, chosen: tuple[int, int]
) -> pd.DataFrame:
    """Draw each head's weight on one token, at each step that had it before it; return its table."""
    lm = scene.lm
    n_heads = scene.lm.config.n_heads
    prompt = len(written.base)
    count = max(len(written.steps), written.chosen + 1)
    steps = [i for i in range(count) if prompt + i - 1 >= key >= written.slid(i)]
    # one pass has all of these; what the model read for the others is no beginning of what it read later
    shared = [i for i in steps if lm.is_causal and not written.slid(i)]
    left_out = [i for i in steps if i not in shared and i != written.chosen]
    if is_asked_for(lm, written.context, len(left_out)):
        reason = "a change here depends on the whole text"
        if lm.is_causal:
            reason = "the context was full"
        st.caption(
            f"{len(left_out)} steps are left out: {reason}, so each takes a pass of its own."
        )
        question = f"Take them in: {len(left_out)} passes of {len(written.run):,} tokens"
        if st.toggle(question, key="generate_looked_all"):
            left_out = []
    else:
        left_out = []
    weights = np.full((lm.config.n_layers * n_heads, len(steps)), np.nan)  # (L * H, S)
    for column, i in enumerate(steps):
        if i in shared:
            weights[:, column] = attention(written.read(shared[-1]), key)[
                :, :, prompt + i - 1
            ].reshape(-1)
        elif i not in left_out:
            weights[:, column] = attention(written.read(i), key - written.slid(i))[
                :, :, -1
            ].reshape(-1)
    means = np.nanmean(weights, axis=1)
    block, head = divmod(int(means.argmax()), n_heads)
    shown_count = len(steps) - len(left_out)
    if shown_count == 1:
        scope = "in this step"
    else:
        scope = f"on average over {shown_count} steps"
    prose(
        f"**Who looked at {place}?** Block {block}, head {head} gave it most: {weight(float(means.max()))} "
        f"{scope}. A row is a head, a column a written token. Click a row to choose its head.",
        "head",
    )
    words = [*(show_id(lm, i) for i in written.new), "(not written yet)"][steps[0] : steps[-1] + 1]
    names = [f"block {b}, head {h}" for b in range(lm.config.n_layers) for h in range(n_heads)]
    grid = Map(f"attention to {escape(place.token, quote=False)}", Both(weights), "weight")
    cell = chosen[0] * n_heads + chosen[1], steps.index(written.chosen)
    sideways("generate_heads")
    scene.chart(
        maps([grid], names, words, cell, scene.mode, positions=[prompt + i for i in steps]),
        key="generate_heads",
        alt=f"What every head gave to {place.token} as each token was written",
        which=(f"position{key}",),
        on_cell=lambda row, _: open_head(*divmod(row, n_heads)),
    )
    index = pd.MultiIndex.from_product(
        [range(lm.config.n_layers), range(n_heads)], names=["block", "head"]
    )
    columns = pd.MultiIndex.from_arrays([[i + 1 for i in steps], words], names=["step", "written"])
    table = pd.DataFrame(weights, index, columns).stack(["step", "written"], future_stack=True)
    return (
        table.rename("weight")
        .reset_index()[["step", "written", "block", "head", "weight"]]
        .dropna()
    )


def attention_link(
    scene: Scene, ids: Sequence[int], position: int, block: int, head: int, key: str
) -> None:
    """Draw a button to a new tab, if these ids' text is read as these ids and is short enough for a link.

    With the changes that the scene's run has: those that are left out here would be made there.
    """
    text = as_text(scene.lm, ids, scene.special)
    if not isinstance(text, str) or len(text) > LINK_CHARACTERS:
        return
    values = {
        "text": text,
        "token": position,
        "special": scene.special,
        "block": block,
        "head": head,
    }
    values["edits"] = ",".join(map(str, scene.run.edits))
    parameters: tuple[Param, ...] = (
        state.TEXT,
        state.TOKEN,
        state.SPECIAL,
        *state.MODEL,
        BLOCK,
        HEAD,
        EDITS,
    )
    query = urlencode(params.in_link(parameters, values))
    label = f"Block {block}, head {head} on the Attention page"
    st.link_button(label, f"attention?{query}", icon=":material/open_in_new:", key=key)
