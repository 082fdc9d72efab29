"""Circuit: the fewest heads that keep the prediction, everything else set to its mean."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar
from urllib.parse import urlencode

import numpy as np
import pandas as pd
import streamlit as st

from gptviz import Run
from gptviz.analysis.circuit_passes import Head, Passes, all_heads, edits_of
from gptviz.analysis.circuit_search import (
    ROUNDING,
    WAYS,
    Circuit,
    Score,
    allowed,
    brings,
    in_order,
    parse,
    random_order,
    score,
    search,
    subsets,
    written,
)
from gptviz.analysis.shapes import run_first_block
from gptviz.both import Both
from gptviz.digits import fixed, significant
from gptviz.engine.progress import Progress
from gptviz.figures.circuit import Curve, circuit_curve, circuit_sheet
from gptviz.model import MultiHeadAttention
from gptviz.ui import runs, sheet
from gptviz.ui.components.cell_clicks import cell_clicks
from gptviz.ui.glossary import prose
from gptviz.ui.shell import changes, state, target
from gptviz.ui.shell.examples import example_row
from gptviz.ui.shell.page import page
from gptviz.ui.shell.params import Param, if_there, in_link
from gptviz.ui.shell.slow import is_asked_for, is_wanted, read_sample, watched
from gptviz.ui.words import as_code

T = TypeVar("T")
Heads = tuple[Head, ...]

OTHERS: Param[str] = Param("others", str, "sample", if_there)
FORWARDS = Param("forwards", bool, True)
CIRCUIT: Param[str | None] = Param("circuit", str, None)  # None: what the search found, or all heads
SEARCH: Param[str | None] = Param("search", str, None, if_there)
SCORE: Param[str | None] = Param("score", str, None)  # what a link says of its circuit
SHEET: Param[str | None] = Param("sheet", str, None, if_there)  # None: its colours where that is quick
BESIDE: Param[str | None] = Param("sheet_unchanged", str, None, if_there)  # the unchanged model's, likewise
PARAMS = (*target.PARAMS, OTHERS, FORWARDS, CIRCUIT, SEARCH, SCORE, SHEET, BESIDE)

NOBODY = "none"  # the empty circuit, in an address
GIVES = {"sample": "its mean over a sample of text", "mean": "its mean over this text", "zero": "0"}
SEARCHES = {"remove": "Take heads away one by one", "add": "Add heads one by one"}
CURVES = {"remove": "taken away one by one", "add": "added one by one", "random": "added in a random order"}
# A link's score has four digits that mean something, and another machine other last ones of its logits.
AGREES, OF_LOGITS = 0.005, 2e-5  # of the score, and at least

scene = page("Circuit", params=PARAMS)
lm = scene.lm
explained = target.target_input(scene, "Token to keep", "nothing: the probability")
SEARCH.within((*WAYS, "both"))
with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
    others = OTHERS.choose("Every other head gives", GIVES)
    forwards = FORWARDS.widget(st.toggle, "The feed-forwards stay")
if others == "sample":
    read_sample(lm, "circuit_sample_stop", partial(OTHERS.set, "mean"))

# ---- F, what is measured ----

token = as_code(explained.shown)
if explained.against is None:
    pair: Any = explained.token
    measured, axis = f"the probability of {token}", f"probability of {explained.shown}"
else:
    pair = (explained.token, explained.against)
    measured = f"the logit of {token} minus that of {as_code(explained.against_shown or '')}"
    axis = f"logit of {explained.shown} − {explained.against_shown}"


def number(value: float) -> str:
    """F with its digits."""
    return significant(value) if explained.against is None else fixed(value, 2)


def passes(run: Run) -> Passes:
    """Made where they are used: they hold on to the model."""
    return Passes(runs.model(run), run.ids, pair, others, forwards, scene.position)


def known(
    name: tuple[Any, ...],
    work: Callable[[Progress], T],
    stop: Callable[[], Any] | None = None,
    run: Run = scene.run,
    key: str = "",
) -> T:
    """What `work` gives for this question, from memory where it is known; else with a bar, and a way to "
    "stop."""
    asked = ("circuit", scene.position, pair, others, forwards, *name)
    says = lambda done, most: f"{done} passes, at most {most}"  # noqa: E731
    return watched(asked, run, work, says, f"circuit_stop_{name[0]}{key}" if stop else None, stop)


def take(heads: Heads) -> None:
    """Callback: these heads are the circuit."""
    CIRCUIT.set(written(heads) or NOBODY)
    SCORE.set(None)


def also_search(way: str) -> None:
    """Callback: search in this way, too, and show what is found."""
    SEARCH.set(way if SEARCH.value in (None, way) else "both")
    CIRCUIT.set(None)
    SCORE.set(None)


