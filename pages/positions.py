"""How a model knows where a token is: learned vectors, sines, rotations, or nothing; and what if not."""

import inspect
from dataclasses import replace

import numpy as np
import pandas as pd
import streamlit as st
import torch

from gptviz import Edit, GPTModel, Run
from gptviz.analysis import turning
from gptviz.analysis.embeddings import shared_scale
from gptviz.analysis.moved import pattern_moved
from gptviz.analysis.next_token import losses
from gptviz.both import Both, alike
from gptviz.engine.edit_values import shuffled
from gptviz.figures import positions as figures
from gptviz.lessons import positions as lesson
from gptviz.ui import heads, runs, sheet, words
from gptviz.ui.components import matrix
from gptviz.ui.components.dials import dials
from gptviz.ui.parts.positions import turned as turned_positions
from gptviz.ui.shell import changes, state
from gptviz.ui.shell.target import logits_at

SCHEME = sheet.Param("pos_scheme", str, "learned", sheet.if_there)
DISTANCE = sheet.Param("pos_distance", int, 3, sheet.between)
AT = sheet.Param("pos_at", int, 8, sheet.between)
WHAT = sheet.Param("pos_what", str, "shuffle", sheet.if_there)
SEED = sheet.Param("pos_seed", int, 1, sheet.between)
WHAT_IF = {"shuffle": "Shuffled", "mean": "All the same", "zero": "None"}

# of the picture; the numbers are of all
MOST_ROWS = 128
MOST_COLUMNS = 256
DIALS = 4  # pairs of dimensions that are drawn as arrows
# a longer text's losses, a row of logits each, are worked out only in *Details*
LOSS_TOKENS = 256
FIRST = 5  # tokens of each prediction that are listed

frame = sheet.start_page(
    "Positions", choices=[SCHEME, DISTANCE, AT, WHAT, SEED, *turned_positions.PARAMS]
)
prompt = sheet.read_text(frame)
if turning.turns(frame.lm):
    turned_positions.page(prompt)
    sheet.end_page()
scene = sheet.trace(prompt, reduce=[heads.scores_of(prompt.tokens)])

config = scene.lm.config
position = scene.position
label = words.as_code(scene.label)
count = config.context_length

untrained = "-untrained" in scene.lm.name
learned = "to be learned" if untrained else "learned"

# ---- RoPE as clocks: two tokens that walk along the text ----

