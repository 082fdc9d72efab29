"""Knock-out: every head, attention and feed-forward muted in turn, and what becomes of the prediction."""

import numpy as np
import pandas as pd
import streamlit as st

from gptviz.analysis import ablation
from gptviz.analysis.moved import ROUNDING
from gptviz.analysis.shares import label_of
from gptviz.both import Both
from gptviz.model import TransformerBlock
from gptviz.ui import many, sheet, words
from gptviz.ui.shell import change_menu, muted, state, target
from gptviz.ui.shell.navigation import link

NULL: sheet.Param[str] = sheet.Param("null", str, "zero", sheet.if_there)
MEASURE: sheet.Param[str] = sheet.Param("measure", str, "probability", sheet.if_there)
# of the block: its head, attention, feed-forward
PART: sheet.Param[str] = sheet.Param("part", str, "head", sheet.if_there)
# None: as long as it is quick
MAP: sheet.Param[str | None] = sheet.Param("map", str, None, sheet.if_there)
# the unchanged model's, likewise
BESIDE: sheet.Param[str | None] = sheet.Param("map_unchanged", str, None, sheet.if_there)

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

frame = sheet.start_page(
    "Knock-out", choices=[*target.PARAMS, NULL, MEASURE, PART, MAP, BESIDE, many.SET]
)
prompt = sheet.read_text(frame)
scene = sheet.trace(prompt)

lm = scene.lm
n_heads = scene.lm.config.n_heads
explained = target.target_input(scene, "Token to watch")
PART.within(muted.KINDS)
with st.container(horizontal=True, vertical_alignment="bottom", gap="medium", key="set_knock_out"):
    null = NULL.choose("A muted part gives", muted.GIVES)
    measure = MEASURE.choose("What is lost is measured by the", MEASURES)
asked = scene.position, explained.token, explained.against
token = words.as_code(explained.shown)
parts = len(ablation.parts_of(lm))
difference = f"the logit of {token} minus {words.compared_with(explained.against_shown)}"
if measure == "probability":
    what = f"the probability of {token}"
else:
    what = difference


def program() -> None:
    """*In code*."""
    pair = (explained.token, explained.against)
    sheet.code_of(scene, [TransformerBlock.forward], ablation.knock_out, pair, null, scene.position)


if not sheet.is_wanted(MAP, lm, scene.position + 1, parts):
    if MAP.value == "off":
        st.info(
            "Stopped. A map with gaps would look as if those parts did not matter: none is shown."
        )
    label = f"Mute each of the {parts} parts in turn ({scene.position + 1} tokens, {parts} passes)"
    sheet.button(label, "knock_out_start", MAP.set, "on", primary=True)
    sheet.example_row(*EXAMPLES)
    program()
    sheet.end_page()

# ---- what is lost without each part ----

own = Both(scene.run, scene.other).map(lambda run: target.whole(run, *asked))
table = muted.knocked(scene, explained, "knock_out_stop", lambda: MAP.set("off"), null)
old = None
if scene.other is not None and sheet.is_wanted(BESIDE, lm, scene.position + 1, 2 * parts):
    old = muted.knocked(
        scene, explained, "knock_out_stop_beside", lambda: BESIDE.set("off"), null, scene.other
    )
tables = Both(table, old)
lost = tables.map(
    lambda t: (t["lost"] if measure == "probability" else -t["effect"]).to_numpy(float)
)
labels = [label_of(*row) for row in zip(table["kind"], table["block"], table["head"], strict=True)]
# the largest first, whatever its sign
order = np.argsort(-np.abs(lost.now), kind="stable").tolist()
is_head = table["kind"] == "head"
strongest = next(row for row in order if is_head[row])


def number(logit: float, probability: float) -> str:
    """The chosen measure as the page shows it: the probability, or the logit to two decimals."""
    if measure == "probability":
        return words.probability_text(probability)
    return words.fixed(logit, 2)


def without(row: int) -> Both[str]:
    """The chosen measure of a pass without the part of this row, changed and unchanged model."""
    return tables.map(lambda t: number(*t[["logit", "probability"]].iloc[row]))


def open_part(block: int, column: int) -> None:
    """Callback: a part is opened, by its place on the map."""
    state.BLOCK.set(block)
    PART.set(muted.KINDS[max(0, column - n_heads + 1)])
    if column < n_heads:
        state.HEAD.set(column)


block = state.BLOCK.within(lm.config.n_layers)
head = state.HEAD.within(n_heads)
if PART.value == "head":
    column = head
else:
    column = n_heads + muted.KINDS.index(PART.value) - 1
# as long as nobody chose
if block is None or column is None:
    opened = strongest
else:
    opened = block * (n_heads + 2) + column
