"""Circuit: the fewest heads that keep the prediction, everything else set to its mean."""

import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeVar
from urllib.parse import urlencode

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from gptviz.analysis import circuit_passes, circuit_search as numbers
from gptviz.both import Both
from gptviz.figures.shares import share_grid
from gptviz.model import MultiHeadAttention
from gptviz.ui import sheet, words
from gptviz.ui.shell import changes, state, target
from gptviz.ui.shell.muted import GIVES

T = TypeVar("T")

OTHERS: sheet.Param[str] = sheet.Param("others", str, "sample", sheet.if_there)
FORWARDS = sheet.Param("forwards", bool, True)
# None: what the search found, or all heads
CIRCUIT: sheet.Param[str | None] = sheet.Param("circuit", str, None)
SEARCH: sheet.Param[str | None] = sheet.Param("search", str, None, sheet.if_there)
SCORE: sheet.Param[str | None] = sheet.Param("score", str, None)  # what a link says of its circuit
# None: its colours where that is quick
SHEET: sheet.Param[str | None] = sheet.Param("sheet", str, None, sheet.if_there)
# the unchanged model's, likewise
BESIDE: sheet.Param[str | None] = sheet.Param("sheet_unchanged", str, None, sheet.if_there)
PARAMS = (*target.PARAMS, OTHERS, FORWARDS, CIRCUIT, SEARCH, SCORE, SHEET, BESIDE)

NOBODY = "none"  # the empty circuit, in an address
SEARCHES = {"remove": "Take heads away one by one", "add": "Add heads one by one"}
CURVES = {"remove": "taken away one by one", "add": "added one by one"}
RANDOM = "added in a random order"
HERE = "this circuit"
# A link's score has four digits that mean something, and another machine other last ones of its logits.
AGREES = 0.005  # of the score
OF_LOGITS = 2e-5  # and at least so much of the largest logit

frame = sheet.start_page("Circuit", choices=PARAMS)
prompt = sheet.read_text(frame)
scene = sheet.trace(prompt)

lm = scene.lm
explained = target.target_input(scene, "Token to keep", "nothing: the probability")
SEARCH.within((*numbers.WAYS, "both"))
with st.container(horizontal=True, vertical_alignment="bottom", gap="medium", key="set_circuit"):
    others = OTHERS.choose("Every other head gives", dict(reversed(GIVES.items())))
    forwards = FORWARDS.widget(st.toggle, "The feed-forwards stay")
if others == "sample":
    sheet.read_sample(scene.run, "circuit_sample_stop", partial(OTHERS.set, "mean"))

# ---- F, what is measured ----

token = words.as_code(explained.shown)
pair: Any = explained.token
measured = f"the probability of {token}"
axis = f"probability of {explained.shown}"
if explained.against is not None:
    pair = (explained.token, explained.against)
    measured = f"the logit of {token} minus that of {words.as_code(explained.against_shown or '')}"
    axis = f"logit of {explained.shown} − {explained.against_shown}"


def number(value: float) -> str:
    """F with its digits."""
    if explained.against is None:
        return words.significant(value)
    return words.fixed(value, 2)


def known(
    name: str, function: Callable[..., T], *args: Any, stop: Callable[[], Any] | None = None
) -> T:
    """Wait for `function(passes, *args)` on this text and prediction, and give its result.

    There is a bar meanwhile, and with `stop` a button that ends it, whose key has `name` in it.
    """
    question = (scene.run.ids, pair, others, forwards, scene.position)
    says = "{} passes, at most {}".format
    key = f"circuit_stop_{name}" if stop else None
    return sheet.worked(
        scene.run, numbers.of_passes, question, function, *args, says=says, key=key, stop=stop
    )


def take(heads: Iterable[circuit_passes.Head]) -> None:
    """Callback: these heads are the circuit."""
    CIRCUIT.set(numbers.written(tuple(heads)) or NOBODY)
    SCORE.set(None)


def also_search(way: str) -> None:
    """Callback: search in this way, too, and show what is found."""
    SEARCH.set(way if SEARCH.value in (None, way) else "both")
    CIRCUIT.set(None)
    SCORE.set(None)


# ---- the circuit in hand: clicked, from a link, or found by a search ----

verdict_above = st.container()
everyone = tuple(circuit_passes.all_heads(lm))
of = len(everyone)
with st.container(horizontal=True, vertical_alignment="center", gap="small"):
    for way, label in SEARCHES.items():
        told = (
            "A greedy search: each step tries every head, and takes the one that leaves F closest "
            "to the whole model's. It takes about half as many passes as all heads squared."
        )
        on: Any = {"icon": "search", "help": told, "disabled": SEARCH.value in (way, "both")}
        sheet.button(label, f"circuit_{way}", also_search, way, **on)
    for key, label, some in (("all", "All heads", everyone), ("none", "No head", ())):
        sheet.button(label, f"circuit_{key}", take, some, type="tertiary")
