"""The worksheet of a calculation: every matrix with the sentence of every number."""

from collections.abc import Callable, Sequence

import torch

from gptviz.lessons.attention import Attention
from gptviz.ui.components.worksheet import Cell, Line, Sheet, Sign, Source
from gptviz.ui.views.attention_by_hand import words
from gptviz.ui.views.attention_by_hand.cells import given, numbers, reach, signed
from gptviz.ui.views.attention_by_hand.changes import Given

ROOM = 4  # words, for scores and scaled scores side by side

MATRICES = {
    "q": ("W_query", "query", "query"),
    "k": ("W_key", "key", "key"),
    "v": ("W_value", "value", "value"),
}


def lines(start: Given, found: Sequence[Attention], way: str, steps: Sequence[str], step: str) -> list[Line]:
    """The whole calculation; what comes after `step` of these `steps` keeps its place and stays empty."""

    def later(name: str) -> bool:
        return steps.index(name) > steps.index(step)

    if way == "simple":
        return [_simple(start, found[0], later)]
    if way == "heads":
        top: list[Sheet | Sign] = [_vectors(start), *_matrices(start, 0), *_matrices(start, 1)]
        each = [_head(start, attention, way, number, later) for number, attention in enumerate(found)]
        return [
            Line(top, "The words' vectors, and three matrices a head"),
            *each,
            _beside(start, found, later),
        ]
    top = [_vectors(start), Sign("×"), *_matrices(start, 0), Sign("→", later=later("queries"))]
    top += _vectors_of_head(start, found[0], 0, later("queries"))
    return [Line(top), Line(_pairs(start, found[0], way, 0, later))]


def _simple(start: Given, found: Attention, later: Callable[[str], bool]) -> Line:
    return Line(
        [
            _vectors(start),
            Sign("→", "dot products", later("scores")),
            _scores(start, found, 0, ("x", "x"), later("scores")),
            Sign("→", "softmax", later("weights")),
            _weights(start, found, 0, later("weights")),
            Sign("→", "× vectors", later("context")),
            _context(start, found, 0, "x", later("context")),
        ]
    )


def _head(start: Given, found: Attention, way: str, number: int, later: Callable[[str], bool]) -> Line:
    vectors = _vectors_of_head(start, found, number, later("queries"))
    return Line([*vectors, *_pairs(start, found, way, number, later)], f"Head {number}")


def _pairs(
    start: Given, found: Attention, way: str, number: int, later: Callable[[str], bool]
) -> list[Sheet | Sign]:
    """From the scores to the context. Where there is no room, scaled scores take the scores' place."""
    root, narrow = f"÷ √{found.queries.shape[1]}", way == "heads" or len(start.words) > ROOM
    made: list[Sheet | Sign] = []
    if not narrow or later("scaled"):
        made.append(_scores(start, found, number, (f"q{number}", f"k{number}"), later("scores")))
    if not narrow:
        made.append(Sign("→", root, later("scaled")))
    if not narrow or not later("scaled"):
        made.append(_scaled(start, found, number, later("scaled")))
    return [
        *made,
        Sign("→", "" if way == "heads" else "softmax", later("weights")),
        _weights(start, found, number, later("weights")),
        Sign("→", "" if way == "heads" else "× values", later("context")),
        _context(start, found, number, f"v{number}", later("context")),
    ]


# ---- one sheet each ----


def _vectors(start: Given) -> Sheet:
    cells = [
        [given(words.given_number(word, j, value), value, reach(start.x)) for j, value in enumerate(row)]
        for word, row in zip(start.words, start.x.tolist(), strict=True)
    ]
    columns = numbers(start.x.shape[1])
    return Sheet(
        "x", "vectors", "given: one a word", start.words, columns, cells, "signed", edit=True, words=True
    )


def _matrices(start: Given, head: int) -> list[Sheet]:
    found = []
    of = f", head {head}" if len(start.heads) > 1 else ""
    for letter, (name, color, _) in MATRICES.items():
        matrix = start.matrices[f"{letter}{head}"]
        cells = [
            [
                given(words.given_weight(name, i, j, value), value, reach(matrix), words.four)
                for j, value in enumerate(row)
            ]
            for i, row in enumerate(matrix.tolist())
        ]
        found.append(
            Sheet(
                f"{letter}{head}",
                name,
                f"{matrix.shape[0]} × {matrix.shape[1]}{of}",
                numbers(matrix.shape[0]),
                numbers(matrix.shape[1]),
                cells,
                "signed",
                color,
                edit=True,
                tokens=False,
            )
        )
    return found