_, own_probability = own.now
harmless = int((table["probability"][is_head] >= KEPT * own_probability).sum())
now = own.map(lambda w: number(*w))
text = f"After {words.as_code(scene.label)} (position {scene.position}) {what} is **{now}**. "
still = table[["effect", "lost"]].abs().max(axis=1) <= ROUNDING
stays = f"**{without(strongest)}**"
largest = order[0]
first = f"Without {labels[largest]} it is {without(largest)};"
if still.all():
    text += f"Muted one at a time, none of the {parts} parts changes it: it stays {stays}. "
elif still[is_head].all():
    text += f"{first} no single head changes it: it stays {stays}. "
elif largest == strongest:
    text += f"No part changes it as much as {labels[strongest]}: {stays} without it. But "
else:
    text += f"{first} of single heads {labels[strongest]} changes most: {stays} without it. But "
heads = words.counted(int(is_head.sum()), "head")
said = (
    f"{text}{harmless} of the {heads} can be muted, one at a time, and at least nine tenths of the "
    "probability stay."
)
words.prose(said, "logit", "block", "head")
left, right = st.columns([5, 4], gap="medium")
with left:
    st.caption(
        "A row is a block: heads by number, attention (att), feed-forward (ff). Click a cell."
    )
    alt = f"What muting each part takes away from the {MEASURES[measure]} of {explained.shown}"
    muted.muted_map(scene, lost, divmod(opened, n_heads + 2), "knock_out_map", alt, open_part)
with right:
    rows = order[:LISTED]

    def hovers(found: pd.DataFrame) -> list[str]:
        says = "without {}: probability {}, logit difference {}".format
        few = found.iloc[rows]
        written = (
            few["probability"].map(words.probability_text),
            few["logit"].map(lambda logit: words.fixed(logit, 3)),
        )
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
        sheet.button(
            "Work out the unchanged model's map, too", "knock_out_beside", BESIDE.set, "on"
        )

# ---- the opened part ----

sheet.end_unless_near("opened")
row = table.iloc[opened]
name = labels[opened]
with_it = own.map(lambda measured: words.probability_text(measured[1]))
without_it = tables.map(lambda t: words.probability_text(t["probability"].iloc[opened]))
if row["effect"] == 0 or still.iloc[opened]:
    same = "but for rounding"
    if row["effect"] == 0:
        same = "to the last digit"
    st.markdown(
        f"Without {name} the prediction is the same, {same}: the probability of {token} stays {without_it}."
    )
else:
    moves = "falls" if row["effect"] < 0 else "rises"
    words.prose(
        f"With {muted.GIVES[null]} in place of what {name} gives, the probability of {token} goes "
        f"from {with_it} to **{without_it}**, and {difference} {moves} by "
        f"{words.significant(abs(row['effect']))}: number {order.index(opened) + 1} of {parts} by "
        "size."
    )
one = None if pd.isna(row["head"]) else int(row["head"])
change_menu.menu(scene, change_menu.Part(row["kind"], int(row["block"]), one), key="knock_out")
with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
    where = f"block {row['block']}"
    links = {
        "head": ("attention", f"See where {where}, head {one} looks"),
        "attention": ("attention", f"See where the heads of {where} look"),
        "feed-forward": ("feed_forward", f"See the feed-forward of {where}"),
    }
    there = sheet.in_link(
        (state.BLOCK, state.HEAD),
        {"block": int(row["block"])} | ({} if one is None else {"head": one}),
    )
    pair = sheet.in_link(target.PARAMS)
    for to, label, more in (
        (*links[row["kind"]], there),
        ("why", "What each part wrote for the word itself: Why this token?", pair),
        ("circuit", "Which heads are enough? The circuit", pair),
    ):
        link(to, state.link() | more, label=label)
text = (
    f"**What to look for.** A muted part gives {muted.GIVES[null]}, and all else runs again. "
    f"{WHAT_FOR[null]} Orange: without the part {what} falls. Blue: it rises. "
)
opposite = int((np.sign(table["effect"]) != np.sign(-table["lost"])).sum())
if measure == "logit" and opposite:
    text += (
        f"For {opposite} of the {parts} parts the probability goes the other way: it depends on "
        "all large logits. "
    )
said = (
    f"{text}A part of little colour need not be idle: others may do the same work, or stand in for "
    "it once it is gone. So what is lost one by one does not add up to what is lost together."
)
words.prose(said, "residual stream", "feed-forward")
sheet.example_row(*EXAMPLES)
if measure == "probability":
    drawn = ("lost", 1)
else:
    drawn = ("effect", -1)
nouns = ("what muting {} takes away", f"of the {MEASURES[measure]}")
many.section(
    scene,
    ablation.knock_out,
    {"baseline": null},
    ablation.MEASURED,
    drawn,
    table,
    labels,
    nouns,
    parts,
)
caption = (
    "Each part with the prediction without it: `logit` (minus the mean over the vocabulary, or "
    "minus the other token's), the probability, the effect on `logit` (below zero where the token "
    "loses), and what is lost of the probability."
)
sheet.numbers_of("knock-out", tables, caption, what="every part")
program()
