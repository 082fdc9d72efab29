"""How a model knows where a token stands: learned rows, sines, rotations, or nothing; and what if not."""

import inspect
from dataclasses import replace

import numpy as np
import pandas as pd
import streamlit as st
import torch

from gptviz import Edit, GPTModel, Run
from gptviz.analysis.embeddings import shared_scale
from gptviz.analysis.moved import pattern_moved
from gptviz.analysis.next_token import losses
from gptviz.both import Both, alike
from gptviz.digits import fixed, percent, significant
from gptviz.engine.edit_values import shuffled
from gptviz.figures import positions as figures
from gptviz.figures.next_token import loss_text, probability_text
from gptviz.lessons import positions as lesson
from gptviz.lessons.positions import SCHEMES, compared, pair_scores, position_rows, products
from gptviz.ui import heads, runs, sheet
from gptviz.ui.components.matrix import attention_panel, matrix
from gptviz.ui.sheet import Param, between, block_and_head_inputs, if_there, in_code, opened_head
from gptviz.ui.shell import changes
from gptviz.ui.shell.state import BLOCK, HEAD
from gptviz.ui.shell.target import logits_at
from gptviz.ui.words import as_code, counted, prose, show_id

SCHEME = Param("pos_scheme", str, "learned", if_there)
DISTANCE = Param("pos_distance", int, 3, between)
AT = Param("pos_at", int, 8, between)
WHAT = Param("pos_what", str, "shuffle", if_there)
SEED = Param("pos_seed", int, 1, between)
WHAT_IF = {"shuffle": "Shuffled", "mean": "All the same", "zero": "None"}

# of the picture; the numbers are of all
MOST_ROWS = 128
MOST_COLUMNS = 256
DIALS = 4  # pairs of dimensions that are drawn as arrows
LOSS_TOKENS = 256  # a longer text's losses, a row of logits each, are worked out only in *In numbers*
FIRST = 5  # tokens of each prediction that are listed

frame = sheet.start_page("Positions", choices=[SCHEME, DISTANCE, AT, WHAT, SEED])
prompt = sheet.read_text(frame)
scene = sheet.trace(prompt, reduce=[heads.scores_of(prompt.tokens)])
config = scene.lm.config
position = scene.position
label = as_code(scene.label)
count = config.context_length
DISTANCE.within((0, count - 1))

# ---- one scheme ----

above = st.container()
scheme = SCHEME.choose("Positions", SCHEMES, label_visibility="collapsed")
rows = position_rows(scene.lm, scheme)
by_distance = products(scene.lm, scheme)
size = rows.shape[1]
distance = DISTANCE.value
apart = f"{counted(distance, 'token')} apart"
product = by_distance.iloc[distance]
same = f"{apart.capitalize()}, the dot product is {significant(product['mean'])} wherever the two stand: "
same += "only the distance counts, and all three lines are one."
example = min(7, count - 1)
untrained = "-untrained" in scene.lm.name
slowest = 2 * np.pi / float(lesson.frequencies(size)[-1])
learned = "to be learned" if untrained else "learned"
sentences = {
    "learned": f"**A row per position, {learned} in training.** This model has "
    f"{count:,} rows of {size} numbers; row {example} is added to whatever token stands at position "
    f"{example}. Nothing says that {example} comes after {example - 1}: two rows {apart} have a dot product "
    f"of {significant(product['mean'])} on average, but from {significant(product['least'])} to "
    f"{significant(product['most'])}, depending on where they stand (the dashed lines).",
    "sinusoidal": "**Sines and cosines, added to the token; nothing is learned.** Each pair of dimensions "
    f"is a clock's hand: the first goes round in 6.28 tokens, the last in {slowest:,.0f}. {same}",
    "rope": "**Nothing is added: in every head the queries and keys are turned**, pair by pair, farther the "
    f"later they stand. The picture is what each position makes of (1, 0, 1, 0, …), for a head's {size} "
    f"dimensions. {same}",
    "none": "**No positions at all.** In the first block a token has the same query and key wherever it "
    "stands. What is left is the causal mask: it hides what comes later, so *before* is known, but not *how "
    "far*. Later blocks can learn to tell that from it, if trained so (Haviv et al., 2022).",
}
with above:
    prose(sentences[scheme], "position", "dot product", "causal mask", "head", "query", "key")

