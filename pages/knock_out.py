"""Switch off every head, attention and feed-forward layer in turn, and see what it costs the prediction."""

from functools import partial

import numpy as np
import pandas as pd
import streamlit as st

from gptviz.analysis import ablation, shares
from gptviz.both import Both
from gptviz.figures import candidates as figures
from gptviz.ui import many, sheet, words
from gptviz.ui.components.candidates import candidate_bars
from gptviz.ui.shell import bench, change_menu, muted, state, target
from gptviz.ui.shell.navigation import called, link

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
    "other": "We replace one part's output by what it is in the other text at the same position, and run "
    "the rest again: what is lost there is what tells the two texts apart.",
}
KEPT_WORDS = {
    "logit": "the logit difference that is left",
    "probability": "what is left of the probability",
    "loss": "the loss",
}
UNITS = {"logit": "logits", "probability": "in probability (1 is all)", "loss": "nats"}
# over many texts: where the part held the answer down
OTHERWISE = {
    "logit": "by how much the logit difference rises without {}",
    "probability": "by how much the probability rises without {}",
    "loss": "by how much the loss falls without {}",
}
EXAMPLES = ("A copied passage", "A name comes back", "A quotation closes")
FIRST = 5  # tokens of the guess, before and after
LISTED = 12  # bars of the list
ROW = 25  # pixels of one
IN_PAPERS = "Papers call this *ablation*."
KEPT = 0.9  # of the probability: a head is not missed
LOST = 0.5  # of the probability: a change has lost the word

frame = sheet.start_page(
    "Switch parts off",
    choices=[*bench.PARAMS, PART, MAP, BESIDE, sheet.guess_first.GUESS, *many.PARAMS],
)
prompt = sheet.read_text(frame)
scene = sheet.trace(prompt)

lm = scene.lm
n_heads = scene.lm.config.n_heads
explained = bench.bar(scene)
scene = explained.in_files(scene)
null = explained.baseline
measure = explained.measure
above = st.container()  # the sentence and the picture; below them what can be set
PART.within(muted.KINDS)
token = words.as_code(explained.shown)
parts = len(ablation.parts_of(lm))
difference = explained.difference
what = explained.watched
gives = ""
to_zero = ""  # whatever the map puts there, the button puts zero
if null != "zero":
    to_zero = " (then it outputs 0)"
    gives = f" (it outputs {explained.gives})"
takes = "takes away"
if measure == "loss":
    takes = "adds"
nothing = "nothing switched off"  # before a part of the map is
if scene.run.edits:
    nothing = "nothing more switched off"


def program() -> None:
    """The program, in *Details*."""
    pair = (explained.token, explained.against)
    sheet.code_of(scene, ["block"], ablation.knock_out, pair, null, scene.position)


if not sheet.is_wanted(MAP, lm, scene.position + 1, parts):
    with above:
        if MAP.value == "off":
            st.info("Stopped. There is no map: its gaps would look like parts that do not matter.")
        label = f"Switch off each of the {parts} parts in turn ({scene.position + 1} tokens, {parts} passes)"
        sheet.button(label, "knock_out_start", MAP.set, "on", primary=True)
    sheet.example_row(*EXAMPLES)
    with sheet.details():
        program()
    sheet.end_page()

# ---- what is lost without each part ----

runs_of_both = Both(scene.run, scene.other)
own = runs_of_both.map(partial(explained.of, position=scene.position))
old = None
with above:
    table = muted.knocked(scene, explained, "knock_out_stop", lambda: MAP.set("off"), null)
    if scene.other is not None and sheet.is_wanted(BESIDE, lm, scene.position + 1, 2 * parts):
        old = muted.knocked(
            scene,
            explained,
            "knock_out_stop_beside",
            lambda: BESIDE.set("off"),
            null,
            scene.other,
        )
tables = Both(table, old)
lost = tables.map(partial(muted.lost, measure=measure))
labels = [
    shares.label_of(*row) for row in zip(table["kind"], table["block"], table["head"], strict=True)
]
# the largest first, whatever its sign
order = np.argsort(-np.abs(lost.now), kind="stable").tolist()
is_head = table["kind"] == "head"
strongest = next(row for row in order if is_head[row])
largest = order[0]
still = ablation.changes_nothing(table)
said_names = [
    shares.spoken(*part) for part in zip(table["kind"], table["block"], table["head"], strict=True)
]
probabilities = table["probability"].to_numpy(float)
chances = runs_of_both.map(partial(explained.chance, position=scene.position))
own_probability = chances.now