# ---- the circuit in hand: clicked, from a link, or found by a search ----

said = st.container()
everyone = tuple(all_heads(lm))
with st.container(horizontal=True, vertical_alignment="center", gap="small"):
    for way, label in SEARCHES.items():
        st.button(
            label,
            key=f"circuit_{way}",
            icon=":material/search:",
            help="A greedy search: each step tries every head, and takes the one that leaves F closest to "
            "the whole "
            "model's, below or above. It takes about half as many passes as all heads squared.",
            disabled=SEARCH.value in (way, "both"),
            on_click=also_search,
            args=(way,),
        )
    for key, label, heads in (("all", "All heads", everyone), ("none", "No head", ())):
        st.button(label, key=f"circuit_{key}", type="tertiary", on_click=take, args=(heads,))
searches: dict[str, Circuit] = {}
for way in WAYS:
    if SEARCH.value in (way, "both"):
        searches[way] = known(
            ("search", way),
            lambda progress, way=way: search(passes(scene.run), way, progress=progress),  # type: ignore[misc]
            lambda: SEARCH.set(None),
        )
best = min(searches.values(), key=lambda found: (not found.kept, len(found.heads)), default=None)
heads = everyone if best is None else best.heads
if CIRCUIT.value is not None:
    try:
        heads = tuple(parse("" if CIRCUIT.value == NOBODY else CIRCUIT.value, lm))
    except ValueError as error:
        st.warning(f"The link's circuit cannot be read, and is left out: {error}.")


def three_values(progress: Progress) -> tuple[float, float, float]:
    """F of the whole model, of the circuit, and of nobody."""
    made = passes(scene.run)
    own, empty = made.of([heads, ()], progress).tolist()
    return made.whole, own, empty


whole, value, empty = known(("values", heads), three_values)
held = Circuit(heads, whole, value, empty, allowed(whole, empty), pd.DataFrame())
size, of = len(heads), len(everyone)
unchanged = None
if scene.other is not None:
    logit, chance = target.whole(scene.other, scene.position, explained.token, explained.against)
    unchanged = chance if explained.against is None else logit


def off_by(found: Circuit) -> str:
    """How far F is from that of the whole model."""
    return number(abs(found.whole - found.value))


def verdict() -> str:
    """Whether the prediction is kept, and if not, on which side it is lost."""
    if held.allowed <= ROUNDING:
        return "No head at all gives the same as all heads: there is nothing to keep. This is "
        f"{off_by(held)} off."
    side = "higher" if value > whole else "lower"
    text = f"The prediction is **{'kept' if held.kept else 'not kept'}**: it is {off_by(held)} {side} than "
    text += "in the "
    text += f"whole model, and {number(held.allowed)} is allowed, a tenth of the way from no head to all."
    if not held.kept and (value > whole) == (whole > empty):
        text += " This circuit overshoots: what is left out, taken together, "
        text += f"{'lowers' if side == 'higher' else 'raises'} it in the whole model."
    return text


if size == of and forwards:
    text = f"All {of} heads are in: that is the model itself, and {measured} is **{number(whole)}**. With "
    text += "no head in, "
    text += f"each giving {GIVES[others]}, it is {number(empty)}. How few heads keep it as it is?"
else:
    who = {0: "No head is in", 1: f"**1 of {of} heads** is in"}.get(size, f"**{size} of {of} heads** are in")
    text = f"{who}, and {measured} is **{number(value)}**; the whole model has {number(whole)}, no head "
    text += f"{number(empty)}. Every other head {'' if forwards else 'and every feed-forward '}gives "
    text += f"{GIVES[others]}. "
    text += verdict()
