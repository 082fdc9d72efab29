"""Attention on vectors small enough for pencil and paper: see every number, and change the given ones."""

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
import streamlit as st
import torch

from gptviz.lessons import attention as lesson, sentences
from gptviz.model import MultiHeadAttention
from gptviz.ui import sheet, tables, words
from gptviz.ui.components.worksheet import worksheet
from gptviz.ui.parts.attention_by_hand import combined, dropout, given, sheets, why_root
from gptviz.ui.shell import params

# ---- what can be chosen ----

WAYS = {
    "simple": "without weights",
    "weights": "query, key, value",
    "causal": "causal mask",
    "dropout": "dropout",
    "heads": "two heads",
    "combined": "with out_proj",
    "root": "why √d",
}
STEPS = {
    "vectors": "vectors",
    "queries": "queries, keys, values",
    "scores": "scores",
    "scaled": "scaled",
    "weights": "weights",
    "context": "context",
}
EXAMPLES = dict(zip(("hello", "journey"), sentences.SENTENCES.values(), strict=True))
TEXTS = dict(zip(EXAMPLES, sentences.SENTENCES, strict=True))
MATRICES = {
    "linear-789": ("nn.Linear, seed 789", lambda heads: sentences.linear_weights(789, heads)),
    "linear-123": ("nn.Linear, seed 123", lambda heads: sentences.linear_weights(123, heads)),
    "rand-123": ("torch.rand, seed 123", lambda heads: sentences.rand_weights(123, heads)),
}
FIRST = {"weights": "linear-789", "causal": "linear-123", "heads": "linear-123"}
# what the seeds' texts print for the word that they work out, where nothing is changed
PRINTED = {
    ("hello", "simple", None): (0.3992, 0.3858, 0.8610),
    ("journey", "simple", None): (0.4419, 0.6515, 0.5683),
    ("journey", "weights", "rand-123"): (0.3061, 0.8210),
    ("journey", "weights", "linear-789"): (-0.0748, 0.0703),
    ("journey", "causal", "linear-123"): (-0.5874, 0.0058),
    ("journey", "heads", "linear-123"): (-0.5874, 0.0058, 0.5891, 0.3257),
}

WAY = sheet.Param("hand_way", str, "simple", sheet.if_there)
EXAMPLE = sheet.Param("hand", str, "hello", sheet.if_there)
DRAWN: sheet.Param[str | None] = sheet.Param("hand_weights", str, None, sheet.if_there)
STEP = sheet.Param("hand_step", str, "context", sheet.if_there)
QUERY: sheet.Param[int | None] = sheet.Param("hand_query", int, None, sheet.if_there)
CHANGED = sheet.Param("hand_changed", str, "")
AVERAGED = sheet.Param("hand_averages", str, "words", sheet.if_there)
PARAMS = (WAY, EXAMPLE, DRAWN, STEP, QUERY, CHANGED, AVERAGED, *dropout.PARAMS, *why_root.PARAMS)

_REFUSED = "by_hand_said"  # why the last text could not be a number, until something else is typed


def steps_of(way: str) -> list[str]:
    """The steps that there are: without weights nothing is made of the vectors, and nothing scaled."""
    return [step for step in STEPS if way != "simple" or step not in ("queries", "scaled")]


def start_of(way: str) -> given.Given:
    """The words, vectors and matrices to start from, with the visitor's changes."""
    source = DRAWN.value or FIRST.get(way)
    heads: tuple[lesson.HeadWeights, ...] = ()
    if way != "simple" and source is not None:
        count = 2 if way == "heads" else 1
        heads = MATRICES[source][1](count)
    return given.apply(given.read(CHANGED.value), EXAMPLES[EXAMPLE.value], heads)


# ---- callbacks ----


def change(to: given.Changes) -> None:
    """All that is changed, from now on."""
    CHANGED.set(given.written(to))
    st.session_state.pop(_REFUSED, None)


def type_number(matrix: str, row: int, column: int, text: str) -> None:
    """A cell was typed anew."""
    there = start_of(WAY.value).matrices
    place = f"{matrix}{row}{column}"
    if not given.is_there(there, place):
        return  # of a drawing before this one
    value = given.number(text)
    if value is not None:
        change(given.read(CHANGED.value) | {place: value})
        return
    typed = "Nothing was typed, which is"
    if text.strip():
        typed = f"{words.as_code(text.strip())} is"
    most = f"{given.LARGEST:g}"
    kept = sheets.short(there[matrix][row][column])
    st.session_state[_REFUSED] = (
        f"{typed} no number between −{most} and {most}; the cell keeps {kept}."
    )


def type_word(row: int, text: str) -> None:
    """A word was typed anew."""
    change(given.read(CHANGED.value) | {f"t{row}": given.word(text)})


