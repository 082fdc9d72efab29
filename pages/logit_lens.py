"""What the model would say if it stopped at each depth: a grid of guesses, one of them beside the last."""

import math
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from gptviz import Run
from gptviz.analysis import lens
from gptviz.analysis.reads import of_text
from gptviz.both import Both
from gptviz.ui import runs, sheet, words
from gptviz.ui.components.lens import lens_grid
from gptviz.ui.lens_cells import legend_of
from gptviz.ui.parts.logit_lens import columns, lenses, trial
from gptviz.ui.shell import target as targets
from gptviz.ui.shell.params import whole

MOST = 6  # tokens that are followed at once: more lines are a thicket
ASKED = "lens_asked"  # in the session: the run, and the lens, of which all columns are wanted
# and all that have been read: of a run, with the ranks of a token or without any
READ = "lens_read"
NAMES = {
    "probability": "Probability of the top token",
    "rank": "Rank of the followed token",
    "entropy": "Entropy",
    "kl": "Distance to the end",
}


class Tokens(sheet.Param[list[int]]):
    """Ids of tokens: in the address as "512.733", in the session as the list that a widget has."""

    def parse(self, text: str) -> list[int]:
        numbers = [whole(part) for part in text.split(".")[:MOST]]
        return list(dict.fromkeys(number for number in numbers if number is not None))

    def written(self, value: list[int]) -> str:
        return ".".join(map(str, value))


COLOUR = sheet.Param("lens_colour", str, "probability", sheet.if_there)
ROW: sheet.Param[int | None] = sheet.Param("lens_row", int, None, sheet.if_there)
PINNED = Tokens("pinned", str, [], lambda ids, size: [i for i in ids if i < size])

frame = sheet.start_page(
    "Logit lens", choices=[lenses.LENS, COLOUR, ROW, PINNED, targets.TARGET, *trial.PARAMS]
)
prompt = sheet.read_text(frame)
scene = sheet.trace(prompt, keep=lens.KEEP)

lm = scene.lm
position = scene.position
label = words.as_code(scene.label)
count = len(scene.tokens)
vocabulary = lm.config.vocab_size
names = lens.row_names(lm.config)
show = partial(words.show_id, lm)
last = len(names) - 1
which = lenses.chosen(lm)
read = lenses.LENSES[which]
both = sheet.of(scene, read.depths, position)
now = both.now


def place(row: int) -> str:
    """A row's name in a sentence: "block 3's attention"."""
    block, _, part = names[row].partition(" · ")
    return f"{block}'s {part}" if part else "the embedding"


def short(row: int) -> str:
    return names[row].removeprefix("block ").replace(" ·", "")


def says(found: lens.Depths, row: int) -> str:
    """A row's most probable token: "`x`"."""
    return words.as_code(show(int(found.top[row])))


def chance_of(found: lens.Depths, row: int) -> str:
    """The probability of a row's most probable token: "14 %"."""
    return words.percent(float(found.reading.probabilities[row, 0]))


def answer(found: lens.Depths) -> str:
    """What a model says in the end: "`x`, 14 %"."""
    return f"{says(found, last)}, {chance_of(found, last)}"


if now.settled == last:
    text = (
        f"Only the very last step decides on {says(now, last)}. One step earlier, the model would say "
        f"{says(now, last - 1)} ({chance_of(now, last - 1)}). "
    )
elif now.settled:
    text = (
        f"From {place(now.settled)} on, the model's answer is {says(now, last)}. One step earlier, it "
        f"would say {says(now, now.settled - 1)} ({chance_of(now, now.settled - 1)}). "
    )
else:
    text = f"At every depth, even the first, the model's answer is {says(now, last)}. "
first_choices = both.map(lambda d: says(d, last))
if first_choices.moved:
    end_says = both.map(answer).arrow()
else:
    end_says = f"{first_choices.now}, {both.map(lambda d: chance_of(d, last)).arrow()}"
text += f"In the end it says **{end_says}**, after {label} (position {position})."
words.prose(text, "block", "embedding", "attention", "feed-forward")

# ---- the grid, and below it what it shows ----

grid_place = st.container()
with st.container(horizontal=True, vertical_alignment="bottom", gap="medium", key="set_lens"):
    told = (
        "Entropy: how unsure the reading is. Distance to the end: how many extra bits this depth would "
        "need to answer as the model does in the end (KL divergence)."
    )
    lenses.choose(lm)
    measure = COLOUR.choose("Colour", NAMES, help=told)
    target = targets.target_input(scene, "Token to follow")
