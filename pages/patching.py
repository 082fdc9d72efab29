"""Patching: copy one value from another text's pass into this one, for every place in turn."""

from dataclasses import dataclass, replace
from functools import partial
from itertools import zip_longest
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from gptviz import Run
from gptviz.analysis import activation_patching
from gptviz.analysis.against import difference
from gptviz.analysis.alignment import differing
from gptviz.analysis.patches import HEAD_SITES, Patch, value_of
from gptviz.analysis.reach import unseen
from gptviz.both import Both
from gptviz.engine.sites import sites_of
from gptviz.figures import maps, marks
from gptviz.ui import many, runs, sheet, tables, words
from gptviz.ui.components.cell_clicks import cell_clicks
from gptviz.ui.parts.patching import guessed, many_paths, other as second, roles, through
from gptviz.ui.shell import bench, target
from gptviz.ui.shell.block import shared_by

SITE = sheet.Param("patch_site", str, "resid_pre", sheet.if_there)
OF_MANY = sheet.Param("patch_many", str, "z", sheet.if_there)  # what is patched in a set of texts
GO = sheet.Param("patch_go", bool, False)  # for what takes so long that it waits for a click

SITES = {"resid_pre": "Residual stream", "attn_out": "Attention", "mlp_out": "Feed-forward"}
PLACES = {
    "resid_pre": "the residual stream into",
    "attn_out": "what attention adds in",
    "mlp_out": "what the feed-forward layer adds in",
}
NAMES = {
    "resid_pre": "the residual stream",
    "attn_out": "attention's output",
    "mlp_out": "the feed-forward layer's output",
}
WATCH = {
    "resid_pre": "Follow the colour from row to row: it starts at the token that differs. Where it jumps "
    "to another token, attention has moved the answer.",
    "attn_out": "A coloured cell: here attention fetched information that matters for the answer.",
    "mlp_out": "A coloured cell: here the feed-forward layer contributed something that matters for the answer.",
}
# what a head has: its name, and its colour
PARTS = {
    "z": ("output z", "output"),
    "q": ("queries", "query"),
    "k": ("keys", "key"),
    "v": ("values", "value"),
    "attn": ("pattern", "output"),
}
LEAST = 0.02  # of an effect that a sentence speaks of: a share, or logits
NEXT = 3  # heads that are named after the strongest
TINY = 1e-6  # an effect that is only rounding: what is left of it is cut off
WRITTEN = 12  # columns of the map: with more, its cells have no room for numbers
FEW = 3  # moves of the answer from one token to another that a sentence tells
LAST = "resid_post"  # the stream behind the last block: the row below the map's blocks


@dataclass(frozen=True)
class Pair:
    """`own` is the prompt's run without the patches that were made here, `other` the other text's."""

    own: Run
    other: Run

    @property
    def clean_and_corrupt(self) -> tuple[Run, Run]:
        if second.WAY.value == second.DENOISING:
            return (self.other, self.own)
        return (self.own, self.other)


frame = sheet.start_page(
    "Patching",
    choices=[
        second.WAY,
        SITE,
        OF_MANY,
        GO,
        *through.PARAMS,
        *bench.PARAMS,
        *many.PARAMS,
    ],
)
prompt = sheet.read_text(frame)
scene = sheet.trace(prompt)

lm = scene.lm
config = scene.lm.config
at = scene.position
second.WAY.within(second.ways())
SITE.within(SITES)
bar = st.container(key="set_asked")
other = second.choose(scene)
# of every pair of texts
asks = partial(
    bench.bar,
    scene,
    only="patches compare the logits of two words",
    gives="a patched place outputs the other text’s value",
    two_words=True,
)


def both_texts() -> None:
    """The tokens of both texts, in *Details*."""
    if other is None:
        theirs = []
    else:
        theirs = [words.show_id(lm, i) for i in other.ids]
    frame = pd.DataFrame(zip_longest(scene.labels, theirs), columns=second.both_called())
    frame.insert(0, "position", range(len(frame)))
    sheet.numbers_of("patching-tokens", frame, what="both texts", missing="–")


def turn(scene: sheet.Scene, other: second.Other) -> None:
    """Callback of the switch of directions: the texts change places, and with them their words."""
    second.turn(scene, other)
    chosen = target.TARGET.value
    if target.AGAINST.value == target.MEAN:  # no word, and here never taken
        target.AGAINST.set(None)
    target.TARGET.set(target.AGAINST.value)
    target.AGAINST.set(chosen)