def set_count(count: int) -> None:
    """So many words; what was changed of those that go is forgotten."""
    count = min(max(1, count), given.MOST_WORDS)
    kept = {
        p: v for p, v in given.read(CHANGED.value).items() if p[0] not in "xt" or int(p[1]) < count
    }
    change(kept | {"n": count})


def start_again() -> None:
    """Back to the example as it is; also where another one is chosen."""
    change({})
    QUERY.set(None)


def keep_vectors() -> None:
    """Other matrices were chosen: what was typed into the old ones goes, the vectors stay."""
    change({p: v for p, v in given.read(CHANGED.value).items() if p[0] not in "qkv"})


def step_by(by: int) -> None:
    """To another step."""
    steps = steps_of(WAY.value)
    STEP.set(steps[min(max(steps.index(STEP.value) + by, 0), len(steps) - 1)])


# ---- what is said ----


def mixed(way: str, start: given.Given, found: Sequence[lesson.Attention], query: int) -> str:
    """A word's weights and context in a sentence, and the context that the book prints, if it does.

    `found` are the heads; `query` is the word's place.
    """
    first_head = found[0]
    name = words.as_code(start.words[query])
    kind = "vector" if way == "simple" else "value"
    context = sheets.vector(first_head.context[query].tolist())
    seen = [j for j in range(len(start.words)) if first_head.masked[query, j] > -torch.inf]
    if len(seen) == 1:
        only = "no word comes before it"
        if len(start.words) == 1:
            only = "there is no other word"
        text = (
            f"{name} can only look at itself: {only}. Its context is its own {kind}, **{context}**."
        )
    else:
        shares = [
            f"{sheets.four(first_head.weights[query, j].item())} of {words.as_code(start.words[j])}"
            for j in seen
        ]
        mixes = f"The new vector of {name}, its *context*, is a mix of all words that it can see."
        takes = "It takes"
        if way == "heads":
            takes = "In head 0 it takes"
        text = f"{mixes} {takes} {words.listed(shares)}. Mixed like that, their {kind}s give **{context}**."
    if way == "simple":
        drawn = None
    else:
        drawn = DRAWN.value or FIRST[way]
    printed = PRINTED.get((EXAMPLE.value, way, drawn))
    if printed is None or CHANGED.value or query != EXAMPLES[EXAMPLE.value].query:
        return text
    ours = sheets.vector(torch.cat([each.context[query] for each in found]).tolist())
    if sheets.vector(printed) == ours:
        return f"{text} The book prints the same for {name}: {ours}."
    theirs = sheets.vector(printed)
    return f"{text} (HackTricks, the source of this example, rounds earlier and prints {theirs}.)"


def how_to_read(way: str, start: given.Given) -> str:
    """One thing to look for in each way."""
    count = len(start.words)
    ways = {
        "simple": "A score is a dot product: it is large if two long vectors point the same way. Softmax turns "
        "each row of scores into shares that sum to 1. The context mixes the vectors in these shares. Nothing "
        "here is learned yet.",
        "weights": "Three matrices, which training can set, give every word a query, a key and a value. A "
        "score is now query · key, so the score from `a` to `b` need not be that from `b` to `a`. It is divided "
        "by √2, because a query has 2 numbers.",
        "causal": "A word may look at itself and back. Scores of later words are set to −∞ before the softmax: "
        "e^−∞ = 0, and each row still sums to 1. A transformer with this mask is a decoder; an encoder has "
        "none. In cross-attention the keys and values come from another text.",
        "heads": "Two heads read the same vectors, each with its own matrices. Their contexts are put side by "
        "side; a GPT then mixes them by one more matrix, `out_proj`: the next step. Each head compares every "
        f"word with every word: {count} × {count} = {count**2} scores. Double the words, and there are four "
        "times as many scores.",
    }
    return f"Read each row from left to right, from a word's vector to its context. {ways[way]}"