def open_part(block: int, column: int) -> None:
    """Callback: another part is looked at, by its place on the map."""
    state.BLOCK.set(block)
    PART.set(muted.KINDS[max(0, column - n_heads + 1)])
    if column < n_heads:
        state.HEAD.set(column)


def rescuer() -> int | None:
    """The row of a part that brings back, when it is off, a word that the change had lost: a head if there is one."""
    if chances.was is None or own_probability > LOST * chances.was:
        return None
    back = np.flatnonzero(probabilities >= KEPT * chances.was)
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
        return f"With {shares.spoken('head', edit.block, heads[0])} off"
    return "With your change"


def left_in(found: pd.DataFrame, row: int) -> str:
    """What is left without the part of this row of a table, in the chosen measure."""
    return explained.number(float(found[measure].iloc[row]))


def left_without(row: int) -> str:
    """What is left without the part of this row, for a sentence."""
    return left_in(table, row)


rescue = None
if measure == "probability":
    rescue = rescuer()
watched = explained.briefly
counted_from = ""
if measure == "logit" and watched != difference:
    counted_from = f" ({difference})"
whole = own.map(explained.number)

block = state.BLOCK.within(lm.config.n_layers)
head = state.HEAD.within(n_heads)
if PART.value == "head":
    column = head
else:
    column = n_heads + muted.KINDS.index(PART.value) - 1
is_chosen = block is not None and column is not None
if block is not None and column is not None:
    opened = block * (n_heads + 2) + column
elif rescue is not None:  # as long as nobody chose
    opened = rescue
elif still[strongest]:
    opened = largest
else:  # a head that the guess needs, where there is one
    opened = next((row for row in order if is_head[row] and lost.now[row] > 0), strongest)
name = said_names[opened]
after = f"after {words.as_code(scene.label)} (position {scene.position})"


def with_nothing_off() -> str:
    """What the page measures before a part is off, and before a change of the model."""
    if whole.arrow() == whole.now:
        return f"With {nothing} it is {whole.now} {after}{counted_from}."
    yours = "Your change"
    if len(scene.run.edits) > 1:
        yours = "Your changes"
    return f"{yours} alone, {after}: **{whole.arrow()}**{counted_from}."


def is_changed_already() -> bool:
    """Whether a change of the model replaces what the opened part gives, at every position."""
    muting = ablation.parts_of(lm)[opened].edit("zero")
    return any(
        edit.site == muting.site
        and edit.block in (muting.block, "*")
        and edit.positions is None
        and (edit.heads is None or set(muting.heads or ()) <= set(edit.heads))
        for edit in scene.run.edits
    )


def of_the_opened() -> list[str]:
    """What switching the opened part off does: the picture in a sentence, and what it is compared with."""
    left = left_without(opened)
    if opened == rescue:
        back = f"{with_change()}, switching off {name} as well{gives} brings {token} back to **{left}**."
        return [back, with_nothing_off()]
    if still.all():
        same = f"Switching off any single part changes nothing: {watched} stays **{whole.now}**."
        return [same, with_nothing_off()]
    if left == whole.now and is_changed_already():
        again = f"Your change is of {name} already. Switching it off{gives} changes nothing more"
        return [f"{again}: {watched} stays at **{left}**.", with_nothing_off()]
    if left == whole.now:
        return [f"Without {name}{gives}, {watched} stays at **{left}**.", with_nothing_off()]
    moves = "rises"
    if (lost.now[opened] > 0) == (measure != "loss"):
        moves = "falls"
    if not is_chosen or whole.arrow() != whole.now:
        return [
            f"Switch off {name}{gives}, and {watched} {moves} to **{left}**.",
            with_nothing_off(),
        ]
    return [f"Without {name}{gives}, {watched} {moves}: **{whole.now} → {left}**{counted_from}."]


