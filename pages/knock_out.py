"""Knock-out: mute every head, attention and feed-forward layer in turn, and see what it costs the prediction."""

import numpy as np
import pandas as pd
import streamlit as st

from gptviz.analysis import ablation
from gptviz.analysis.moved import ROUNDING
from gptviz.analysis.shares import label_of, spoken
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
    "zero": "We set one part's output to zero and run the rest again. Later parts never learned to expect a zero.",
    "mean": "We replace one part's output by its mean over this text and run the rest again.",
    "sample": "We replace one part's output by its mean over a sample of other text, "
    "closer to what later parts expect, and run the rest again.",
}
MEASURES = {"logit": "logit difference", "probability": "probability"}
EXAMPLES = ("A copied passage", "A name comes back", "A quotation closes")
LISTED = 12  # bars of the list
ROW = 25  # pixels of one
KEPT = 0.9  # of the probability: a head is not missed
LOST = 0.5  # of the probability: a change has lost the word

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
    null = NULL.choose("A muted part outputs", muted.GIVES)
    measure = MEASURE.choose("Measure the loss as", MEASURES)
asked = scene.position, explained.token, explained.against
token = words.as_code(explained.shown)
parts = len(ablation.parts_of(lm))
difference = f"the logit of {token} minus {words.compared_with(explained.against_shown)}"
if measure == "probability":
    what = f"the probability of {token}"
else:
    what = difference


def program() -> None:
    """The program, in *Details*."""
    pair = (explained.token, explained.against)
    sheet.code_of(scene, [TransformerBlock.forward], ablation.knock_out, pair, null, scene.position)


if not sheet.is_wanted(MAP, lm, scene.position + 1, parts):
    if MAP.value == "off":
        st.info("Stopped. There is no map: its gaps would look like parts that do not matter.")
    label = f"Mute each of the {parts} parts in turn ({scene.position + 1} tokens, {parts} passes)"
    sheet.button(label, "knock_out_start", MAP.set, "on", primary=True)
    sheet.example_row(*EXAMPLES)
    with sheet.details():
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
said_names = [
    spoken(*part) for part in zip(table["kind"], table["block"], table["head"], strict=True)
]
probabilities = table["probability"].to_numpy(float)
_, own_probability = own.now


def rescuer() -> int | None:
    """The row of a part whose muting brings back a word that the change had lost: a head if there is one."""
    if own.was is None or own_probability > LOST * own.was[1]:
        return None
    back = np.flatnonzero(probabilities >= KEPT * own.was[1])
    if not len(back):
        return None
    return int(max(back, key=lambda row: (is_head[row], probabilities[row])))


def with_change() -> str:
    """The model's changes as a sentence begins: "With head 4·3 off"."""
    changes = scene.run.edits
    if len(changes) > 1:
        return "With your changes"
    edit = changes[0]
    heads = edit.heads or ()
    one_head = edit.site == "z" and len(heads) == 1
    if one_head and isinstance(edit.block, int) and edit.positions is None and edit.value == "zero":
        return f"With {spoken('head', edit.block, heads[0])} off"
    return "With your change"


def left_without(row: int) -> str:
    """What is left without the part of this row, in the chosen measure, for a sentence."""
    if measure == "probability":
        return words.percent(probabilities[row])
    return words.fixed(table["logit"].iloc[row], 2)


rescue = None
if measure == "probability":
    rescue = rescuer()
    watched = what
    whole = own.map(lambda measured: words.percent(measured[1]))
    counted_from = ""
else:
    watched = f"the logit of {token}"
    if explained.against_shown is not None:
        watched = f"the lead of {token} over {words.as_code(explained.against_shown)}"
    whole = own.map(lambda measured: words.fixed(measured[0], 2))
    counted_from = f" ({difference})"
harmless = int((probabilities[is_head] >= KEPT * own_probability).sum())
still = table[["effect", "lost"]].abs().max(axis=1) <= ROUNDING
largest = order[0]
after = f"after {words.as_code(scene.label)} (position {scene.position})"
nothing_muted = f"With nothing muted it is {whole.now} {after}{counted_from}. "
if whole.arrow() != whole.now:
    yours = "Your changes" if len(scene.run.edits) > 1 else "Your change"
    nothing_muted = f"{yours} alone, {after}: **{whole.arrow()}**{counted_from}. "