def worked_out(start: given.Given, found: lesson.Attention, query: int) -> str:
    """One query's way to its context: score, scaled, e^, weight, weight × value, a line per key; as HTML."""
    row = lesson.worked_row(found, query)
    divided = found.divisor != 1
    queries = found.queries[query].tolist()
    base = torch.tensor(row.softmax.largest, dtype=torch.float64).exp()  # `exp` is without it

    def power(value: torch.Tensor | float) -> str:
        full = float(value * base)
        if full < 1e6:
            return sheets.four(full)
        return f"{full:.3g}"

    lines = []
    for j, label in enumerate(start.words):
        products = sheets.sum_of_products(queries, found.keys[j].tolist(), row.scores[j].item())
        scaled = [sheets.four(row.scaled[j].item())] * divided
        shares = ["masked: 0", "masked", ""]
        if j in row.seen:
            at = row.seen.index(j)
            weight = sheets.four(row.softmax.weights[at].item())
            parts = sheets.vector(row.parts[at].tolist())
            part = f"{weight} × {sheets.vector(found.values[j].tolist())} = {parts}"
            shares = [power(row.softmax.exp[at]), weight, part]
        lines.append(tables.Row([tables.Cell(label, "word"), products, *scaled, *shares]))
    total = [power(row.softmax.total), "1", sheets.vector(row.context.tolist())]
    lines.append(tables.Row(["sum", *[""] * (1 + divided), *total], "chosen"))
    if divided:
        ways = ("scaled", "value")
    else:
        ways = ("score", "vector")
    head = ["key", "#score = query · key", *["#÷ √d"] * divided, f"#e^{ways[0]}", "#weight"]
    head.append(f"#weight × {ways[1]}")
    return tables.table("worked row", head, lines)


# ---- the page ----


frame = sheet.start_page("Attention by hand", choices=PARAMS, reads_text=False, of_model=False)
way = WAY.choose("Attention", WAYS)  # outside of the fragment: each way is a page of its own


@st.fragment
def by_pencil() -> None:
    """Draw one of the four ways on few vectors. A change of a number runs only this."""
    st.html(tables.STYLE)
    DRAWN.within(list(MATRICES))
    steps = steps_of(way)
    if STEP.value not in steps:
        STEP.set(None)
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key="by_hand_steps"
    ):
        EXAMPLE.choose("Words", TEXTS, on_change=start_again, label_visibility="collapsed")
        if way != "simple":
            named = {name: label for name, (label, _) in MATRICES.items()}
            shown = {"width": 240, "label_visibility": "collapsed", "on_change": keep_vectors}
            DRAWN.choose(
                "Matrices", named, st.selectbox, index=None, placeholder=named[FIRST[way]], **shown
            )
        at = steps.index(STEP.value)
        sheet.button("‹", "step_back", step_by, -1, disabled=at == 0, help="The step before")
        sheet.button(
            "›", "step_on", step_by, 1, disabled=at == len(steps) - 1, help="The next step"
        )
        STEP.choose("Up to", {step: STEPS[step] for step in steps}, label_visibility="collapsed")
    params.store(PARAMS)
    start = start_of(way)
    causal = way in ("causal", "heads")
    found = lesson.by_hand(start.x, start.heads, causal).heads
    count = len(start.words)
    if QUERY.value is None:
        picked = EXAMPLES[EXAMPLE.value].query
    else:
        picked = QUERY.value
    query = min(picked, count - 1)

    following = STEPS[steps[min(at + 1, len(steps) - 1)]]
    said = f"You see the steps up to **{STEPS[STEP.value]}**. Press › for the next: {following}."
    if STEP.value == "context":  # nothing is given away before its step
        said = mixed(way, start, found, query)
    words.prose(said, "query", "key", "value")
    if _REFUSED in st.session_state:
        st.warning(st.session_state[_REFUSED])
    worksheet(
        "by_hand",
        sheets.lines(start, found, way, steps, STEP.value),
        query,
        "Point at a number to see how it is made. Click one with a dotted line to edit it, or a word to follow it.",
        on_number=type_number,
        on_word=type_word,
        on_row=QUERY.set,
        saved=frame.saved(
            "attention_by_hand", f"Attention by hand: {WAYS[way]}", EXAMPLE.value, way
        ),
    )
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key="by_hand_count"
    ):
        sheet.button(
            "Add a word", "word_more", set_count, count + 1, disabled=count >= given.MOST_WORDS
        )
        sheet.button("Remove a word", "word_less", set_count, count - 1, disabled=count <= 1)
        back: Any = {"type": "tertiary", "help": "Undo all your edits."}
        sheet.button(
            "Reset",
            "by_hand_back",
            start_again,
            icon="undo",
            disabled=not CHANGED.value,
            **back,
        )
    terms = ("dot product", "softmax", "query", "key", "value", "causal mask", "head")
    words.prose(how_to_read(way, start), *terms, "encoder", "decoder", "cross-attention")

    st.markdown(f"#### {words.as_code(start.words[query])}, step by step")
    for head, one in enumerate(found):
        if len(found) > 1:
            st.markdown(f"**Head {head}**")
        st.html(worked_out(start, one, query))
    if way == "simple":
        softmax()
        trick(start)

    caption = "A masked key has a score, but no weight."
    with sheet.details():
        sheet.numbers_of(
            "by_hand_pairs", lambda: pairs(start, found), caption, "pairs", missing="masked"
        )
        caption = "Each word's vector, what each head makes of it, and its context."
        sheet.numbers_of("by_hand_vectors", lambda: vectors(start, found), caption, "vectors")
        sources: list[Callable[..., Any]] = [MultiHeadAttention.forward, lesson.self_attention]
        if way == "simple":
            averages = [
                lesson.averages_by_loop,
                lesson.averages_by_matrix,
                lesson.averages_by_softmax,
            ]
            sources = [MultiHeadAttention.forward, lesson.simple_attention, *averages]
        sheet.code_of(frame, sources, lesson.by_hand, start.x, start.heads, causal)


