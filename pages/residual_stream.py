"""The residual stream: of the selected token as a path and a ladder, of all as maps; a block's two shortcuts."""

import numpy as np
import pandas as pd
import streamlit as st

from gptviz.analysis import stream as numbers
from gptviz.both import Both
from gptviz.figures import stream as figures
from gptviz.figures.maps import Map
from gptviz.training.live import gradients as lesson
from gptviz.training.live.parts import NoShortcutBlock
from gptviz.ui import sheet, words
from gptviz.ui.components.path import draw_path
from gptviz.ui.shell import change_menu, state

# by what a write does to the stream: see `gptviz.analysis.stream.does`
MEANS = {
    "adds": "mostly more of what was there",
    "turns, adds": "partly more of what was there, mostly new",
    "turns": "almost all of it is new",
    "turns, erases": "it partly takes back what was there, but most of it is new",
    "erases": "it mostly takes back what was there",
}

DEPTH = sheet.Param("stream_depth", int, 12, sheet.if_there)


def gradients(scene: sheet.Scene) -> None:
    """Draw how much of the gradient reaches each block of an untrained GPT, and the book's five layers."""
    depth = DEPTH.choose("Blocks", lesson.DEPTHS)
    table = lesson.gradients_by_block(depth)
    first = table.iloc[0]
    last = table.iloc[-1]
    bare = "neither"
    with_both = "both, as in GPT"
    words.prose(
        "In training the gradient travels backwards: it reaches a block through all blocks after "
        f"it. In an untrained GPT of {depth} blocks, block 0 gets "
        f"{words.significant(first[with_both])} and block {depth - 1} "
        f"{words.significant(last[with_both])}. Without shortcuts and LayerNorm, block 0 gets "
        f"**{words.significant(first[bare])}** and block {depth - 1} "
        f"{words.significant(last[bare])}: a vanishing gradient. A shortcut adds, and a sum passes "
        "the gradient on unchanged.",
        "block",
        "shortcut",
        "LayerNorm",
        "vanishing gradient",
    )
    lines = {name: Both(table[name].to_numpy()) for name in reversed(lesson.VARIANTS)}
    names = [f"block {b}" for b in table["block"]]
    alt = f"The mean gradient of each of {depth} blocks, with and without shortcuts and LayerNorm"
    axis = {"title": {"text": "block"}, "tickvals": [*table["block"]]}
    sheet.curves(
        scene, "stream_gradients", lines, names, "mean of |gradient|", alt,
        which=(f"blocks{depth}",), log=True, many=True, axis=axis, height=400,
    )  # fmt: skip
    st.caption(
        f"Four models, {lesson.WIDTH} wide, with the weights after "
        f"`torch.manual_seed({lesson.SEED})`, on random tokens. They use neither your model nor "
        "your text."
    )
    words.prose(
        "The book measures it on five layers without LayerNorm, and prints these numbers.",
        "LayerNorm",
    )
    five = {
        "without shortcuts": lesson.books_gradients(False),
        "with shortcuts": lesson.books_gradients(True),
    }
    books = pd.DataFrame({"layer": [str(i) for i in range(5)], **five})
    sheet.table("five layers", Both(books), digits=4)
    with sheet.details("the gradients"):
        sheet.numbers_of(
            "stream_gradients",
            table,
            "The mean of |gradient| over a block's matrices.",
            "the gradients",
        )
        sheet.code_of(
            scene,
            [
                lesson.ExampleDeepNeuralNetwork.forward,
                lesson.books_gradients,
                NoShortcutBlock.forward,
            ],
            lesson.gradients_by_block,
            depth,
            key="in_code_gradients",
            what="the gradients",
        )


frame = sheet.start_page("Residual stream", choices=[sheet.SHOWN, DEPTH])
prompt = sheet.read_text(frame)
scene = sheet.trace(prompt, keep=numbers.SITES)

at = scene.position
label = words.as_code(scene.label)
layers = scene.lm.config.n_layers
names = numbers.step_names(layers)
streams = sheet.of(scene, numbers.stream)
if scene.other is None:
    moved = None
else:
    moved = sheet.compared(scene.run, scene.other, numbers.apart)
found = streams.now
sizes = found.sizes[:, at]
writes = found.writes[:, at]

# ---- the path ----

