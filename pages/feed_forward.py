"""A block's feed-forward on the selected token: GELU with its 4D numbers, and the units one by one."""

from collections.abc import Collection, Iterable, Sequence

import numpy as np
import pandas as pd
import streamlit as st

from gptviz import Edit, Run
from gptviz.analysis import feed_forward, logit_attribution
from gptviz.analysis.reach import positions_of
from gptviz.both import Both, alike
from gptviz.engine import sample
from gptviz.figures import feed_forward as figures, marks
from gptviz.model import GELU, FeedForward
from gptviz.ui import sheet, tables, words
from gptviz.ui.shell import change_menu, state

UNIT: sheet.Param[int | None] = sheet.Param("ff_unit", int, None, sheet.if_there)
SAMPLE = sheet.Param("ff_sample", bool, False)

# "just" so many do half of the work: a quarter of those that fire, or less
FEW = 4
# units in the table of those that write most, with TOKENS each; READ tokens of the chosen unit
LARGEST = 10
TOKENS = 3
READ = 6
# of the sample, or of a long text, that excite a unit most, with BESIDE tokens to each side
PLACES = 6
BESIDE = 8


frame = sheet.start_page("Feed-forward", choices=[UNIT, SAMPLE])
prompt = sheet.read_text(frame)
last = prompt.lm.config.n_layers - 1
chosen = state.BLOCK.within(last + 1)
block = last if chosen is None else chosen
scene = sheet.trace(prompt, keep=[*feed_forward.sites(prompt.lm, block), ("resid_post", last)])

lm = scene.lm
at = scene.position
label = words.as_code(scene.label)

# ---- which units fire: a sentence, the picture, and below it what it is of ----

above = st.container()
with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
    block = state.BLOCK.index("Block", last + 1, last, f"{last}, the last", width=205)
    both = sheet.of(scene, feed_forward.units, block, at)
    found = both.now
    # a change may put something else in the place of what GELU makes of them
    put = {
        one for one in scene.run.edits if one.site == "mlp_act" and block in one.blocks(last + 1)
    }
    put_here = any(at in positions_of(one, len(scene.tokens)) for one in put)
    count = len(found.before)
    most = found.largest(1)[0]
    unit = UNIT.index("Unit", count, most, f"{most}, which contributes most", width=320)
    change_menu.menu(scene, change_menu.Part("feed-forward", block), key="ff")
with above:
    fired = both.map(lambda u: int(u.fires.sum()))
    half = both.map(feed_forward.Units.half)
    how_many = fired.map(lambda n: f"{n:,}").arrow()
    units_fire = "units of block {} fire"
    if fired.now == 1:
        units_fire = "unit of block {} fires"
    sentences = [f"For {label}, **{how_many} {units_fire.format(block)}**."]
    if half.now:
        workers = half.map(lambda n: f"{n:,}").arrow()
        whose = f"units of all {count:,} do"
        if half.now == 1:
            whose = f"unit of all {count:,} does"
        elif found.fires[found.largest(half.now)].all():
            whose = "of them do"
        few = ""
        if half.now * FEW <= fired.now:
            few = "Just "
        sentences.append(f"{few}{workers} {whose} half of the work.")
    if both.was is not None and fired.moved:
        in_one = int((found.fires != both.was.fires).sum())
        sentences.append(f"{in_one:,} fire in only one of the two models.")
    sheet.say(
        scene,
        " ".join(sentences),
        terms=["block"],
        about=both.map(lambda u: np.concatenate([u.before, u.written])),
        what=f"what the feed-forward of block {block} makes of {label}",
        sites=feed_forward.sites(lm, block),
        position=at,
    )
    strips = both.map(lambda u: [u.given, u.before, u.after, u.written])
    old = [
        None if alike(*pair) else pair[1] for pair in zip(strips.now, strips.all[0], strict=True)
    ]
    alt = f"{len(found.given)} numbers of {scene.label} become {count} units of block {block}, and back"
    scene.chart(
        figures.expansion(strips.now, unit, scene.mode, old),
        key="expansion",
        alt=alt,
        which=(f"block{block}",),
    )