def of_all_parts() -> list[str]:
    """Which parts change the prediction most, and how many heads can go."""
    if still.all():
        return []
    said = []
    if rescue is not None and opened != rescue:
        said.append(
            f"Switch off {said_names[rescue]}{gives} instead, and {token} is back at **{left_without(rescue)}**."
        )
    if still[is_head].all():
        said.append("No single head changes it.")
    elif strongest not in (opened, rescue):
        said.append(
            f"Of the single heads, {said_names[strongest]} changes it most, to "
            f"**{left_without(strongest)}**."
        )
    harmless = int((probabilities[is_head] >= KEPT * own_probability).sum())
    heads = words.counted(int(is_head.sum()), "head")
    said.append(
        f"{harmless} of the {heads} can go, each alone: {token} keeps at least nine tenths of its "
        "probability."
    )
    return said


def guess() -> None:
    """The next tokens' bars: they slide from the model with the opened part to the one without it."""
    part = ablation.parts_of(lm)[opened]
    without = scene.run.edited(part.edit(null))
    watch = (explained.token, *([] if explained.against is None else [explained.against]))
    came = None
    if scene.position + 1 < len(scene.tokens):
        came = scene.tokens[scene.position + 1].id
    found = [target.choices_at(run, scene.position, FIRST, watch) for run in (scene.run, without)]
    # each has a row for the first tokens of both
    both = tuple(dict.fromkeys(int(i) for one in found for i in one.table["id"]))
    before, now = (
        target.choices_at(run, scene.position, FIRST, both) for run in (scene.run, without)
    )
    shown = partial(words.show_id, lm)
    rows, rest = figures.before_and_after(before, now, name, shown, FIRST, watch, came)
    what_happened = f"{hash((without, scene.position)):x}"
    place = name.replace(" ", "-").replace("·", "-")
    candidate_bars(
        rows,
        rest,
        figures.ON_OFF,
        None,
        action="",
        key="knock_out_guess",
        outlined=what_happened,
        saved=scene.saved("knock_out_guess", f"The next token without {name}{gives}", place),
    )


def with_all_parts() -> None:
    """The next tokens' bars with the opened part, as long as the reader guesses what becomes of them."""
    found = target.choices_at(scene.run, scene.position, FIRST, (explained.token,))
    rows, rest = figures.plain_rows(found, partial(words.show_id, lm))
    heads = {"token": "token", "p": figures.ON}
    saved = scene.saved("knock_out_guess", f"The next token with {name}")
    candidate_bars(rows, rest, heads, None, action="", key="knock_out_guess", saved=saved)


place_of_head = table.iloc[strongest]
example = f"Head {place_of_head['block']}·{place_of_head['head']}: "
example += f"block {place_of_head['block']}, head {place_of_head['head']}, counted from 0."
one = None
if not pd.isna(table["head"].iloc[opened]):
    one = int(table["head"].iloc[opened])
with above:
    part = f"{name}{gives}"
    without_opened = float(probabilities[opened])
    is_guess_open = sheet.guess_first.is_open(
        scene, explained, part, own_probability, without_opened
    )
    if is_guess_open:
        sheet.guess_first.cover_rest("knock_out", "knock_out_guess")
    words.prose(
        " ".join([*of_the_opened(), *of_all_parts(), IN_PAPERS]),
        "logit",
        "block",
        "head",
        "ablation",
    )
    left, right = st.columns([5, 4], gap="medium")
    with left:
        if is_guess_open:
            with_all_parts()
        else:
            guess()
        sheet.guess_first.switch()
    with right:
        to = "from"
        if measure == "loss":
            to = "to"
        alt = f"What switching off each part (it outputs {explained.gives}) {takes} {to} the {explained.axis}"
        place = divmod(opened, n_heads + 2)
        muted.muted_map(scene, lost, place, "knock_out_map", alt, open_part, takes)
        menu = change_menu.Part(table["kind"].iloc[opened], int(table["block"].iloc[opened]), one)
        change_menu.menu(scene, menu, key="knock_out")
        st.caption(
            "**Click a cell to see the guess without that part.** The button above switches it off "
            f"on every page{to_zero}. A row is a block: its heads, attention (att), feed-forward (ff). "
            f"{example} A part can matter more than it votes (*{called('why')}*): later parts read what it writes."
        )

# ---- the parts that change it most ----

sheet.end_unless_near("parts")
st.subheader("Which parts matter most?", anchor=False)
rows = order[:LISTED]