if rescue is not None:
    text = (
        f"{with_change()}, muting {said_names[rescue]} as well brings {token} back to "
        f"**{left_without(rescue)}**. {nothing_muted}"
    )
elif still.all():
    text = f"Muting any single part changes nothing: {watched} stays **{whole.now}** {after}{counted_from}. "
elif left_without(largest) == whole.now:
    text = f"Muting any single part hardly changes {watched}. {nothing_muted}"
else:
    moves = "falls" if lost.now[largest] > 0 else "rises"
    text = (
        f"Mute {said_names[largest]}, and {watched} {moves} to **{left_without(largest)}**. "
        f"{nothing_muted}"
    )
if still[is_head].all() and not still.all():
    text += "No single head changes it. "
elif not still.all() and strongest not in (largest, rescue):
    text += (
        f"Of the single heads, {said_names[strongest]} changes it most, to "
        f"**{left_without(strongest)}**. "
    )
if not still.all():
    heads = words.counted(int(is_head.sum()), "head")
    text += (
        f"{harmless} of the {heads} can go, one at a time: {token} keeps at least nine tenths of its "
        "probability."
    )
words.prose(text, "logit", "block", "head")
place_of_head = table.iloc[strongest]
example = (
    f"Head {place_of_head['block']}·{place_of_head['head']} is head {place_of_head['head']} of "
)
example += f"block {place_of_head['block']}."
left, right = st.columns([5, 4], gap="medium")
with left:
    st.caption(
        "Each row is a block: its heads by number, its attention (att), its feed-forward layer (ff). "
        f"{example} Click a cell to inspect it."
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

    bars_of = "Bar: how much muting the part takes away (orange) or adds (blue)"
    st.caption(f"{bars_of}. Number: the {MEASURES[measure]} that is left.")
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
        text=Both([left_without(row) for row in rows]),
        height=ROW * len(rows) + 60,
    )
if scene.other is not None:  # here, so that the map stays in the first screen
    text = "Every part is muted in the changed model, on top of what you changed."
    if old is not None:
        text += " Outlined bars: the same in the unchanged model."
    st.caption(text)
    if old is None:
        sheet.button("Compare with the unchanged model", "knock_out_beside", BESIDE.set, "on")

# ---- the opened part ----

sheet.end_unless_near("opened")
row = table.iloc[opened]
name = said_names[opened]
with_it = words.probability_text(own_probability)
without_it = words.probability_text(probabilities[opened])
if row["effect"] == 0 or still.iloc[opened]:
    same = "but for rounding"
    if row["effect"] == 0:
        same = "to the last digit"
    st.markdown(
        f"Without {name} the prediction stays the same, {same}: {token} has a probability of {without_it}."
    )
else:
    moves = "falls" if row["effect"] < 0 else "rises"
    words.prose(
        f"With {name} muted, the probability of {token} goes from {with_it} to **{without_it}**, and "
        f"{difference} {moves} by {words.significant(abs(row['effect']))}. By the size of the change "
        f"this part is number {order.index(opened) + 1} of {parts}."
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
        ("why", "Which parts vote for the word directly? Why this token?", pair),
        ("circuit", "Which heads are enough? The circuit", pair),
    ):
        link(to, state.link() | more, label=label)
text = f"**What to look for.** {WHAT_FOR[null]} Orange: without the part, {what} falls. Blue: it rises. "
opposite = int((np.sign(table["effect"]) != np.sign(-table["lost"])).sum())
if measure == "logit" and opposite:
    text += (
        f"For {opposite} of the {parts} parts the probability moves the other way, because it depends "
        "on all large logits. "
    )
said = (
    f"{text}A part with a small loss need not be idle: others may do the same work, or step in once it is "
    "gone. So the single losses do not add up to the loss of all parts together."
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
    "The prediction without each part: `logit` (minus the mean over the vocabulary, or "
    "minus the other token's), the probability, the effect on `logit` (below zero where the token "
    "loses), and what is lost of the probability."
)
with sheet.details():
    sheet.numbers_of("knock-out", tables, caption, what="every part")
    program()