def _vectors_of_head(start: Given, found: Attention, head: int, later: bool) -> list[Sheet]:
    made, before = [], "vectors " if len(start.heads) == 1 else ""
    plural = {"q": ("queries", found.queries), "k": ("keys", found.keys), "v": ("values", found.values)}
    for letter, (title, values) in plural.items():
        kind, color = MATRICES[letter][1:]
        matrix = start.matrices[f"{letter}{head}"].T.tolist()
        cells = [
            [
                signed(words.made(kind, word, j, x, matrix[j], value), value, reach(values))
                for j, value in enumerate(row)
            ]
            for word, x, row in zip(start.words, start.x.tolist(), values.tolist(), strict=True)
        ]
        sources = (Source("x", "row", "row"), Source(f"{letter}{head}", "column", "column"))
        made.append(
            Sheet(
                f"made_{letter}{head}",
                title,
                f"{before}× {MATRICES[letter][0]}",
                start.words,
                numbers(values.shape[1]),
                cells,
                "signed",
                color,
                sources,
                later=later,
            )
        )
    return made


def _scores(start: Given, found: Attention, head: int, of: tuple[str, str], later: bool) -> Sheet:
    queries, keys = found.queries.tolist(), found.keys.tolist()

    def value(i: int, j: int) -> float:
        return found.scores[i, j].item()

    cells = [
        [
            signed(
                words.score(query, key, queries[i], keys[j], value(i, j)), value(i, j), reach(found.scores)
            )
            for j, key in enumerate(start.words)
        ]
        for i, query in enumerate(start.words)
    ]
    row, column = (name if name == "x" else f"made_{name}" for name in of)
    note = "vector · vector" if of == ("x", "x") else "query · key"
    sources = (Source(row, "row", "row"), Source(column, "row", "column"))
    return Sheet(
        f"scores{head}", "scores", note, start.words, start.words, cells, "signed", "", sources, later=later
    )


def _scaled(start: Given, found: Attention, head: int, later: bool) -> Sheet:
    size = found.queries.shape[1]

    def cell(i: int, j: int) -> Cell:
        query, key, value = start.words[i], start.words[j], found.scaled[i, j].item()
        if found.masked[i, j] == -torch.inf:
            return Cell(None, None, words.masked(query, key))
        says = words.scaled(query, key, found.scores[i, j].item(), found.divisor, size, value)
        return signed(says, value, reach(found.scaled))

    hidden = ", masked" if bool((found.masked == -torch.inf).any()) else ""
    sources = (Source(f"made_q{head}", "row", "row"), Source(f"made_k{head}", "row", "column"))
    return Sheet(
        f"scaled{head}",
        "scaled scores",
        f"query · key ÷ √{size}{hidden}",
        start.words,
        start.words,
        _square(start, cell),
        "signed",
        "",
        sources,
        later=later,
    )


def _weights(start: Given, found: Attention, head: int, later: bool) -> Sheet:
    def cell(i: int, j: int) -> Cell:
        query, key = start.words[i], start.words[j]
        if found.masked[i, j] == -torch.inf:
            return Cell(None, None, words.masked(query, key))
        value = found.weights[i, j].item()
        return Cell(words.four(value), value, words.weight(query, key, found.scaled[i, j].item(), value))

    before = f"scaled{head}" if start.heads else f"scores{head}"
    return Sheet(
        f"weights{head}",
        "weights",
        "softmax: a row sums to 1",
        start.words,
        start.words,
        _square(start, cell),
        "attention",
        "output",
        (Source(before, "row", "row"),),
        later=later,
    )


def _context(start: Given, found: Attention, head: int, of: str, later: bool) -> Sheet:
    weights, values = found.weights.tolist(), found.values.T.tolist()
    seen = [
        [j for j in range(len(start.words)) if found.masked[i, j] > -torch.inf] for i in range(len(weights))
    ]

    def cell(i: int, j: int) -> Cell:
        value = found.context[i, j].item()
        left, right = [weights[i][k] for k in seen[i]], [values[j][k] for k in seen[i]]
        return signed(words.context(start.words[i], j, left, right, value), value, reach(found.context))

    size = found.context.shape[1]
    cells = [[cell(i, j) for j in range(size)] for i in range(len(start.words))]
    values_of = "x" if of == "x" else f"made_{of}"
    sources = (Source(f"weights{head}", "row", "row"), Source(values_of, "column", "column"))
    note = f"weights × {'vectors' if of == 'x' else 'values'}"
    return Sheet(
        f"context{head}",
        "context",
        note,
        start.words,
        numbers(size),
        cells,
        "signed",
        "output",
        sources,
        later=later,
    )


def _beside(start: Given, found: Sequence[Attention], later: Callable[[str], bool]) -> Line:
    both = torch.cat([one.context for one in found], dim=1)  # H of (T, d) -> (T, H d)
    size = found[0].context.shape[1]
    cells = [
        [signed(words.beside(word, j, j // size, value), value, reach(both)) for j, value in enumerate(row)]
        for word, row in zip(start.words, both.tolist(), strict=True)
    ]
    sheet = Sheet(
        "both",
        "context",
        "head 0, then head 1",
        start.words,
        numbers(both.shape[1]),
        cells,
        "signed",
        "output",
        later=later("context"),
    )
    return Line([sheet], "Side by side")


def _square(start: Given, cell: Callable[[int, int], Cell]) -> list[list[Cell]]:
    each = range(len(start.words))
    return [[cell(i, j) for j in each] for i in each]
