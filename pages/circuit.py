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
SEARCHES = {"remove": "Remove heads one by one", "add": "Add heads one by one"}
CURVES = {"remove": "removed one by one", "add": "added one by one"}
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
    others = OTHERS.choose("Every other head outputs", dict(reversed(GIVES.items())))
    forwards = FORWARDS.widget(st.toggle, "Keep the feed-forward layers")
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
            "A greedy search: each step tries every head and picks the one that leaves the prediction "
            "closest to the whole model's. It runs the model about half the number of heads squared times."
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
            f"The circuit in this link cannot be read and is ignored: {words.escaped(str(error))}."
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
        f"{all_in}: this is the whole model.",
        f"{words.capital(measured)} is **{number(whole)}**.",
        f"With no head (each outputs {GIVES[others]}) it is {number(empty)}.",
    ]
    if something_to_keep:
        sentences.append("How few heads are enough to keep it?")
    else:
        sentences.append("No head is needed here: there is nothing to keep.")
else:
    with_heads = f"With these **{size} heads**"
    if size == 0:
        with_heads = "With no head"
    elif size == 1:
        with_heads = "With this **one head**"
    left_out = "Every other head and every feed-forward layer"
    if forwards:
        left_out = "Every other head"
    if not something_to_keep:
        opening = "There is nothing to keep here."
    elif kept:
        opening = f"{with_heads}, the model keeps its prediction."
    else:
        opening = f"{with_heads}, the model does not keep its prediction."
    sentences = [
        opening,
        f"{words.capital(measured)} is **{number(value)}**, against {number(whole)} in the whole "
        f"model and {number(empty)} with no head.",
        f"{left_out} outputs {GIVES[others]}.",
    ]
    if something_to_keep:
        everybody = "all"
        if not forwards:
            everybody = "the whole model"  # which has its feed-forwards, too
        sentences.append(
            f"The prediction counts as kept up to an error of {number(enough)}, a tenth of the way "
            f"from no head to {everybody}; here the error is {off}."
        )
    else:
        everybody = "the whole model"
        if forwards:
            everybody = "all heads"
        sentences.append(
            f"No head at all gives the same as {everybody}; here the difference is {off}."
        )
    if something_to_keep and not kept and (value > whole) == (whole > empty):
        lowers = "raise it"
        if value > whole:
            lowers = "lower it"
        sentences.append(
            f"This circuit overshoots: in the whole model, the parts left out together {lowers}."
        )
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
        before_and_after = f"{number(unchanged)} → {number(whole)}"
        if number(unchanged) == number(whole):
            before_and_after = f"{number(whole)} before and after"
        st.caption(
            f"Your change: {measured} **{before_and_after}**. The circuit is part of the changed "
            "model; “the whole model” is the changed one, too."
        )
    if SCORE.value is not None and CIRCUIT.value is not None:
        shown = words.significant(value, 4)
        readable = (
            re.fullmatch(r"-?[0-9]{1,6}(\.[0-9]{1,9})?(e-[0-9]{1,2})?", SCORE.value) is not None
        )
        if readable and abs(float(SCORE.value) - value) <= max(AGREES * abs(value), OF_LOGITS):
            st.success(
                f"We checked the score in this link, and it is right: {heads_in}, F is {shown}; the "
                f"prediction is {verdict}."
            )
        else:
            st.warning(
                f"This link claims F = {words.as_code(SCORE.value)}. We ran this model with these "
                f"heads on this text, and got **{shown}**."
            )
    sets, everything = numbers.subsets(heads)
    if not is_model:  # of which both are 0
        ask = "circuit_score_ask"
        stopped = "circuit_score_stopped"
        waits = st.session_state.get(stopped) == heads or sheet.is_asked_for(
            lm, tokens, 2 * len(sets)
        )
        label = f"Compute faithfulness and completeness ({2 * len(sets)} passes)"
        if not waits or st.toggle(label, key=ask):
            stop_it = partial(st.session_state.update, {stopped: heads, ask: False})
            worth = known("score", numbers.score, heads, stop=stop_it)
            worst = worth.loc[worth["gap"].idxmax()]
            where = "with no head removed"
            if worst["K"]:
                where = f"for K = {worst['K']}"
            gap = f"**{number(worst['gap'])}**"
            tried = "all"
            if not everything:
                gap = f"at least {gap}"
                tried = "some"
            words.prose(
                f"Faithfulness, |F(M) − F(C)|: **{off}**. Completeness, the largest |F(C without "
                f"K) − F(M without K)|: {gap}, {where}. That is the worst of {tried} sets K of its "
                f"heads ({len(sets)} tried). For both, 0 is best."
            )

# ---- who is in, and what each brings ----