words.prose(
    "**RoPE turns queries and keys like clock hands: their angle depends only on how far apart they are.** "
    f"Watch the two walk along a text. The model {words.escaped(scene.lm.name)} has another way: it adds a "
    f"vector for each position, {learned} in training.",
    "query",
    "key",
    "position",
)
place = st.container()
distance = DISTANCE.number(st.number_input, "Tokens apart", 0, count - 1, step=1, width=160)
at = AT.within((distance, count - 1))
apart = f"{words.counted(distance, 'token')} apart"
head_size = lesson.even_part(config.emb_dim // config.n_heads)
speeds = lesson.frequencies(head_size).tolist()
# of a pair that does not go round within the longest text, nothing would be seen to turn
round_in_text = max(1, sum(speed * count >= 2 * np.pi for speed in speeds))
pairs = sorted({int(i) for i in np.linspace(0, round_in_text - 1, min(DIALS, round_in_text))})
# it is saved wherever they have come to
title = f"RoPE: a query and a key, {apart}, turned by their positions"
with place:
    dials(
        {pair: speeds[pair] for pair in pairs},
        distance,
        at,
        count - 1,
        AT.set,
        moves=AT.value == AT.default,  # who chose a place wants to see it
        saved=scene.saved("position_dials", title, f"apart{distance}"),
    )
turned = lesson.rotations(count, head_size)
drawn = words.counted(len(pairs), "pair")
fastest_first = ""
hands = ""
cosines = "is the cosine of this angle"
if len(pairs) > 1:
    fastest_first = f", among those that go round within {count:,} tokens"
    hands = " Fast hands tell near tokens apart, slow hands far ones."
if len(speeds) > 1:
    cosines = f"adds up the cosines of the angles of all {len(speeds)} pairs"
words.prose(
    f"Here {words.is_or_are(len(pairs))} {drawn} of a head's {words.counted(head_size, 'dimension')}{fastest_first}. "
    f"Both hands point to the right at position 0, and each position turns them on.{hands} The angle is always "
    f"**{distance}** times the pair's speed, in radians. The dot product of query and key {cosines}: "
    f"**{words.fixed(float(turned[at] @ turned[at - distance]), 3)}** at every place.",
    "head",
    "dot product",
)

# ---- one scheme ----

sheet.end_unless_near("position_schemes")
st.subheader("What does each position get?", anchor=False)
above = st.container()
scheme = SCHEME.choose("Positions", lesson.SCHEMES, label_visibility="collapsed")
rows = lesson.position_rows(scene.lm, scheme)
by_distance = lesson.products(scene.lm, scheme)
size = rows.shape[1]
product = by_distance.iloc[distance]
same = (
    f"Two positions {apart} have a dot product of {words.significant(product['mean'])} everywhere: "
    "only the distance counts, so all three lines coincide."
)
example = min(7, count - 1)
slowest = 2 * np.pi / float(lesson.frequencies(size)[-1])
sentences = {
    "learned": f"**Every position has a vector of its own, {learned} in training.** It is added to whatever "
    f"token is there; this model has {count:,} of these vectors, with {size} numbers each. Nothing says that "
    f"{example} comes after {example - 1}: for two positions {apart}, the dot product lies between "
    f"{words.significant(product['least'])} and {words.significant(product['most'])} (dashed lines), "
    f"{words.significant(product['mean'])} on average.",
    "sinusoidal": "**Sines and cosines are added to the token; nothing is learned.** Each pair of dimensions "
    f"is like a clock hand: the first goes round in 6.28 tokens, the last in {slowest:,.0f}. {same}",
    "rope": "**Nothing is added: every head rotates its queries and keys, the later the further.** It does so "
    "pair by pair; the picture shows what each position makes of (1, 0, 1, 0, …) in a head's "
    f"{words.counted(size, 'dimension')}. {same}",
    "none": "**The model gets no positions at all.** In the first block, a token has the same query and key "
    "everywhere. Only the causal mask is left: it hides what comes later, so the model knows *before*, but "
    "not *how far*. Later blocks can learn to tell distances from it, if trained so (Haviv et al., 2022).",
}
with above:
    words.prose(sentences[scheme], "position", "dot product", "causal mask", "head", "query", "key")

step = -(-size // MOST_COLUMNS)
dimensions = [i for i in range(size) if (i // 2) % step == 0]  # pairs, evenly spread
cells = rows[:MOST_ROWS, dimensions].numpy()
left, right = st.columns(2, gap="medium")
with left:
    limit = shared_scale(cells, share=0.98).limit
    alt = f"{lesson.SCHEMES[scheme]}: {len(cells)} positions, one row each; the line marks the selected one"
    fig = figures.position_rows(cells, dimensions, limit, position, scene.mode)
    scene.chart(fig, key="position_rows", alt=alt, which=(scheme,))
    parts = [f"the first {len(cells):,} of {count:,} positions"] * (len(cells) < count)
    if len(dimensions) < size:
        parts.append(f"{len(dimensions):,} of {size:,} dimensions, in pairs evenly spread")
    if parts:
        st.caption(f"The picture shows {' and '.join(parts)}; the curve covers all.")
with right:
    sheet.curves(
        scene,
        "position_distance",
        {name: Both(by_distance[name]) for name in ("mean", "least", "most")},
        [f"{i} apart" for i in by_distance["distance"]],
        "dot product of the two vectors",
        f"{lesson.SCHEMES[scheme]}: the dot product of two position vectors by their distance",
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
    words.prose(
        f"So one {size} × {size} matrix moves every position {words.counted(distance, 'step')} "
        f"further: M · p(pos) = p(pos + {distance})."
    )
    st.caption(
        f"Over all positions the two sides differ by at most {words.significant(error, 2)}: rounding."
    )

# ---- a pair's score along the text ----

st.subheader("Does a pair keep its score along the text?", anchor=False)
# (n_layers, H): what each head gives the token just before
shares = heads.previous_shares(scene.run)
first_head = sheet.opened_head(config, lambda: (0, int(shares[0].argmax())))[1]
before = scene.tokens[max(0, position - 1)]
pair = (scene.tokens[position].id, before.id, first_head, distance)
known = runs.runs()  # of the weights alone
plain = scene.run.plain
scores = known.derived(
    ("pair_scores", pair), plain, lambda: lesson.pair_scores(runs.model(plain), *pair)
)
by = known.derived(("compared", pair), plain, lambda: lesson.compared(runs.model(plain), scores))
moves = dict(zip(by["scheme"], by["score changes"], strict=True))
other_label = scene.labels[before.position]
turns = "Without positions the score is the same everywhere, at every distance."
if "RoPE" in moves:
    turns = (
        "With RoPE the score is the same everywhere: only the distance counts. Without positions, not "
        "even the distance counts."
    )
text = (
    f"Let {label} look at {words.as_code(other_label)}, {words.counted(distance, 'token')} before it, "
    f"at every place of a text, in head {first_head} of block 0. With this model's own position vectors "
    f"the score varies by **{words.significant(moves['Learned'])}**; with sines, by "
    f"**{words.significant(moves['Sinusoidal'])}**, because query and key mix token and position. "
    f"{turns}"
)
if not untrained:
    text += (
        " (This model was trained with learned positions. The other lines show the scheme, not what "
        "a model would learn with it.)"
    )
words.prose(text, "query", "key")
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
    f"*Product*: the dot product of two position vectors {apart}. *Score*: that of the two tokens "
    "above. Both are averages over all places of a text. *Changes*: the largest minus the smallest, "
    "0 where only the distance counts."
)
if scene.other is not None:
    text = "Everything up to here depends on the model's weights alone: a change in a pass cannot matter."
    st.caption(text)

# ---- the model with other positions: a pass with an edit, beside the one without it ----

st.subheader("What if we change the model's positions?", anchor=False)
sheet.end_unless_near("positions_changed")  # another pass, and both runs' losses
with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
    what = WHAT.choose("Position vectors", WHAT_IF)
    SEED.within((0, 999))
    if what == "shuffle":
        told = "Each number gives another random order."
        SEED.number(st.number_input, "Order", 0, 999, step=1, width=110, help=told)
    edit = Edit("pos_emb", value=f"shuffle{SEED.value}" if what == "shuffle" else what)
    if state.BLOCK.value is None:
        block = int(shares.max(axis=1).argmax())
    else:
        block = state.BLOCK.value
    if state.HEAD.value is None:
        head = int(shares[block].argmax())
    else:
        head = state.HEAD.value
    sheet.block_and_head_inputs(config, block, head)
    st.button(
        "Apply on every page",
        key="pos_keep",
        help=f"`{edit}`",
        on_click=changes.add,
        args=(edit,),
    )
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
    text = "Both passes include your changes; the second also has other positions."
    if any(made.site == "pos_emb" for made in scene.run.edits):
        text += " Your changes already touch the positions: this one comes on top."
    words.prose(text)
order = shuffled(len(scene.tokens), SEED.value)
kept = what == "shuffle" and bool((order == np.arange(len(order))).all())
said = {
    "shuffle": "The position vectors are shuffled; the tokens stay where they are. ",
    "mean": "Every position gets the mean of this text's position vectors, so all are alike. ",
    "zero": "No position vectors are added to the tokens. ",
}[what]
if kept:
    said = "In this order every position keeps its own vector, so nothing changes. "
own_pattern = scene.get((site,))[site][head]  # (T, T)
changed_pattern = changed.get((site,))[site][head]
if len(scene.tokens) > 1:
    # from position 1 on, as `moved`
    has, had = (float(one.diagonal(-1).mean()) for one in (changed_pattern, own_pattern))
    moved_share = words.percent(pattern_moved(own_pattern, changed_pattern))
    said += (
        f"In block {block}, head {head} moves **{moved_share}** of its attention to other tokens, on "
        "average over all tokens but the first. The token just before gets "
        f"**{Both(has, had).arrow('%')}**."
    )
else:
    said += "The only token can look at nothing but itself, whatever its position."
chance = Both(float(now[best]), float(own[best]))
leads = "and still leads"
if best_now != best:
    leads = f"and {words.as_code(words.show_id(scene.lm, best_now))} leads now"
said += (
    f" After {label}, {words.as_code(words.show_id(scene.lm, best))} has a probability of "
    f"**{chance.arrow('%')}** {leads}."
)
if 1 < len(scene.tokens) <= LOSS_TOKENS:
    was_loss, _ = words.loss_text(sheet.of(scene, losses).now["nats"].mean())
    new_loss, _ = words.loss_text(sheet.of(changed, losses).now["nats"].mean())
    said += f" The mean loss over the text is **{Both(new_loss, was_loss).arrow()}**."
if alike(own, now) and not kept:
    said += " The prediction is the same as without this change."
words.prose(said, "attention", "token")


own_title = "The model as it is"
if scene.other is not None:
    own_title = "With your changes"
passes = (
    ("own", own_title, scene, own_pattern),
    ("changed", f"Positions: {WHAT_IF[what].lower()}", changed, changed_pattern),
)
for name, title, one, weights in sheet.side_by_side(passes):
    st.markdown(f"**{title}**")
    which = f"block{block}", f"head{head}"
    saved = one.saved(
        f"positions_{name}", f"{title}: attention of block {block}, head {head}", *which
    )
    panel = matrix.attention_panel(title)
    cells_of = {"weights": weights.numpy()}
    matrix.matrix(
        f"positions_{name}",
        [panel],
        cells_of,
        scene.labels,
        position,
        None,
        scene.pick,
        saved=saved,
    )

columns = {
    "as it is" if scene.other is None else "with your changes": own,
    WHAT_IF[what].lower(): now,
}
if scene.other is not None:
    columns = {"unchanged": following(scene.other)} | columns
ids = list(
    dict.fromkeys(int(i) for p in columns.values() for i in np.argsort(-p, kind="stable")[:FIRST])
)
written = {name: [words.probability_text(p[i]) for i in ids] for name, p in columns.items()}
sheet.table(
    "predictions",
    Both(pd.DataFrame({"token": [words.show_id(scene.lm, i) for i in ids]} | written)),
)

# ---- details ----


def all_products() -> pd.DataFrame:
    every = [lesson.products(scene.lm, s).assign(scheme=name) for s, name in lesson.SCHEMES.items()]
    return pd.concat(every, ignore_index=True)


def all_losses() -> Both[pd.DataFrame]:
    more = {"loss, changed": sheet.of(changed, losses).now["nats"], "edit": str(edit)}
    columns = {"position": "position", "nats": "loss"}
    table = sheet.of(scene, losses).map(
        lambda one: one[[*columns]].rename(columns=columns).assign(**more)
    )
    table.map(lambda one: one.insert(1, "token", scene.labels))
    return table


with sheet.details():
    sheet.numbers_of("position_products", all_products, what="dot products by distance")
    sheet.numbers_of("position_scores", scores.reset_index, what="a pair along the text")
    caption = (
        "Each token's loss (−ln of its probability), and the same with other positions (changed)."
    )
    sheet.numbers_of(
        "position_losses", all_losses, caption, what="the changed pass", missing="nothing before it"
    )
    program = sheet.program(scene, lesson.position_rows, scheme) + (
        f"\nlm = lm.edited({str(edit)!r})\nprint(lm.trace({sheet.read(scene)}, "
        f"keep=()).next_tokens(k={FIRST}, position={position}))\n"
    )
    sinusoidal = inspect.unwrap(lesson.sinusoidal)
    sheet.in_code(
        [
            GPTModel.final_hidden,
            sinusoidal,
            lesson.rotate,
            lesson.position_rows,
            lesson.products,
            Edit.apply,
        ],
        program,
    )