after_it = "after it"
if put_here:
    after_it = "after the change"
least = words.significant(float(found.after.min()), 2)
sentences = [
    f"The first matrix turns {len(found.given):,} numbers into {count:,}, the second turns "
    f"{count:,} back into {len(found.given):,}.",
    f"GELU comes in between: {after_it} no number is below {least}.",
    "The chosen unit is framed.",
]
if any(strip is not None for strip in old):
    sentences.append("The dashed frame below a strip shows the unchanged model.")
words.prose(" ".join(sentences), "GELU")
bias = lm.config.get("linear_bias")
parts = "All units' activations times their columns"
if bias:
    parts += ", and the bias,"
reason = f"that is rounding to {lm.dtype}"
if found.is_replaced:
    reason = "a change put something else there"
difference = words.significant(found.difference, 2)
words.prose(
    f"{parts} add up to what the feed-forward adds to the stream. The largest difference of any "
    f"number is {difference}; {reason}.",
    "bias",
)

# ---- what GELU lets through ----

sheet.end_unless_near("gelu")
st.subheader("What does GELU let through?", anchor=False)
words.prose(
    f"Each dot is one of the feed-forward's {count:,} units: the larger the dot, the more it adds to the "
    "vector of the token (its *work*). Click one to inspect its unit.",
    "feed-forward",
)
if both.was is None:
    ghost = None
else:
    ghost = (float(both.was.before[unit]), float(both.was.after[unit]))
reached = [-1.0, 1.0, *found.before.tolist(), *([ghost[0]] if ghost else [])]
curve = feed_forward.activation_curve(lm.model, block, min(reached), max(reached))
scene.chart(
    figures.gelu_dots(
        found.before, found.after, found.writes, unit, (curve.x, curve.y), scene.mode, ghost
    ),
    key="gelu_dots",
    alt=f"GELU with the {count} units of block {block} at {scene.label}",
    pick=lambda dot: UNIT.set(int(dot["customdata"])),
    which=(f"block{block}",),
)

fires_if = "A unit fires if its number before GELU is above 0"
if put_here:
    told = (
        f"{fires_if}. A change puts other numbers in the place of what GELU makes of them, also of "
        "units that do not fire: these"
    )
else:
    told = (
        f"{fires_if}: then GELU lets more than half of it through. Of the others GELU leaves a "
        "little: they"
    )
size = f"a vector of norm {both.map(lambda u: u.size).arrow('3')}"
if found.is_replaced:
    together = f"A change replaces what all units contribute together: {size} comes out."
else:
    together = f"All units together contribute {size}."
which = "the exact GELU"
if curve.tanh:
    which = "the book's GELU, which is GPT-2's, with a tanh"
st.caption(
    f"{told} contribute a vector of norm {words.significant(found.quiet)}. {together} A dot's area is the "
    f"norm of what its unit contributes. The line is {which}. The dashed line is ReLU, which would silence "
    "all units that do not fire."
)
sheet.example_row("A name comes back", "He and she", "Counting", "Once upon a time")

# ---- one unit, and those that write most ----

sheet.end_unless_near("units")
order = found.largest(LARGEST)
# what each writes here; of the chosen unit, of 1 of activation
times = (*found.after[order].tolist(), 1.0)
# at once, since most of the work is to read the output head
read = sheet.once(scene.run, feed_forward.readings, block, (*order, unit), times, READ, at)


st.subheader("What does one unit do?", anchor=False)
before = both.map(lambda u: float(u.before[unit]))
after = both.map(lambda u: float(u.after[unit]))
it_fires = "it does not fire"
if before.now > 0:
    it_fires = "it fires"
