"""Knock-out: every head, attention and feed-forward muted in turn, and what becomes of the prediction."""

import numpy as np
import pandas as pd
import streamlit as st

from gptviz.analysis.ablation import MEASURED, knock_out, parts_of
from gptviz.analysis.moved import ROUNDING
from gptviz.analysis.shares import label_of
from gptviz.both import Both
from gptviz.digits import fixed, significant
from gptviz.figures.next_token import probability_text
from gptviz.model import TransformerBlock
from gptviz.ui import many, sheet
from gptviz.ui.buttons import button
from gptviz.ui.sheet import end_page, example_row, is_wanted
from gptviz.ui.shell import state, target
from gptviz.ui.shell.change_menu import Part, menu
from gptviz.ui.shell.muted import GIVES, KINDS, knocked, muted_map
from gptviz.ui.shell.navigation import link
from gptviz.ui.shell.params import Param, if_there, in_link
from gptviz.ui.shell.state import BLOCK, HEAD
from gptviz.ui.words import as_code, compared_with, counted, prose

NULL: Param[str] = Param("null", str, "zero", if_there)
MEASURE: Param[str] = Param("measure", str, "probability", if_there)
PART: Param[str] = Param("part", str, "head", if_there)  # of the block: its head, attention, feed-forward
MAP: Param[str | None] = Param("map", str, None, if_there)  # None: as long as it is quick
BESIDE: Param[str | None] = Param("map_unchanged", str, None, if_there)  # the unchanged model's, likewise

WHAT_FOR = {
    "zero": "It adds nothing to the stream, which is not what later parts have learnt to expect.",
    "mean": "It gives to each token what it gives to the tokens of this text on average.",
    "sample": "It gives to each token what it gives to other text on average, as later parts expect.",
}
MEASURES = {"logit": "logit difference", "probability": "probability"}
EXAMPLES = ("A copied passage", "A name comes back", "A quotation closes")
LISTED = 12  # bars of the list
ROW = 25  # pixels of one
KEPT = 0.9  # of the probability: a head is not missed

frame = sheet.start_page("Knock-out", choices=[*target.PARAMS, NULL, MEASURE, PART, MAP, BESIDE, many.SET])
prompt = sheet.read_text(frame)
scene = sheet.trace(prompt)
lm = scene.lm
n_heads = scene.lm.config.n_heads
explained = target.target_input(scene, "Token to watch")
PART.within(KINDS)
with st.container(horizontal=True, vertical_alignment="bottom", gap="medium", key="set_knock_out"):
    null = NULL.choose("A muted part gives", GIVES)
    measure = MEASURE.choose("What is lost is measured by the", MEASURES)
asked = scene.position, explained.token, explained.against
token = as_code(explained.shown)
parts = len(parts_of(lm))
difference = f"the logit of {token} minus {compared_with(explained.against_shown)}"
what = f"the probability of {token}" if measure == "probability" else difference


def program() -> None:
    """*In code*."""
    pair = (explained.token, explained.against)
    sheet.code_of(scene, [TransformerBlock.forward], knock_out, pair, null, scene.position)


if not is_wanted(MAP, lm, scene.position + 1, parts):
    if MAP.value == "off":
        st.info("Stopped. A map with gaps would look as if those parts did not matter: none is shown.")
    label = f"Mute each of the {parts} parts in turn ({scene.position + 1} tokens, {parts} passes)"
    button(label, "knock_out_start", MAP.set, "on", primary=True)
    example_row(*EXAMPLES)
    program()
    end_page()

# ---- what is lost without each part ----

own = Both(scene.run, scene.other).map(lambda run: target.whole(run, *asked))
table = knocked(scene, explained, "knock_out_stop", lambda: MAP.set("off"), null)
old = None
if scene.other is not None and is_wanted(BESIDE, lm, scene.position + 1, 2 * parts):
    old = knocked(scene, explained, "knock_out_stop_beside", lambda: BESIDE.set("off"), null, scene.other)
tables = Both(table, old)
lost = tables.map(lambda t: (t["lost"] if measure == "probability" else -t["effect"]).to_numpy(float))
labels = [label_of(*row) for row in zip(table["kind"], table["block"], table["head"], strict=True)]
order = np.argsort(-np.abs(lost.now), kind="stable").tolist()  # the largest first, whatever its sign
is_head = table["kind"] == "head"
strongest = next(row for row in order if is_head[row])


def number(logit: float, probability: float) -> str:
    """The chosen measure as the page shows it: the probability, or the logit to two decimals."""
    return probability_text(probability) if measure == "probability" else fixed(logit, 2)


def without(row: int) -> Both[str]:
    """The chosen measure of a pass without the part of this row, changed and unchanged model."""
    return tables.map(lambda t: number(*t[["logit", "probability"]].iloc[row]))


def open_part(block: int, column: int) -> None:
    """Callback: a part is opened, by its place on the map."""
    BLOCK.set(block)
    PART.set(KINDS[max(0, column - n_heads + 1)])
    if column < n_heads:
        HEAD.set(column)


block = BLOCK.within(lm.config.n_layers)
head = HEAD.within(n_heads)
column = head if PART.value == "head" else n_heads + KINDS.index(PART.value) - 1
# as long as nobody chose
opened = strongest if block is None or column is None else block * (n_heads + 2) + column
harmless = int((table["probability"][is_head] >= KEPT * own.now[1]).sum())
now = own.map(lambda w: number(*w))
text = f"After {as_code(scene.label)} (position {scene.position}) {what} is **{now}**. "
still = table[["effect", "lost"]].abs().max(axis=1) <= ROUNDING
stays = f"**{without(strongest)}**"
first = f"Without {labels[order[0]]} it is {without(order[0])};"
if still.all():
    text += f"Muted one at a time, none of the {parts} parts changes it: it stays {stays}. "
