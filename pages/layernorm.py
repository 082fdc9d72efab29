"""Every norm, LayerNorm or RMSNorm: what it is given, what it makes of it, and why."""

import numpy as np
import pandas as pd
import streamlit as st

from gptviz.analysis import norms as numbers
from gptviz.both import Both
from gptviz.engine.architecture import architecture_of
from gptviz.engine.layer_norms import norms_of
from gptviz.figures.maps import Map, Scale
from gptviz.figures.norms import norm_stops
from gptviz.ui import sheet, words
from gptviz.ui.components.spread import draw_spread
from gptviz.ui.parts.layernorm import told as says

NORM = sheet.Param("ln_norm", str, "block 0 · norm1", sheet.if_there)
DIMENSION: sheet.Param[int | None] = sheet.Param("ln_dim", int, None, sheet.if_there)
QUANTITY = sheet.Param("ln_quantity", str, numbers.QUANTITIES[0], sheet.if_there)

frame = sheet.start_page("LayerNorm", choices=[NORM, DIMENSION, QUANTITY, sheet.SHOWN])
prompt = sheet.read_text(frame)  # the text, its tokens, and what is changed in the model
scene = sheet.trace(prompt, keep=numbers.SITES)  # one pass of the model, with hooks at these sites

lm = scene.lm
label = words.as_code(scene.label)
size = lm.config.emb_dim
norms = {norm.name: norm for norm in norms_of(lm.model)}
names = list(norms)
told = says.TOLD[architecture_of(lm.config).named.norm]


def as_the_picture_calls_them(table: pd.DataFrame) -> pd.DataFrame:
    """The stages by the names of the picture's buttons; a norm without a shift ends with its scale."""
    named = table.assign(stage=told.stages)
    if now.has_shift or not now.has_mean:
        return named
    return named[:-1]


# ---- one norm, one token ----

above = st.container()
with st.container(horizontal=True):
    name = NORM.choose("Norm", names, st.selectbox, width=220)
    steps = sheet.of(scene, numbers.inside, name, scene.position)
    marked = "Its mark is orange. You can also click a bar of scale or shift below."
    largest = numbers.largest_dimension(steps.now)
    empty = f"the one farthest from {told.middle}"
    dimension = DIMENSION.index("Dimension", size, largest, empty, width=300, help=marked)
given = steps.map(lambda s: s.before)
leaving = steps.map(lambda s: s.spread(s.after))
place = name.replace("block ", "block").split(" · ")  # as a file's name has it: "block0", "norm1"
which = (*place, f"dimension{dimension}")
now = steps.now
parts = numbers.variance_parts(now)
sentence = says.first_sentences(now, parts, label)
where = name.replace("final", "the final norm")
if leaving.moved:
    sentence += f" After {where}, the {told.square} goes **{leaving.arrow('3')}**."
with above:
    sheet.say(
        scene,
        sentence,
        terms=["token"],
        about=given,
        what=f"{where} at {label}",
        sites=[norms[name].source],
        position=scene.position,
    )
    alt = f"The {size} numbers of {scene.label} as {name} gets them, and after each of its steps"
    draw_spread(
        "layernorm_histograms",
        norm_stops(steps, dimension),
        dimension,
        alt,
        centred=now.has_mean,
        saved=scene.saved("layernorm_histograms", alt, *which),
    )
    caption = (
        f"Each brick is one of the {size} numbers. {told.marked} Orange: dimension {dimension}."
    )
    if given.moved:
        caption += " Grey outline and open mark: the model before your change."
    st.caption(caption)

# ---- the same in numbers ----

tables = sheet.of(scene, numbers.worked_out, name, scene.position, dimension)
stages = tables.map(lambda pair: pair[0])
arithmetic = tables.now[1]  # of the chosen dimension, step by step
st.subheader(told.heading, anchor=False)
sheet.table("stages", stages.map(as_the_picture_calls_them))
st.subheader(f"How is the number of dimension {dimension} worked out?", anchor=False)
sheet.table("step by step", Both(arithmetic))
st.caption("Computed with all digits, shown with four.")

# ---- every norm, every token ----

st.subheader("What comes into every norm, and what leaves it?", anchor=False)
sheet.end_unless_near("norms")
said = st.container()
with st.container(horizontal=True):
    quantity = told.quantities[0]
    if len(told.quantities) > 1:
        quantity = QUANTITY.choose("Show each token's", told.quantities)
    grids = sheet.of(scene, numbers.norm_grids, quantity)
    before = grids.map(lambda g: g[0])
    after = grids.map(lambda g: g[1])
    shown = sheet.shown(scene, before)
is_variance = quantity == "variance"
called = quantity
scale: Scale = "signed"
if is_variance:
    called = told.square
    scale = "log"
