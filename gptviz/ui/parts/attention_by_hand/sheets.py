"""The worksheets of the page: every matrix, with a sentence for every number of it."""

from collections.abc import Callable, Sequence
from typing import Literal

import torch

from gptviz.digits import fixed, significant, term
from gptviz.lessons.attention import (
    Attention,
    averages_by_loop,
    averages_by_matrix,
    averages_by_softmax,
)
from gptviz.ui.components.worksheet import Cell, Line, Sheet, Sign, Source
from gptviz.ui.parts.attention_by_hand.given import Given

ROOM = 4  # words, for scores and scaled scores side by side
ROW = {"q": ("W_query", "query"), "k": ("W_key", "key"), "v": ("W_value", "value")}
MANY = {"query": "queries", "key": "keys", "value": "values"}

Says = Callable[[int, int, float], str]


def four(value: float) -> str:
    """The four decimals that the book prints; of a large number the digits that it has."""
    value = round(value, 12)  # two ways to one number give one text, also where it lies between two
    if abs(value) < 1000:
        return fixed(value, 4)
    return significant(value, 6)


def short(value: float, digits: int = 4) -> str:
    """As many decimals as it needs, at most `digits`: 0.34, −0.2354, 2."""
    text = fixed(value, digits)
    if "." in text:
        return text.rstrip("0").rstrip(".")
    return text


def vector(values: Sequence[float]) -> str:
    """ "[0.4419, 0.6515, 0.5683]"."""
    return f"[{', '.join(map(four, values))}]"


def sum_of_products(left: Sequence[float], right: Sequence[float], total: float) -> str:
    """ "0.53 × 0.29 + 0.34 × 0.54 = 0.3373"."""
    parts = [f"{short(a)} × {term(short(b))}" for a, b in zip(left, right, strict=True)]
    return f"{' + '.join(parts)} = {four(total)}"


def sheet(
    name: str,
    title: str,
    note: str,
    rows: Sequence[str],
    columns: Sequence[str] | None,
    values: torch.Tensor,
    says: Says,
    *sources: Source,
    color: str = "",
    weights: bool = False,
    hidden: torch.Tensor | None = None,
    write: Callable[[float], str] = four,
    edit: bool = False,
    **more: bool,
) -> Sheet:
    """Make the sheet of one matrix, coloured by sign or as weights; cells `hidden` by the causal mask say so.

    `columns` None: they are numbered. `edit`: its numbers may be changed; the field has all their digits.
    """
    names = columns or [str(i) for i in range(values.shape[1])]
    reach = 4 * float(values.abs().max()) or 1.0  # pale enough for the numbers on it

    def cell(i: int, j: int, value: float) -> Cell:
        if hidden is not None and hidden[i, j]:
            return Cell(
                None,
                None,
                f"{rows[i]} cannot see {names[j]}, which comes later: the causal mask hides it.",
            )
        if weights:
            share = value
        else:
            share = value / reach + 0.5
        return Cell(write(value), share, says(i, j, value), short(value, 6) if edit else "")

    cells = [
        [cell(i, j, value) for j, value in enumerate(row)] for i, row in enumerate(values.tolist())
    ]
    scale: Literal["attention", "signed"] = "signed"
    if weights:
        scale = "attention"
    return Sheet(name, title, note, rows, names, cells, scale, color, sources, edit, **more)


def lines(
    start: Given, found: Sequence[Attention], way: str, steps: Sequence[str], step: str
) -> list[Line]:
    """The whole calculation as lines of sheets; those after `step` keep their place and stay empty."""

    def later(name: str) -> bool:
        return steps.index(name) > steps.index(step)

    if way == "simple":
        return [Line([_vectors(start), *_pairs(start, found[0], way, 0, later)])]
    if way != "heads":
        projections = _made(start, found[0], 0, later("queries"))
        arrow = Sign("→", later=later("queries"))
        first = Line([_vectors(start), Sign("×"), *_matrices(start, 0), arrow, *projections])
        return [first, Line(_pairs(start, found[0], way, 0, later))]
    # H of (T, d) -> (T, H d)
    joined_context = torch.cat([attention.context for attention in found], dim=1)
    size = found[0].context.shape[1]

    def beside(i: int, j: int, value: float) -> str:
        return f"Number {j} of {start.words[i]}'s context, side by side: head {j // size} gives {four(value)}."

    side = sheet(
        "both", "context", "head 0, then head 1", start.words, None, joined_context, beside, color="output",
        later=later("context"),
    )  # fmt: skip
    lines = [
        Line(
            [_vectors(start), *_matrices(start, 0), *_matrices(start, 1)], "Three matrices per head"
        )
    ]
    for n, attention in enumerate(found):
        parts = [
            *_made(start, attention, n, later("queries")),
            *_pairs(start, attention, way, n, later),
        ]
        lines.append(Line(parts, f"Head {n}"))
    return [*lines, Line([side], "Side by side")]