words.prose(
    "**A single unit of a small model seldom has one meaning.** Look for tokens that belong together, "
    "and expect to find few.",
    "token",
)
words.prose(
    f"**Unit {unit} of block {block}** at {label} is {before.arrow('3')} before GELU, so {it_fires}, and "
    f"{after.arrow('3')} after GELU. Its column has norm "
    f"{words.significant(float(found.columns[unit]))}. It contributes "
    f"{words.percent(float(found.shares[unit]))} of what the feed-forward adds, measured along "
    "that vector."
)
left, right = st.columns([3, 5], gap="large")
with left:
    divisor = logit_attribution.spread(scene.trace, lm.model, at)
    text = (
        f"Whatever the text, unit {unit} pushes along its one column. When its activation at "
        f"{label} grows by 1, these tokens' scores rise or fall by this much (the final "
        f"LayerNorm's divisor held at {words.significant(divisor, 4)}):"
    )
    words.prose(text, "logit", "LayerNorm")

    def moves(token: int, by: float) -> list[tables.Cell | str]:
        sign = "+" if by > 0 else ""
        return [tables.Cell(words.show_id(lm, token), "label"), f"{sign}{words.significant(by)}"]

    column = read[len(order)]
    rows = [
        tables.Row([*moves(*up), *moves(*down)])
        for up, down in zip(column.raises, column.lowers, strict=True)
    ]
    st.html(tables.table("reading", ["raises", "#by", "lowers", "#by"], rows))


def excerpts(places: Iterable[tuple[float, Sequence[str], int, str]]) -> None:
    """Each (activation, tokens as shown, which of them, where they come from), as a table."""
    drawn = []
    for value, tokens, i, source in places:
        start = max(0, i - BESIDE)
        end = i + 1 + BESIDE
        # read as a text, a space is a space again
        text = [token.replace("·", " ") for token in tokens]
        head = "".join(text[start:i])
        if start > 0:
            head = f"… {head}"
        tail = "".join(text[i + 1 : end])
        if end < len(text):
            tail = f"{tail} …"
        drawn.append(
            tables.Row(
                [words.significant(value), tables.Cell(head, marked=text[i], rest=tail), source]
            )
        )
    st.html(tables.table("excerpts", ["#activation", "text", "from"], drawn))


def fires_at(changes: Collection[Edit]) -> str:
    """The verb for tokens where a unit's number after GELU, and after `changes`, is above 0."""
    if changes:
        return "is above 0, with the change in it, at"
    return "fires at"


with right:
    activations = sheet.of(scene, feed_forward.excites, block, unit)
    peak = int(activations.now.argmax())
    is_flat = np.ptp(activations.now) == 0
    if is_flat:
        where = "the same at every token"
    else:
        where = f"largest at {words.Place(scene.labels[peak], peak)}"
    fires = int((activations.now > 0).sum())
    of = words.counted(len(scene.tokens), "token")
    text = (
        f"In this text it {fires_at(put)} {fires:,} of {of}. It is {where}: "
        f"{words.significant(float(activations.now[peak]))}."
    )
    words.prose(text, "token")
    theme = scene.palette
    axis = {"showgrid": False, "range": [-0.6, len(scene.tokens) - 0.4]}
    sheet.bars(
        scene,
        "unit_over_text",
        activations,
        [f"unit {unit} at `{one}` (position {i})" for i, one in enumerate(scene.labels)],
        "activation",
        f"Unit {unit} of block {block} at every token of the text",
        scene.select,
        (f"block{block}", f"unit{unit}"),
        at=at,
        colors=[theme.positive if value > 0 else theme.quiet for value in activations.now],
        axis=axis | marks.token_ticks(scene.labels),
    )
    if len(scene.tokens) > marks.READABLE:  # a shorter text stands under the bars as it is
        best = np.argsort(-activations.now, kind="stable")[:PLACES].tolist()
        excerpts((float(activations.now[i]), scene.labels, i, f"position {i}") for i in best)