with said:
    least_before = words.significant(float(before.now.min()))
    most_before = words.significant(float(before.now.max()))
    least_after = words.significant(float(after.now.min()))
    most_after = words.significant(float(after.now.max()))
    text = (
        f"Before the norms, the {called} of a token's numbers lies between {least_before} and {most_before}. "
        f"After them, it lies between {least_after} and {most_after}."
    )
    if quantity == "mean":
        text += (
            f" Each norm subtracts the mean; any mean after it comes from {says.learned(now)[0]}."
        )
    sources = [norm.source for norm in norms.values()]
    sheet.say(
        scene,
        text,
        terms=[told.term, "residual stream"],
        about=before,
        what=f"what the {told.name}s are given",
        sites=sources,
    )
    if before.moved:
        far = np.abs(Map("", before, scale).drawn(sheet.DIFFERENCE))
        row, column = divmod(int(far.argmax()), far.shape[1])
        first = names[int((far > 1e-5).any(axis=1).argmax())]
        there = before.map(lambda g: float(g[row, column]))
        words.prose(
            f"**The change first shows at {first}.** It shows most for "
            f"{words.as_code(scene.labels[column])} at {names[row]}: **{there.arrow('3')}**."
        )


def pick(row: int, column: int) -> None:
    """A click on a cell chooses the norm and the token."""
    NORM.set(names[row])
    scene.select(column)


titles = (f"{called} before", f"{called} after")
sheet.maps(
    scene,
    "layernorm_grids",
    [Map(titles[0], before, scale, titles[0]), Map(titles[1], after, scale, titles[1])],
    names,
    f"The {called} of every token's values before and after each of the {len(names)} norms",
    at=(names.index(name), scene.position),
    pick=pick,
    show=shown,
    joint=True,
    which=(called.replace(" ", "_"),),
)
middle = "have a mean of 0"
resting = 0.0  # what a norm brings every token to
if is_variance:
    middle = f"have a {called} of 1"
    resting = 1.0
if shown == sheet.DIFFERENCE:
    middle = "are as before the change"
st.caption(
    "Each row is a norm, each column a token. Click a cell to inspect it. "
    f"Cells without colour {middle}."
)
sheet.curves(
    scene,
    "layernorm_depth",
    {
        "before": before.map(lambda grid: grid[:, scene.position]),
        "after": after.map(lambda grid: grid[:, scene.position]),
    },
    names,
    called,
    f"The {called} of {scene.label} (position {scene.position}) before and after each norm",
    which=(called.replace(" ", "_"),),
    at=names.index(name),
    log=is_variance,
    rest=resting,
)
st.caption(f"{label} on its way through the model, norm by norm.")

# ---- why not 1: scale and shift ----

st.subheader(f"Why is the {told.square} {words.significant(parts.after)} and not 1?", anchor=False)
words.prose(says.why_not_one(now, parts, told.square), told.square, "dimension")
if size > 1:
    words.prose(says.how_divided(now), told.square)
words.prose(
    "The blocks of a GPT are **pre-norm**: one norm comes before attention, one before the "
    "feed-forward layer. The first transformer was **post-norm**: it added each result first, "
    "and then normalised the sum.",
    "pre-norm",
    "post-norm",
    "block",
    "attention",
    "feed-forward",
)

learned_rows = [("layernorm_weights", "scale", now.scale, 1.0)]
if now.has_shift:
    learned_rows.append(("layernorm_shift", "shift", now.shift, 0.0))
for key, what, weights, rest in learned_rows:
    sheet.bars(
        scene,
        key,
        Both(weights),
        [f"{what}[{i}]" for i in range(size)],
        what,
        f"The {what} of {name}: one learned number per dimension",
        DIMENSION.set,
        which=which,
        at=dimension,
        rests=[(rest, "")],
        axis={"title": {"text": "dimension"}, "range": [-1, size], "showgrid": False},
    )
nothing = "The line marks no effect: a scale of 1."
if now.has_shift:
    nothing = "The lines mark no effect: a scale of 1, a shift of 0."
st.caption(f"All tokens share these numbers. {nothing}")

# ---- the norms of queries and keys, where a model has them ----

if lm.config.get("qk_norm"):
    inside_block = norms[name].block
    if inside_block is None:
        inside_block = lm.config.n_layers - 1
    st.subheader("Which norms does a head have of its own?", anchor=False)
    words.prose(
        f"In each block this model also brings every head's query and key to a common size, by an RMSNorm over "
        f"the {lm.config.head_dim} numbers of a head; then they are turned by their positions. For {label} in "
        f"block {inside_block}, the root of the mean square:",
        "query",
        "key",
        "RMSNorm",
        "mean square",
    )
    own = sheet.of(scene, numbers.head_norms, inside_block, scene.position)
    sheet.table("norms of heads", own)
    if lm.config.n_kv_groups < lm.config.n_heads:
        st.caption("The heads of a group share a key: those of the keys are the groups.")

# ---- details ----

caption = "One row per norm and token, before and after."
if not now.has_mean:
    caption += " Nothing is subtracted, so the mean square stands where a LayerNorm has a variance."
with sheet.details():
    sheet.numbers_of("layernorm", lambda: sheet.of(scene, numbers.norm_table), caption)
    sheet.code_of(
        scene,
        [*told.sources, numbers.norm_steps],
        numbers.norm_grids,
        quantity,
        run=lambda: numbers.run_norm(lm.model, name, scene.trace),
    )
    sheet.code_of(
        scene,
        [numbers.inside],
        numbers.worked_out,
        name,
        scene.position,
        dimension,
        key="in_code_one",
        what="one norm and one token",
    )