def guide(other: second.Other) -> None:
    """Draw how the other text was made, how to read the map, and pairs to try."""
    if other.note:
        st.caption(other.note)
    text = (
        f"{WATCH[SITE.value]} Click a cell to copy its value into your text on every page, until "
        "you undo it; everything that it can influence is tinted."
    )
    words.prose(text, "block", "attention", "feed-forward")
    second.pairs_row(scene, other, bool(pair.own.edits))
    st.subheader("Is a place enough, or is it needed?", anchor=False)
    words.prose(
        "*Clean* is the text whose answer is right, *corrupt* the other one. To put values of the corrupt text "
        "into the clean one is **noising**: is a place *needed*, does the answer break (−1: it is lost)? To put "
        "clean values into the corrupt text is **denoising**: is a place *enough*, does the answer come back "
        "(1: completely)? A place can be enough and not needed, where another one has the answer, too. The "
        "switch above lets the two texts change places, so that clean stays clean."
    )


if other is None or second.lengths_differ(scene, other):
    with bar:
        asks()
    second.pairs_row(scene, other, bool(scene.run.edits))
    with sheet.details():
        both_texts()
    sheet.end_page()

with bar:
    # the other text's answer, as long as nobody chose
    explained = asks(instead=second.answer_of(scene, other))
scene = second.in_files(scene, other)
patches = tuple(edit for edit in scene.run.edits if edit.value == value_of(other.ids))
unpatched = replace(scene.run, edits=tuple(edit for edit in scene.run.edits if edit not in patches))
pair = Pair(unpatched, replace(unpatched, ids=other.ids))
pairs = Both(pair, Pair(pair.own.plain, pair.other.plain) if pair.own.edits else None)
sentence = st.container()
picture = st.container(gap=None)  # all rows of the map are in the first screen
with st.container(horizontal=True, vertical_alignment="bottom", gap="medium", key="set_patching"):
    told = "What to copy, at one position of one block"
    site = SITE.choose(told, SITES, label_visibility="collapsed")
    told = "The two texts change places, so that the clean one stays clean."
    turns: dict[str, Any] = {"help": told, "on_change": turn, "args": (scene, other)}
    way = second.WAY.choose("Direction", second.ways(), label_visibility="collapsed", **turns)
found_there = st.container()
below = st.container()

# ---- the scale: two words, and how far apart they are in the two texts ----

st.subheader("What does a cell measure?", anchor=False)
instead = explained.against
if instead is None:  # a vocabulary of one token has no other: `ends_of` says so
    instead = explained.token
answers = [instead, explained.token]  # of the clean text, and of the corrupt one
if way != second.DENOISING:
    answers.reverse()


def scale_of(pair: Pair) -> activation_patching.Ends:
    clean, corrupt = pair.clean_and_corrupt
    logits = target.logits_at(clean, at), target.logits_at(corrupt, at)
    return activation_patching.ends_of(runs.model(clean), *logits, (answers[0], answers[1]))


def arrow(values: Both[float]) -> str:
    """A number, or what it was and what it is: "9.87 → 5.55"."""
    now = f"{Both(values.now):.2}"
    if values.was is None:
        return now
    was = f"{Both(values.was):.2}"
    return now if was == now else f"{was} → {now}"


ends: Both[activation_patching.Ends] | None = None
problem = ""
try:
    ends = pairs.map(scale_of)
except ValueError as error:
    problem = f"{words.capital(words.escaped(str(error)))}."
shown = [words.as_code(words.show_id(lm, word)) for word in answers]
if ends is not None:
    clean = ends.map(lambda e: e.clean)
    corrupt = ends.map(lambda e: e.corrupt)
    if not ends.now.is_scale:
        problem = (
            f"The logit of {shown[0]} minus that of {shown[1]} is {clean:.3} in the clean text and "
            f"{corrupt:.3} in the corrupt one, so a patch has nothing to bring back. Choose two other "
            "words, or change a text."
        )
if problem or ends is None:
    sentence.warning(problem)
    with below:
        guide(other)
    with sheet.details():
        both_texts()
    sheet.end_page()