@st.fragment
def in_the_sample() -> None:
    """Draw what excites the unit elsewhere: only when it is asked for, since that takes passes of its own."""
    about = "Read the beginnings of five books that the bundled model never trained on (13 kB). Switch off to stop."
    if not SAMPLE.widget(st.toggle, "Search other texts", help=about):
        return
    read_in, tokens = sample.windows(lm.encode, lm.config.context_length)
    if any(max(window.ids) >= lm.config.vocab_size for window in read_in):
        name = words.escaped(lm.name)
        st.info(
            f"{name} cannot read the sample: there are characters in it that it has no tokens for."
        )
        return
    edits = tuple(edit for edit in scene.run.edits if edit.is_of_any_text)
    bar = st.progress(0.0)
    peaks = []
    # each is kept by itself: what was read before a stop stays
    for i, window in enumerate(read_in):
        bar.progress(i / len(read_in), f"window {i + 1} of {len(read_in)}")
        peaks.append(
            sheet.reduced(Run(scene.run.model, window.ids, edits), feed_forward.PEAKS)[block]
        )
    bar.empty()
    looked_at = sum(len(window.ids) - 1 for window in read_in)
    share = 0.0
    if looked_at:
        share = sum(int(of.fired[unit]) for of in peaks) / looked_at
    words.prose(
        f"In the sample ({looked_at:,} of {tokens:,} tokens of {len(sample.passages())} books, "
        f"without each window's first) unit {unit} {fires_at(put & {*edits})} "
        f"{words.percent(share)} of the tokens. What excites it most in each window:"
    )
    if left_out := len(scene.run.edits) - len(edits):
        if left_out == 1:
            what = "One change is"
        else:
            what = f"{left_out} changes are"
        st.caption(f"{what} about a place in your text, so the sample is read without.")
    best = sorted(range(len(read_in)), key=lambda i: -float(peaks[i].value[unit]))[:PLACES]
    excerpts(
        (
            float(peaks[i].value[unit]),
            [words.show_token(token.raw) for token in lm.tokens(read_in[i].ids)],
            int(peaks[i].position[unit]),
            read_in[i].title,
        )
        for i in best
    )


in_the_sample()

st.subheader("The units that contribute most", anchor=False)
text = (
    "Each unit contributes its activation times its own column of the second matrix. Beside it "
    "are the tokens whose scores it raises and lowers most."
)
words.prose(text, "logit")
writes = {"writes": found.writes[order]}
if both.was is not None:
    writes = {"writes, unchanged": both.was.writes[order], "writes, changed": found.writes[order]}
columns = {name: getattr(found, name)[order] for name in ("before", "after", "columns")}
tokens = {
    name: [
        " ".join(words.show_id(lm, i) for i, _ in getattr(one, name)[:TOKENS])
        for one in read[: len(order)]
    ]
    for name in ("raises", "lowers")
}
largest = pd.DataFrame({"unit": order} | columns | writes | tokens).rename(
    columns={"columns": "column"}
)
sheet.table("largest units", Both(largest), 3, order.index(unit) if unit in order else None)
cut = {edit.site for edit in scene.run.edits} & (
    set(logit_attribution.BREAKING) - {"embed", "attn_out"}
)
caption = (
    "A score is a token's logit minus the mean over the vocabulary. This is the direct effect, "
    "with the final LayerNorm's divisor held fixed; what later blocks make of it is left out."
)
if cut or found.is_replaced:
    caption += (
        " A change puts other numbers into the stream. If it does so after the units, their "
        "contributions may not reach the output head, or arrive there scaled."
    )
st.caption(caption)

# ---- details ----

ids = feed_forward.unit_table(found)["unit"]
caption = (
    "A row per unit, the largest contribution first: its number before and after GELU, whether it "
    "fires, the norms of its column and of its contribution (`writes`), and its share of what the "
    "feed-forward adds, measured along that vector."
)
if found.is_replaced:
    caption += " A change replaces what the feed-forward adds: the shares need not add up to 1."
elif found.adds_up and bias:
    caption += " With the bias's the shares add up to 1."
elif found.adds_up:
    caption += " The shares add up to 1."
with sheet.details():
    sheet.numbers_of(
        f"feed-forward-block{block}",
        lambda: both.map(
            lambda u: feed_forward.unit_table(u).set_index("unit").loc[ids].reset_index()
        ),
        caption,
        what=f"the units of block {block} at {label}",
    )
    sheet.code_of(
        scene, [FeedForward.forward, GELU.forward, GELU.formula], feed_forward.units, block, at
    )
