"""Every LayerNorm: what it is given, what it makes of it, and why."""

import numpy as np
import pandas as pd
import streamlit as st

from gptviz.analysis import norms as numbers
from gptviz.both import Both
from gptviz.engine.layer_norms import norms_of
from gptviz.figures.maps import Map, Scale
from gptviz.figures.norms import NEARLY_ONE, norm_stops
from gptviz.model import LayerNorm
from gptviz.ui import sheet, words
from gptviz.ui.components.spread import draw_spread

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

# what the picture calls each of numbers.STAGES
CALLED = ("In", "Minus the mean", "Divided by √variance", "Times scale", "Plus shift")


def as_the_picture_calls_them(table: pd.DataFrame) -> pd.DataFrame:
    """The stages by the names of the picture's buttons; a norm without a shift ends with its scale."""
    named = table.assign(stage=CALLED)
    if now.has_shift:
        return named
    return named[:-1]


# ---- one norm, one token ----

above = st.container()
with st.container(horizontal=True):
    name = NORM.choose("Norm", names, st.selectbox, width=220)
    steps = sheet.of(scene, numbers.inside, name, scene.position)
    told = "Its mark is orange. You can also click a bar of scale or shift below."
    largest = numbers.largest_dimension(steps.now)
    empty = "the one farthest from the mean"
    dimension = DIMENSION.index("Dimension", size, largest, empty, width=300, help=told)
given = steps.map(lambda s: s.before)
leaving = steps.map(lambda s: float(s.after.var()))
place = name.replace("block ", "block").split(" · ")  # as a file's name has it: "block0", "norm1"
which = (*place, f"dimension{dimension}")
now = steps.now
parts = numbers.variance_parts(now)
how = "squeezes"
if now.deviation < 1:
    how = "stretches"
sentence = f"LayerNorm slides the {size} numbers of {label} to mean zero and {how} them to standard deviation one."
if parts.normalised < NEARLY_ONE:  # the token's numbers are all (nearly) the same
    sentence = (
        f"LayerNorm slides the {size} numbers of {label} to mean zero; they differ too little for "
        "standard deviation one."
    )
learned_by = "its scale"
changes = "changes"
if now.has_shift:
    learned_by = "its scale and shift"
    changes = "change"
sentence += f" Then {learned_by} {changes} both again."
where = name.replace("final", "the final norm")
if leaving.moved:
    sentence += f" After {where}, the variance goes **{leaving.arrow('3')}**."
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
        saved=scene.saved("layernorm_histograms", alt, *which),
    )
    caption = (
        f"Each brick is one of the {size} numbers. Line: the mean. Band: one standard deviation to "
        f"each side (its square is the variance). Orange: dimension {dimension}."
    )
    if given.moved:
        caption += " Grey outline and open mark: the model before your change."
    st.caption(caption)

# ---- the same in numbers ----

tables = sheet.of(scene, numbers.worked_out, name, scene.position, dimension)
stages = tables.map(lambda pair: pair[0])
arithmetic = tables.now[1]  # of the chosen dimension, step by step
st.subheader("What does each step do to mean and variance?", anchor=False)
sheet.table("stages", stages.map(as_the_picture_calls_them))
st.subheader(f"How is the number of dimension {dimension} worked out?", anchor=False)
sheet.table("step by step", Both(arithmetic))
st.caption("Computed with all digits, shown with four.")

# ---- every norm, every token ----

st.subheader("What comes into every norm, and what leaves it?", anchor=False)
sheet.end_unless_near("norms")
said = st.container()
with st.container(horizontal=True):
    quantity = QUANTITY.choose("Show each token's", numbers.QUANTITIES)
    grids = sheet.of(scene, numbers.norm_grids, quantity)
    before = grids.map(lambda g: g[0])
    after = grids.map(lambda g: g[1])
    shown = sheet.shown(scene, before)
is_variance = quantity == "variance"
scale: Scale = "signed"
if is_variance:
    scale = "log"
with said:
    least_before = words.significant(float(before.now.min()))
    most_before = words.significant(float(before.now.max()))
    least_after = words.significant(float(after.now.min()))
    most_after = words.significant(float(after.now.max()))
    text = (
        f"Before the norms, the {quantity} of a token's numbers lies between {least_before} and {most_before}. "
        f"After them, it lies between {least_after} and {most_after}."
    )
    if quantity == "mean":
        text += f" Each norm subtracts the mean; any mean after it comes from {learned_by}."
    sources = [norm.source for norm in norms.values()]
    sheet.say(
        scene,
        text,
        terms=["mean", "residual stream"],
        about=before,
        what="what the LayerNorms are given",
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


titles = (f"{quantity} before", f"{quantity} after")
sheet.maps(
    scene,
    "layernorm_grids",
    [Map(titles[0], before, scale, titles[0]), Map(titles[1], after, scale, titles[1])],
    names,
    f"The {quantity} of every token's values before and after each of the {len(names)} norms",
    at=(names.index(name), scene.position),
    pick=pick,
    show=shown,
    joint=True,
    which=(quantity,),
)
middle = "have a mean of 0"
resting = 0.0  # what a norm brings every token to
if is_variance:
    middle = "have a variance of 1"
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
    quantity,
    f"The {quantity} of {scene.label} (position {scene.position}) before and after each norm",
    which=(quantity,),
    at=names.index(name),
    log=is_variance,
    rest=resting,
)
st.caption(f"{label} on its way through the model, norm by norm.")

# ---- why not 1: scale and shift ----

st.subheader(f"Why is the variance {words.significant(parts.after)} and not 1?", anchor=False)
variance = words.significant(now.variance, 4)
normalised = words.significant(parts.normalised, 6)
smallest_scale = words.significant(float(now.scale.min()))
largest_scale = words.significant(float(now.scale.max()))
scaled = words.significant(parts.scaled, 4)
sentences = [
    "After dividing by √(variance + eps), the variance is variance / (variance + eps) = "
    f"{variance} / ({variance} + {now.eps_written}) = {normalised}.",
    "Next, each dimension is multiplied by its own scale, here between "
    f"{smallest_scale} and {largest_scale}: the variance becomes {scaled}.",
]
trained = "the scale"
if now.has_shift:
    trained = "scale and shift"
    shift = words.significant(parts.shift)
    together = words.significant(parts.together)
    after_shift = words.significant(parts.after, 4)
    sentences.append(
        "Last, each dimension gets its own shift. The shifts add their variance, "
        f"{shift}, and twice their covariance with the scaled values, {together}: "
        f"{scaled} + {shift} + {words.term(together)} = **{after_shift}**."
    )
sentences.append(f"Training chooses {trained} to suit the layer that reads the result.")
words.prose(" ".join(sentences), "variance", "dimension")

if size > 1:
    by_all, by_less = numbers.two_variances(now.before)
    apart = "0 %"
    if by_all:
        apart = words.percent(by_less / by_all - 1)
    words.prose(
        f"**Divided by N, not by N − 1.** LayerNorm adds up {size} squares and divides by {size}: "
        f"{words.significant(by_all, 6)}. By default `torch.var` divides by {size - 1} and gives "
        f"{words.significant(by_less, 6)}, {apart} more. `unbiased=False` asks for N, because "
        "these numbers are all there are, not a sample.",
        "variance",
    )
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

caption = "One row per norm and token, before and after."
with sheet.details():
    sheet.numbers_of("layernorm", lambda: sheet.of(scene, numbers.norm_table), caption)
    sheet.code_of(
        scene,
        [LayerNorm.forward, LayerNorm.formula, numbers.norm_steps],
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