searches: dict[str, numbers.Circuit] = {}
for way in numbers.WAYS:
    if SEARCH.value in (way, "both"):
        searches[way] = known(f"search_{way}", numbers.search, way, stop=lambda: SEARCH.set(None))
best = min(searches.values(), key=lambda found: (not found.kept, len(found.heads)), default=None)
heads = everyone if best is None else best.heads
if CIRCUIT.value is not None:
    try:
        heads = tuple(numbers.parse("" if CIRCUIT.value == NOBODY else CIRCUIT.value, lm))
    except ValueError as error:
        st.warning(
            f"The link's circuit cannot be read, and is left out: {words.escaped(str(error))}."
        )

tokens = len(scene.tokens)
shape = (lm.config.n_layers, lm.config.n_heads)
asked = pair, heads, others, forwards, scene.position
brought: Both[NDArray[np.float64]] | None = None  # what each head brings to this circuit
if sheet.is_wanted(SHEET, lm, tokens, of):
    change, values = known("brings", numbers.each_brings, heads, stop=lambda: SHEET.set("off"))
    brought = Both(change)
else:
    values = known("values", numbers.three_values, heads)
whole, value, empty = values
enough = numbers.allowed(whole, empty)
size = len(heads)
off = number(abs(whole - value))
kept = abs(whole - value) <= enough
heads_in = words.counted(size, "head")
verdict = "kept" if kept else "not kept"
is_model = size == of and forwards
something_to_keep = enough > numbers.ROUNDING
if is_model:
    if of == 1:
        all_in = "The one head is in"
    else:
        all_in = f"All {of} heads are in"
    sentences = [
        f"{all_in}: that is the model itself, and {measured} is **{number(whole)}**.",
        f"With no head in, each giving {GIVES[others]}, it is {number(empty)}.",
    ]
    if something_to_keep:
        sentences.append("How few heads keep it as it is?")
    else:
        sentences.append("No head is needed: there is nothing to keep.")
else:
    some_in = f"**{size} of {of} heads** are in"
    if size == 0:
        some_in = "No head is in"
    elif size == 1:
        some_in = f"**1 of {of} heads** is in"
    left_out = "Every other head and every feed-forward"
    if forwards:
        left_out = "Every other head"
    sentences = [
        f"{some_in}, and {measured} is **{number(value)}**; the whole model has {number(whole)}, "
        f"no head {number(empty)}.",
        f"{left_out} gives {GIVES[others]}.",
    ]
    if something_to_keep:
        side = "higher" if value > whole else "lower"
        everybody = "all" if forwards else "the whole model"  # which has its feed-forwards, too
        sentences.append(
            f"The prediction is **{verdict}**: it is {off} {side} than in the whole model, and "
            f"{number(enough)} is allowed, a tenth of the way from no head to {everybody}."
        )
    else:
        everybody = "the whole model"
        if forwards:
            everybody = "all heads"
        sentences += [
            f"No head at all gives the same as {everybody}: there is nothing to keep.",
            f"This is {off} off.",
        ]
    if something_to_keep and not kept and (value > whole) == (whole > empty):
        lowers = "raises it"
        if value > whole:
            lowers = "lowers it"
        left_out = "what is left out, taken together,"
        sentences.append(f"This circuit overshoots: {left_out} {lowers} in the whole model.")
unchanged = None
worth = None
with verdict_above:
    words.prose(" ".join(sentences), "head", "logit", "mean")
    if scene.other is not None:
        logit, chance = target.whole(
            scene.other, scene.position, explained.token, explained.against
        )
        if explained.against is None:
            unchanged = chance
        else:
            unchanged = logit
        st.caption(
            "The whole model, M, is the changed one, and the circuit is one of it. F of the "
            f"changed model is {number(whole)}, of the unchanged one {number(unchanged)}."
        )
    if SCORE.value is not None and CIRCUIT.value is not None:
        shown = words.significant(value, 4)
        readable = (
            re.fullmatch(r"-?[0-9]{1,6}(\.[0-9]{1,9})?(e-[0-9]{1,2})?", SCORE.value) is not None
        )
        if readable and abs(float(SCORE.value) - value) <= max(AGREES * abs(value), OF_LOGITS):
            st.success(
                f"The score in this link was worked out anew, and holds: {heads_in}, F is {shown}; "
                f"the prediction is {verdict}."
            )
        else:
            st.warning(
                f"The link says {words.as_code(SCORE.value)}, but with these heads, this text and "
                f"this model F is **{shown}**, worked out just now: the link's number is not what "
                "comes out."
            )
    sets, everything = numbers.subsets(heads)
    if not is_model:  # of which both are 0
        ask = "circuit_score_ask"
        stopped = "circuit_score_stopped"
        waits = st.session_state.get(stopped) == heads or sheet.is_asked_for(
            lm, tokens, 2 * len(sets)
        )
        label = f"Work out faithfulness and completeness ({2 * len(sets)} passes)"
        if not waits or st.toggle(label, key=ask):
            stop_it = partial(st.session_state.update, {stopped: heads, ask: False})
            worth = known("score", numbers.score, heads, stop=stop_it)
            worst = worth.loc[worth["gap"].idxmax()]
            where = "with nothing taken out"
            if worst["K"]:
                where = f"for K = {worst['K']}"
            gap = f"**{number(worst['gap'])}**"
            tried = "all"
            if not everything:
                gap = f"at least {gap}"
                tried = "some"
            words.prose(
                f"Faithfulness, |F(M) − F(C)|: **{off}**. Completeness, the largest |F(C without "
                f"K) − F(M without K)|: {gap}, {where}, the worst of {tried} sets K of its heads "
                f"({len(sets)}). 0 is best for both."
            )

