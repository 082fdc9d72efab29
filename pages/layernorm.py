"""Every LayerNorm: what it is given, what it makes of it, and why."""

import numpy as np
import streamlit as st

from gptviz.analysis import norms as numbers
from gptviz.both import Both
from gptviz.digits import percent, significant, term
from gptviz.engine.layer_norms import norms_of
from gptviz.figures.maps import Map, Scale
from gptviz.figures.norms import norm_histograms
from gptviz.model import LayerNorm
from gptviz.ui import sheet
from gptviz.ui.sheet import DIFFERENCE, Param, if_there
from gptviz.ui.words import as_code, prose

SITES = ("resid_pre", "resid_mid", "resid_post")
NORM = Param("ln_norm", str, "block 0 · norm1", if_there)
DIMENSION: Param[int | None] = Param("ln_dim", int, None, if_there)
QUANTITY = Param("ln_quantity", str, numbers.QUANTITIES[0], if_there)

frame = sheet.start_page("LayerNorm", choices=[NORM, DIMENSION, QUANTITY, sheet.SHOWN])
prompt = sheet.read_text(frame)  # the text, its tokens, and what is changed in the model
scene = sheet.trace(prompt, keep=SITES)  # one pass of the model, with hooks at these sites
lm = scene.lm
label = as_code(scene.label)
size = scene.lm.config.emb_dim
norms = {norm.name: norm for norm in norms_of(lm.model)}
names = list(norms)

# ---- one norm, one token ----

above = st.container()
with st.container(horizontal=True):
    name = NORM.choose("Norm", names, st.selectbox, width=220)
    steps = sheet.of(scene, numbers.inside, name, scene.position)
    told = "The orange mark. A click on a bar of scale or shift chooses it, too."
    largest = numbers.largest_dimension(steps.now)
    empty = "the farthest from the mean"
    dimension = DIMENSION.index("Dimension", size, largest, empty, width=260, help=told)
given = steps.map(lambda s: s.before)
ends = {stage: steps.map(lambda s, stage=stage: float(s.stage(stage).var())) for stage in numbers.STAGES}  # type: ignore[misc]
which = (*name.replace("block ", "block").split(" · "), f"dimension{dimension}")
with above:
    sheet.say(
        scene,
        f"The {size} numbers of {label} have a variance of {ends['before']:3} when they come into {name}, "
        f"and of **{ends['after']:3}** when they leave it.",
        *("variance", "token"),
        about=given,
        what=f"{name.replace('final', 'the final norm')} at {label}",
        sites=[norms[name].source],
        position=scene.position,
    )
    alt = f"How the {size} values of {scene.label} are spread before {name}, normalised, and after it"
    scene.chart(
        norm_histograms(steps, dimension, scene.mode), key="layernorm_histograms", which=which, alt=alt
    )
    caption = "How many dimensions have a value of about this size. The line is the mean, the band one "
    caption += f"standard deviation to each side of it, the orange mark dimension {dimension}."
    if given.moved:
        caption += " The grey outline and the open mark are the unchanged model's."
    st.caption(caption)
one = (name, scene.position, dimension)
tables = sheet.of(scene, numbers.worked_out, *one)
sheet.table("stages", tables.map(lambda t: t[0]))

# ---- every norm, every token ----

st.subheader("Every norm, every token", anchor=False)
sheet.end_unless_near("norms")
said = st.container()
learned_by = "scale and shift" if steps.now.has_shift else "its scale"
with st.container(horizontal=True):
    quantity = QUANTITY.choose("Of each token's values", numbers.QUANTITIES)
    grids = sheet.of(scene, numbers.norm_grids, quantity)
    before = grids.map(lambda g: g[0])
    after = grids.map(lambda g: g[1])
    shown = sheet.shown(scene, before)
with said:
    runs = [
        " to ".join(significant(float(end)) for end in (g.now.min(), g.now.max())) for g in (before, after)
    ]
    text = f"Over all norms and tokens, the {quantity} runs from {runs[0]} before the norms, and from "
    text += f"{runs[1]} after them."
    if quantity == "mean":
        text += f" Each norm subtracts the mean; what there is of one after it comes from {learned_by}."
    sources = [norm.source for norm in norms.values()]
    terms = ("mean", "residual stream")
    what = "what the LayerNorms are given"
    sheet.say(scene, text, *terms, about=before, what=what, sites=sources)
    if before.moved:
        far = np.abs(Map("", before, "log" if quantity == "variance" else "signed").drawn(DIFFERENCE))
        row, column = divmod(int(far.argmax()), far.shape[1])
        first = names[int((far > 1e-5).any(axis=1).argmax())]
        there = before.map(lambda g: float(g[row, column]))
        prose(
            f"**What was changed is seen from {first} on.** Farthest apart is "
            f"{as_code(scene.labels[column])} at {names[row]}: {there:3}."
        )