chosen = ROW.within(len(names))
row = max(0, now.settled - 1) if chosen is None else chosen
ranked = target.token if measure == "rank" else None
everything = columns.parts_of(lm.config, count)
asked_for = (scene.run, which)
wanted = st.session_state.get(ASKED) == asked_for
is_read = (*asked_for, ranked) in st.session_state.get(READ, ())
if is_read:
    parts = everything
else:
    parts = columns.unasked(lm.config, count, position)
start = parts[0][0]
stop = parts[-1][1]

bar = grid_place.container()
if parts != everything and not wanted:
    with (
        grid_place,
        st.container(horizontal=True, vertical_alignment="center", gap="small", key="lens_offer"),
    ):
        sheet.button(
            f"Read all {count:,} columns", "lens_all", st.session_state.update, {ASKED: asked_for}
        )
        st.caption(
            f"So far the page has read {stop - start:,} of {count:,} columns, those around the selected "
            f"token; the others are grey. Every cell takes {vocabulary:,} logits."
        )


def pick(row: int | None, position: int | None) -> None:
    """A click on a cell chooses depth and token."""
    if row is not None:
        ROW.set(row)
    if position is not None:
        scene.select(position)


title = {
    "probability": "probability of the token in the cell",
    "rank": f"rank of {target.shown}",
    "entropy": "entropy of the reading",
    "kl": "distance to the end (KL divergence)",
}[measure]
rows = [(short(i), f"After {place(i)}") for i in range(last)]
with grid_place:
    with st.spinner("Reading the columns"):
        grid = columns.drawn(scene.run, scene.other, parts, measure, ranked, which)
    lens_grid(
        grid,
        [*rows, ("output", f"After {place(last)}: the model's own output")],
        scene.labels,
        (row, position),
        legend_of(title, measure, vocabulary, scene.mode),
        pick,
        saved=scene.saved(
            "logit_lens", f"What the model would say at each depth: {title}", measure
        ),
    )
text = (
    "**What to look for.** Follow a column down and watch the answer take shape. Each column is a "
    f"token, each row a depth: {read.how.format(norm=scene.norm)}. The cell shows the token that "
    "comes out on top; hover to see the first ten. The last row is the real output. **What it is not.** "
    f"{lenses.warning(which, scene.other is not None)}"
)
top = columns.columns(scene.run, parts, read.cells).ids[..., 0]
itself = 0
if which == lenses.LOGIT:
    itself = int((top[0] == np.array(scene.run.ids[start:stop])).sum())
if itself:
    text += f" In {itself} of {stop - start} columns the first row simply repeats the token that was read"
    if lm.config.tie_embeddings:
        text += ", because the output head is the token embedding."
    else:
        text += "."
pieces = top[np.isin(top, grid["pieces"])]
if len(pieces):
    text += (
        f" In {len(pieces):,} of {top.size:,} cells the token on top is a **piece of a "
        f"character**, such as {words.as_code(show(int(pieces[0])))}: only some of the bytes of one."
    )
if scene.other is not None:
    text += " A dashed frame marks cells where the unchanged model has another token on top."
words.prose(text, "token", "residual stream", scene.norm, "logit lens", "entropy")
lenses.say_how_to_fit(lm)
sheet.example_row("A copied passage", "A quotation closes", "He and she", "Counting")

# ---- a cell beside the end ----

if row == last:
    heading = "The model's own output"
else:
    heading = f"After {place(row)}, compared with the end"
st.subheader(f"{heading}: {label} (position {position})", anchor=False)
sheet.end_unless_near("lens_end")
ends = both.map(lambda d: d.reading.ids[[row, last]])  # (2, 10)
ids = list(dict.fromkeys([*ends.now.ravel().tolist(), *ends.all[0][:, 0].tolist()]))
ids = [ids[n] for n in np.argsort(lens.followed(now.logits[[row]], ids).ranks[0])]
sides = both.map(lambda d: lens.followed(d.logits[[row, last]], ids))  # (2, n)


def chance(side: int, token: int) -> str:
    return sides.map(lambda f: float(f.probabilities[side, ids.index(token)])).arrow("%")


def rank(side: int, token: int) -> str:
    return f"{sides.now.ranks[side, ids.index(token)]:,}"


def written(bits: float) -> str:
    """Bits to two decimals; a number that would read as 0 to two digits that mean something."""
    if bits >= 0.005 or bits == 0:
        return words.fixed(bits, 2)
    return words.significant(bits, 2)


def bits(name: str, row: int) -> str:
    values = both.map(lambda d: float(getattr(d.reading, name)[row]))
    return f"{values.map(written).arrow()} bits"


first = int(now.top[row])
end = int(now.top[last])
if row == last:
    text = (
        "The last row is the real output. Its entropy is "
        f"{bits('entropy', last)}. Click a cell in another row to compare the two."
    )