def _vectors(start: Given) -> Sheet:
    return sheet(
        "x", "vectors", "given: one per word", start.words, None, torch.tensor(start.x, dtype=torch.float64),
        lambda i, j, v: f"Number {j} of the vector of {start.words[i]}: {short(v, 6)}. Click to change it.",
        write=short, edit=True, words=True,
    )  # fmt: skip


def _matrices(start: Given, head: int) -> list[Sheet]:
    of_head = ""
    if len(start.heads) > 1:
        of_head = f", head {head}"
    sheets = []
    for (name, kind), rows in zip(ROW.values(), start.heads[head], strict=True):
        matrix = torch.tensor(rows, dtype=torch.float64)

        def says(i: int, j: int, value: float, name: str = name) -> str:
            return (
                f"{name}, row {i}, column {j}: {short(value, 6)}. So much of a vector's number {i} goes into "
                f"number {j}. Click, and type another."
            )

        sheets.append(
            sheet(
                f"{kind[0]}{head}", name, f"{matrix.shape[0]} × {matrix.shape[1]}{of_head}",
                [str(i) for i in range(len(matrix))], None, matrix, says,
                color=kind, edit=True, tokens=False,
            )
        )  # fmt: skip
    return sheets


def _made(start: Given, attention: Attention, head: int, later: bool) -> list[Sheet]:
    """Sheets of the queries, keys and values of one head."""
    prefix = ""
    if len(start.heads) == 1:
        prefix = "vectors "
    sheets = []
    for (name, kind), values in zip(
        ROW.values(), (attention.queries, attention.keys, attention.values), strict=True
    ):

        def says(i: int, j: int, value: float, kind: str = kind) -> str:
            column = [row[j] for row in start.matrices[f"{kind[0]}{head}"]]
            products = sum_of_products(start.x[i], column, value)
            return f"Number {j} of the {kind} of {start.words[i]} = {products}"

        sources = Source("x", "row", "row"), Source(f"{kind[0]}{head}", "column", "column")
        sheets.append(
            sheet(
                f"made_{kind[0]}{head}", MANY[kind], f"{prefix}× {name}", start.words, None, values, says,
                *sources, color=kind, later=later,
            )
        )  # fmt: skip
    return sheets


