"""Circuit: the few heads that keep the prediction, everything else set to its mean.

It opens with the strongest heads that are enough; searches, and clicks on a head, do it with fewer.
"""

import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeVar
from urllib.parse import urlencode

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from gptviz import Run
from gptviz.analysis import circuit_passes, circuit_search as numbers, circuit_texts
from gptviz.both import Both
from gptviz.figures import shares as figures
from gptviz.ui import many, sheet, words
from gptviz.ui.parts.circuit import at_roles, story
from gptviz.ui.shell import bench, changes, state
from gptviz.ui.teach.question import SHOWN_CIRCUIT

T = TypeVar("T")

FORWARDS = sheet.Param("forwards", bool, True)
# how many of the strongest heads are kept; None: the fewest that are enough, or what a search found
KEEP: sheet.Param[int | None] = sheet.Param("keep", int, None, sheet.if_there)
# any other heads, as they were clicked; it goes before `KEEP`
CIRCUIT: sheet.Param[str | None] = sheet.Param("circuit", str, None)
SEARCH: sheet.Param[str | None] = sheet.Param("search", str, None, sheet.if_there)
SCORE: sheet.Param[str | None] = sheet.Param("score", str, None)  # what a link says of its circuit
# None: the order of the heads where that is quick
ORDER: sheet.Param[str | None] = sheet.Param("heads_order", str, None, sheet.if_there)
# None: the colours of the sheet, likewise
SHEET: sheet.Param[str | None] = sheet.Param("sheet", str, None, sheet.if_there)
# the unchanged model's, likewise
BESIDE: sheet.Param[str | None] = sheet.Param("sheet_unchanged", str, None, sheet.if_there)
OF_HEADS = (KEEP, CIRCUIT, SEARCH, SCORE, ORDER, SHEET, BESIDE)
PARAMS = (*bench.PARAMS, FORWARDS, *OF_HEADS, *many.PARAMS, *story.PARAMS, *at_roles.PARAMS)

NOBODY = "none"  # the empty circuit, in an address
SEARCHES = {"remove": "Remove heads one by one", "add": "Add heads one by one"}
CURVES = {"remove": "removed one by one", "add": "added one by one"}
RANDOM = "added in a random order"
STRONGEST = "strongest first"
HERE = "this circuit"
# the slider's widget: it shows the size of any circuit, and `KEEP` holds what is chosen
SLIDER = "circuit_keep"
LIKELY = 0.5  # above this probability a token is the model's first choice, whatever the others have
# A link's score has four digits that mean something, and another machine other last ones of its logits.
AGREES = 0.005  # of the score
OF_LOGITS = 2e-5  # and at least so much of the largest logit

frame = sheet.start_page("Circuit", choices=PARAMS)
prompt = sheet.read_text(frame)
scene = sheet.trace(prompt, keep=["z"], reduce=sheet.head_reductions(prompt))

lm = scene.lm
SEARCH.within((*numbers.WAYS, "both"))
everyone = tuple(circuit_passes.all_heads(lm))
of = len(everyone)
KEEP.within(of + 1)
tokens = len(scene.tokens)
shape = (lm.config.n_layers, lm.config.n_heads)

explained = bench.bar(scene, usual="sample")
scene = explained.in_files(scene)
others = explained.baseline
measure = explained.measure
# the order of the page: the sentence, the picture, the handle, and what there is to know of them
sentence = st.container()
picture = st.container()
handle = st.container(
    horizontal=True, vertical_alignment="bottom", gap="medium", key="set_circuit_size"
)
found_there = st.container()
if others == "sample":
    with sentence:
        stop_it = partial(bench.BASELINE.set, "mean")
        sheet.read_sample(scene.run, "circuit_sample_stop", stop_it)
with handle:
    slider = st.container(width="stretch")
    forwards = FORWARDS.widget(st.toggle, "Keep the feed-forward layers")

# ---- F, what is measured ----

token = words.as_code(explained.shown)
pair = explained.token, explained.against
measured = explained.watched
axis = explained.axis


def number(value: float) -> str:
    """F with its digits."""
    if measure == "probability":
        return words.significant(value)
    return explained.number(value)


