"""A block's feed-forward on the selected token: what GELU or gates let through, and the units one by one."""

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
import streamlit as st

from gptviz import Run
from gptviz.analysis import feed_forward, logit_attribution
from gptviz.analysis.reach import positions_of
from gptviz.both import Both, alike
from gptviz.engine import sample
from gptviz.engine.architecture import architecture_of
from gptviz.figures import feed_forward as figures, marks
from gptviz.ui import sheet, tables, words
from gptviz.ui.parts.feed_forward.told import TOLD
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
kind = architecture_of(lm.config)
told = TOLD[kind.named.activation](kind.named)
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
    units_fire = told.fire[fired.now != 1]
    sentences = [f"For {label}, **{how_many} {units_fire.format(block)}**."]
    if half.now:
        workers = half.map(lambda n: f"{n:,}").arrow()
        whose = f"units of all {count:,} do"
        if half.now == 1:
            whose = f"unit of all {count:,} does"
        elif found.fires[found.largest(half.now)].all():
            whose = told.whose
        few = ""
        if half.now * FEW <= fired.now:
            few = "Just "
        sentences.append(f"{few}{workers} {whose} half of the work.")
    if both.was is not None and fired.moved:
        in_one = int((found.fires != both.was.fires).sum())
        sentences.append(f"{in_one:,} {told.differ}.")
    sheet.say(
        scene,
        " ".join(sentences),
        terms=["block"],
        about=both.map(lambda u: np.concatenate([u.before, u.written])),
        what=f"what the feed-forward of block {block} makes of {label}",
        sites=feed_forward.sites(lm, block),
        position=at,
    )
    strips = both.map(told.strips)
    old = [
        None if alike(*pair) else pair[1] for pair in zip(strips.now, strips.all[0], strict=True)
    ]
    alt = f"{len(found.given)} numbers of {scene.label} become {count} units of block {block}, and back"
    scene.chart(
        figures.expansion(strips.now, unit, scene.mode, old, told.heads),
        key="expansion",
        alt=alt,
        which=(f"block{block}",),
    )

sentences = [*told.matrices(found, put_here), "The chosen unit is framed."]
if any(strip is not None for strip in old):
    sentences.append("The dashed frame below a strip shows the unchanged model.")
words.prose(" ".join(sentences), *told.terms)
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
st.subheader(told.passes, anchor=False)
words.prose(
    f"Each dot is one of the feed-forward's {count:,} units: the larger the dot, the more it adds to the "
    "vector of the token (its *work*). Click one to inspect its unit.",
    "feed-forward",
)


def place_of(units: feed_forward.Units) -> tuple[float, float]:
    """Where the chosen unit is in the picture: before and after GELU, or its gate and its up."""
    up = units.after if units.times is None else units.times
    return float(units.before[unit]), float(up[unit])


if both.was is None:
    ghost = None
else:
    ghost = place_of(both.was)
reached = [-1.0, 1.0, *found.before.tolist(), *([ghost[0]] if ghost else [])]
curve = feed_forward.activation_curve(lm.model, block, min(reached), max(reached))
line = curve.x, curve.y
if found.times is None:
    dots = figures.gelu_dots(found.before, found.after, found.writes, unit, line, scene.mode, ghost)
else:
    gated = found.before, found.times, found.after, found.writes
    dots = figures.gated_dots(gated, unit, line, scene.mode, ghost)
scene.chart(
    dots,
    key="gelu_dots",
    alt=f"{kind.named.activation} with the {count} units of block {block} at {scene.label}",
    pick=lambda dot: UNIT.set(int(dot["customdata"])),
    which=(f"block{block}",),
)

size = f"a vector of norm {both.map(lambda u: u.size).arrow('3')}"
if found.is_replaced:
    together = f"A change replaces what all units contribute together: {size} comes out."
else:
    together = f"All units together contribute {size}."
st.caption(
    f"{told.firing(put_here)} contribute a vector of norm {words.significant(found.quiet)}. {together} "
    f"{told.lines(curve.tanh)}"
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
words.prose(
    "**A single unit of a small model seldom has one meaning.** Look for tokens that belong together, "
    "and expect to find few.",
    "token",
)
words.prose(
    f"**Unit {unit} of block {block}** at {label} {told.one(both, unit, put_here)} Its column has norm "
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
        f"{told.norm}'s divisor held at {words.significant(divisor, 4)}):"
    )
    words.prose(text, "logit", told.norm)

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
        f"In this text it {told.fires_at(put)} {fires:,} of {of}. It is {where}: "
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
    if found.times is not None:
        gate_and_up = sheet.of(scene, feed_forward.factors, block, unit)
        sheet.curves(
            scene,
            "unit_gates",
            {
                "silu(gate)": gate_and_up.map(lambda p: p[0]),
                "up": gate_and_up.map(lambda p: p[1]),
                "output": activations,
            },
            scene.labels,
            "number",
            f"The gate of unit {unit} after SiLU, its up and its output at every token of the text",
            which=(f"block{block}", f"unit{unit}"),
            at=at,
            rest=0.0,
            height=300,
            axis=axis | marks.token_ticks(scene.labels),
        )
        st.caption("Its output is silu(gate) × up: both must be far from 0 for it to be so.")
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
        f"without each window's first) unit {unit} {told.fires_at(put & {*edits})} "
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
last_matrix = {1: "second", 2: "third"}[len(kind.hidden)]
text = (
    f"Each unit contributes its activation times its own column of the {last_matrix} matrix. Beside it "
    "are the tokens whose scores it raises and lowers most."
)
words.prose(text, "logit")
writes = {"writes": found.writes[order]}
if both.was is not None:
    writes = {"writes, unchanged": both.was.writes[order], "writes, changed": found.writes[order]}
columns = {name: getattr(found, field)[order] for name, field in told.columns.items()}
tokens = {
    name: [
        " ".join(words.show_id(lm, i) for i, _ in getattr(one, name)[:TOKENS])
        for one in read[: len(order)]
    ]
    for name in ("raises", "lowers")
}
largest = pd.DataFrame({"unit": order} | columns | writes | tokens)
sheet.table("largest units", Both(largest), 3, order.index(unit) if unit in order else None)
cut = {edit.site for edit in scene.run.edits} & (
    set(logit_attribution.BREAKING) - {"embed", "attn_out"}
)
caption = (
    "A score is a token's logit minus the mean over the vocabulary. This is the direct effect, "
    f"with the final {told.norm}'s divisor held fixed; what later blocks make of it is left out."
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
    f"A row per unit, the largest contribution first: {told.numbers_in_rows}, "
    "the norms of its column and of its contribution (`writes`), and its share of what the "
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
    sheet.code_of(scene, [*told.sources], feed_forward.units, block, at)