def _pairs(
    start: Given, attn: Attention, way: str, head: int, later: Callable[[str], bool]
) -> list[Sheet | Sign]:
    """Sheets from the scores to the context. Where space is short, scaled scores take the scores' place."""
    words = start.words
    plain = way == "simple"
    heads = way == "heads"
    if plain:
        q = "x"
        k = "x"
        v = "x"
    else:
        q, k, v = (f"made_{letter}{head}" for letter in "qkv")
    # queries and keys (T, d), values (d, T)
    queries, keys, values = (part.tolist() for part in (attn.queries, attn.keys, attn.values.T))
    hidden = attn.masked == -torch.inf
    root = f"÷ √{attn.queries.shape[1]}"
    of_pair = Source(q, "row", "row"), Source(k, "row", "column")

    def score(i: int, j: int, value: float) -> str:
        return f"{words[i]} · {words[j]} = {sum_of_products(queries[i], keys[j], value)}"

    def scaled(i: int, j: int, value: float) -> str:
        before = four(attn.scores[i, j].item())
        return f"{words[i]}, {words[j]}: {before} {root} = {before} ÷ {four(attn.divisor)} = {four(value)}"

    def weight(i: int, j: int, value: float) -> str:
        power = term(four(attn.scaled[i, j].item()))
        subject = f"{words[i]} gives {words[j]} the weight"
        return f"{subject} {four(value)}: e^{power} ÷ the sum of such powers over the row."

    def context(i: int, j: int, value: float) -> str:
        seen = [key for key in range(len(words)) if not hidden[i, key]]
        shares = [attn.weights[i, key].item() for key in seen]
        products = sum_of_products(shares, [values[j][key] for key in seen], value)
        return f"Number {j} of the context of {words[i]} = {products}"

    scores = sheet(
        f"scores{head}", "scores", "vector · vector" if plain else "query · key", words, words, attn.scores,
        score, *of_pair, later=later("scores"),
    )  # fmt: skip
    if plain:
        source = f"scores{head}"
        vectors = "vectors"
        line: list[Sheet | Sign] = [Sign("→", "dot products", later("scores")), scores]
    else:
        source = f"scaled{head}"
        vectors = "values"
        narrow = heads or len(words) > ROOM
        masked = ""
        if bool(hidden.any()):
            masked = ", masked"
        divided = sheet(
            f"scaled{head}", "scaled scores", f"query · key {root}{masked}", words, words, attn.scaled,
            scaled,
            *of_pair, hidden=hidden, later=later("scaled"),
        )  # fmt: skip
        if narrow:
            line = [scores if later("scaled") else divided]
        else:
            line = [scores, Sign("→", root, later("scaled")), divided]
    to_weights = ""  # the words below an arrow; there is no room for them beside two heads
    to_context = ""
    if not heads:
        to_weights = "softmax"
        to_context = f"× {vectors}"
    return [
        *line,
        Sign("→", to_weights, later("weights")),
        sheet(
            f"weights{head}", "weights", "softmax: a row sums to 1", words, words, attn.weights, weight,
            Source(source, "row", "row"), color="output", weights=True, hidden=hidden, later=later("weights"),
        ),
        Sign("→", to_context, later("context")),
        sheet(
            f"context{head}", "context", f"weights × {vectors}", words, None,
            attn.context, context, Source(f"weights{head}", "row", "row"), Source(v, "column", "column"),
            color="output", later=later("context"),
        ),
    ]  # fmt: skip


def averages(labels: Sequence[str], x: torch.Tensor) -> list[Line]:
    """The averaging trick on the vectors x (T, d): a loop, a matrix, softmax; a line each."""
    matrix = averages_by_matrix(x)
    softmax = averages_by_softmax(x)
    future = torch.ones(len(x), len(x)).triu(diagonal=1).bool()

    def vectors(name: str, title: str, note: str, values: torch.Tensor) -> Sheet:
        color = "output"
        if title == "vectors":
            color = ""
        return sheet(
            name, title, note, labels, None, values,
            lambda i, j, v: f"{labels[i]}, number {j}: {four(v)}", color=color,
        )  # fmt: skip

    def weights(name: str, note: str, values: torch.Tensor) -> Sheet:
        return sheet(
            name, "weights", note, labels, labels, values,
            lambda i, j, v: f"{labels[i]} takes {four(v)} of {labels[j]}.", color="output", weights=True,
            hidden=future,
        )  # fmt: skip

    def zero(i: int, j: int) -> Cell:
        if future[i, j]:
            return Cell("−∞", None, f"{labels[i]} cannot see {labels[j]}, which comes later.")
        return Cell("0", None, f"{labels[i]} scores {labels[j]} as all others: 0.")

    positions = range(len(x))
    zeros = Sheet(
        "zeros", "scores", "all the same; −∞ for what comes later", labels, labels,
        [[zero(i, j) for j in positions] for i in positions],
    )  # fmt: skip
    inputs = vectors("vectors", "vectors", "given", x)
    times_vectors = Sign("→", "× vectors")
    loop = vectors("loop", "averages", "mean of rows 0 to t", averages_by_loop(x))
    ones = weights("ones", "ones, each row ÷ its sum", matrix.weights)
    soft = weights("soft", "softmax of zeros and −∞", softmax.weights)
    by_matrix, by_softmax = (
        vectors(name, "averages", "weights × vectors", averaged.context)
        for name, averaged in (("by_matrix", matrix), ("by_softmax", softmax))
    )
    return [
        Line([inputs, Sign("→", "for t in …"), loop], "1. A loop"),
        Line([ones, times_vectors, by_matrix], "2. A matrix"),
        Line([zeros, Sign("→", "softmax"), soft, times_vectors, by_softmax], "3. Softmax"),
    ]