def known(
    name: str,
    function: Callable[..., T],
    *args: Any,
    stop: Callable[[], Any] | None = None,
    run: Run | None = None,
) -> T:
    """Wait for `function(passes, *args)` on this text and prediction, and give its result.

    There is a bar meanwhile, and with `stop` a button that ends it, whose key has `name` in it. `run` is
    another one than the scene's.
    """
    asked_run = run or scene.run
    question = (asked_run.ids, pair, others, forwards, scene.position, measure)
    says = "{} passes, at most {}".format
    key = f"circuit_stop_{name}" if stop else None
    return sheet.worked(
        asked_run, numbers.of_passes, question, function, *args, says=says, key=key, stop=stop
    )


def keep(count: int | None) -> None:
    """Callback: so many of the strongest heads are the circuit; None: the fewest that are enough."""
    KEEP.set(count)
    CIRCUIT.set(None)
    SCORE.set(None)


def take(heads: Iterable[circuit_passes.Head]) -> None:
    """Callback: these heads are the circuit. The address says how many, where they are the strongest."""
    chosen = tuple(heads)
    count = None
    if order is not None:
        count = order.size_of(chosen)
    keep(count)
    if count is None:
        CIRCUIT.set(numbers.written(chosen) or NOBODY)


def also_search(way: str) -> None:
    """Callback: search in this way, too, and show what is found."""
    SEARCH.set(way if SEARCH.value in (None, way) else "both")
    keep(None)


# ---- the order of the heads, and the circuit in hand: how many, clicked, from a link, or searched ----