def softmax() -> None:
    """The slides' softmax, with what they print."""
    scores = torch.tensor(lesson.SLIDE_SCORES, dtype=torch.float64)
    exponentials = scores.exp().tolist()
    weights = scores.softmax(dim=0).tolist()
    st.markdown("#### Softmax in two steps")
    left, right = st.columns([5, 6], gap="medium")
    powers = words.unlike_printed(lesson.SLIDE_EXPONENTIALS, exponentials)
    others = words.unlike_printed(lesson.SLIDE_WEIGHTS, weights)
    with left:
        said = (
            "First take e to the power of each score: now all are positive. Then divide each by "
            "their sum. The scores are from Fijalkow's slides *Transformers from scratch*, which "
            "print these weights"
        )
        if others:
            said += f" but for {', '.join(others)}."
        else:
            said += "."
        words.prose(said, "softmax")
        if powers:
            st.markdown(f"Rounding: the slides print e^score as {', '.join(powers)}.")
    with right:
        columns = zip(lesson.SLIDE_SCORES, exponentials, weights, strict=True)
        rows = [tables.Row([*map(sheets.four, values)]) for values in columns]
        rows.append(tables.Row(["sum", sheets.four(sum(exponentials)), "1"], "chosen"))
        st.html(tables.table("softmax", ["#score", "#e^score", "#÷ the sum: weight"], rows))


def trick(start: given.Given) -> None:
    """The averaging trick, three programs side by side."""
    st.markdown("#### The trick behind it: averages")
    words.prose(
        "The simplest way to mix words: each takes the **average** of itself and all words before "
        "it. A loop, a matrix, and a softmax over zeros and −∞ all give the same. Replace the zeros "
        "by query · key, and you have attention.",
        "softmax",
    )
    of = AVERAGED.choose(
        "Average", {"words": "the vectors above", "notebook": "8 × 2 numbers of *Let's build GPT*"}
    )
    x = torch.tensor(start.x if of == "words" else lesson.NOTEBOOK, dtype=torch.float64)
    averages = lesson.averages_by_loop(x)
    if of == "notebook":
        printed = (value for row in lesson.NOTEBOOK_AVERAGES for value in row)
        others = words.unlike_printed(printed, averages.flatten().tolist())
        st.markdown(f"The notebook prints the same, up to rounding: {', '.join(others)}.")
    ways = lesson.averages_by_matrix, lesson.averages_by_softmax
    apart = max(float((other(x).context - averages).abs().max()) for other in ways)
    if apart == 0:
        by = "not at all"
    else:
        by = f"by at most {apart:.1e}"
    worksheet(
        "averages",
        sheets.averages(start.words if of == "words" else [str(t) for t in range(len(x))], x),
        None,
        f"The three results differ {by}.",
        saved=frame.saved("averages", "Three programs for the averages of what came before"),
    )


def pairs(start: given.Given, found: Sequence[lesson.Attention]) -> pd.DataFrame:
    """A row per head, query and key."""
    tables = []
    for head, one in enumerate(found):
        where = pd.MultiIndex.from_product(
            [[head], start.words, start.words], names=["head", "query", "key"]
        )
        seen = one.weights.where(one.masked > -torch.inf, torch.nan)
        parts = {"score": one.scores, "scaled": one.scaled, "weight": seen}
        tables.append(
            pd.DataFrame({name: part.flatten().numpy() for name, part in parts.items()}, where)
        )
    return pd.concat(tables).reset_index()


def vectors(start: given.Given, found: Sequence[lesson.Attention]) -> pd.DataFrame:
    """A row per word: its vector, each head's query, key and value, and its context."""
    columns: dict[str, Sequence[Any]] = {"word": start.words}
    columns |= {f"x{j}": [row[j] for row in start.x] for j in range(len(start.x[0]))}
    for head, one in enumerate(found):
        if start.heads:
            parts = {"q": one.queries, "k": one.keys, "v": one.values}
        else:
            parts = {}
        for name, values in (parts | {"context": one.context}).items():
            columns |= {
                f"{name}{j} head {head}": values[:, j].tolist() for j in range(values.shape[1])
            }
    return pd.DataFrame(columns)


if way == "root":
    why_root.draw(frame)
elif way == "dropout":
    dropout.draw(frame)
elif way == "combined":
    combined.draw(frame)
else:
    by_pencil()