# ---- who is in, and what each brings ----

left, right = st.columns([5, 4], gap="medium")
with left:
    if brought is None:
        label = f"Colour the sheet: what does each of the {of} heads bring?"
        sheet.button(label, "circuit_sheet_start", SHEET.set, "on")
    elif scene.other is not None and sheet.is_wanted(BESIDE, lm, tokens, 2 * of):
        says = "{} of {} heads tried".format
        stop = partial(BESIDE.set, "off")
        key = "circuit_stop_brings_beside"
        ids = scene.other.ids
        old = sheet.worked(scene.other, numbers.brings, ids, *asked, says=says, key=key, stop=stop)
        brought = Both(brought.now, old)
    elif scene.other is not None:
        sheet.button(
            "Colour it for the unchanged model, too", "circuit_sheet_beside", BESIDE.set, "on"
        )
    cells = brought or Both(np.full(shape, np.nan))
    text = (
        f"F is {measured}. A thick frame: the head is in. The colour: what it brings, F with it "
        "minus F without it, the others as they are. A click puts a head in or takes it out."
    )
    if cells.was is not None:
        text += " In brackets, and at a hover: what it brings in the unchanged model."
    st.caption(text)
    columns = [f"head {h}" for h in range(shape[1])]
    fig = share_grid(
        cells.now, columns, None, "it brings", scene.mode, unchanged=cells.was, inside=heads
    )
    alt = f"The circuit of {axis}: {size} of {words.counted(of, 'head')}"
    scene.chart(fig, key="circuit_sheet", alt=alt, on_cell=lambda *place: take({*heads} ^ {place}))

# ---- F against the number of heads ----


def over_sizes(steps: pd.DataFrame) -> NDArray[np.float64]:
    """F of each size of circuit from 0 to all, NaN where there is none."""
    found = np.full(of + 1, np.nan)
    found[steps["size"]] = steps["value"]
    return found


steps = {CURVES[way]: found.steps for way, found in searches.items()}
if searches:
    steps[RANDOM] = known("random", numbers.in_order, tuple(numbers.random_order(lm)))
curves = {name: over_sizes(rows) for name, rows in steps.items()}


def pick_point(at: int, value: float) -> None:
    """A click on a point of a search takes that circuit."""
    for way, found in searches.items():
        if np.isclose(curves[CURVES[way]][at], value, rtol=1e-9):
            take(found.stages[found.steps["size"].tolist().index(at)])


with right:
    for way, found in searches.items():
        gap = number(abs(found.whole - found.value))
        if found.kept:
            how = "Added one by one, until"
            if way == "remove":
                how = "Taken away one by one, as long as"
            text = (
                f"{how} F is at most {number(found.allowed)} off, below or above, while each other "
                f"head gives {GIVES[others]}: **{words.counted(len(found.heads), 'head')}**, {gap} "
                "off."
            )
        else:
            text = (
                f"The search ({CURVES[way]}; each other head gives {GIVES[others]}) met no circuit "
                f"that keeps the prediction. With **{words.counted(len(found.heads), 'head')}** it "
                f"is closest: F is {number(found.value)}, {gap} off, and {number(found.allowed)} "
                "is allowed."
            )
        st.markdown(text)
    if not searches:
        st.markdown(
            "Nobody has searched yet: take heads away one by one, or click them in and out yourself."
        )
    levels = [(whole, "the whole model"), (whole - enough, ""), (whole + enough, "")]
    if unchanged is not None:
        levels[0] = (whole, "the model, changed")
        levels.append((unchanged, "the model, unchanged"))
    mine = over_sizes(pd.DataFrame({"size": [size], "value": [value]}))
    sheet.curves(
        scene,
        "circuit_curve",
        {name: Both(line) for name, line in {HERE: mine, **curves}.items()},
        ["1 head" if n == 1 else f"{n} heads" for n in range(of + 1)],
        axis,
        f"F against the number of heads: {axis}",
        pick_point,
        at=size,
        rests=levels,
        many=True,
        axis={"title": {"text": "heads in the circuit"}, "range": [-0.8, of + 1.6]},
        written=number,
        height=360,
    )
    all_parts = "all heads and feed-forwards"
    if forwards:
        all_parts = "all heads"
    st.caption(
        "F for the circuits of the search, beside heads added in a random order. Between the "
        "dashed lines around the whole model's F the prediction is kept: F is off by at most a "
        f"tenth of what {all_parts} change. A click on a point takes that circuit."
    )