order: numbers.Ranking | None = None
order_before: numbers.Ranking | None = None  # the unchanged model's
searches: dict[str, numbers.Circuit] = {}
with sentence:
    # a pass begins at its head's block: half of it, on average
    if sheet.is_wanted(ORDER, lm, tokens, numbers.most_passes(of) // 2):
        no_order = partial(ORDER.set, "off")
        order = known("ranking", numbers.ranked, stop=no_order)
        if scene.other is not None:
            order_before = known("unchanged", numbers.ranked, stop=no_order, run=scene.other)
    for way in numbers.WAYS:
        if SEARCH.value in (way, "both"):
            stop_it = partial(SEARCH.set, None)
            searches[way] = known(f"search_{way}", numbers.search, way, stop=stop_it)
best = min(searches.values(), key=lambda found: (not found.kept, len(found.heads)), default=None)
heads = everyone
if order is not None and KEEP.value is not None:
    heads = tuple(sorted(order.heads[: KEEP.value]))
elif best is not None:
    heads = best.heads
elif order is not None:
    heads = tuple(sorted(order.heads[: order.fewest]))
if CIRCUIT.value is not None:
    try:
        heads = tuple(numbers.parse("" if CIRCUIT.value == NOBODY else CIRCUIT.value, lm))
    except ValueError as error:
        sentence.warning(
            f"The circuit in this link cannot be read and is ignored: {words.escaped(str(error))}."
        )
size = len(heads)
strongest = None  # how many of the strongest these heads are
if order is not None:
    strongest = order.size_of(heads)

asked = pair, heads, others, forwards, scene.position
if order is not None and strongest is not None:
    values = order.whole, float(order.values[size]), float(order.values[0])
else:
    with sentence:
        values = known("values", numbers.three_values, heads)
whole, value, empty = values
enough = numbers.allowed(whole, empty)
off = number(abs(whole - value))
kept = abs(whole - value) <= enough
heads_in = words.counted(size, "head")
verdict = "kept" if kept else "not kept"
is_model = size == of and forwards
something_to_keep = enough > numbers.ROUNDING
st.session_state[SHOWN_CIRCUIT] = (scene.text, numbers.written(heads) or NOBODY)


def first_sentence() -> str:
    """Say which heads are kept, and whether the prediction is."""
    if is_model:
        all_in = f"All {of} heads are in"
        if of == 1:
            all_in = "The one head is in"
        return f"{all_in}: this is the whole model."
    if not something_to_keep:
        return "No head is needed here: there is nothing to keep."
    which = f"Keep only these **{size} heads**"
    if size == 1:
        which = "Keep only this **one head**"
    elif size == 0:
        which = "Keep **no head**"
    if measure != "probability":
        return f"{which}, and {becomes()}."
    is_first = explained.is_first(scene.run, scene.position)
    if kept and is_first and value > LIKELY:
        return f"{which}, and the model still says {token}."
    if kept:
        return f"{which}, and {token} stays nearly as probable."
    if value > whole:
        return f"{which}, and {token} gets too probable."
    return f"{which}, and {token} loses too much of its probability."


def becomes() -> str:
    """What becomes of the difference of two logits, or of the loss, with these heads alone."""
    what = explained.briefly
    if kept:
        return f"{what} stays nearly the same"
    if value > whole:
        return f"{what} gets too large"
    return f"{what} gets too small"


sentences = []
if is_model:
    sentences = [
        f"{words.capital(measured)} is **{number(whole)}**.",
        f"With no head (each outputs {explained.gives}) it is {number(empty)}.",
    ]
    if something_to_keep and order is not None and order.fewest == of:
        sentences.append("In the order of this page, no smaller number of heads keeps it.")
    elif something_to_keep:
        sentences.append("How few heads are enough to keep it?")
    else:
        sentences.append("No head is needed here: there is nothing to keep.")
else:
    left_out = f"Each of the other {of - size} heads and every feed-forward layer"
    if size + 1 == of:
        left_out = "The other head and every feed-forward layer"
    if forwards:
        left_out = left_out.removesuffix(" and every feed-forward layer")
    sentences = [
        f"{words.capital(measured)} is **{number(value)}**, against {number(whole)} in the whole "
        f"model and {number(empty)} with no head.",
        f"{left_out} outputs {explained.gives}.",
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

opening = first_sentence()
from_here = order is not None and strongest is not None and order.loses_again(strongest)
if from_here and something_to_keep:
    opening += " More heads can lose it again: some work against it until others join."
with sentence:
    words.prose(opening, "head", "logit", "mean")
with found_there:
    words.prose(" ".join(sentences), "head", "logit", "mean")
    if scene.other is not None:
        unchanged = explained.of(scene.other, scene.position)
        before_and_after = f"{number(unchanged)} → {number(whole)}"
        if number(unchanged) == number(whole):
            before_and_after = f"{number(whole)} before and after"
        enough_before = ""
        if order is not None and order_before is not None:
            enough_before = (
                f" Of the strongest heads {order_before.fewest} were enough before your change, and "
                f"{order.fewest} are now."
            )
        st.caption(
            f"Your change: {measured} **{before_and_after}**. The circuit is part of the changed "
            f"model; “the whole model” is the changed one, too.{enough_before}"
        )
    if SCORE.value is not None and (CIRCUIT.value, KEEP.value) != (None, None):
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

# ---- the picture: which heads are kept, beside F against their number ----


def over_sizes(steps: pd.DataFrame) -> NDArray[np.float64]:
    """F of each size of circuit from 0 to all, NaN where there is none."""
    found = np.full(of + 1, np.nan)
    found[steps["size"]] = steps["value"]
    return found


steps = {CURVES[way]: found.steps for way, found in searches.items()}
if searches:
    with sentence:
        steps[RANDOM] = known("random", numbers.in_order, tuple(numbers.random_order(lm)))
curves = {name: over_sizes(rows) for name, rows in steps.items()}
strongest_first: dict[str, Both[NDArray[np.float64]]] = {}
if order is not None:
    values_before = None
    if order_before is not None:
        values_before = order_before.values
    strongest_first[STRONGEST] = Both(order.values, values_before)


def pick_point(at: int, value: float) -> None:
    """A click on a point of a curve takes that circuit."""
    if order is not None and np.isclose(order.values[at], value, rtol=1e-9):
        keep(at)
        return
    for way, found in searches.items():
        if np.isclose(curves[CURVES[way]][at], value, rtol=1e-9):
            take(found.stages[found.steps["size"].tolist().index(at)])


def largest_step(order: numbers.Ranking) -> str:
    """Name the head with which the curve of the strongest heads moves most, and what it does alone."""
    steps = np.abs(np.diff(order.values))
    count = int(steps.argmax()) + 1
    block, head = order.heads[count - 1]
    before = number(float(order.values[count - 1]))
    after = number(float(order.values[count]))
    alone = number(abs(float(order.effects[block, head])))
    return (
        f"The largest step of the curve is number {count}, block {block} · head {head}: from "
        f"{before} to {after}. With all other heads in, switching this one off moves it by {alone}."
    )


ranks = None
effects = None
if order is not None:
    ranks = np.zeros(shape, dtype=int)
    for number_of, place in enumerate(order.heads, start=1):
        ranks[place] = number_of
    effects = order.effects
with picture:
    left, right = st.columns([5, 4], gap="medium")
with left:
    looks = sheet.looks(scene.run)
    scene.chart(
        figures.kept_heads(heads, ranks, effects, looks, scene.mode),
        key="circuit_heads",
        alt=f"The heads that are kept: {size} of {of}; each of the others outputs {explained.gives}",
        on_cell=lambda *place: take({*heads} ^ {place}),
    )
with right:
    levels = [(whole, "the whole model"), (whole - enough, "")]
    if measure != "probability" or whole + enough <= 1:  # no probability is larger
        levels.append((whole + enough, ""))
    if unchanged is not None:
        levels[0] = (whole, "the model, changed")
        levels.append((unchanged, "the model, unchanged"))
    mine = over_sizes(pd.DataFrame({"size": [size], "value": [value]}))
    searched_lines = {name: Both(line) for name, line in curves.items()}
    lines = {HERE: Both(mine), **strongest_first, **searched_lines}
    sheet.curves(
        scene,
        "circuit_curve",
        lines,
        ["1 head" if n == 1 else f"{n} heads" for n in range(of + 1)],
        axis,
        f"F against the number of heads (each of the others outputs {explained.gives}): {axis}",
        pick_point,
        at=size,
        rests=levels,
        many=True,
        axis={"title": {"text": "heads that are kept"}, "range": [-0.8, of + 1.6]},
        written=number,
        height=figures.KEPT_HEIGHT,
        main=STRONGEST,
    )
with slider:
    if order is None:
        label = f"Which heads are enough? (at most {numbers.most_passes(of):,} passes)"
        sheet.button(label, "circuit_order", ORDER.set, "on", primary=True)
    else:
        st.session_state[SLIDER] = size
        st.slider(
            "How many heads?",
            min_value=0,
            max_value=of,
            step=1,
            key=SLIDER,
            on_change=lambda: keep(st.session_state[SLIDER]),
            help="The strongest heads are those that are left when, round by round, what matters least goes.",
        )
        if KEEP.value is not None or CIRCUIT.value is not None:
            sheet.button(
                "The fewest that are enough", "circuit_fewest", keep, None, type="tertiary"
            )
with found_there:
    if order is not None and something_to_keep:
        st.markdown(largest_step(order))
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


# ---- a search ----

st.subheader("Can a search do with fewer?", anchor=False)
with st.container(horizontal=True, vertical_alignment="center", gap="small"):
    for way, label in SEARCHES.items():
        told = (
            "A greedy search: each step tries every head and picks the one that leaves the prediction "
            "closest to the whole model's. It runs the model about half the number of heads squared times."
        )
        on: Any = {"icon": "search", "help": told, "disabled": SEARCH.value in (way, "both")}
        sheet.button(label, f"circuit_{way}", also_search, way, **on)
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

# ---- who is in, and what each brings ----

sheet.end_unless_near("golf")
st.subheader("What does each head contribute to this circuit?", anchor=False)
with st.container(horizontal=True, vertical_alignment="center", gap="small"):
    for key, label, some in (("all", "All heads", everyone), ("none", "No head", ())):
        sheet.button(label, f"circuit_{key}", take, some, type="tertiary")
brought: Both[NDArray[np.float64]] | None = None  # what each head brings to this circuit
if sheet.is_wanted(SHEET, lm, tokens, of):
    change, _ = known("brings", numbers.each_brings, heads, stop=lambda: SHEET.set("off"))
    brought = Both(change)
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
    waits: Any = {"says": says, "key": key, "stop": stop, "measure": measure}
    old = sheet.worked(scene.other, numbers.brings, ids, *asked, **waits)
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
fig = figures.share_grid(
    cells.now, columns, None, "it contributes", scene.mode, unchanged=cells.was, inside=heads
)
heads_kept = f"{size} of {words.counted(of, 'head')}"
alt = f"The circuit of {axis}: {heads_kept}; each of the others outputs {explained.gives}"
scene.chart(fig, key="circuit_sheet", alt=alt, on_cell=lambda *place: take({*heads} ^ {place}))


# ---- faithful and complete ----

st.subheader("Is the circuit faithful and complete?", anchor=False)
worth = None
sets, everything = numbers.subsets(heads)
if not is_model:  # of which both are 0
    ask = "circuit_score_ask"
    stopped = "circuit_score_stopped"
    is_late = st.session_state.get(stopped) == heads or sheet.is_asked_for(
        lm, tokens, 2 * len(sets)
    )
    label = f"Compute faithfulness and completeness ({2 * len(sets)} passes)"
    if not is_late or st.toggle(label, key=ask):
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
over prompts of the same forms with three other names, position by position. Here there is one text, and a mean
is the same at every position. A head of the circuit is kept at every position; the paper keeps each at its role's
position alone, which is a smaller circuit (a switch below does so over many texts with two names). The limit of a
tenth is our choice. **Minimality**, the paper's third criterion, is that each head matters: see the colours of the
map above.
""")
# ---- the link that holds the circuit and its score ----

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
written: dict[str, Any] = {CIRCUIT.name: numbers.written(heads) or NOBODY, KEEP.name: None}
if strongest is not None:  # their number says it
    written = {CIRCUIT.name: None, KEEP.name: size}
link = {
    **written,
    bench.MEASURE.name: measure,
    bench.BASELINE.name: explained.null,
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
staying = ["the embeddings", f"the {scene.norm}s"]
if any(name.endswith("bias") and ".att." in name for name, _ in lm.model.named_parameters()):
    staying.append("the attention biases")
st.caption(
    f"{words.capital(words.listed(staying))} always stay. The feed-forward layers "
    f"stay, too, unless you switch them off: then each outputs {explained.gives}."
)

# ---- the roles that the field knows ----

story.draw(scene, explained.null, explained.kind)
sheet.example_row("A copied passage", "A name comes back", "A quotation closes")

# ---- many texts ----


kept_on: dict[str, Any] = {"heads": heads, "feed_forwards": forwards}
if explained.against is None:
    asked_here: Any = explained.token
else:
    asked_here = (explained.token, explained.against)


def on_this_text() -> pd.DataFrame:
    """The same of the text above."""
    return sheet.worked(
        scene.run,
        circuit_texts.circuit_on,
        scene.run.ids,
        asked_here,
        position=scene.position,
        says="{} of {} passes".format,
        baseline=others,
        **kept_on,
    )


many.section(
    scene,
    explained,
    circuit_texts.circuit_on,
    {**kept_on, "baseline": explained.null},
    ["logit", "lost"],
    ("logit", 1),
    on_this_text,
    list(circuit_texts.KEPT_AT_ROLES),
    ("the logit difference with {}", "logits"),
    len(circuit_texts.KEPT),
    more=lambda means: at_roles.shares_over(means, heads),
    first=circuit_texts.KEPT.index(circuit_texts.CIRCUIT),
    ahead=at_roles.ahead(heads) if heads else None,
)

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


def in_order(order: numbers.Ranking) -> pd.DataFrame:
    """A row a number of heads: which one comes last, what it moves alone, and F of them all."""
    table = pd.DataFrame(order.heads, columns=["block", "head"])
    table.insert(0, "heads kept", range(1, of + 1))
    alone = [float(order.effects[place]) for place in order.heads]
    return table.assign(**{"switching it off alone takes away": alone, "F": order.values[1:]})


def both_orders(now: numbers.Ranking, before: numbers.Ranking | None) -> Both[pd.DataFrame]:
    """The same of the changed and of the unchanged model, each in its own order."""
    was = None
    if before is not None:
        was = in_order(before)
    return Both(in_order(now), was)


caption = (
    "What each head contributes: F with it and F without it; the other heads of the circuit stay."
)
with sheet.details():
    if order is not None:
        text = f"The strongest heads first; with none of them, F is {number(empty)}."
        if order_before is not None:
            text += f" The unchanged model has its own order, and {number(order_before.values[0])}."
        in_orders = partial(both_orders, order, order_before)
        sheet.numbers_of("circuit-order", in_orders, text, "the order of the heads")
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
        "attention",
    ]
    sheet.code_of(scene, sources, numbers.brings, *asked, measure=measure)
    sheet.code_of(
        scene,
        [numbers.ranked],
        numbers.ranking,
        pair,
        others,
        forwards,
        scene.position,
        measure=measure,
        key="in_code_order",
        what="the order of the heads",
    )