left, right = st.columns([5, 4], gap="medium")
with left:
    if brought is None:
        label = f"Colour the heads: what does each of the {of} contribute?"
        if of == 1:
            label = "Colour the head: what does it contribute?"
        sheet.button(label, "circuit_sheet_start", SHEET.set, "on")
    elif scene.other is not None and sheet.is_wanted(BESIDE, lm, tokens, 2 * of):
        says = "{} of {} heads tried".format
        stop = partial(BESIDE.set, "off")
        key = "circuit_stop_brings_beside"
        ids = scene.other.ids
        old = sheet.worked(scene.other, numbers.brings, ids, *asked, says=says, key=key, stop=stop)
        brought = Both(brought.now, old)
    elif scene.other is not None:
        sheet.button("Compare with the unchanged model", "circuit_sheet_beside", BESIDE.set, "on")
    cells = brought or Both(np.full(shape, np.nan))
    text = (
        "Click a head to add or remove it. A thick frame marks a head of the circuit; its colour "
        f"shows what it contributes: F with it minus F without it, where F is {measured}."
    )
    if cells.was is not None:
        text += " In brackets: the same in the unchanged model."
    st.caption(text)
    columns = [f"head {h}" for h in range(shape[1])]
    fig = share_grid(
        cells.now, columns, None, "it contributes", scene.mode, unchanged=cells.was, inside=heads
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
            how = "Adding heads one by one, the search stops at"
            if way == "remove":
                how = "Removing heads one by one, the search ends with"
            text = (
                f"{how} **{words.counted(len(found.heads), 'head')}**: F is off by {gap}, and "
                f"{number(found.allowed)} is allowed."
            )
        else:
            text = (
                f"No circuit that keeps the prediction was found (heads {CURVES[way]}). The closest "
                f"has **{words.counted(len(found.heads), 'head')}**: F is {number(found.value)}, off "
                f"by {gap}, and {number(found.allowed)} is allowed."
            )
        st.markdown(text)
    if not searches:
        st.markdown(
            "No search yet. Let the page remove or add heads one by one, or click the heads yourself."
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
    found_here = ""
    if searches:
        found_here = (
            "Each point of a search is a circuit: click it to select it. Heads added in a random "
            "order show what luck would find. "
        )
    st.caption(
        f"{found_here}Between the dashed lines the prediction counts as kept: F is off by at most a "
        f"tenth of what {all_parts} change."
    )

# ---- the link that holds the circuit and its score ----

sheet.end_unless_near("golf")
if not is_model:
    edits = circuit_passes.edits_of(lm, heads, others, forwards)
    sheet.button(
        "Use this circuit as the model on every page", "circuit_everywhere", changes.add, *edits
    )
how_far = f"off by {off}"
if value == whole:
    how_far = "exact"
golf = [
    f"**Circuit golf:** {heads_in}, prediction {verdict} ({how_far}; an error up to {number(enough)} "
    "is allowed)."
]
if kept and something_to_keep:
    golf.append("Can you do it with fewer?")
golf.append("Share your circuit and its score with this link:")
st.markdown(" ".join(golf))
link = {
    CIRCUIT.name: numbers.written(heads) or NOBODY,
    SCORE.name: f"{value:.4g}",
    SEARCH.name: None,
}
query = urlencode(state.link() | sheet.in_link(PARAMS, link), safe="+")
st.code(f"{(st.context.url or '').partition('?')[0]}?{query}", language=None, wrap_lines=True)
words.prose(
    "**What to look for.** A head with a thick frame and hardly any colour can go. A coloured head "
    "without a thick frame would change the prediction if you added it: orange raises it, blue lowers "
    "it. Heads work together: one that copies is useless without the one that finds what to copy, so "
    "the first heads that you *add* may seem to do nothing. Heads also replace each other: of two that "
    "do the same, you can remove either. Neither search is guaranteed to find the smallest circuit.",
    "head",
)
st.caption(
    "The embeddings, the LayerNorms and the attention biases always stay. The feed-forward layers "
    f"stay, too, unless you switch them off: then each outputs {GIVES[others]}."
)
with st.expander("What faithful and complete mean", icon=":material/balance:"):
    st.markdown(f"""
After Wang et al., *Interpretability in the Wild*, 2022, section 4. M is the model with all its parts, C the
circuit, and F is {measured} when everything outside the circuit is replaced.

- **faithfulness** |F(M) − F(C)|: the error of the circuit, too low or too high. The prediction is kept
  if it is at most a tenth of |F(M) − F(no head)|.
- **completeness** the largest |F(C without K) − F(M without K)| over sets K of the circuit's heads: removing K
  should do the same harm to the circuit and to the model. If it is large, the model has other heads that step
  in, and the circuit does not contain all of them.
- **size** |C|: the number of heads.

In the paper, F is the difference of two logits, averaged over many prompts of one form, and the mean is taken
over those prompts, position by position. Here there is one text, and a mean is the same at every position. The
limit of a tenth is our choice.
""")
sheet.example_row("A copied passage", "A name comes back", "A quotation closes")


# ---- details ----


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


caption = (
    "What each head contributes: F with it and F without it; the other heads of the circuit stay."
)
with sheet.details():
    sheet.numbers_of("circuit", every_head, caption, what="every head")
    if worth is not None:
        text = "F of the circuit without the heads K, F of the model without them, and the gap between the two."
        sheet.numbers_of("circuit-sets", worth, text, "the sets K")
    if searches:
        every = pd.concat(
            [rows.assign(way=name) for name, rows in steps.items()], ignore_index=True
        )
        text = "Each step of the search: the head that was removed or added, and F."
        sheet.numbers_of("circuit-search", every, text, "the curves")
    sources: list[Any] = [
        numbers.each_brings,
        circuit_passes.Passes.of,
        circuit_passes.edits_of,
        MultiHeadAttention.forward,
    ]
    sheet.code_of(scene, sources, numbers.brings, *asked)