def hovers(found: pd.DataFrame) -> list[str]:
    says = "without {}: probability {}, logit difference {}".format
    few = found.iloc[rows]
    written = (
        few["probability"].map(words.probability_text),
        few["logit"].map(lambda logit: words.fixed(logit, 3)),
    )
    return list(map(says, [labels[row] for row in rows], *written))


def left_of(found: pd.DataFrame) -> np.ndarray:
    """What is left without each listed part, (rows,), in the chosen measure."""
    return found[measure].to_numpy(float)[rows]


kept_words = KEPT_WORDS[measure]
text = f"Bar: {kept_words} without the part. Dashed line: with {nothing}. "
text += "The parts are sorted by how much switching them off changes."
if scene.other is not None:
    text += " Every part is switched off in the changed model, on top of what you changed."
if old is not None:
    text += " Outlined bars: the same in the unchanged model. Numbers: unchanged → changed."
st.caption(text)
sheet.bars(
    scene,
    "knock_out_list",
    tables.map(left_of),
    [labels[row] for row in rows],
    "",
    f"The {explained.axis} without the parts that change it most (each outputs {explained.gives})",
    lambda place: open_part(*divmod(rows[place], n_heads + 2)),
    at=rows.index(opened) if opened in rows else None,
    says=tables.map(hovers),
    rests=[(own.now, f"{nothing}: {whole.now}")],
    lying=True,
    text=Both([tables.map(partial(left_in, row=row)).arrow() for row in rows]),
    height=ROW * len(rows) + 60,
)
if scene.other is not None and old is None:
    sheet.button("Compare with the unchanged model", "knock_out_beside", BESIDE.set, "on")

# ---- the opened part ----

sheet.end_unless_near("opened")
row = table.iloc[opened]
st.subheader(f"What changes without {name}?", anchor=False)
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
        f"With {name} off, the probability of {token} goes from {with_it} to **{without_it}**, and "
        f"{difference} {moves} by {words.significant(abs(row['effect']))}. By the size of the change "
        f"this part is number {order.index(opened) + 1} of {parts}."
    )
if scene.other is None and probabilities[opened] <= LOST * own_probability:
    st.markdown(
        f"**Try two.** Press *Switch off* to keep {name} off, and click a second part on the map. Sometimes "
        "the word comes back."
    )
with st.container(horizontal=True, vertical_alignment="center", gap="medium"):
    where = f"block {row['block']}"
    links = {
        "head": ("attention", f"See where {where}, head {one} looks"),
        "attention": ("attention", f"See where the heads of {where} look"),
        "feed-forward": ("feed_forward", f"See the feed-forward of {where}"),
    }
    of_part: dict[sheet.Param[int | None], int] = {state.BLOCK: int(row["block"])}
    if one is not None:
        of_part[state.HEAD] = one
    there = sheet.choosing(of_part)
    pair = sheet.in_link(bench.PARAMS)
    for to, label, more in (
        (*links[row["kind"]], there),
        ("why", "Which parts vote for the word directly? Why this token?", pair),
        ("circuit", "Which heads are enough? The circuit", pair),
    ):
        link(to, state.link() | more, label=label)
colours = f"Orange on the map: without the part, {what} falls. Blue: it rises. "
if measure == "loss":
    colours = f"Orange on the map: without the part, {what} rises. Blue: it falls. "
text = f"**What to look for.** {WHAT_FOR[explained.null]} {colours}"
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
nouns = (f"what switching off {{}} {takes}", UNITS[measure], OTHERWISE[measure])
many.section(
    scene,
    explained,
    ablation.knock_out,
    {"baseline": explained.null},
    ablation.MEASURED,
    muted.LOST[measure],
    lambda: table,
    labels,
    nouns,
    parts,
    grid=many.Grid(
        [f"block {b}" for b in range(lm.config.n_layers)],
        [*(f"head {h}" for h in range(n_heads)), "attention", "feed-forward"],
        "All parts: the mean of what each takes away. A hover says the standard error.",
        f"What switching off each part takes away from the {explained.axis}",
    ),
)
caption = (
    "The prediction without each part: `logit` (minus the mean over the vocabulary, or "
    "minus the other token's), the probability, the effect on `logit` (below zero where the token "
    "loses), what is lost of the probability, the loss in nats, and by how much it rises."
)
with sheet.details():
    sheet.numbers_of("knock-out", tables, caption, what="every part")
    program()