# ---- the link that holds the circuit and its score ----

sheet.end_unless_near("golf")
if not is_model:
    edits = circuit_passes.edits_of(lm, heads, others, forwards)
    sheet.button(
        "Make this circuit the model, on every page", "circuit_everywhere", changes.add, *edits
    )
golf = [
    f"**Circuit golf:** {heads_in}, and the prediction is {verdict} (F is {off} off; "
    f"{number(enough)} is allowed)."
]
if kept and something_to_keep:
    golf.append("Who needs fewer?")
golf.append("The link holds the circuit and its F:")
st.markdown(" ".join(golf))
link = {
    CIRCUIT.name: numbers.written(heads) or NOBODY,
    SCORE.name: f"{value:.4g}",
    SEARCH.name: None,
}
query = urlencode(state.link() | sheet.in_link(PARAMS, link), safe="+")
st.code(f"{(st.context.url or '').partition('?')[0]}?{query}", language=None, wrap_lines=True)
words.prose(
    "**What to look for.** A head that is in and has hardly any colour can go. One that is out and "
    "has a colour would change F: orange raises it, blue lowers it. Heads work together: one that "
    "copies is worth nothing without the one that finds what to copy, so heads that are *added* "
    "one by one may seem to bring nothing for long. And heads stand in for one another: of two "
    "that do the same, either can go. So neither way need find the fewest.",
    "head",
)
st.caption(
    "What always stays: the embeddings, the LayerNorms, the biases of the attentions. The "
    "feed-forwards stay as well, unless the switch takes them away: then each gives "
    f"{GIVES[others]}."
)
with st.expander("How faithful and complete are meant", icon=":material/balance:"):
    st.markdown(f"""
After Wang et al., *Interpretability in the Wild*, 2022, section 4. M is the model with all its parts, C the
circuit, and F is {measured}, with everything replaced that is not in.

- **faithfulness** |F(M) − F(C)|: what the circuit gets wrong, too little or too much. The prediction is kept
  where that is at most a tenth of |F(M) − F(no head)|.
- **completeness** the largest |F(C without K) − F(M without K)| over sets K of the circuit's heads: taken out
  of the circuit and out of the model, they should do the same harm. Where it is large, the model has other
  heads that stand in, and the circuit has not all of them.
- **size** |C|: the number of heads.

There, F is the difference of two logits, averaged over many prompts of one form, and the mean is that of
those prompts, position by position. Here there is one text, and a mean is the same at every position. The
tenth is ours.
""")
sheet.example_row("A copied passage", "A name comes back", "A quotation closes")


# ---- in numbers, in code ----


def every_head() -> Both[pd.DataFrame]:
    """A row a head: whether it is in, F with it and without it, and what it brings."""
    inside = np.array([head in heads for head in everyone])
    table = pd.DataFrame(everyone, columns=["block", "head"]).assign(inside=inside)
    if brought is None:
        return Both(table)
    change = brought.now.ravel()
    with_it = np.where(inside, value, value + change)
    without = np.where(inside, value - change, value)
    table = table.assign(**{"F with it": with_it, "F without it": without, "brings": change})
    return Both(table, None if brought.was is None else table.assign(brings=brought.was.ravel()))


caption = "What each head brings: F with it, F without it, the others of the circuit as they are."
sheet.numbers_of("circuit", every_head, caption, what="every head")
if worth is not None:
    text = "F of the circuit without the heads K, F of the model without them, and how far apart the two are."
    sheet.numbers_of("circuit-sets", worth, text, "the sets K")
if searches:
    every = pd.concat([rows.assign(way=name) for name, rows in steps.items()], ignore_index=True)
    text = "Each circuit of the search: the head that was taken away or added, and F."
    sheet.numbers_of("circuit-search", every, text, "the curves")
sources: list[Any] = [
    numbers.each_brings,
    circuit_passes.Passes.of,
    circuit_passes.edits_of,
    MultiHeadAttention.forward,
]
sheet.code_of(scene, sources, numbers.brings, *asked)