def pick(row: int, column: int) -> None:
    """A click on a cell chooses the norm and the token."""
    NORM.set(names[row])
    scene.select(column)


both = {"before": before, "after": after}
is_variance = quantity == "variance"
scale: Scale = "log" if is_variance else "signed"
sheet.maps(
    scene,
    "layernorm_grids",
    [Map(f"{quantity} {when}", grid, scale, f"{quantity} {when}") for when, grid in both.items()],
    names,
    f"The {quantity} of every token's values before and after each of the {len(names)} norms",
    (names.index(name), scene.position),
    pick,
    shown,
    joint=True,
    which=(quantity,),
)
middle = "a variance of 1" if is_variance else "0"
middle = "what the change did not touch" if shown == DIFFERENCE else middle
st.caption(f"A row is a norm, a column a token; a click chooses both. No colour: {middle}.")
sheet.curves(
    scene,
    "layernorm_depth",
    {when: grid.map(lambda g: g[:, scene.position]) for when, grid in both.items()},
    names,
    quantity,
    f"The {quantity} of {scene.label} (position {scene.position}) before and after each norm",
    which=(quantity,),
    at=names.index(name),
    log=is_variance,
    rest=1.0 if is_variance else 0.0,
)
st.caption(f"{label} through the depth of the network, norm by norm.")

# ---- why not 1: scale and shift ----

parts = numbers.variance_parts(steps.now)
now = steps.now
st.subheader(f"Why {significant(parts.after)} and not 1", anchor=False)
why = f"Dividing by √(variance + eps) leaves variance / (variance + eps) = {significant(now.variance, 4)} / "
why += f"({significant(now.variance, 4)} + {now.eps_written}) = {significant(parts.normalised, 6)}. Then "
why += f"each dimension is multiplied by its own scale, from {significant(float(now.scale.min()))} to "
why += f"{significant(float(now.scale.max()))} here: the variance is {significant(parts.scaled, 4)}. "
if now.has_shift:
    why += f"Then each gets its own shift, whose variance is {significant(parts.shift)}; twice its "
    why += f"covariance with the scaled values is {significant(parts.together)}: "
    why += f"{significant(parts.scaled, 4)} + {significant(parts.shift)} + "
    why += f"{term(significant(parts.together))} = **{significant(parts.after, 4)}**. "
say = "Scale and shift are learned: they say" if now.has_shift else "The scale is learned: it says"
prose(f"{why}{say} how large a dimension is for what reads it next.", "variance", "dimension")


if size > 1:
    by_all, by_less = numbers.two_variances(now.before)
    apart = percent(by_less / by_all - 1) if by_all else "0 %"
    prose(
        f"**Divided by N, not by N − 1.** The variance adds up {size} squares and divides by N = {size}: "
        f"{significant(by_all, 6)}. Divided by {size - 1}, as `torch.var` does by itself, it would be "
        f"{significant(by_less, 6)}, {apart} more. `unbiased=False` asks for N: these are all the numbers "
        "that there are, and no sample of more.",
        "variance",
    )
prose(
    "A block of a GPT is **pre-norm**: one norm stands before attention, one before the feed-forward. The "
    "first transformer was **post-norm**: it normalised the sum after each of them.",
    *("pre-norm", "post-norm", "block", "attention", "feed-forward"),
)

learned = [("layernorm_weights", "scale", now.scale, 1.0), ("layernorm_shift", "shift", now.shift, 0.0)]
for key, what, weights, rest in learned[: 1 + now.has_shift]:
    sheet.bars(
        scene,
        key,
        Both(weights),
        [f"{what}[{i}]" for i in range(size)],
        what,
        f"The {what} of {name}: one learned number for every dimension",
        DIMENSION.set,
        which=which,
        at=dimension,
        rests=[(rest, "")],
        axis={"title": {"text": "dimension"}, "range": [-1, size], "showgrid": False},
    )
nothing = "The line is where it would change nothing: a scale of 1."
if now.has_shift:
    nothing = "The lines are where they would change nothing: a scale of 1, a shift of 0."
st.caption(f"The same for every token. {nothing}")
st.markdown(f"**Dimension {dimension}, step by step** (worked out with all digits, written with four)")
sheet.table("step by step", Both(tables.now[1]))

caption = "A row for each norm and token, before and after."
sheet.numbers_of("layernorm", lambda: sheet.of(scene, numbers.norm_table), caption)
sheet.code_of(
    scene,
    [LayerNorm.forward, LayerNorm.formula, numbers.norm_steps],
    numbers.norm_grids,
    quantity,
    run=lambda: numbers.run_norm(lm.model, name, scene.trace),
)
sheet.code_of(
    scene, [numbers.inside], numbers.worked_out, *one, key="in_code_one", what="one norm and one token"
)