else:
    text = (
        f"Stopped after {place(row)}, the model would say {words.as_code(show(first))} "
        f"({chance(0, first)}). In the end this token has {chance(1, first)}, rank {rank(1, first)}. "
    )
    if first != end:
        text += (
            f"The final answer, {words.as_code(show(end))}, has {chance(0, end)} here (rank "
            f"{rank(0, end)}) and {chance(1, end)} in the end. "
        )
    text += (
        f"Entropy: {bits('entropy', row)} here, {bits('entropy', last)} in the end. Distance to the end "
        f"(KL divergence): {bits('kl', row)}."
    )
words.prose(text, "entropy", "KL divergence")


def named(ids: list[int]) -> list[str]:
    """Tokens as the screen shows them, no two alike."""
    shown = [show(i) for i in ids]
    return [
        f"{text} (id {i})" if shown.count(text) > 1 else text
        for i, text in zip(ids, shown, strict=True)
    ]


def beside(key: str, side: int, where: str) -> None:
    """The tokens' probabilities at the selected depth, or in the end."""

    def follow(place: int) -> None:
        others = [i for i in PINNED.value if i != ids[place]]
        PINNED.set(others if len(others) < len(PINNED.value) else [*others, ids[place]][-MOST:])

    def hovers(found: lens.Followed) -> list[str]:
        pairs = zip(named(ids), found.probabilities[side], found.ranks[side], strict=True)
        return [
            f"`{token}`: {words.probability_text(float(p))} {where}, rank {r:,}"
            for token, p, r in pairs
        ]

    st.caption(f"**{where.capitalize()}**")
    colors = scene.palette
    sheet.bars(
        scene,
        key,
        sides.map(lambda f: f.probabilities[side]),
        named(ids),
        "probability",
        f"The most probable tokens {where}",
        follow,
        which=(f"row{row}",),
        says=sides.map(hovers),
        colors=colors.probability if side else colors.quiet,
        lying=True,
        text=Both([words.probability_text(float(p)) for p in sides.now.probabilities[side]]),
        height=44 + 21 * len(ids),
    )


pictures = (("lens_cell", 0, f"after {place(row)}"), ("lens_end", 1, "in the end"))[row == last :]
for picture in sheet.side_by_side(pictures, "small"):
    beside(*picture)

# ---- tokens through the depth ----

st.subheader("Tokens through the depth", anchor=False)
offered = list(dict.fromkeys([*PINNED.within(vocabulary), *now.contenders]))
labels = dict(zip(offered, named(offered), strict=True))
pinned = PINNED.widget(
    st.multiselect,
    "More tokens",
    options=offered,
    format_func=lambda i: labels.get(i, str(i)),
    max_selections=MOST,
    placeholder="Any token among the ten most probable at some depth",
    help="Sorted by the highest probability that a token reaches at any depth, so tokens that lead early "
    "and lose are here, too. Click a bar above to follow its token.",
)
lines = list(dict.fromkeys([target.token, *(pinned or lens.leaders(now.top))]))
trails = both.map(lambda d: lens.followed(d.logits, lines))  # (R, n)


def column_of(values: Both[np.ndarray], n: int) -> Both[np.ndarray]:
    """(R,): the n-th followed token's."""
    return values.map(lambda all_tokens: all_tokens[:, n])


def curves(key: str, name: str, values: Both[np.ndarray], **more: Any) -> None:
    """The followed tokens through the depth; a click chooses the row."""
    # of many each second has its name: the embedding, and those after a whole block
    few = len(names) <= 15
    through = {token: column_of(values, n) for n, token in enumerate(named(lines))}
    alt = f"{name.capitalize()} of {', '.join(named(lines))} at each depth"
    shown = [short(i) if few or i % 2 == 0 else "" for i in range(len(names))]
    ticks = {"tickvals": [*range(len(names))], "ticktext": shown, "tickangle": -40}
    more |= {"axis": ticks | {"range": [-0.4, last + 0.4]}, "many": True}
    sheet.curves(scene, key, through, names, name, alt, lambda row, _: ROW.set(row), at=row, **more)


