"""Every head of every block, one of them large, its steps, and the arithmetic behind one weight."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import streamlit as st
import torch

from gptviz import Edit
from gptviz.analysis import attention
from gptviz.analysis.head_scores import spans
from gptviz.analysis.head_trial import Trial
from gptviz.analysis.moved import pattern_moved
from gptviz.analysis.reach import positions_of
from gptviz.both import Both
from gptviz.figures import marks
from gptviz.figures.head_grid import moved_words, words_of
from gptviz.ui import heads, runs, sheet, words
from gptviz.ui.components import arcs, matrix
from gptviz.ui.components.heads import Thumbnail, head_grid
from gptviz.ui.components.saved import Saved
from gptviz.ui.parts.attention import key as key_choice
from gptviz.ui.shell import change_menu, state
from gptviz.ui.shell.block import shared_by, turned
from gptviz.ui.shell.change_words import says
from gptviz.ui.shell.strip import effect

AVERAGE = sheet.Param("average", bool, False)
HIDE = sheet.Param("hide_first", bool, False)
ARCS = sheet.Param("arcs", bool, False)
MASS: sheet.Param[int] = sheet.Param(
    "mass", int, 90, lambda value, masses: min(masses, key=lambda m: abs(m - value))
)

HALF = 0.5  # of a head's attention: more than all other tokens get together
FELT = 0.01  # bits between the predictions with a head and without it: below, it is hardly missed
NAMED = 3  # keys of a row that its sentence names
LEAST = 0.005  # attention weight of a key that is named
SIDE = 520  # pixels of the large matrix
SMALLER = 380  # under the strip of changes, or beside arcs
WINDOW = 1024  # tokens that a matrix holds: a head's weights are then 2 MiB
FEWEST = 8  # places on an axis of keys
TICKS = 24  # the most of them that are named
STEPS = (
    "attention_steps"  # what is drawn once its reader is near: eight small matrices, five charts
)
ARCS_WINDOW = 256  # and arcs, of all heads of a block: twelve heads' weights are then 1.5 MiB

frame = sheet.start_page(
    "Attention", choices=[key_choice.KEY, AVERAGE, HIDE, ARCS, MASS, sheet.SHOWN]
)
prompt = sheet.read_text(frame)
sites = sheet.head_sites(state.BLOCK.within(prompt.lm.config.n_layers))
scene = sheet.trace(prompt, keep=sites, reduce=sheet.head_reductions(prompt), strip=False)

lm = scene.lm
config = scene.lm.config
at = scene.position
labels = scene.labels
places = [words.Place(label, position) for position, label in enumerate(labels)]

# ---- which head, which key, of which model ----

sentence, doing = st.columns([3, 1], gap="small")
beside = None
if ARCS.value:  # the matrix, the arcs beside it, and the grid of heads below
    picture, beside = left, _ = st.columns([6, 7], gap="medium")
    grid, reading = st.columns([6, 7], gap="medium")
else:
    left, picture = st.columns([4, 5], gap="medium")
    grid = left
    reading = st.container()
way = st.container()
worked_out = st.container()

with left:  # all that chooses stands above the grid of heads, however many heads there are
    block, head = sheet.head_controls(scene)
    with st.container(horizontal=True, gap="small", key="attention_options"):
        about = "Show the mean over all heads of the chosen block."
        average = AVERAGE.widget(st.toggle, "Average", help=about)
        about = "Leave the first token out, and rescale the rest of each row to sum to 1 again."
        hide = HIDE.widget(st.toggle, "Hide first token", help=about)
        about = "Draw lines from each token to the tokens that it looks at, beside the matrix."
        ARCS.widget(st.toggle, "Arcs", help=about)
one = None if average else head
keep = sheet.head_sites(block)
scene.get(keep, scene.reduce)
if scene.other is not None:
    runs.get(scene.other, keep, scene.reduce)
own = sheet.of(scene, attention.weights, block, one)
drawn = sheet.of(scene, attention.weights, block, one, hide)
with picture:
    shown = sheet.shown(scene, own)
side = marks.CHANGED  # a difference has no lines, and no steps
if shown == marks.UNCHANGED:
    side = marks.UNCHANGED
row = [None if math.isnan(weight) else weight for weight in drawn.now[at, : at + 1].tolist()]
scene.strip(weights=row + [None] * (len(labels) - at - 1))
if sheet.is_near(STEPS):
    with worked_out:
        st.subheader("How one weight comes about", anchor=False)
        key = key_choice.key_input(scene, drawn.now[at, : at + 1])
else:
    key = key_choice.chosen(scene, drawn.now[at, : at + 1])
pick = key_choice.picker(scene)

# ---- what the head does ----

measured = heads.measured(scene.run)
role = measured.roles[block][head]
before = None  # the head in the unchanged model
if scene.other is not None:
    before = heads.measured(scene.other).roles[block][head]
withdrawn = heads.withdrawn(scene.run)
changed = heads.changed_in(scene.run, block, head)
put_here = {edit.site for edit in changed if at in positions_of(edit, len(labels))}
scaled = any(
    heads.scaled(scene.run, block, h) for h in (range(config.n_heads) if average else (head,))
)


def habit() -> str:
    """What the head does on this text, how strongly, and the rows (queries) that this is measured on."""
    rows = role.rows[role.kind]
    over = f"row {rows[0]}"
    if len(rows) > 1:
        over = f"rows {spans(rows)}"
    if over.count(",") >= 3:
        over = f"the {len(rows)} rows listed below"
    does = words.does(role, labels)
    if role.kind == "alone":
        return f"{does}."
    if role.kind == "nothing":
        return f"{does} in {over}."
    if role.share is None:
        spread = Both(role.spread, None if before is None else before.spread).arrow(".1")
        return (
            f"{does}. Its attention is spread as if over {spread} tokens of equal weight, "
            f"on average over {over}."
        )
    shares = Both(role.share)
    same_token = role.kind != "favourite" or (before and before.favourite == role.favourite)
    if before is not None and same_token:
        shares = Both(role.share, before.shares.get(role.kind))
    goes = f"**{shares.arrow('%')}** of its attention goes there, on average over {over}."
    if role.kind == "induction":
        does = "finds an earlier copy of the same token and looks at what came next"
        goes = f"It acts as an *induction head*: {goes}"
    return f"{does}. {goes}"


def withdrawn_says(trial: Trial) -> str:
    """That a label was withdrawn in its trial, and how much the model loses without the head."""
    return (
        "Its label was withdrawn: the model needs the head for more than that. "
        f"{words.capital(heads.cost_without(trial))} (see the page What each head does)."
    )


def gives(key: int) -> str:
    """The selected query's weight on a key as drawn; if rescaled, the model's own as well."""
    weight = f"{drawn.map(lambda w: float(w[at, key])).arrow('2')} to {places[key]}"
    if not hide:
        return weight
    return f"{weight} (the model: {words.significant(float(own.now[at, key]), 2)})"


with sentence:
    all_heads = words.counted(config.n_heads, "head")
    sentences = [f"This is the average over the {all_heads} of **block {block}**."]
    if not average:
        sentences = [f"**Block {block}, head {head}** {habit()}"]
        if (block, head) in withdrawn:
            sentences.append(withdrawn_says(withdrawn[block, head]))
    if hide:
        sentences.append(
            "**The first token is hidden, and the rest of each row is rescaled to sum to 1.** "
            "The model itself gives the first token a weight of "
            f"{words.significant(float(own.now[at, 0]), 2)} here."
        )
    ranked = sorted(range(at + 1), key=lambda k: -(row[k] or 0.0))[:NAMED]
    named = [gives(k) for k in ranked if (row[k] or 0.0) >= LEAST]
    if len(labels) == 1 and named and not hide and not scaled:
        sentences.append("With one token in the text, every head gives it a weight of 1.")
    elif named:
        sentences.append(f"{places[at]} gives weight {words.listed(named)}.")
    elif hide:
        sentences.append(f"{places[at]} gives nothing else.")
    else:
        sentences.append(f"{places[at]} gives nothing.")
    if scaled:
        sentences.append(heads.SCALED)
    if len(labels) == 1:
        sentences.append("Type a longer text to see heads differ.")
    for edit in (edit for edit in changed if edit.site == "z" and not average):
        change = words.capital(says(edit, labels))
        sentences.append(f"**{change}:** this changes what it hands on, not where it looks.")
    if own.was is not None and own.moved:
        by = pattern_moved(own.was, own.now)
        goes = f"**{words.percent(by)} of a row's attention now goes elsewhere**, on average."
        if scaled:
            goes = (
                f"**The change moves this pattern by {words.significant(by, 2)}**: what the "
                "weights of a row gain or lose, the larger of the two, on average."
            )
        if len(labels) > 1:  # the mean is over the rows behind the first
            sentences.append(goes)
    elif own.was is not None:
        sentences.append(sheet.why_same(scene, "this pattern", [("attn", block)], head=one))
    words.prose(" ".join(filter(None, sentences)), "block", "head", "attention")
with doing:
    parts = [
        change_menu.Part("attention", block),
        change_menu.Part("feed-forward", block),
        change_menu.Part("token", block, one, key),
    ]
    change_menu.menu(
        scene,
        *([] if average else [change_menu.Part("head", block, head)]),
        *parts,
        key="attention",
        narrow=True,
    )

# ---- the grid, the matrix, the lines ----


def thumbnail(b: int, h: int) -> Thumbnail:
    """The words of head `h` of block `b` in the grid: its label, and a sentence for the pointer."""
    head_role = measured.roles[b][h]
    write = measured.writes[b, h].item()
    shown_words = words_of(head_role, write, measured.writes.max().item())
    if (b, h) in withdrawn:
        shown_words["label"] = "".join(f"{character}\u0336" for character in shown_words["label"])
        shown_words["says"] = f"{withdrawn_says(withdrawn[b, h])} {shown_words['says']}"
    if scene.other is not None:
        shown_words = moved_words(shown_words, **heads.marks(scene.run)[b][h])
    return shown_words


def saved(name: str, title: str, *parts: str, of: str = side) -> Saved:
    """`Scene.saved` of the model that a picture is of; of two, which is in its title and file name."""
    if scene.other is None:
        return scene.saved(name, title, lm.name, *parts)
    return sheet.scene_of(scene, of).saved(name, f"{title}, {of}", lm.name, *parts, of)


def where(seen: slice) -> None:
    """Say which tokens of a long text a picture holds."""
    if seen.stop - seen.start < len(labels):
        st.caption(
            f"You see positions {seen.start} to {seen.stop - 1} of {len(labels):,} tokens. "
            "Select another token to move there."
        )


def why_the_first(first: attention.FirstToken) -> list[str]:
    """Why so much attention goes to the first token, and what this head has of it: a sentence each."""
    said = ["**Why the first token?**"]
    if first.draws_all:
        said = ["**Why is it so often the first token?**"]
    said.append(
        f"{places[0]} gets {words.percent(first.own)} of this head's attention, and "
        f"{words.percent(first.mean)} over all {words.counted(first.of, 'head')}, on average over "
        f"rows {spans(range(1, first.tokens))}. From heads that look at all tokens alike it would "
        f"get {words.percent(first.even)}."
    )
    if first.heads == 1:
        said.append("1 head gives it more than half.")
    elif first.heads > 1:
        said.append(f"{words.counted(first.heads, 'head')} give it more than half.")
    said.append(
        "Softmax makes every row sum to 1, even if a head finds nothing that it is made for. "
        "Every row can see the first token, so a head can rest there: an *attention sink*."
    )
    if first.own > HALF and not any(edit.site in ("v", "z") for edit in changed):
        said += takes_of_the_first(first)
    said.append("Switch on *Hide first token* to see the rest.")
    return said


def takes_of_the_first(first: attention.FirstToken) -> list[str]:
    """Whether a head that looks mostly at the first token rests there: by its value, and by the answer."""
    lengths = (
        f"its value vector for the first token has norm {words.fixed(first.value_norm, 1)}, "
        f"those for other tokens {words.fixed(first.other_norms, 1)} on average"
    )
    if not first.hands_little:
        return [f"This head takes something there: {lengths}."]
    # the pass without the head takes too long to be made unasked
    if sheet.is_asked_for(lm, len(labels), 1):
        return [f"{words.capital(lengths)}."]
    without = replace(scene.run, edits=(*scene.run.edits, Edit("z", block, "zero", [head])))
    moved = effect(without, scene.run, at)
    token = words.as_code(words.show_id(lm, moved.token))
    before = words.percent(moved.before)
    after = words.percent(moved.after)
    answer = f"with the head's output set to 0, {token} comes next with {after} instead of {before}"
    if moved.kl < FELT:
        return [f"This head rests there: {lengths}, and {answer}."]
    return [f"{words.capital(lengths)}. Yet the head matters here: {answer}."]


with grid:
    labelled = [[thumbnail(b, h) for h in range(config.n_heads)] for b in range(config.n_layers)]
    file = scene.saved("heads", "All heads: where each looks", lm.name)
    head_grid(
        *heads.thumbnails(scene.run, scene.mode),
        labelled,
        (block, head),
        state.open_head,
        saved=file,
    )
    if scene.other is not None:
        st.caption(heads.marks_say(scene.run))
part = f"head{head}"
title_of = f"Attention of block {block}, head {head}"
if average:
    part = "average"
    title_of = f"Attention of block {block}, average over heads"
seen = marks.window(at, len(labels), WINDOW)
inside = key if seen.start <= key < seen.stop else None
with picture:
    values, panel = matrix.pattern(drawn, shown, hide)
    matrix.matrix(
        "head", [panel], {"weights": values[seen, seen]}, labels[seen], at, inside, pick,
        largest=SMALLER if ARCS.value or scene.other is not None else SIDE, first=seen.start,
        saved=saved("attention", title_of, f"block{block}", part, of=shown),
    )  # fmt: skip
    where(seen)
if beside is not None:
    with beside:
        if shown == marks.DIFFERENCE:
            st.caption("The lines show the changed model: a difference has no lines.")
        few = marks.window(at, len(labels), ARCS_WINDOW)
        lanes = [head] if average else range(config.n_heads)
        if scene.other is not None and side == marks.UNCHANGED:
            of = scene.other
        else:
            of = scene.run
        sent = [
            sheet.once(of, attention.weights, block, None if average else h, hide)[few, few]
            for h in lanes
        ]
        arcs.arcs(
            "head", torch.stack(sent).numpy(), labels[few], at, key if few.start <= key < few.stop else None,
            block, lanes, lanes.index(head), MASS.within(arcs.MASSES), pick, state.HEAD.set, MASS.set,
            first=few.start, saved=saved("attention_arcs", title_of, f"block{block}"),
        )  # fmt: skip
        where(few)
        if few.start:
            st.caption("Attention to the tokens before these is not drawn.")

# ---- how to read it ----

steps_of = sheet.of(scene, attention.steps, block, head)
with reading:
    sums = "Each row sums to 1."
    if scaled:
        sums = "Each row sums to 1, unless a change scales it."
    reads = [
        "**How to read it.** Each row is a token that looks (its query), each column a token that "
        "is looked at (its key). A cell shows how much of the row's attention goes there.",
        f"{sums} Cells right of the diagonal are masked: those tokens come later.",
        "A line just below the diagonal: the head looks at the token just before. A line further "
        "down: it found a repeat. A vertical stripe: one token that all others look at.",
    ]
    if ARCS.value:
        reads += [
            "**The lines.** Each token appears twice: on the left it looks, on the right it is "
            "looked at. A thicker line means a larger weight.",
            "Parallel lines one step up: the head looks at the token just before. A fan: one token "
            "that all others look at.",
            "Switch on the block's other heads to compare them; each has its own colour.",
        ]
    if shown == marks.DIFFERENCE:
        reads.append(
            "In the *difference* a cell is orange where the changed model looks more than the "
            "unchanged one, and blue where it looks less."
        )
        if not scaled:
            reads.append("There each row sums to 0.")
    words.prose(" ".join(reads), "query", "key", "causal mask")
    first = attention.first_token(measured.first, steps_of.now.v, block, head)
    if first is not None and (first.draws_all or first.draws_own):
        st.markdown(" ".join(why_the_first(first)))

# ---- the steps ----

sheet.end_unless_near(STEPS)
with way:
    title = f"The steps of block {block}, head {head}"
    st.subheader(title, anchor=False)
    if average:
        st.markdown(
            f"An average has no steps of its own, so here are the steps of head {head} alone."
        )
    if hide:
        st.markdown("The steps show the model's own numbers: nothing is hidden or rescaled here.")
    of_its_kind = [said for said in (shared_by(config, head), turned(config)) if said]
    if of_its_kind:
        words.prose(" ".join(of_its_kind), "group", "query", "key", "value")
    if own.moved:
        st.markdown(f"You see the steps of the **{side}** model.")
    put = {"attn": "the weights (6)", "z": "the output (8)"}
    given = [put[edit.site] for edit in changed if edit.site in put]
    if given and side == marks.CHANGED:
        st.markdown(
            f"A change of this head sets {' and '.join(dict.fromkeys(given))}, so the steps "
            "before do not lead there."
        )
    if side == marks.CHANGED:
        of_side = steps_of.now
    else:
        of_side = steps_of.all[0]
    size = of_side.q.shape[1]
    root = words.fixed(of_side.divisor, 2)
    arrays = {name: getattr(of_side, name)[seen].numpy() for name in ("q", "k", "v", "z")}
    arrays |= {
        "scores": of_side.scores[seen, seen].numpy(),
        "weights": of_side.weights[seen, seen].numpy(),
    }
    divided = f"{{product}} ÷ {root} = {{value}}, for {{query}} and {{key}}"
    row_sums = "" if scaled else "each row sums to 1"
    pairs = {"scores": "{query} · {key} = {value}", "scaled": divided, "masked": divided}
    panels = []
    for name, array, heading, note, color in (
        ("q", "q", "1 query", "what a token looks for", "query"),
        ("k", "k", "2 key", "what a token offers", "key"),
        ("scores", "scores", "3 query · key", "a dot product per pair", ""),
        ("scaled", "scores", f"4 ÷ √{size}", f"each score ÷ {root}", ""),
        ("masked", "scores", "5 masked", "later tokens hidden", ""),
        ("weights", "weights", "6 softmax", row_sums, "output"),
        ("v", "v", "7 value", "what a token hands over", "value"),
        ("z", "z", "8 output", "weights × values", "output"),
    ):
        panel = matrix.attention_panel()
        if array != "weights":
            axis: matrix.Axis = "query"
            if array in ("k", "v"):
                axis = "key"
            divisor = 1.0
            if name in ("scaled", "masked"):
                divisor = of_side.divisor
            reach = (float(np.abs(arrays[array]).max()) or 1.0) / divisor
            panel = matrix.Panel(
                name, array, axis, "dim", "signed", -reach, reach, masked=name == "masked"
            )
            sentence_of = f"Dimension {{dim}} of the {heading[2:]} of {{{axis}}} is {{value}}"
            panel = replace(panel, says=sentence_of, idle=f"{size} numbers each", divisor=divisor)
        if name in pairs:
            panel = replace(
                panel, column_axis="key", says=pairs[name], says_masked=matrix.MASKED, idle=""
            )
        panels.append(replace(panel, label=heading, title=heading, note=note, color=color))
    adds = None
    if seen.start == 0:  # or the sum would have values that are not in sight
        adds = matrix.adding_up(arrays["weights"], arrays["v"], arrays["z"], at, labels)
    matrix.matrix(
        "steps", panels, arrays | {"scores": ("q", "k")}, labels[seen], at, inside, pick,
        small=True, first=seen.start, adds=adds,
        saved=saved("attention_steps", title, f"block{block}", f"head{head}"),
    )  # fmt: skip
    where(seen)

# ---- one weight ----

cells = sheet.of(scene, attention.cell, block, head, at, key)
now = cells.now
query = labels[at]
used = float(steps_of.now.weights[at, key])
with worked_out:
    some = " + ".join(words.term(words.fixed(product, 2)) for product in now.products[:3].tolist())
    some += f" + … ({size} products)" if size > 3 else ""
    steps_said = [
        f"**query · key** of {places[at]} and {places[key]}: {some} = **{cells.map(lambda c: c.score):.2}**",
        f"**scaled** by √{size}: {words.fixed(now.score, 2)} ÷ {root} = "
        f"**{cells.map(lambda c: c.scaled):.2}**",
    ]
    if now.weight is None:
        steps_said.append(
            f"**masked**: {places[key]} comes after {places[at]}, so the model replaces this score "
            "by −∞ before the softmax: whatever the score, no attention can go there."
        )
    else:
        exp = words.significant(float(now.row.exp[key]), 4)
        total = words.significant(now.row.total, 4)
        steps_said += [
            f"**softmax** over the {words.counted(at + 1, 'key')} that {places[at]} can see: "
            f"e^({words.fixed(now.scaled, 2)} − {words.term(words.fixed(now.row.largest, 2))}) = "
            f"{exp}, and {exp} ÷ {total} = **{cells.map(lambda c: c.weight or 0.0):4}**, where "
            f"{total} is the sum over the row. (Subtracting the row's largest score first changes "
            "no weight, and keeps e^… from overflowing.)"
        ]
        if "attn" in put_here:
            steps_said.append(
                f"**changed**: the change puts {words.significant(used, 4)} in its place."
            )
        goes = (
            f"**weight × value**: the value of {places[key]}, times {words.significant(used)}, "
            f"goes into the output for {places[at]}"
        )
        if "z" in put_here:
            goes += ", but the change puts another output in its place"
        steps_said.append(f"{goes}.")
        base = float(own.now[at, key])
        lost = float(own.now[at, 0])
        if average:
            drawn_as = [f"the average over the block's heads is {words.significant(base, 4)}"]
        else:
            drawn_as = []
        if hide and key == 0:
            drawn_as = ["the first token is hidden"]
        elif hide:
            without = "nothing is left"
            if lost < 1:
                without = (
                    f"it is {words.significant(base, 4)} ÷ (1 − {words.significant(lost, 4)}) = "
                )
                without += words.significant(base / (1 - lost), 4)
            drawn_as.append(f"without the first token {without}")
        if drawn_as:
            steps_said.append(f"**in the picture**: {', and '.join(drawn_as)}.")
    which = (f"block{block}", f"head{head}", f"key{key}")
    theme = scene.palette
    dimensions = [f"dimension {i}" for i in range(size)]
    over = {"title": {"text": f"dimension of the head, 0 to {size - 1}"}, "showgrid": False}
    left, right = st.columns([2, 3], gap="medium")
    with left:
        st.markdown("\n".join(f"{i}. {line}" for i, line in enumerate(steps_said, start=1)))
    with right:
        sheet.bars(
            scene, "attention_products", cells.map(lambda c: c.products), dimensions, "q × k",
            "The products of query and key in each dimension; their sum is "
            f"{words.fixed(now.score, 2)}",
            which=which, signed=True, axis=over, height=210,
        )  # fmt: skip
        if now.weight is not None:
            brought = None
            whence = ""
            if "z" not in put_here:
                brought = "weight × value", (used * steps_of.now.v[key]).numpy(), theme.value
                whence = f", and the part of it that comes from {labels[key]}"
            sheet.bars(
                scene, "attention_output", Both(steps_of.now.z[at]), dimensions, "output z",
                f"The head's output for {query}{whence}",
                which=which, colors=theme.output, axis=over, height=230, called=("output z", ""),
                part=brought,
            )  # fmt: skip
    if now.weight is not None:
        keys = [f"{label} (position {i})" for i, label in enumerate(labels[: at + 1])]
        axis_of = {"showgrid": False, "range": [-0.5, max(len(keys), FEWEST) - 0.5]}
        axis_of |= marks.token_ticks(labels[: at + 1], TICKS, places=FEWEST)
        softmax_by_step = (
            ("scaled", "scaled score", cells.map(lambda c: c.row.scaled)),
            ("exp", "e^(score − largest)", cells.map(lambda c: c.row.exp)),
            ("softmax", "weight", cells.map(lambda c: c.row.weights)),
        )
        for name, unit, numbers in sheet.side_by_side(softmax_by_step):
            sheet.bars(
                scene, f"attention_{name}", numbers, keys, unit, f"{unit} of {query}, for each key",
                which=which, colors=[theme.key if i == key else theme.output for i in range(at + 1)],
                axis=axis_of,
            )  # fmt: skip

# ---- details ----

about = f"{title_of}: a row per query, a column per key. What comes later is masked."
if hide:
    about += " The first token is hidden, and the rows are scaled up to sum to 1 without it."
with sheet.details():
    sheet.numbers_of(
        f"attention-block{block}-{part}",
        lambda: drawn.map(lambda w: attention.table(w, labels)),
        about,
        missing="not shown" if hide else "masked",
    )

    def every_head() -> pd.DataFrame:
        found = heads.role_table(scene.run)
        if scene.other is None:
            return found
        return found.assign(moved=heads.moved(scene.run).flatten().numpy())

    about = (
        "A row per head. `share` is the attention that goes to the keys of its role, averaged over the "
        "queries in `row_positions`; the columns `to_…` give the same for every role. "
    )
    if len(labels) > 1:
        about += "Row 0 can only look at itself, so it is left out. "
    about += (
        "`rest` is what these rows give to the first token, `share_of_rest` the share of the "
        "remainder, which decides the label. `spread` is e to the power of the mean entropy: over how "
        "many tokens the attention is spread. `mean_write` is the mean norm of what the head adds to "
        f"the residual stream. {heads.CALLED}."
    )
    if scene.other is not None:
        about += " `moved` is what a row's weights gained or lost, the larger of the two, averaged over the rows."
    sheet.numbers_of("heads", every_head, about, "what each head does")
    sheet.code_of(scene, ["attention", attention.steps], attention.weights, block, one, hide)
    sheet.code_of(
        scene, [], attention.cell, block, head, at, key, key="in_code_cell", what="one weight"
    )