worth: Score | None = None
with said:
    prose(text, "head", "logit", "mean")
    if unchanged is not None:
        st.caption(
            "The whole model, M, is the changed one, and the circuit is one of it. F of the changed model is "
            f"{number(whole)}, of the unchanged one {number(unchanged)}."
        )
    if SCORE.value is not None and CIRCUIT.value is not None:
        shown = significant(value, 4)
        readable = re.fullmatch(r"-?[0-9]{1,6}(\.[0-9]{1,9})?(e-[0-9]{1,2})?", SCORE.value) is not None
        if readable and abs(float(SCORE.value) - value) <= max(AGREES * abs(value), OF_LOGITS):
            st.success(
                f"The score in this link was worked out anew, and holds: {size} head{'s' * (size != 1)}, F "
                f"is {shown}; "
                f"the prediction is {'kept' if held.kept else 'not kept'}."
            )
        else:
            st.warning(
                f"The link says {as_code(SCORE.value)}, but with these heads, this text and this model F is "
                f"**{shown}**, worked out just now: the link's number is not what comes out."
            )
    sets, everything = subsets(heads)
    if size < of or not forwards:  # of the model itself both are 0
        ask, stopped = "circuit_score_ask", "circuit_score_stopped"
        waits = st.session_state.get(stopped) == heads
        waits = waits or is_asked_for(lm, len(scene.tokens), 2 * len(sets))
        if not waits or st.toggle(
            f"Work out faithfulness and completeness ({2 * len(sets)} passes)", key=ask
        ):
            worth = known(
                ("score", heads),
                lambda progress: score(passes(scene.run), heads, progress=progress),
                partial(st.session_state.update, {stopped: heads, ask: False}),
            )
            where = f"for K = {worth.worst}" if worth.worst else "with nothing taken out"
            prose(
                f"Faithfulness, |F(M) − F(C)|: **{off_by(held)}**. Completeness, the largest "
                f"|F(C without K) − F(M without K)|: {'' if everything else 'at least '}"
                f"**{number(worth.completeness)}**, {where}, the worst of "
                f"{f'all {len(sets)}' if everything else f'{len(sets)} of the'} sets K of its heads. 0 is "
                "best for both."
            )

# ---- who is in, and what each brings ----

left, right = st.columns([5, 4], gap="medium")
tokens, brought = len(scene.tokens), None


def brought_to(run: Run, stop: Callable[[], Any], key: str = "") -> np.ndarray:
    return known(
        ("brings", heads),
        lambda progress: brings(
            runs.model(run), run.ids, pair, heads, others, forwards, scene.position, progress
        ),
        stop,
        run,
        key,
    )


def pick_head(block: int, head: int) -> None:
    """A click on the sheet puts a head in or takes it out."""
    take(tuple(sorted(set(heads) ^ {(block, head)})))


with left:
    if is_wanted(SHEET, lm, tokens, of):
        brought = Both(brought_to(scene.run, lambda: SHEET.set("off")))
        if scene.other is not None and is_wanted(BESIDE, lm, tokens, 2 * of):
            old = brought_to(scene.other, lambda: BESIDE.set("off"), "_beside")
            brought = Both(brought.now, old)
        elif scene.other is not None:
            label = "Colour it for the unchanged model, too"
            st.button(label, key="circuit_sheet_beside", on_click=BESIDE.set, args=("on",))
    else:
        label = f"Colour the sheet: what does each of the {of} heads bring?"
        st.button(label, key="circuit_sheet_start", on_click=SHEET.set, args=("on",))
    known_beside = brought is not None and brought.was is not None
    st.caption(
        f"F is {measured}. A frame: the head is in. The colour: what it brings, F with it minus F without "
        "it, the "
        "others as they are. A click puts a head in or takes it out."
        + " In brackets, and at a hover: what it brings in the unchanged model."
        * known_beside
    )
    scene.chart(
        circuit_sheet(
            None if brought is None else brought.now,
            heads,
            (lm.config.n_layers, lm.config.n_heads),
            scene.mode,
            None if brought is None else brought.was,
        ),
        key="circuit_sheet",
        alt=f"The circuit of {axis}: {size} of {of} heads",
    )
    cell_clicks("circuit_sheet", lm.config.n_layers, lm.config.n_heads, pick_head, scene.mode)

# ---- F against the number of heads ----


def point(way: str, size: int, value: float, head: tuple[object, object] | None = None) -> str:
    """A hover over a point of a curve."""
    text = f"{size} {'head' if size == 1 else 'heads'}, {CURVES[way]}: F is {number(value)}"
    last = "without" if way == "remove" else "with"
    return text if head is None else f"{text}<br>{last} block {head[0]}, head {head[1]} at last"


def pick_point() -> None:
    """A click on a point of a search takes that circuit."""
    points = st.session_state["circuit_curve"].selection.points
    way, place = points[0].get("customdata", ("", 0)) if points else ("", 0)
    if way in searches:
        take(searches[way].stages[int(place)])