elif still[is_head].all():
    text += f"{first} no single head changes it: it stays {stays}. "
elif order[0] == strongest:
    text += f"No part changes it as much as {labels[strongest]}: {stays} without it. But "
else:
    text += f"{first} of single heads {labels[strongest]} changes most: {stays} without it. But "
heads = counted(int(is_head.sum()), "head")
said = f"{text}{harmless} of the {heads} can be muted, one at a time, and at least nine tenths of the "
said += "probability stay."
prose(said, "logit", "block", "head")
left, right = st.columns([5, 4], gap="medium")
with left:
    st.caption("A row is a block: heads by number, attention (att), feed-forward (ff). Click a cell.")
    alt = f"What muting each part takes away from the {MEASURES[measure]} of {explained.shown}"
    muted_map(scene, lost, divmod(opened, n_heads + 2), "knock_out_map", alt, open_part)
with right:
    rows = order[:LISTED]

    def hovers(found: pd.DataFrame) -> list[str]:
        says = "without {}: probability {}, logit difference {}".format
        few = found.iloc[rows]
        written = few["probability"].map(probability_text), few["logit"].map(lambda logit: fixed(logit, 3))
        return list(map(says, [labels[row] for row in rows], *written))

    st.caption(f"The {len(rows)} largest, with the {MEASURES[measure]} that is left")
    sheet.bars(
        scene,
        "knock_out_list",
        lost.map(lambda values: values[rows]),
        [labels[row] for row in rows],
        "",
        f"The parts whose muting changes the {MEASURES[measure]} of {explained.shown} most",
        lambda place: open_part(*divmod(rows[place], n_heads + 2)),
        at=rows.index(opened) if opened in rows else None,
        says=tables.map(hovers),
        lying=True,
        signed=True,
        text=Both([without(row).now for row in rows]),
        height=ROW * len(rows) + 60,
    )
if scene.other is not None:  # here, so that the map stays in the first screen
    text = "Each part is muted in the changed model, on top of what is changed."
    if old is not None:
        text += " The outlined bars are what muting it takes away from the unchanged one."
    st.caption(text)
    if old is None:
        button("Work out the unchanged model's map, too", "knock_out_beside", BESIDE.set, "on")

# ---- the opened part ----

sheet.end_unless_near("opened")
row = table.iloc[opened]
name = labels[opened]
both = own.map(lambda w: w[1]), tables.map(lambda t: t["probability"].iloc[opened])
chances = [p.map(probability_text) for p in both]
if row["effect"] == 0 or still.iloc[opened]:
    same = "to the last digit" if row["effect"] == 0 else "but for rounding"
    st.markdown(
        f"Without {name} the prediction is the same, {same}: the probability of {token} stays {chances[1]}."
    )
else:
    moves = "falls" if row["effect"] < 0 else "rises"
    prose(
        f"With {GIVES[null]} in place of what {name} gives, the probability of {token} goes from "
        f"{chances[0]} to **{chances[1]}**, and {difference} {moves} by "
        f"{significant(abs(row['effect']))}: number {order.index(opened) + 1} of {parts} by size."
    )
one = None if pd.isna(row["head"]) else int(row["head"])
menu(scene, Part(row["kind"], int(row["block"]), one), key="knock_out")
with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
    where = f"block {row['block']}"
    links = {
        "head": ("attention", f"See where {where}, head {one} looks"),
        "attention": ("attention", f"See where the heads of {where} look"),
        "feed-forward": ("feed_forward", f"See the feed-forward of {where}"),
    }
    there = in_link((BLOCK, HEAD), {"block": int(row["block"])} | ({} if one is None else {"head": one}))
    pair = in_link(target.PARAMS)
    for to, label, more in (
        (*links[row["kind"]], there),
        ("why", "What each part wrote for the word itself: Why this token?", pair),
        ("circuit", "Which heads are enough? The circuit", pair),
    ):
        link(to, state.link() | more, label=label)
text = f"**What to look for.** A muted part gives {GIVES[null]}, and all else runs again. {WHAT_FOR[null]} "
text += f"Orange: without the part {what} falls. Blue: it rises. "
opposite = int((np.sign(table["effect"]) != np.sign(-table["lost"])).sum())
if measure == "logit" and opposite:
    text += f"For {opposite} of the {parts} parts the probability goes the other way: "
    text += "it depends on all large logits. "
said = f"{text}A part of little colour need not be idle: others may do the same work, or stand in for it "
said += "once it is gone. So what is lost one by one does not add up to what is lost together."
prose(said, "residual stream", "feed-forward")
example_row(*EXAMPLES)
drawn = ("lost", 1) if measure == "probability" else ("effect", -1)
nouns = ("what muting {} takes away", f"of the {MEASURES[measure]}")
many.section(scene, knock_out, {"baseline": null}, MEASURED, drawn, table, labels, nouns, parts)
caption = "Each part with the prediction without it: `logit` (minus the mean over the vocabulary, or minus "
caption += "the other token's), the probability, the effect on `logit` (below zero where the token loses), "
caption += "and what is lost of the probability."
sheet.numbers_of("knock-out", tables, caption, what="every part")
program()