chances = trails.map(lambda f: f.probabilities)
most = max(1.08 * max(float(p.max()) for p in chances.all), 1e-6)
curves(
    "lens_lines",
    "probability",
    chances,
    up={"range": [0, most]},
    written=words.probability_text,
    height=290,
)
on_top = [math.log10(vocabulary * 1.3), -0.12]  # rank 1
downwards = {"type": "log", "range": on_top, "dtick": 1, "exponentformat": "none"}
curves(
    "lens_ranks",
    "rank",
    trails.map(lambda f: f.ranks),
    up=downwards,
    written="{:,}".format,
    height=270,
)
found = trails.now
text = ""
loser = int((found.probabilities.max(axis=0) - found.probabilities[-1]).argmax())
peak = int(found.probabilities[:, loser].argmax())
if peak < last and found.ranks[-1, loser] > found.ranks[peak, loser]:
    at_peak = words.percent(float(found.probabilities[peak, loser]))
    in_the_end = words.percent(float(found.probabilities[last, loser]))
    rises = "leads for a while, then loses"
    if found.ranks[peak, loser] > 1:
        rises = "rises for a while, then falls"
    text = (
        f"{words.as_code(show(lines[loser]))} {rises}: {at_peak} after {place(peak)} "
        f"(rank {found.ranks[peak, loser]:,}), {in_the_end} in the end "
        f"(rank {found.ranks[last, loser]:,}). "
    )
if not pinned:
    text += "Until you choose tokens, the curves show those that lead at some depth."
st.markdown(text)

# ---- both lenses on trial ----

tried = trial.draw(scene)

# ---- details ----


def grid_table(run: Run) -> pd.DataFrame:
    """A row a cell, column after column: that of the selected token first."""
    found = columns.columns(run, parts, read.cells)
    order = sorted(range(start, stop), key=lambda p: p != position)

    def flat(values: np.ndarray) -> np.ndarray:
        """(R, K) -> (K R,)."""
        return values[:, np.array(order) - start].T.ravel()

    top = flat(found.ids[..., 0])
    table = pd.DataFrame({"position": np.repeat(order, len(names))})
    table["token"] = np.repeat([scene.labels[p] for p in order], len(names))
    table["depth"] = np.tile(np.arange(len(names)), len(order))
    table["after"] = names * len(order)
    table["says"] = [show(int(i)) for i in top]
    table["id"] = top
    table["probability"] = flat(found.probabilities[..., 0])
    table["entropy_bits"] = flat(found.entropy)
    table["kl_bits"] = flat(found.kl)
    if ranked is not None:
        own = columns.columns(run, parts, read.followed_cells, (ranked,))
        table[f"probability of {target.shown}"] = flat(own.probabilities[..., 0])
        table[f"rank of {target.shown}"] = flat(own.ranks[..., 0])
    return table


def followed_table(found: lens.Depths) -> pd.DataFrame:
    """A row a token and depth: the followed tokens, and those of the bars."""
    tokens = list(dict.fromkeys([*lines, *ids]))
    own = lens.followed(found.logits, tokens)
    size = len(names)
    table = pd.DataFrame({"token": np.repeat(named(tokens), size), "id": np.repeat(tokens, size)})
    table["depth"] = np.tile(np.arange(size), len(tokens))
    table["after"] = names * len(tokens)
    return table.assign(probability=own.probabilities.T.ravel(), rank=own.ranks.T.ravel())


caption = (
    "Every cell read so far, the selected token's column first. entropy_bits: how unsure the reading "
    "is; kl_bits: its distance to the end (KL divergence of the final distribution from the row's)."
)
runs_of = Both(scene.run, scene.other)
with sheet.details():
    sheet.numbers_of("logit_lens_grid", lambda: runs_of.map(grid_table), caption, "every cell")
    caption = "Probability and rank, in the whole vocabulary and at each depth, of the tokens in the curves and bars."
    sheet.numbers_of(
        "logit_lens_followed", lambda: both.map(followed_table), caption, "tokens through the depth"
    )
    if tried is not None:
        trial.table(tried)
    sheet.code_of(
        scene,
        [read.logits, "norm"],
        read.cells,
        start,
        stop,
        run=lambda: read.logits(scene.trace, lm.model, position),
    )

if wanted and parts != everything:  # at the end: the page stands, and a click interrupts
    stop_it = partial(st.session_state.pop, ASKED, None)
    asked: list[tuple[Run, Any, tuple[Any, ...]]] = [(run, read.cells, ()) for run in runs_of.all]
    if ranked is not None:
        asked.append((scene.run, read.followed_cells, ((ranked,),)))
    says = "Reading the columns: {} of {} parts".format
    with bar:
        for nth, (run, numbers, more) in enumerate(asked):
            given = [(run.ids, numbers, *part, *more) for part in everything]
            every = sheet.all_worked(run, of_text, given, says, f"lens_stop_{nth}", stop_it)
            for (_, _, *args), value in zip(given, every, strict=True):
                runs.known(sheet.once, lambda value=value: value, run, numbers, tuple(args))  # type: ignore[misc]
    st.session_state[READ] = {(*asked_for, None), (*asked_for, ranked)}
    st.rerun()