with right:
    for way, found in searches.items():
        if found.kept:
            how = "Taken away one by one, as long as" if way == "remove" else "Added one by one, until"
            text = f"{how} F is at most {number(found.allowed)} off, below or above, while each other head "
            text += "gives "
            text += f"{GIVES[others]}: **{len(found.heads)}** heads, {off_by(found)} off."
        else:
            text = f"The search ({CURVES[way]}; each other head gives {GIVES[others]}) met no circuit that "
            text += "keeps the "
            text += f"prediction. The closest has **{len(found.heads)}** heads: F is {number(found.value)}, "
            text += f"{off_by(found)} off, and {number(found.allowed)} is allowed."
        st.markdown(text)
    if not searches:
        st.markdown(
            "Nobody has searched yet: take heads away one by one, or click heads in and out yourself."
        )
    steps = {way: found.steps for way, found in searches.items()}
    if searches:
        steps = {
            "random": known(("random",), lambda _: in_order(passes(scene.run), random_order(lm)))
        } | steps
    curves = []
    for way, rows in steps.items():
        columns = [rows[name].tolist() for name in ("size", "value", "block", "head") if name in rows]
        hovers = [
            point(way, n, f, None if way == "random" or pd.isna(where[0]) else (where[0], where[1]))
            for n, f, *where in zip(*columns, strict=True)
        ]
        curves.append(Curve(way, columns[0], columns[1], hovers))
    scene.chart(
        circuit_curve(curves, CURVES, (whole, held.allowed), (size, value), of, axis, scene.mode, unchanged),
        key="circuit_curve",
        alt=f"F against the number of heads: {axis}",
        on_select=pick_point,
    )
    st.caption(
        "F for the circuits of the search, from many heads to few or from few to many, beside heads added "
        "in a random "
        "order. Between the dashed lines the prediction is kept: F is off by at most a tenth of what all "
        "heads change. "
        "A click on a point takes that circuit."
    )

# ---- the link that holds the circuit and its score ----

if size < of or not forwards:
    label = "Make this circuit the model, on every page"
    edits = edits_of(lm, heads, others, forwards)
    st.button(label, key="circuit_everywhere", on_click=changes.add, args=edits)
if held.kept:
    text = f"{size} head{'s' * (size != 1)}, and the prediction is kept (F is {off_by(held)} off; "
    text += f"{number(held.allowed)} is allowed). Who needs fewer?"
else:
    text = f"with {size} head{'s' * (size != 1)} F is {off_by(held)} off, and {number(held.allowed)} is "
    text += "allowed: the "
    text += "prediction is not kept."
st.markdown(f"**Circuit golf:** {text} The link holds the circuit and its F:")
mine = {CIRCUIT.name: written(heads) or NOBODY, SCORE.name: f"{value:.4g}", SEARCH.name: None}
query = urlencode(state.link() | in_link(PARAMS, mine), safe="+")
st.code(f"{(st.context.url or '').partition('?')[0]}?{query}", language=None, wrap_lines=True)
prose(
    "**What to look for.** A framed head that is pale can go. One that is not framed and has a colour would "
    "change F: "
    "orange raises it, blue lowers it. Heads work together: one that copies is worth nothing without the "
    "one that "
    "finds what to copy, so heads that are *added* one by one may seem to bring nothing for long. And heads "
    "stand in "
    "for one another: of two that do the same, either can go. So neither way need find the fewest. Try "
    "both, then "
    "click.",
    "head",
)
st.caption(
    "What always stays: the embeddings, the LayerNorms, the biases of the attentions. The feed-forwards "
    "stay as well, "
    "unless the switch takes them away: then each gives its mean."
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
example_row("A copied passage", "A name comes back", "A quotation closes")


# ---- in numbers, in code ----


def every_head() -> Both[pd.DataFrame]:
    """A row a head: whether it is in, F with it and without it, and what it brings."""
    inside = np.array([head in heads for head in everyone])
    table = pd.DataFrame(everyone, columns=["block", "head"]).assign(inside=inside)
    if brought is None:
        return Both(table)
    change = brought.now.ravel()
    with_it, without = np.where(inside, value, value + change), np.where(inside, value - change, value)
    table = table.assign(**{"F with it": with_it, "F without it": without, "brings": change})
    return Both(table, None if brought.was is None else table.assign(brings=brought.was.ravel()))


sheet.numbers_of(
    "circuit",
    every_head,
    "What each head brings: F with it, F without it, the others of the circuit as they are.",
    what="every head",
)
if worth is not None:
    table = worth.table
    text = "The sets K: F of the circuit without them, F of the model without them, and how far apart the "
    text += "two are."
    sheet.numbers_of("circuit-sets", lambda: Both(table), text, what="the sets K")
if searches:
    all_steps = [rows.assign(way=CURVES[way]) for way, rows in steps.items() if way != "random"]
    all_steps.append(steps["random"].assign(way=CURVES["random"]))
    text = "Each circuit of the search: the head that was taken away or added, and F."
    sheet.numbers_of(
        "circuit-search", lambda: Both(pd.concat(all_steps, ignore_index=True)), text, what="the curves"
    )
sheet.code_of(
    scene,
    [Passes.of, edits_of, MultiHeadAttention.forward],
    brings,
    pair,
    heads,
    others,
    forwards,
    scene.position,
    run=lambda: run_first_block(lm, scene.run.ids),
)