step = -(-size // MOST_COLUMNS)
dimensions = [i for i in range(size) if (i // 2) % step == 0]  # pairs, evenly spread
cells = rows[:MOST_ROWS, dimensions].numpy()
left, right = st.columns(2, gap="medium")
with left:
    limit = shared_scale(cells, share=0.98).limit
    alt = f"{SCHEMES[scheme]}: {len(cells)} positions, a row each; line at the selected one"
    fig = figures.position_rows(cells, dimensions, limit, position, scene.mode)
    scene.chart(fig, key="position_rows", alt=alt, which=(scheme,))
    parts = [f"the first {len(cells):,} of {count:,} positions"] * (len(cells) < count)
    if len(dimensions) < size:
        parts.append(f"{len(dimensions):,} of {size:,} dimensions, in pairs evenly spread")
    if parts:
        st.caption(f"The picture shows {' and '.join(parts)}; the curve is of all.")
with right:
    sheet.curves(
        scene,
        "position_distance",
        {name: Both(by_distance[name]) for name in ("mean", "least", "most")},
        [f"{i} apart" for i in by_distance["distance"]],
        "dot product of the two rows",
        f"{SCHEMES[scheme]}: the dot product of two rows by how far apart they stand",
        which=(scheme,),
        at=distance,
        rest=0,
        axis={"title": {"text": "how many tokens apart"}},
        many=True,
        height=figures.HEIGHT,
    )
if scheme == "sinusoidal" and size % 2 == 0:
    moved = rows[: count - distance] @ lesson.shift_matrix(distance, size).T
    error = float((moved - rows[distance:]).abs().max())
    prose(
        f"So {counted(distance, 'step')} further is one {size} × {size} matrix, the same everywhere: M · "
        f"p(pos) = p(pos + {distance}). Over all positions the two sides differ by at most "
        f"{significant(error, 2)}: rounding."
    )

# ---- a pair that moves ----

st.subheader("A pair of tokens moves along the text", anchor=False)
with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
    distance = at = DISTANCE.number(st.number_input, "Tokens apart", 0, count - 1, step=1, width=130)
    if distance < count - 1:
        at = AT.number(st.slider, "Position of the query", distance, count - 1, step=1)
head_size = lesson.even_part(config.emb_dim // config.n_heads)
speeds = lesson.frequencies(head_size).tolist()
pairs = sorted({int(i) for i in np.linspace(0, len(speeds) - 1, min(DIALS, len(speeds)))})
drawn = counted(len(pairs), "pair")
prose(f"**RoPE, as arrows.** In {drawn} of a head's dimensions, the slowest on the right:")
halves = [half for half in (pairs[: DIALS // 2], pairs[DIALS // 2 :]) if half]
for i, half in sheet.side_by_side(enumerate(halves), "small"):  # one of all is too small on a phone
    alt = f"RoPE: a query at position {at}, a key at {at - distance}; "
    alt += " and ".join(f"pair {pair}" for pair in half)
    fig = figures.dials({pair: speeds[pair] for pair in half}, at, at - distance, scene.mode)
    scene.chart(fig, key=f"position_dials_{i}", alt=alt, which=(f"at{at}",))
turned = lesson.rotations(count, head_size)
prose(
    f"Query (blue) at position {at}, key (red) at {at - distance}. Move the slider: both turn, and the angle "
    f"between them stays, **{distance}** times the pair's speed. The dot product of the two is the sum of "
    f"the cosines of these angles over the head's {counted(len(speeds), 'pair')}: "
    f"**{fixed(float(turned[at] @ turned[at - distance]), 3)}**."
)

shares = heads.previous_shares(scene.run)  # (n_layers, H): what each head gives the token just before
first_head = opened_head(config, lambda: (0, int(shares[0].argmax())))[1]
before = scene.tokens[max(0, position - 1)]
pair = (scene.tokens[position].id, before.id, first_head, distance)
known = runs.runs()  # of the weights alone
plain = scene.run.plain
scores = known.derived(("pair_scores", pair), plain, lambda: pair_scores(runs.model(plain), *pair))
by = known.derived(("compared", pair), plain, lambda: compared(runs.model(plain), scores))
moves = dict(zip(by["scheme"], by["score changes"], strict=True))
other_label = scene.labels[before.position]
turns = "Without positions it stays, and at every distance."
if "RoPE" in moves:
    turns = f"Turned as in RoPE it stays, to {significant(moves['RoPE'], 2)}: a rotation keeps the distance "
    turns += "and nothing else. Without positions it stays, too, but at every distance."
text = (
    f"{label} looks at {as_code(other_label)}, {counted(distance, 'token')} before it, at every place of a "
    f"text: the score in head {first_head} of block 0, with this model's own weights. With its learned rows "
    f"the score changes by **{significant(moves['Learned'])}**; with sines instead, by "
    f"**{significant(moves['Sinusoidal'])}**, since query and key mix token and position. {turns}"
)
if not untrained:
    text += " (Only the learned rows are what this model was trained with; the others show the "
    text += "scheme, not what a model would learn with it.)"
prose(text, "query", "key")
places = scores.index.tolist()  # of the query: the first is the distance
ticks = list(range(0, len(places), max(1, len(places) // 8)))
sheet.curves(
    scene,
    "position_scores",
    {name: Both(scores[name]) for name in scores},
    [f"query at position {i}" for i in places],
    "score",
    f"The score of {scene.label} for {other_label}, {distance} before it, at every place of the text",
    at=at - distance,
    axis={
        "title": {"text": f"position of the query; the key is {distance} before it"},
        "tickvals": ticks,
        "ticktext": [places[i] for i in ticks],
    },
    height=300,
    many=True,
)
sheet.table("schemes", Both(by), 3)
st.caption(
    f"*Product* is the dot product of two positions' rows {counted(distance, 'token')} apart, *score* that "
    "of the two tokens above, both on average over all places of a text. *Changes* is the largest minus the "
    "smallest: 0 where only the distance counts."
)
if scene.other is not None:
    text = "All up to here comes from the model's weights alone: what is changed in a pass cannot matter."
    st.caption(text)

# ---- the model with other positions: a pass with an edit, beside the one without it ----

st.subheader("What if the model's own positions were changed?", anchor=False)
sheet.end_unless_near("positions_changed")  # another pass, and both runs' losses
with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
    what = WHAT.choose("Its positions", WHAT_IF)
    SEED.within((0, 999))
    if what == "shuffle":
        told = "Another number is another random order."
        SEED.number(st.number_input, "Order", 0, 999, step=1, width=110, help=told)
    edit = Edit("pos_emb", value=f"shuffle{SEED.value}" if what == "shuffle" else what)
    block = int(shares.max(axis=1).argmax()) if BLOCK.value is None else BLOCK.value
    head = int(shares[block].argmax()) if HEAD.value is None else HEAD.value
    block_and_head_inputs(config, block, head)
    st.button("Change it on every page", key="pos_keep", help=f"`{edit}`", on_click=changes.add, args=(edit,))
# where something is changed for the whole app, both passes have it: this page's edit comes after
changed = replace(scene, run=scene.run.edited(edit), other=None)
site = ("attn", block)
if 1 < len(scene.tokens) <= LOSS_TOKENS:
    changed.get((site, "final"))  # in one pass


def following(run: Run) -> np.ndarray:
    """(V,): the probability of every token after the selected one."""
    return torch.softmax(logits_at(run, position).double(), dim=-1).numpy()


own = following(scene.run)
now = following(changed.run)
best = int(own.argmax())
best_now = int(now.argmax())
if scene.other is not None:
    text = "Both passes have what is changed above in them, and the second has other positions, too."
    if any(made.site == "pos_emb" for made in scene.run.edits):
        text += " Positions are changed above already: this is done to what stands there now."
    prose(text)
order = shuffled(len(scene.tokens), SEED.value)
kept = what == "shuffle" and bool((order == np.arange(len(order))).all())
said = {
    "shuffle": "The positions have each other's rows, in a random order; the tokens stay where they are. ",
    "mean": "Every position has the mean of this text's rows: all are alike. ",
    "zero": "Nothing is added to the tokens. ",
}[what]
if kept:
    said = "In this order every position keeps its own row, so that nothing changes. "
patterns = [one.get((site,))[site][head] for one in (scene, changed)]  # (T, T) each
if len(scene.tokens) > 1:
    had, has = (percent(float(one.diagonal(-1).mean())) for one in patterns)  # from position 1 on, as `moved`
    moved_share = percent(pattern_moved(*patterns))
    said += f"In block {block}, **{moved_share}** of the attention of head {head} goes elsewhere, on average "
    said += f"over all tokens but the first: the token just before gets {has} of it, and had {had}."
else:
    said += "The only token can look at nothing but itself, whatever its position."
said += f" After {label} the model said {as_code(show_id(scene.lm, best))} with {percent(float(own[best]))}; "
said += f"it now has {percent(float(now[best]))}, and "
said += "is still the first." if best_now == best else f"{as_code(show_id(scene.lm, best_now))} is the first."
if 1 < len(scene.tokens) <= LOSS_TOKENS:
    was_loss, new_loss = (loss_text(sheet.of(one, losses).now["nats"].mean())[0] for one in (scene, changed))
    said += f" Over the whole text the mean loss goes from {was_loss} to **{new_loss}**."
if alike(own, now) and not kept:
    said += " With other positions the prediction is the same as without them."
prose(said, "attention", "token")


titles = (
    "As the model is" if scene.other is None else "With what is changed above",
    f"Its positions: {WHAT_IF[what].lower()}",
)
passes = zip(("own", "changed"), titles, (scene, changed), patterns, strict=True)
for name, title, one, weights in sheet.side_by_side(passes):
    st.markdown(f"**{title}**")
    which = f"block{block}", f"head{head}"
    saved = one.saved(f"positions_{name}", f"{title}: attention of block {block}, head {head}", *which)
    panel = attention_panel(title)
    cells_of = {"weights": weights.numpy()}
    matrix(f"positions_{name}", [panel], cells_of, scene.labels, position, None, scene.pick, saved=saved)

columns = {"as it is" if scene.other is None else "changed above": own, WHAT_IF[what].lower(): now}
if scene.other is not None:
    columns = {"unchanged": following(scene.other)} | columns
ids = list(dict.fromkeys(int(i) for p in columns.values() for i in np.argsort(-p, kind="stable")[:FIRST]))
written = {name: [probability_text(p[i]) for i in ids] for name, p in columns.items()}
sheet.table("predictions", Both(pd.DataFrame({"token": [show_id(scene.lm, i) for i in ids]} | written)))

# ---- details ----


def all_products() -> pd.DataFrame:
    every = [products(scene.lm, s).assign(scheme=name) for s, name in SCHEMES.items()]
    return pd.concat(every, ignore_index=True)


def all_losses() -> Both[pd.DataFrame]:
    more = {"loss, changed": sheet.of(changed, losses).now["nats"], "edit": str(edit)}
    columns = {"position": "position", "nats": "loss"}
    table = sheet.of(scene, losses).map(lambda one: one[[*columns]].rename(columns=columns).assign(**more))
    table.map(lambda one: one.insert(1, "token", scene.labels))
    return table


sheet.numbers_of("position_products", all_products, what="dot products by distance")
sheet.numbers_of("position_scores", scores.reset_index, what="a pair along the text")
caption = "Each token's loss, −ln of its probability, and the same with other positions (changed)."
sheet.numbers_of("position_losses", all_losses, caption, what="the changed pass", missing="nothing before it")
program = sheet.program(scene, position_rows, scheme) + (
    f"\nlm = lm.edited({str(edit)!r})\n"
    f"print(lm.trace({sheet.read(scene)}, keep=()).next_tokens(k={FIRST}, position={position}))\n"
)
sinusoidal = inspect.unwrap(lesson.sinusoidal)
in_code([GPTModel.final_hidden, sinusoidal, lesson.rotate, position_rows, products, Edit.apply], program)
