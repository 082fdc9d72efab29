"""Why the model predicts a token: its logit as the sum of all contributions, and which head read which token."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from gptviz.analysis import logit_attribution as numbers
from gptviz.analysis.ablation import parts_of
from gptviz.analysis.shares import Waterfall, label_of, portion, spoken
from gptviz.both import Both
from gptviz.figures import shares as figures
from gptviz.figures.maps import Map
from gptviz.figures.marks import token_ticks
from gptviz.ui import heads, many, sheet, words
from gptviz.ui.parts.why import depth, flow, other_word, paths
from gptviz.ui.shell import bench, change_menu, muted as muting, state
from gptviz.ui.shell.navigation import called, link

# of the block: what the page offers to change
PART = sheet.Param("why_part", str, "head", sheet.if_there)
MUTE = sheet.Param("mute", bool, False)
PARAMS = (*bench.PARAMS, sheet.SHOWN, PART, MUTE, *paths.PARAMS, *flow.PARAMS, *many.PARAMS)

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
explained = bench.bar(scene, only="votes add up in logits only")
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
strongest_head = divmod(int(np.abs(grids.now[:, :n_heads]).argmax()), n_heads)
block, head = sheet.opened_head(lm.config, lambda: strongest_head)
read = sheet.of(scene, numbers.heads_read, block, *asked)
# one scale for all heads, so that a head which hardly votes hardly colours the text
strongest = float(np.nanmax(np.abs(grids.now[:, :n_heads])))
scene.strip(shares=read.now.given[head].tolist(), most=strongest)


def side(votes: float) -> str:
    """Whom a vote of this sign is for: "for `·mill`", "against `·mill`", "for `·town` over `·mill`"."""
    if against is None:
        preposition = "for" if votes >= 0 else "against"
        return f"{preposition} {words.as_code(word)}"
    pair = (word, against) if votes >= 0 else (against, word)
    preferred, other = map(words.as_code, pair)
    return f"for {preferred} over {other}"


def read_most(given: np.ndarray) -> tuple[int, str | None] | None:
    """The position from which most of a vote was read, and how much in words; None where none was. `given` is (n,)."""
    if not np.isfinite(given).all() or not given.any():
        return None
    most = int(np.abs(given).argmax())
    return most, portion(float(given[most]), float(given.sum()))


def all_heads_read() -> str:
    """Sentences on what all heads of the block vote together, and from which token most; "" where they read none."""
    found = read_most(read.now.given.sum(axis=0))  # (H, n) -> (n,)
    if found is None:
        return ""
    most, how_much = found
    source = words.Place(labels[most], most)
    together = grids.map(lambda g: float(g[block, :n_heads].sum()))
    said = f" All heads of block {block} together contribute **{together.arrow()}**."
    if how_much is None:
        return f"{said} The largest single contribution to it was read from {source}."
    return f"{said} {words.capital(how_much)} of that was read from {source}."


def open_head_read() -> str:
    """Beside the picture: from which token the open head read its vote; "" where it read none."""
    found = read_most(read.now.given[head])
    if found is None:
        return ""
    most, how_much = found
    source = words.Place(labels[most], most)
    reader = f"Head {block}·{head}"
    if (block, head) == strongest_head:
        reader = f"Only heads read earlier tokens. The strongest of them, {block}·{head},"
    if how_much is None:
        how_much = "the largest part"
    return f"{reader} read {how_much} of its vote from {source}."


def strongest_vote() -> str:
    """The first sentence: whose single vote is the strongest, and that others vote the other way."""
    votes = table["contribution"].to_numpy(float)
    most = int(np.abs(votes).argmax())
    if votes[most] == 0:
        return f"No part of the model votes for {words.as_code(word)} or against it here."
    source = spoken(*table[KEYS].iloc[most])
    said = f"The strongest vote {side(votes[most])} comes from {source}"
    if not (votes * votes[most] < 0).any():
        return f"{said}."
    others = "some vote against"
    if votes[most] < 0:
        others = "some disagree"
    return f"{said}; {others}."


sheet.say(
    scene,
    strongest_vote(),
    terms=["logit", "block", "head", "feed-forward"],
    about=values.map(lambda v: v[[*in_blocks, -1]]),
    what=f"the logit of {words.towards(word, against)} after {here}",
    sites=[("final", None)],
    position=at,
)
left, right = st.columns([5, 2], gap="medium")
with left:
    falls = Waterfall.of(names, values.map(lambda v: v[:-1]))

    def open_bar(place: int) -> None:
        """A click on a bar opens its head, or the feed-forward layer of its block."""
        row = table.iloc[falls.rows[place][0]]
        if " · head " in falls.names[place]:
            state.open_head(int(row["block"]), int(row["head"]))
            PART.set(None)
        elif " · feed-forward" in falls.names[place]:
            state.BLOCK.set(int(row["block"]))
            PART.set("feed-forward")

    PART.within(muting.KINDS)
    opened = label_of("", block, head)
    if PART.value == "feed-forward":
        opened = label_of("feed-forward", block, None)
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
    blue = f"blue for {words.as_code(against)}" if against else "blue against it"
    words.prose(
        f"Each bar is the vote of one part: orange for {words.as_code(word)}, {blue}. All votes add up to the "
        f"logit of {words.as_code(word)} after {here} (position {at}) minus "
        f"{words.compared_with(against)}: **{logit.arrow()}**."
    )
    beside = open_head_read()
    if PART.value == "feed-forward":
        beside = (
            f"The feed-forward layer of block {block} reads {here} alone (position {at}). What it knows of "
            "earlier tokens came there by attention, in this block or before it."
        )
    if beside:
        words.prose(beside)
    st.caption(
        "Click a bar to open it. A bar is what a part says about the answer itself. What it prepares for "
        f"later parts is counted on *{called('knock_out')}*."
    )
    parts = [
        change_menu.Part("head", block, head),
        change_menu.Part("attention", block),
        change_menu.Part("feed-forward", block),
    ]
    change_menu.menu(scene, *sorted(parts, key=lambda part: part.kind != PART.value), key="why")
    other_word.draw(scene)
divisor = numbers.spread(scene.trace, lm.model, at)
shift = ", and count its shift as a part of its own"
if "final shift" not in set(table["part"]):
    shift = ""
text = (
    "**Why this is a sum.** Every part only adds to the residual stream. Hold the number by which the "
    f"final {scene.norm} divides at its value here ({words.significant(divisor, 4)}){shift}: then each "
    "part's contribution reaches the logit by itself. What raises all logits alike counts as 0. A "
    "part's vote, its *share* of the sum, is *direct* (direct logit attribution): what later parts make of it "
    "counts as theirs."
)
if "edit" in set(table["part"]):
    text += " `edit` is what the change put into the stream in place of the parts' contributions."
if "rounding" in set(table["part"]):
    text += " This model computes in bfloat16, which rounds the stream at every step; `rounding` is the sum of it."
words.prose(text, "residual stream", scene.norm, "direct logit attribution")
sheet.example_row("A copied passage", "A name comes back", "A quotation closes", "He and she")

# ---- a head, opened ----

st.subheader(f"What block {block}, head {head} read", anchor=False)
sheet.end_unless_near("head_read")
with st.container(horizontal=True, gap="small"):
    sheet.block_and_head_inputs(lm.config, block, head)
shown = sheet.shown(scene, values, label="The maps show")
given = read.now.given[head]  # (n,)
looks = read.now.attention[head]  # (n,)
share = grids.map(lambda g: float(g[block, head]))
text = (
    f"Block {block}, head {head} contributes **{share.arrow()}** to the logit of "
    f"{words.towards(word, against)}."
)
found = read_most(given)
if found is not None:
    first, how_much = found
    most = int(looks.argmax())
    giver = words.Place(labels[first], first)
    if how_much is None:
        text += f" The largest part of it, {words.significant(given[first])}, comes from {giver}."
    else:
        text += f" {words.capital(how_much)} of it comes from {giver}."
    text += f" The head gives that token {words.percent(looks[first])} of its attention."
    if not np.isclose(looks[most], looks[first]):
        text += (
            f" It looks most at {words.Place(labels[most], most)} ({words.percent(looks[most])}), yet "
            f"takes less from there ({words.significant(given[most])}): looking is not taking."
        )
elif not heads.changed_in(scene.run, block, head):
    text += " It takes nothing from any token."
else:
    done = "replaces the head's output by something that comes from no token"
    if np.isfinite(given).all():
        done = "leaves the head nothing to contribute"
    text += f" Your change {done}."
if n_heads > 1:
    text += all_heads_read()
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
    "Left: what each token gives through each head, that is attention weight × value, carried on to "
    "the logit. Each row adds up to its head's share. The bars add up the columns."
)
if read.now.anyway[head]:
    text += (
        f" The values' bias makes up {words.significant(read.now.anyway[head])} of it: this head adds "
        "that wherever it looks, and the picture divides it among the tokens by their attention."
    )
words.prose(text, "attention weight", "value")

depth.draw(scene, shares.map(lambda s: s[:-2]), title)

# ---- direct beside total ----

st.subheader("Direct votes are not the whole story", anchor=False)
words.prose(
    f"What happens without a part? Switch off each of the {len(parts_of(lm))} heads, attentions and "
    f"feed-forward layers in turn: it outputs {explained.gives}, and the rest of the model "
    "runs again."
)
if MUTE.widget(st.toggle, "Switch off each part in turn"):
    muted = muting.knocked(
        scene, explained, "why_stop", lambda: MUTE.set(False), explained.baseline
    )
    grid = grids.now
    total = -muted["effect"].to_numpy(float)
    alone = grid[:, :n_heads]
    without = total.reshape(layers, -1)[:, :n_heads]
    farthest = divmod(int(np.abs(without - alone).argmax()), n_heads)
    text = (
        f"Block {block}, head {head} contributes {words.significant(alone[block, head])} directly; "
        f"switching it off takes away {words.significant(without[block, head])}."
    )
    if farthest != (block, head):
        text += (
            f" The two differ most for {spoken('', *farthest)}: it contributes "
            f"{words.significant(alone[farthest])}, and switching it off takes away "
            f"{words.significant(without[farthest])}."
        )
    words.prose(text)
    in_files = explained.in_files(scene)
    # there, too, the difference of logits: what it measures as long as nobody chose may be another
    same = sheet.choosing({bench.MEASURE: explained.measure})
    left, right = st.columns(2, gap="medium")
    with left:
        st.markdown("**What switching off takes away**")
        alt = f"What switching off each part (it outputs {explained.gives}) takes away from {title}"
        muting.muted_map(in_files, Both(total), (block, head), "why_muted", alt, open_cell)
        link(
            "knock_out",
            state.link() | sheet.in_link(bench.PARAMS) | same,
            label="Switch parts off: the same, and by other measures",
        )
    with right:
        in_files.chart(
            figures.direct_and_total(alone, without, (block, head), scene.mode),
            key="why_both",
            alt=f"Each head's direct share of {title}, and what switching it off (it outputs {explained.gives}) "
            "takes away",
        )
    text = (
        "**Why they differ.** Without a head, *later parts* read a different stream and contribute "
        f"something else, the *{scene.norm}s* divide by another number, and *other heads step in*. On "
        "the dotted line, both numbers are the same."
    )
    words.prose(text, scene.norm, "residual stream")

    def effects() -> pd.DataFrame:
        """The direct share of a whole attention is that of its heads and its bias."""
        direct = np.column_stack([grid[:, :n_heads], grid[:, :-1].sum(axis=1), grid[:, -1]]).ravel()
        more = {"direct": direct, "takes away": total}
        return muted[["kind", "block", "head"]].assign(**more, **muted[["logit", "probability"]])

    caption = (
        "Each part's direct share and what switching it off takes away; then the difference of logits "
        "(`logit`) and the target's probability without the part."
    )
    with sheet.details("direct and total"):
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

nouns = ("the share of {}", "logits")
many.section(
    scene,
    explained,
    numbers.attributions,
    {},
    ["contribution"],
    ("contribution", 1),
    lambda: table,
    names,
    nouns,
    1,
    grid=many.Grid(
        [f"block {b}" for b in range(layers)],
        columns,
        "All heads and feed-forward layers: the mean of each vote. A hover says the standard error.",
        f"What every head and feed-forward layer contributes to {title}",
        in_blocks.tolist(),
    ),
)

# ---- details ----


def all_parts() -> None:
    """The map of all parts, in *Details*: the picture's numbers, and those too small for a bar of their own."""
    verb = "its share is"
    if shown == sheet.DIFFERENCE:
        verb = "its share has changed by"
    framed = (block, head)
    if PART.value == "feed-forward":
        framed = (block, len(columns) - 1)
    alt = f"What every head and feed-forward layer contributes to {title}"
    if scene.other is not None:
        alt += f" ({shown})"
    sheet.scene_of(scene, shown).chart(
        figures.share_grid(Map("", grids).drawn(shown), columns, framed, verb, scene.mode),
        key="why_grid",
        alt=alt,
        which=() if scene.other is None else (shown,),
        on_cell=open_cell,
    )
    biases = ", a bias" if "attention bias" in set(table["part"]) else ""
    text = f"Each cell is the vote of a head (by its number){biases} or a feed-forward layer (ff). "
    text += "Click a head to open it."
    if shown == sheet.DIFFERENCE:
        text += f" Parts before a change differ only because the final {scene.norm} divides by another number."
    st.caption(text)


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
with sheet.details():
    sheet.tab("Map", "every part", "map_why", all_parts)
    sheet.numbers_of("why", shares, caption, what="every part")
    what_read = "what was read"
    caption = "What each token gave through each head of the opened block; the last row is each head's share."
    sheet.numbers_of(f"why-block{block}", lambda: read.map(by_token), caption, what=what_read)
    sources: list[Any] = [
        "block",
        "formula",
        numbers.reader,
        numbers.attribution,
    ]
    sheet.code_of(scene, sources, numbers.logit_shares, **named)
    sheet.code_of(
        scene,
        [numbers.reader],
        numbers.heads_read,
        block,
        **named,
        key="in_code_read",
        what=what_read,
    )