above = st.container()
with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
    most = found.most_changed(at)
    block = state.BLOCK.index("Block", layers, most, f"{most}, which turns it most", width=300)
    offered = ("attn_out", "mlp_out", "resid_pre", "resid_mid", "resid_post")
    change_menu.menu(
        scene,
        *(change_menu.Part("site", block, position=at, site=site) for site in offered),
        key="stream",
    )
ways = sheet.of(scene, numbers.way, at)
with above:
    largest = int(writes.argmax())
    count = words.counted(len(writes), "step")
    lead = f"{count} lead from {label} to the model's guess"
    start = words.significant(float(sizes[0]))
    end = words.significant(float(sizes[-1]))
    if writes[largest]:
        longest = f"the {numbers.PARTS[largest % 2]} of block {largest // 2}"
        first = f"{lead}; the longest is {longest}."
    else:
        first = f"{lead}, and here all of them are zeros."
    words.prose(
        f"{first} The sum on its way is the residual stream.",
        "residual stream",
        "block",
        "feed-forward",
    )
    if moved is not None:
        gaps = moved.distances[:, at]
        seen = ~np.isclose(gaps, 0, atol=1e-5)
        if seen.any():
            ends = streams.map(lambda s: float(s.sizes[-1, at]))
            angle = float(moved.angles[-1, at])
            if np.isnan(angle):
                turned = ""
            else:
                turned = f", at an angle of **{words.fixed(angle, 0)}°** to the unchanged stream"
            words.prose(
                f"**The change shows from {names[int(seen.argmax())]} on.** At the end the norm is "
                f"**{ends.arrow('3')}**{turned}. The two lie "
                f"{words.percent(float(gaps[-1]))} of the unchanged norm apart."
            )
        else:
            sites = [(site, b) for b in range(layers) for site in numbers.SITES]
            words.prose(sheet.why_same(scene, f"the residual stream of {label}", sites, at))
    alt = f"The path of the residual stream of {scene.label} (position {at}), in {count}"
    if all(np.isfinite(one.stops).all() for one in ways.all):
        draw_path(
            "stream_path",
            figures.path_drawn(streams, ways, at),
            block,
            alt,
            state.BLOCK.set,
            saved=scene.saved("stream_path", alt, f"block{block}"),
        )
    else:
        st.info("The stream has numbers that are not finite: its path cannot be drawn.")


def says(write: int) -> str:
    """A sentence about a write into the stream: how large it is beside it, its turn, and what it does.

    `write` counts two a block: 2b is the attention's of block b, 2b + 1 the feed-forward's.
    """
    part = words.capital(numbers.PARTS[write % 2])
    if writes[write] == 0:
        return f"{part} adds nothing."
    if sizes[write] == 0:
        norm = words.significant(float(writes[write]))
        return f"{part} adds a vector of norm {norm} to a stream of zeros."
    ratios = streams.map(lambda s: float(s.ratios[write, at]))
    if not all(map(np.isfinite, ratios.all)):  # the unchanged stream is all zeros
        ratios = Both(ratios.now)
    if ratios.now >= 1:
        long = f"{ratios.arrow('2')} times as long as"
    else:
        long = f"{ratios.arrow('%')} of the length of"
    does = MEANS[numbers.does(float(found.cosines[write, at]))]
    return (
        f"{part} adds a vector {long} the stream, and turns the stream by "
        f"{words.fixed(float(found.turns[write, at]), 0)}°: {does}."
    )


sheet.say(
    scene,
    f"**Block {block}.** {says(2 * block)} {says(2 * block + 1)}",
    terms=["attention", "feed-forward"],
    about=streams.map(lambda s: np.stack([s.writes, s.cosines])[:, 2 * block : 2 * block + 2, at]),
    what=f"what block {block} adds to {label}",
    sites=[(site, block) for site in ("attn_out", "mlp_out")],
    position=at,
)
floor = "where the stream ends"
if ways.was is not None:
    floor = "where the unchanged stream ends"
st.caption(
    "Each arrow is one contribution; click it to choose its block. A point's distance from 0 is the stream's "
    f"norm: it goes from {start} at the start to {end} at the end. Its angle to the floor is the angle to {floor}. "
    "Both are exact. A point shows these two numbers of a whole vector, so an arrow may look shorter than the vector "
    "that was added."
)
sheet.example_row("A copied passage", "He and she", "Once upon a time")

# ---- the ladder ----

