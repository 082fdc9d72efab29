"""Why the model says a token: its logit as the sum of what every part wrote, and who read what where."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from gptviz.analysis import logit_attribution as numbers
from gptviz.analysis.ablation import parts_of
from gptviz.analysis.shares import Waterfall, label_of
from gptviz.both import Both
from gptviz.figures import shares as figures
from gptviz.figures.maps import Map
from gptviz.figures.marks import token_ticks
from gptviz.model import LayerNorm, TransformerBlock
from gptviz.ui import heads, many, sheet, words
from gptviz.ui.parts.why import flow, paths
from gptviz.ui.shell import change_menu, muted as muting, state, target
from gptviz.ui.shell.navigation import link

# of the block: what the page offers to change
PART = sheet.Param("why_part", str, "head", sheet.if_there)
MUTE = sheet.Param("mute", bool, False)
PARAMS = (*target.PARAMS, sheet.SHOWN, PART, MUTE, *paths.PARAMS, *flow.PARAMS, many.SET)

LOOKS = ("q", "k", "v")

frame = sheet.start_page("Why this token?", choices=PARAMS)
prompt = sheet.read_text(frame)
scene = sheet.trace(prompt, keep=[*numbers.sites(prompt.lm.config), *LOOKS], strip=False)

lm = scene.lm
at = scene.position
labels = scene.labels
here = words.as_code(scene.label)
layers = lm.config.n_layers
n_heads = lm.config.n_heads
explained = target.target_input(scene)
asked = explained.token, explained.against, at
# in a program
named: dict[str, Any] = dict(zip(("token", "against", "position"), asked, strict=True))
word = explained.shown
against = explained.against_shown
if against is None:
    subtracted = "the mean of all"
else:
    subtracted = f"that of {against}"
title = f"the logit of {word} minus {subtracted}"

# ---- the sum ----

KEYS = ["part", "block", "head"]
shares = sheet.of(scene, numbers.logit_shares, *asked)
if shares.was is not None:  # a change may have added a part, which the unchanged model has not
    old = shares.now[KEYS].merge(shares.was, "left", KEYS).fillna({"contribution": 0.0})
    shares = Both(shares.now, old)
table = shares.now[:-2]
# of every part, their sum, the model's own
values = shares.map(lambda s: s["contribution"].to_numpy(float))
logit = values.map(lambda v: float(v[-1]))
names = [label_of(*row) for row in table[KEYS].itertuples(index=False)]
in_blocks = np.flatnonzero(table["block"].notna())
# (L, H heads, a bias or none, feed-forward)
grids = values.map(lambda v: v[in_blocks].reshape(layers, -1))
columns = [names[row].removeprefix("block 0 · ") for row in in_blocks[: grids.now.shape[1]]]
block, head = sheet.opened_head(
    lm.config, lambda: divmod(int(np.abs(grids.now[:, :n_heads]).argmax()), n_heads)
)
read = sheet.of(scene, numbers.heads_read, block, *asked)
scene.strip(shares=read.now.given[head].tolist())

largest: list[str] = []
# the heads of a block are one
groups = table.groupby(["part", "block"], dropna=False)["contribution"].sum()
for (part, where), share in groups.loc[groups.abs().sort_values(ascending=False).index[:2]].items():
    if part == "head" and n_heads > 1:
        source = "heads"
    else:
        source = part
    text = f"{words.significant(share)} from the {source}"
    if not pd.isna(where):
        text += f" of block {where}"
    if part == "head":
        # (n,)
        given = sheet.of(scene, numbers.heads_read, int(where), *asked).now.given.sum(axis=0)
        if (
            np.isfinite(given).all()
            and given.any()
            and not any("read" in earlier for earlier in largest)
        ):
            most = int(np.abs(given).argmax())
            text += (
                f" ({words.significant(given[most])} of it read from "
                f"{words.as_code(labels[most])}, position {most})"
            )
    largest.append(text)
sign = 1 if logit.now >= 0 else -1
above = "above" if sign > 0 else "below"
sheet.say(
    scene,
    f"After {here} (position {at}) the logit of {words.as_code(word)} is "
    f"**{logit.map(lambda x: sign * x):3}** {above} {words.compared_with(against)}: the largest "
    f"shares are {' and '.join(largest)}.",
    terms=["logit", "block", "head", "feed-forward"],
    about=values.map(lambda v: v[[*in_blocks, -1]]),
    what=f"the logit of {words.towards(word, against)} after {here}",
    sites=[("final", None)],
    position=at,
)
left, right = st.columns([5, 4], gap="medium")
with left:
    falls = Waterfall.of(names, values.map(lambda v: v[:-1]))

    def open_bar(place: int) -> None:
        """A click on a bar opens its head."""
        if " · head " in falls.names[place]:
            row = table.iloc[falls.rows[place][0]]
            state.open_head(int(row["block"]), int(row["head"]))

    opened = label_of("", block, head)
    bar = None
    if opened in falls.names:
        bar = falls.names.index(opened)
    alt = f"The largest parts of {title}, and their sum"
    drawn = figures.falling(falls, scene.mode)
    sheet.bars(
        scene, "why_waterfall", falls.values, falls.names, "", alt, open_bar, at=bar, **drawn
    )
    whose = "changed model's"
    if scene.other is None:
        whose = "model's own"
    st.html(
        f'<div data-testid="why_sum" data-parts="{len(table)}" data-sum="{values.now[-2]}" '
        f'data-logit="{logit.now}">{len(table)} parts add up to {words.fixed(values.now[-2], 4)}. '
        f"The {whose} number is {words.fixed(logit.now, 4)}.</div>"
    )


def open_cell(block: int, column: int) -> None:
    """A click opens a head; a cell after the heads is what the page then offers to change of its block."""
    if column < n_heads:
        state.open_head(block, column)
        PART.set(None)
    else:
        state.BLOCK.set(block)
        PART.set("feed-forward" if columns[column:] == ["feed-forward"] else "attention")


with right:
    shown = sheet.shown(scene, values, label="The maps show")
    verb = "its share is"
    if shown == sheet.DIFFERENCE:
        verb = "its share has changed by"
    alt = f"What every head and feed-forward wrote to {title}"
    if scene.other is not None:
        alt += f" ({shown})"
    sheet.scene_of(scene, shown).chart(
        figures.share_grid(Map("", grids).drawn(shown), columns, (block, head), verb, scene.mode),
        key="why_grid",
        alt=alt,
        which=() if scene.other is None else (shown,),
        on_cell=open_cell,
    )
    text = "What each head (by its number), bias and feed-forward (ff) wrote. A click opens a head."
    if shown == sheet.DIFFERENCE:
        text += " What comes before a change moves only because the last LayerNorm divides by another number."
    st.caption(text)
    PART.within(muting.KINDS)
    parts = [
        change_menu.Part("head", block, head),
        change_menu.Part("attention", block),
        change_menu.Part("feed-forward", block),
    ]
    change_menu.menu(scene, *sorted(parts, key=lambda part: part.kind != PART.value), key="why")
divisor = numbers.spread(scene.trace, lm.model, at)
shift = " and its shift taken as a part of its own"
if lm.model.final_norm.shift is None:
    shift = ""
text = (
    "**Why this is a sum.** Every part only adds to the residual stream. With the number that the "
    f"final LayerNorm divides by held at what it is here ({words.significant(divisor, 4)}){shift}, "
    "each write goes through to the logit by itself. What raises all logits alike counts as 0. A "
    "share is what a part wrote for the word *itself*, without what later parts made of it."
)
if "edit" in set(table["part"]):
    text += " `edit` is what the change put into the stream in place of what the parts wrote."
if "rounding" in set(table["part"]):
    text += " This model computes in bfloat16, which rounds the stream at every step: `rounding` in sum."
words.prose(text, "residual stream", "LayerNorm")
sheet.example_row("A copied passage", "A name comes back", "A quotation closes", "He and she")

# ---- a head, opened ----

st.subheader(f"What block {block}, head {head} read", anchor=False)
sheet.end_unless_near("head_read")
with st.container(horizontal=True, gap="small"):
    sheet.block_and_head_inputs(lm.config, block, head)
given = read.now.given[head]  # (n,)
looks = read.now.attention[head]  # (n,)
share = grids.map(lambda g: float(g[block, head]))
text = f"Block {block}, head {head} wrote {share:3} for {words.towards(word, against)}."
if np.isfinite(given).all() and given.any():
    first = int(np.abs(given).argmax())
    most = int(looks.argmax())
    text += (
        f" {words.significant(given[first])} of it came from {words.Place(labels[first], first)}, "
        f"which got {words.weight(looks[first])} of its attention."
    )
    if not np.isclose(looks[most], looks[first]):
        text += (
            f" Where it looked most, {words.weight(looks[most])}, was "
            f"{words.Place(labels[most], most)}, which gave {words.significant(given[most])}: "
            "where a head looks is not what it takes there."
        )
elif not heads.changed_in(scene.run, block, head):
    text += " It took nothing from any token."
else:
    done = "replaces the head's output by what no token gave"
    if np.isfinite(given).all():
        done = "leaves the head nothing to write"
    text += f" In this changed pass a change {done}."
words.prose(text)
sheet.maps(
    scene,
    "why_sources",
    [
        Map("what each token gave", read.map(lambda r: r.given), "signed", "gave"),
        Map("where the heads look", read.map(lambda r: r.attention), "weight", "attention"),
    ],
    [f"head {h}" for h in range(n_heads)],
    f"What each token gave to {title} through the heads of block {block}",
    (head, None),
    lambda row, _: open_cell(block, row),
    shown,
    which=(f"block{block}", f"head{head}"),
    few=slice(at + 1),
)
sheet.bars(
    scene,
    "why_together",
    read.map(lambda r: np.nansum(r.given, axis=0)),
    labels[: at + 1],
    "all heads together",
    f"What each token gave to {title} through all heads of block {block}",
    signed=True,
    axis={"showgrid": False} | token_ticks(labels[: at + 1]),
    height=230,
    which=(f"block{block}",),
)
text = (
    "Left, a cell is one token's part of what a head wrote: attention weight × value, sent through "
    "to the logit. A row adds up to the head's share, the bars are the sums of the columns."
)
if read.now.anyway[head]:
    text += (
        f" {words.significant(read.now.anyway[head])} of it is the values' bias, which this head "
        "writes wherever it looks, given here to the tokens by their attention."
    )
words.prose(text, "attention weight", "value")

# ---- direct beside total ----

st.subheader("Direct is not total", anchor=False)
words.prose(
    f"What if a part were not there? Each of the {len(parts_of(lm))} heads, attentions and "
    "feed-forwards is muted in turn, its output set to 0, and the rest of the model runs again."
)
if MUTE.widget(st.toggle, "Mute each part in turn"):
    muted = muting.knocked(scene, explained, "why_stop", lambda: MUTE.set(False))
    grid = grids.now
    total = -muted["effect"].to_numpy(float)
    alone = grid[:, :n_heads]
    without = total.reshape(layers, -1)[:, :n_heads]
    farthest = divmod(int(np.abs(without - alone).argmax()), n_heads)
    text = (
        f"Block {block}, head {head} wrote {words.significant(alone[block, head])} for "
        f"{words.towards(word, against)}; muting it takes "
        f"{words.significant(without[block, head])} away."
    )
    if farthest != (block, head):
        text += (
            f" Farthest apart is {label_of('', *farthest)}: it wrote "
            f"{words.significant(alone[farthest])}, and muting it takes "
            f"{words.significant(without[farthest])} away."
        )
    words.prose(text)
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown("**What muting takes away**")
        alt = f"What muting each part takes away from {title}"
        muting.muted_map(scene, Both(total), (block, head), "why_muted", alt, open_cell)
        link(
            "knock_out",
            state.link() | sheet.in_link(target.PARAMS),
            label="Knock-out: the same by probability",
        )
    with right:
        scene.chart(
            figures.direct_and_total(alone, without, (block, head), scene.mode),
            key="why_both",
            alt=f"Each head's direct share of {title}, and what muting it takes away",
        )
    text = (
        "**Why they differ.** Without a head *later parts* read another stream and write something "
        "else, the *LayerNorms* divide by another number, and *other heads stand in* for it. On "
        "the dotted line direct and total are the same."
    )
    words.prose(text, "LayerNorm", "residual stream")

    def effects() -> pd.DataFrame:
        """The direct share of a whole attention is that of its heads and its bias."""
        direct = np.column_stack([grid[:, :n_heads], grid[:, :-1].sum(axis=1), grid[:, -1]]).ravel()
        more = {"direct": direct, "takes away": total}
        return muted[["kind", "block", "head"]].assign(**more, **muted[["logit", "probability"]])

    caption = (
        "Each part's direct share and what muting it takes away; without the part, the difference "
        "of logits (`logit`) and the target's probability."
    )
    sheet.numbers_of("muting", effects, caption, "direct and total")

alone_scene = replace(scene, other=None)  # these are of the run alone
with sheet.panel(
    "Paths: who wrote what the heads read", ":material/conversion_path:", "why_paths_box"
) as opens:
    if opens:
        paths.draw(alone_scene, explained)
with sheet.panel(
    "Flow: which tokens the stream is made of", ":material/account_tree:", "why_flow_box"
) as opens:
    if opens:
        flow.draw(alone_scene)

nouns = ("the share of {}", "of the logit difference")
many.section(
    scene, numbers.attributions, {}, ["contribution"], ("contribution", 1), table, names, nouns, 1
)

# ---- details ----


def by_token(found: numbers.HeadsRead) -> pd.DataFrame:
    """A row for each token, a column for each head of the block, and their sums."""
    heads = {f"head {h}": given for h, given in enumerate(found.given)}
    heads[f"all of block {block}"] = found.given.sum(axis=0)
    places = {"position": pd.array(range(at + 1), dtype="Int64"), "token": labels[: at + 1]}
    sums = {"token": "sum", **{name: given.sum() for name, given in heads.items()}}
    return pd.concat([pd.DataFrame(places | heads), pd.DataFrame([sums])], ignore_index=True)


caption = (
    "Every part's direct share, in the order of the pass; the last rows are their sum and the "
    "model's own number."
)
sheet.numbers_of("why", shares, caption, what="every part")
what_read = "what was read"
caption = (
    "What each token gave through each head of the opened block; the last row is each head's share."
)
sheet.numbers_of(f"why-block{block}", lambda: read.map(by_token), caption, what=what_read)
sources: list[Any] = [
    TransformerBlock.forward,
    LayerNorm.formula,
    numbers.reader,
    numbers.attribution,
]
sheet.code_of(scene, sources, numbers.logit_shares, **named)
sheet.code_of(
    scene, [numbers.reader], numbers.heads_read, block, **named, key="in_code_read", what=what_read
)