in_logits = any(e.is_scale and not e.tells_shares for e in ends.all)
size = "effect"  # the column of the table that the maps show
unit = ""
called_texts = second.both_called()
if way == second.DENOISING:
    own_end = corrupt
    other_end = clean
else:
    own_end = clean
    other_end = corrupt
sentences = [
    f"We measure the logit of {shown[0]} minus that of {shown[1]}: {arrow(own_end)} in "
    f"{called_texts[0]}, {arrow(other_end)} in {called_texts[1]}."
]
if in_logits:
    size = "change"
    unit = " logits"
    these_are = "These are"
    if ends.now.tells_shares:
        these_are = "In the unchanged model these are"
    sentences += [
        f"{these_are} less than {activation_patching.SHARES_FROM:g} logit apart, too close for percentages.",
        "So each cell is in logits: the difference with the patch minus the one without.",
    ]
elif way == second.DENOISING:
    sentences.append("Each cell is (patched − corrupt) / (clean − corrupt).")
else:
    sentences.append("Each cell is (patched − corrupt) / (clean − corrupt) − 1: what is lost.")
sentences.append("Colours end at −1 and 1.")
st.caption(" ".join(sentences))


# ---- the passes ----


def patched(
    pair: Pair, ends: activation_patching.Ends, sites: tuple[str, ...], key: str
) -> pd.DataFrame | None:
    """`patching` of these sites for the selected position; None where it waits for a click."""
    different = differing(pair.own.ids[: at + 1], pair.other.ids[: at + 1])
    after = at + 1 - different[0] if different else 0
    places = sum(sites_of(config)[s].count(config) if s in HEAD_SITES else after for s in sites)
    passes = config.n_layers * places  # that change anything, about
    # half starts half way up
    slow = sheet.is_asked_for(lm, at + 1, passes if pair.own.edits else passes // 2)
    if slow and not GO.value:
        st.markdown(f"Every place needs one pass of the model: {passes:,} passes for this text.")
        sheet.button("Patch every place", f"{key}_go", GO.set, True, primary=True)
        return None
    clean, corrupt = pair.clean_and_corrupt
    asked = (answers[0], answers[1])
    says = "{} of {} places patched".format
    how: dict[str, Any] = {"key": f"{key}_stop", "stop": (lambda: GO.set(False)) if slow else None}
    how["estimate"] = len(sites) > 1  # not of the map, which comes first
    table = sheet.worked(
        pair.own,
        activation_patching.patching,
        clean.ids,
        corrupt.ids,
        asked,
        sites,
        way,
        at,
        says=says,
        **how,
    )
    if in_logits:
        return table.drop(columns=["metric", "effect"])
    return table


def measured(
    ends: Both[activation_patching.Ends], sites: tuple[str, ...], key: str
) -> Both[pd.DataFrame] | None:
    """The same of both models; of the unchanged one where it has a scale."""
    now = patched(pair, ends.now, sites, key)
    was = None
    if now is not None and pairs.was is not None and ends.was is not None and ends.was.is_scale:
        was = patched(pairs.was, ends.was, sites, f"{key}_unchanged")
    return None if now is None else Both(now, was)


def grids(tables: Both[pd.DataFrame], sites: tuple[str, ...]) -> Both[np.ndarray]:
    """Their effects, a map a site: (S, L, T) or (S, L, H). The heads of a group have the group's."""

    def grid(table: pd.DataFrame, name: str) -> np.ndarray:
        effects = table[table["site"] == name][size].to_numpy(float)
        cells = effects.reshape(config.n_layers, -1)
        if name in HEAD_SITES:
            of_head = [sites_of(config)[name].of_head(h, config) for h in range(config.n_heads)]
            return cells[:, of_head]  # (L, K) -> (L, H)
        return cells

    return tables.map(lambda table: np.stack([grid(table, name) for name in sites]))


def effect_at(effects: Both[np.ndarray], place: tuple[int, int]) -> Both[float]:
    """The effect at a block and a position."""
    return effects.map(lambda grid: float(grid[place]))


def last_row(ends: activation_patching.Ends, count: int) -> np.ndarray:
    """(count,): the effects behind the last block, in the unit of the map."""
    moves = activation_patching.after_the_last_block(ends, way, count)
    if in_logits:
        return moves
    return moves / ends.distance


def stays_of(grid: np.ndarray) -> list[list[int]]:
    """Where the strongest cells are, row by row: the first and the last row of each stay, and its position."""
    stays: list[list[int]] = []
    for row, effects in enumerate(np.abs(grid)):
        position = int(effects.argmax())
        if effects[position] < LEAST:
            continue
        if stays and stays[-1][2] == position:
            stays[-1][1] = row
        else:
            stays.append([row, row, position])
    return stays


def jump_of_the_answer(
    grid: np.ndarray, copied_at: int, words_at: list[tuple[str, ...]]
) -> list[str]:
    """In which block the answer moves on from the token of the first sentence; none where no one block does it.

    That block brings more than half of what is then at the other token.
    """
    stays = stays_of(grid)
    if len(stays) != 2 or stays[0][2] != copied_at or stays[1][0] != stays[0][1] + 1:
        return []
    block = stays[0][1]  # its row is the stream into it
    position = stays[1][2]
    before, after = np.abs(grid[block : block + 2, position]).tolist()
    if before >= after / 2:
        return []
    token = " | ".join(map(words.as_code, words_at[position]))
    return [f"In block {block} most of the answer moves on to {token}."]


def way_of_the_answer(
    grid: np.ndarray, rows: list[str], words_at: list[tuple[str, ...]]
) -> list[str]:
    """Where the answer is, row by row, as a sentence; none where nothing moves, or it jumps often."""
    stays = stays_of(grid)
    if len(stays) < 2 or len(stays) > FEW:
        return []
    parts = []
    for _, until, position in stays[:-1]:
        token = " | ".join(map(words.as_code, words_at[position]))
        parts.append(f"at {token} down to “{rows[until]}”")
    token = " | ".join(map(words.as_code, words_at[stays[-1][2]]))
    return [f"The strongest cell of a row is {', then '.join(parts)}, then at {token}."]


def part_of(by_part: Both[np.ndarray], number: int) -> Both[np.ndarray]:
    """(L, H): the effects of one of the parts of a head."""
    return by_part.map(lambda grids: grids[number])


def cells_of(site: str) -> list[tuple[int, int]]:
    """(block, position) or, for what a head has, (block, head) of the patches of a site that are made."""
    made_there = [(e.block, e) for e in patches if e.site == site and isinstance(e.block, int)]
    if site not in HEAD_SITES:
        return [(block, place) for block, edit in made_there for place in edit.positions or ()]
    every_head = range(config.n_heads)
    return [(b, h) for b, edit in made_there for h in every_head if edit.is_of_head(b, h, config)]


# ---- what an effect is, in words ----


def is_towards(effect: float) -> bool:
    """Whether a patch moves the prediction of your text to the other text's, whichever of the two is clean."""
    return (effect > 0) == (way == second.DENOISING)


def goes_beyond(effect: float) -> bool:
    """Whether it moves it by more than the whole way: "341 % of the way" would be none."""
    return is_towards(effect) and abs(effect) >= 1.05


def in_short(effect: float) -> str:
    """Say the effect of a place that is named after another: "93 %"."""
    if abs(effect) < 0.005:
        return "nothing"
    if in_logits:
        sign = "+" if effect > 0 else ""
        return f"{sign}{words.significant(effect, 2)} logits"
    if is_towards(effect):
        return words.percent(abs(effect))
    return f"{words.percent(abs(effect))} the other way"


def share_and_before(both: Both[float]) -> tuple[str, str]:
    """The share of the answer, "**95 % → 93 %**"; and what it was, in brackets, where that went the other way."""
    written = words.percent
    if goes_beyond(both.now):
        written = "{:.1f} times".format
    now = written(abs(both.now))
    short = both.map(in_short)
    if both.was is None or not short.moved:
        return f"**{now}**", ""
    if both.was * both.now > 0:
        return f"**{written(abs(both.was))} → {now}**", ""
    return f"**{now}**", f" (before your change: {short.was})"


def where_to(effect: float) -> str:
    """Where a patch moves the prediction of your text, whichever of the two is clean."""
    if goes_beyond(effect):
        return "the way to the other text’s"
    if is_towards(effect):
        return "of the way to the other text’s"
    return "away from the other text’s"


def does(both: Both[float], many: bool = False) -> str:
    """What a patch does, or `many`, as a sentence goes on: "moves the prediction **95 %** of the way to ..."."""
    effect = both.now
    short = both.map(in_short)
    share, before = share_and_before(both)
    s = "s"
    if many:
        s = ""
    if short.now == "nothing":
        return f"hardly change{s} the answer"
    if in_logits:
        change = in_short(effect)
        if short.was is not None and short.moved:
            change = f"{short.was} → {change}"
        return f"move{s} the difference by **{change}**"
    return f"move{s} the prediction {share} {where_to(effect)}{before}"


def comes(both: Both[float]) -> str:
    """What a patch does, as the page's first sentence ends: "the prediction moves **95 %** of the way to ..."."""
    if in_logits:
        return f"it {does(both)}"
    share, before = share_and_before(both)
    where = where_to(both.now).replace(
        "the other text’s", "the other’s"
    )  # a first sentence is short
    return f"the prediction moves {share} {where}{before}"


def wrong_preference(ahead: float) -> str:
    """A sentence about a clean text in which the wrong word's logit is `ahead` of the answer's."""
    whose = "the other text"
    if way != second.DENOISING:
        whose = "your text"
    return (
        f"**Mind the sign:** in {whose} (clean) the model prefers {shown[1]} to the answer {shown[0]}, by "
        f"{words.fixed(ahead, 2)} logits. What a patch moves is this wrong preference."
    )


def in_cell(effect: float) -> str:
    """What stands in a cell of the map; nothing where the patch does nearly nothing."""
    if in_logits:
        if abs(effect) < 0.05:
            return ""
        return words.fixed(effect, 1)
    if abs(effect) < LEAST:
        return ""
    sign = ""
    if effect < 0:
        sign = "−"
    return f"{sign}{abs(100 * effect):,.0f} %"


# ---- what is drawn and written without the patches that were made here ----

scaled = pairs  # of the unchanged model only where it has a scale
if ends.was is not None and not ends.was.is_scale:
    scaled = Both(pairs.now)


def as_before(pairs: Both[Pair]) -> sheet.Scene:
    """The scene without the patches: its program gives what is drawn."""
    unchanged = None
    if pairs.was is not None:
        unchanged = pairs.was.own
    return replace(scene, run=pairs.now.own, other=unchanged)


# ---- every block and position ----

blocks = [f"block {block}" for block in range(config.n_layers)]
with picture:
    found = measured(ends, (site,), f"patching_{site}")
if found is not None:
    n = at + 1
    effects = grids(found, (site,)).map(lambda e: e[0])
    both = zip(scene.labels[:n], (words.show_id(lm, i) for i in other.ids[:n]), strict=True)
    # one word, or two where the texts differ
    words_at = [tuple(dict.fromkeys(pair)) for pair in both]
    different = differing(scene.run.ids[:n], other.ids[:n])
    rows_of = [(site, block) for block in range(config.n_layers)]
    row_names = blocks
    if site == "resid_pre":
        row_names = [f"into {block}" for block in blocks]
    drawn = effects
    # a change of what the final LayerNorm gives may look at every position
    ends_there = not any(edit.site == "final" for edit in pair.own.edits)
    if site == "resid_pre" and ends_there:
        last_rows = ends.map(partial(last_row, count=n))
        unchanged = None
        if effects.was is not None:
            unchanged = np.vstack([effects.was, last_rows.all[0]])
        drawn = Both(np.vstack([effects.now, last_rows.now]), unchanged)
        rows_of.append((LAST, config.n_layers - 1))
        row_names = [*row_names, f"out of {blocks[-1]}"]
    made_here = [
        (row, position)
        for row, (of_row, block) in enumerate(rows_of)
        for made_in, position in cells_of(of_row)
        if made_in == block and position < n
    ]
    # what stands before the first token that differs is the same in both texts, unless a change looks ahead
    moved = np.any([np.abs(grid).max(axis=0) > TINY for grid in drawn.all], axis=0)
    begins = [*different[:1], *np.flatnonzero(moved)[:1].tolist(), *(p for _, p in made_here)]
    first = min(begins, default=0)
    few = slice(first, n)
    # what the patches can change beside their own cells
    reached = np.zeros((len(rows_of), n), dtype=bool)
    for row, position in np.ndindex(reached.shape):
        place = rows_of[row]
        reached[row, position] = any(
            ((edit.site, edit.block) != place or position not in (edit.positions or ()))
            and unseen(edit, *place, config, n, position=position) is None
            for edit in patches
        )

    def pick_position(row: int, column: int, source: second.Other = other) -> None:
        of_row, block = rows_of[row]
        second.toggle(Patch(of_row, block, position=first + column).edit(source.ids), source)

    square = "<span style='color:{}'>■</span> {}".format
    key = [
        square(scene.palette.positive, "orange: with the clean text’s value, its answer comes back")
    ]
    if way != second.DENOISING:
        key = [
            square(scene.palette.negative, "blue: with the other text’s value, your answer breaks")
        ]
    edges = []  # one line: with two, the map's last rows were below the first screen
    if first > 0 and first == next(iter(different), None):
        begin = marks.safe(" | ".join(words_at[first]))
        edges.append(f"left of {begin}: both texts are equal, nothing to copy")
    if len(rows_of) > config.n_layers:
        edges.append("last row: where the prediction is read")
    key.append(" · ".join(edges))
    texts = None
    if n - first <= WRITTEN:
        texts = [[in_cell(effect) for effect in row[few]] for row in drawn.now.tolist()]
    with picture:
        labels = list(map(" | ".join, words_at))[few]
        if n - first > 4:
            sheet.sideways("patching_map", 560)
        grid = maps.Map(
            "",
            drawn.map(lambda cells: cells[:, few]),
            ends=(-1, 1),
            unit=f"{size}{unit}",
            framed=[(row, position - first) for row, position in made_here],
            tint=reached[:, few],
            texts=texts,
            key=key,
        )
        positions = range(first, n)
        fig = maps.maps(
            [grid], row_names, labels, None, scene.mode, positions=positions, large=True
        )
        alt = f"{SITES[site]} patched at each block and position ({way})"
        scene.chart(fig, key="patching_map", alt=alt, which=(way, site), on_cell=pick_position)
    mine, theirs = (target.top(run, at)[0] for run in (pair.own, pair.other))
    my_words = f"{words.as_code(mine.shown)} ({words.percent(mine.probability)})"
    their_words = f"{words.as_code(theirs.shown)} ({words.percent(theirs.probability)})"
    after_which = " | ".join(map(words.as_code, words_at[at]))
    found_text = [
        f"After {after_which}, the model predicts {my_words} in your text and {their_words} in the "
        "other text."
    ]
    places = activation_patching.strongest(site, effects.now, different, LEAST)
    sizes = [effect_at(effects, place) for place in places]
    tokens_there = [" | ".join(map(words.as_code, words_at[p])) for _, p in places]
    if abs(sizes[0].now) < LEAST:
        if in_logits:
            least = f"{LEAST} logits"
        else:
            least = words.percent(LEAST)
        says_first = f"No single patch of {NAMES[site]} moves the answer by {least} or more."
        if site == "resid_pre":
            says_first = f"Beyond the words that differ, {says_first[0].lower()}{says_first[1:]}"
    else:
        block_there, position_there = places[0]
        copied = words.as_code(words_at[position_there][-1])
        says_first = f"Copy one vector at {copied} (block {block_there}): {comes(sizes[0])}."
        if site == "resid_pre":
            jump = jump_of_the_answer(drawn.now, position_there, words_at)
            says_first = " ".join([says_first, *jump])
        others_there = (
            f"The copied vector is {PLACES[site]} block {block_there} at {tokens_there[0]} "
            f"(position {position_there})"
        )
        if len(places) > 1 and abs(sizes[1].now) >= LEAST:
            block_there, position_there = places[1]
            others_there += (
                f"; another is block {block_there} at {tokens_there[1]} (position {position_there}), "
                f"with {in_short(sizes[1].now)}"
            )
        found_text.append(f"{others_there}.")
    if site == "resid_pre":
        found_text += way_of_the_answer(drawn.now, row_names, words_at)
    if clean.now < 0:
        says_first = f"{says_first} {wrong_preference(-clean.now)}"
    with sentence:
        words.prose(says_first, "block", "residual stream")
    with found_there:
        words.prose(" ".join(found_text), "block", "residual stream")
made: dict[str, float] = {}
if found is not None and patches:  # all that were clicked, at once
    logit = float(difference(target.logits_at(scene.run, at), *answers))
    if way == second.DENOISING:
        before = ends.now.corrupt
    else:
        before = ends.now.clean
    change = logit - before
    metric = ends.now.metric(logit)
    if in_logits:
        shares = {}
    else:
        shares = {"metric": metric, "effect": metric - ends.now.metric(before)}
    made = {"logit": logit, **shares, "change": change}
    count = len(patches)
    data = f'data-count="{count}" data-effect="{made[size]}" data-logit="{logit}"'
    found_there.html(f'<div data-testid="patches_made" {data}></div>')
    what = f"These {count} patches now apply on every page. Together they"
    them = "them"
    if count == 1:
        what = "This patch now applies on every page. It"
        them = "it"
    told = does(Both(made[size]), many=count > 1)
    with found_there:
        words.prose(f"{what} {told}. The maps show your text without {them}.")
with below:
    guide(other)

# ---- one head at a time ----

st.subheader("Which head, and which part of it?", anchor=False)
said = (
    "Here we patch one head at a time, at all positions. If its **values** matter but its "
    "**pattern** does not, the head looks at the same places in both texts and finds something "
    "else there."
)
words.prose(said, "head", "query", "key", "value")
sheet.end_unless_near("patching_heads")
every = measured(ends, (site, *HEAD_SITES), "patching_heads")
if every is not None:
    by_part = grids(every, HEAD_SITES)
    outputs = by_part.now[HEAD_SITES.index("z")]
    order = np.argsort(-np.abs(outputs).ravel(), kind="stable")[: 1 + NEXT]
    (block, head), *after = [divmod(int(i), config.n_heads) for i in order]
    of_head = by_part.map(lambda e: dict(zip(HEAD_SITES, e[:, block, head].tolist(), strict=True)))
    inside = {part: effect for part, effect in of_head.now.items() if part != "z"}
    names = {part: "attention pattern" if part == "attn" else PARTS[part][0] for part in inside}
    shared = shared_by(config, head)
    if shared:
        names |= {part: f"group’s {names[part]}" for part in ("k", "v")}
    most = max(inside, key=lambda part: abs(inside[part]))
    rest = [
        f"its {names[part]} {in_short(effect)}" for part, effect in inside.items() if part != most
    ]
    text = (
        f"Block {block} · head {head} matters most: patching its output "
        f"{does(of_head.map(lambda e: e['z']))}. Its {names[most]} alone: {in_short(inside[most])}; "
        f"{', '.join(rest[:-1])} and {rest[-1]}."
    )
    coming = [
        f"block {b} · head {h} ({in_short(outputs[b, h])})"
        for b, h in after
        if abs(outputs[b, h]) >= LEAST
    ]
    still = in_short(outputs[block, head]) == "nothing"
    if still:
        text = "No patched head moves the answer noticeably."
    if coming:
        text = f"{text} Next: {', '.join(coming)}."
    if shared:
        text = f"{text} {shared} A patch of these is one of the whole group."
    words.prose(text, "group")
    sheet.sideways("patching_head_map", 760)
    panels = []
    for number, part in enumerate(HEAD_SITES):
        name, colour_name = PARTS[part]
        panel = maps.Map(
            name,
            part_of(by_part, number),
            ends=(-1, 1),
            unit=f"{name}: {size}{unit}",
            framed=cells_of(part),
            color=getattr(scene.palette, colour_name),
        )
        panels.append(panel)
    numbers = [str(head) for head in range(config.n_heads)]
    scene.chart(
        maps.maps(panels, blocks, numbers, None, scene.mode, joint=True, place="head %{x}"),
        key="patching_head_map",
        alt=f"Each head's output, queries, keys, values and pattern patched ({way})",
        which=(way, "heads"),
    )

    def pick_head(block: int, head: int, part: int, source: second.Other = other) -> None:
        of_head = sites_of(config)[HEAD_SITES[part]].of_head(head, config)
        second.toggle(Patch(HEAD_SITES[part], block, head=of_head).edit(source.ids), source)

    size_of = config.n_layers, config.n_heads
    cell_clicks("patching_head_map", *size_of, pick_head, panels=len(HEAD_SITES))

    called = {site: name.lower() for site, name in SITES.items()}
    called |= {part: name for part, (name, _) in PARTS.items()}
    guessed.draw(scene, every.now, called, way)
    own_paths = through.draw(
        as_before(scaled),
        scaled.map(lambda pair: pair.clean_and_corrupt),
        (answers[0], answers[1]),
        way,
        size,
        (in_short, in_cell),
    )

    # ---- many pairs ----

    offered = {part: f"A head’s {name}" for part, (name, _) in PARTS.items()} | SITES
    offered |= {by_role: f"{SITES[of]} by role" for by_role, of in roles.BY_ROLE.items()}
    offered[many_paths.BY_PATH] = "A head’s path to one reader"
    OF_MANY.within(offered)
    part = OF_MANY.value
    told = (
        "What to patch: all positions of a head, the last position of a block, or those with a role"
    )
    draw = partial(OF_MANY.choose, told, offered, label_visibility="collapsed")
    here = None
    if part in roles.BY_ROLE:
        of_clean = (answers[0], answers[1])
        roles.section(
            as_before(pairs),
            explained,
            pair.clean_and_corrupt,
            of_clean,
            way,
            size,
            part,
            PLACES[roles.BY_ROLE[part]],
            draw,
        )
    elif part == many_paths.BY_PATH:
        own_paths = own_paths.filter([*{"change", size}])  # none where it waits
        many_paths.section(as_before(pairs), explained, own_paths, way, draw)
    elif part in HEAD_SITES:
        row_of = sites_of(config)[part]
        rows = [
            f"block {b} · {row_of.part} {h}"
            for b in range(config.n_layers)
            for h in range(row_of.count(config))
        ]
        noun = f"the {PARTS[part][0]} of {{}}"
        map_of_heads: many.Grid | None = many.Grid(
            [f"block {b}" for b in range(config.n_layers)],
            [f"{row_of.part} {h}" for h in range(row_of.count(config))],
            f"All patches of {PARTS[part][0]}, at all positions: the mean of what each moves. A hover says the "
            "standard error.",
            f"What a patch of each head's {PARTS[part][0]} moves ({way})",
        )
    else:
        rows = blocks
        noun = f"{PLACES[part]} {{}} at the last token"
        map_of_heads = None
    if part in (site, *HEAD_SITES):
        here = every.now
    elif part in SITES:
        here = patched(pair, ends.now, (part,), "patching_many")
    if here is not None:
        own = here[(here["site"] == part) & (here["position"].fillna(at) == at)]
        options = {"sites": (part,), "direction": way, "last": True}
        nouns = f"what a patch of {noun} moves", "logits"
        measures = ["logit", "change"], ("change", 1)
        many.section(
            as_before(pairs),
            explained,
            activation_patching.patching,
            options,
            *measures,
            lambda: own,
            rows,
            nouns,
            len(rows),
            draw,
            grid=map_of_heads,
        )

# ---- details ----


def all_patches(rows: Both[pd.DataFrame]) -> pd.DataFrame:
    """A row a patch; the last one is all that are made."""
    if made:
        last = [pd.DataFrame([{"site": "all that are made"} | made])]
    else:
        last = []
    return pd.concat([tables.joined(rows), *last], ignore_index=True)


found = every or found
text = (
    "logit: the difference of the two logits in the patched pass; change: that minus the "
    "difference without the patch; estimate: what one gradient predicts for it"
)
if not in_logits:
    text += "; metric: (patched − corrupt) / (clean − corrupt); effect: how much the patch moves it"
own_text: str | list[int] = scene.text
other_text: str | list[int] = other.text
if scene.special or scene.truncated:  # the text would be read in another way
    own_text = list(scene.run.ids)
    other_text = list(other.ids)
if way == second.DENOISING:
    clean_text = other_text
    corrupt_text = own_text
else:
    clean_text = own_text
    corrupt_text = other_text
with sheet.details():
    if found is not None:
        sheet.numbers_of("patching", partial(all_patches, found), f"{text}.", "every patch", "–")
    both_texts()
    sheet.code_of(
        as_before(scaled),
        ["block", activation_patching.estimates],
        activation_patching.patching,
        clean_text,
        corrupt_text,
        (answers[0], answers[1]),
        (site, *HEAD_SITES),
        way,
        at,
        estimate=True,
    )