sheet.end_unless_near("ladder")
st.subheader("How large, and in which direction?", anchor=False)
scene.chart(
    figures.ladder(streams, at, scene.label, block, scene.mode),
    key="stream_ladder",
    alt=f"The residual stream of {scene.label} (position {at}) and the {len(writes)} vectors added to it",
    pick=lambda bar: state.BLOCK.set(round(float(bar["x"])) // 2),  # that at the end the last one
    which=(f"block{block}",),
)
st.caption(
    "Grey: the norm of the stream before a part. Beside it: the norm of what the part adds. The "
    "cosine below tells its direction: 1 is more of the same, 0 is something new, −1 takes back "
    "what was there. Click a bar to choose its block."
)

# ---- every token ----


def pick(row: int, column: int) -> None:
    """A click on a cell chooses block and token."""
    state.BLOCK.set(max(0, row - 1) // 2)
    scene.select(column)


st.subheader("What does every part add to every token?", anchor=False)
sheet.end_unless_near("writes")
empty = np.full((1, len(scene.tokens)), np.nan)  # the embedding joins nothing
shown = sheet.shown(scene, streams.map(lambda s: np.concatenate([s.sizes, s.cosines])))
if moved is not None and shown == sheet.DIFFERENCE:
    far = moved.distances
    # where the unchanged stream is 0
    far = np.nan_to_num(far, posinf=float(far[np.isfinite(far)].max()))
    both = streams.map(lambda s: np.concatenate([empty, s.writes]))
    panels = [
        Map(
            "stream: how far<br>it has moved", Both(far), "share", "moved, as a share of its norm:"
        ),
        Map("added: how many<br>times as large", both, "size", "norm of what is added:"),
    ]
    how = (
        "Left: the distance to the unchanged stream, as a share of its norm; no colour where "
        "nothing moved. Right: how many times as large each contribution has become."
    )
else:
    # what meets the embedding, a hundredth of all that follows, may be beyond the scales
    later = found.ratios[1:]
    limit = 10.0 ** float(
        np.abs(np.log10(later[np.isfinite(later) & (later > 0)])).max(initial=0.3)
    )
    ends_of = (float(found.sizes[1:].min()), float(found.sizes.max()))
    ratios = streams.map(lambda s: np.concatenate([empty, s.ratios]))
    panels = [
        Map(
            "stream",
            streams.map(lambda s: s.sizes),
            "size",
            "after it the stream has norm",
            ends_of,
        ),
        Map(
            "added / stream",
            ratios,
            "log",
            "norm added / norm of the stream:",
            (1 / limit, limit),
        ),
    ]
    how = "Colours are logarithmic; a contribution as large as its stream has none."
alt = f"Every token's stream after each of {len(names)} steps, and each contribution beside it"
sheet.maps(scene, "stream_maps", panels, names, alt, (2 * block + 2, at), pick, shown)
st.caption(
    "Each row is one part's contribution, the embedding on top; each column is a token. Click a "
    f"cell to inspect it. {how}"
)

# ---- the two shortcuts of a block ----

work = sheet.of(scene, numbers.block_at_work, block, at).now
st.subheader(f"The two shortcuts of block {block}", anchor=False)
words.prose(
    "`shortcut = x` keeps the stream, `x = x + shortcut` adds it back. So attention and "
    f"feed-forward compute only what to add. Here are the lines of block {block}, with the norms "
    f"(sizes) of `x` and `shortcut` for {label}:"
)
left, right = st.columns([5, 6], gap="large")
with left:
    sheet.table("block lines", Both(work.lines))
with right:
    sheet.table("additions", Both(work.additions))
    gap = (
        f"Sum and stream differ by at most {words.significant(work.difference, 2)} for this token "
        f"in block {block}, and by at most {words.significant(found.difference, 2)} over the whole "
        "text: "
    )
    if found.is_broken:
        words.prose(gap + "a change put something else into the stream itself.")
    else:
        text = (
            f"The {len(work.additions)} dimensions of {scene.lm.config.emb_dim} that block {block} "
            f"changes most. {gap}that is what rounding to {scene.lm.dtype} leaves."
        )
        words.prose(text, "dimension")

st.subheader("What if there were no shortcut?", anchor=False)
(alone, whole, cosine1), (alone2, whole2, cosine2) = work.without
if block == layers - 1:
    next_reader = f"the final {scene.norm}"
else:
    next_reader = f"block {block + 1}"
words.prose(
    f"Without the first shortcut, `norm2` of block {block} would get attention's vector alone: "
    f"norm {words.significant(alone)} instead of {words.significant(whole)}, cosine "
    f"{words.fixed(cosine1, 2)} with what it gets now. Without the second, {next_reader} would get "
    f"the feed-forward's vector alone: norm {words.significant(alone2)} instead of "
    f"{words.significant(whole2)}, cosine {words.fixed(cosine2, 2)}. These numbers take this pass "
    "apart: a model without shortcuts would compute others from block 0 on.",
    scene.norm,
    "cosine",
)
with sheet.panel(
    "Why shortcuts: the gradient on its way back", ":material/trending_down:", "stream_gradient"
) as is_open:
    if is_open:
        gradients(scene)

st.subheader("What does the end consist of?", anchor=False)
shares = found.shares[:, at]
most = int(shares[1:].argmax()) + 1
rest = 1 - float(shares.sum())  # of a pass whose stream was changed on the way
said = (
    f"Along the direction of the final stream the embedding gave {words.percent(float(shares[0]))}. "
    f"Of the blocks' parts {names[most]} gave most, {words.percent(float(shares[most]))}. A bar "
    "below 0 points the other way. "
)
if abs(rest) <= 1e-3:
    said = f"The final stream is the sum of the embedding and all contributions. {said}"
    said += "All bars together are 100 %."
else:
    said += f"The rest, {words.percent(rest)}, is what a change put into the stream instead."
nothing = f"The stream of {label} ends as a vector of zeros: it has no direction, and no part a share of it."
words.prose(said if sizes[-1] else nothing, "embedding")
colors = figures.part_colors(scene.mode)
ticks = {
    "tickvals": [0, *(2 * b + 1.5 for b in range(layers))],
    "ticktext": ["emb.", *map(str, range(layers))],
}
sheet.bars(
    scene,
    "stream_shares",
    streams.map(lambda s: 100 * s.shares[:, at]),
    names,
    "% of the end",
    f"What the embedding and each part gave of {scene.label}'s stream at the end",
    colors=[scene.palette.quiet, *(colors[i % 2] for i in range(2 * layers))],
    axis={"showgrid": False, "tickangle": 0, "title": {"text": "block"}} | ticks,
    height=230,
)

# ---- details ----


def with_moved(tables: Both[pd.DataFrame], where: int | slice) -> Both[pd.DataFrame]:
    """The same, with how far the stream after each step is from the unchanged one's."""
    if moved is None:
        return tables
    far = {
        "moved": moved.distances[:, where].ravel(),
        "moved by degrees": moved.angles[:, where].ravel(),
    }
    return Both(tables.now.assign(**far), tables.was)


with sheet.details():
    sheet.numbers_of(
        "residual-stream",
        lambda: with_moved(streams.map(lambda s: numbers.ladder_table(s, at)), at),
        "A row per contribution (`write`): the norm of the stream before it, its own, their ratio and "
        "cosine, how much of it points along the stream, by how many degrees it turns the stream, the "
        "norm after, and its share of the stream at the end. It adds (erases) from a cosine of 0.71 "
        "(−0.71) on, and turns up to 0.1.",
        what=f"the path of {label}",
        missing="–",
    )

    axis_end = ways.all[0].stops[-1]
    sheet.numbers_of(
        "residual-stream-path",
        lambda: ways.map(lambda one: numbers.path_table(one, axis_end)),
        "A row per stop of the path: how far the stream lies along the direction in which the unchanged "
        "stream ends, how far from it, its norm, and the angle between the two.",
        what="the stops of the path",
        missing="–",
    )

    def every_token() -> Both[pd.DataFrame]:
        return with_moved(
            streams.map(lambda s: numbers.all_tokens_table(s, scene.labels)), slice(None)
        )

    caption = "A row per contribution and token: the numbers of the two maps."
    sheet.numbers_of("residual-stream-all", every_token, caption, "every token", "–")
    sheet.code_of(scene, ["block"], numbers.stream)
    # of a changed model: the floor is where the unchanged stream ends
    unchanged = scene.unchanged
    sheet.code_of(
        unchanged,
        [numbers.way, numbers.half_plane, numbers.path_table],
        numbers.path,
        at,
        key="in_code_path",
        what="the path",
    )
    sheet.code_of(
        scene,
        [],
        numbers.block_at_work,
        block,
        at,
        key="in_code_block",
        what=f"block {block} at work",
    )
