"""The Attention by hand page's tables: one row worked out, and what In numbers holds."""

from collections.abc import Sequence

import pandas as pd
import torch

from gptviz.lessons.attention import SLIDE_SCORES, Attention, WorkedRow
from gptviz.ui.tables import Cell, Row, number, table
from gptviz.ui.views.attention_by_hand import words
from gptviz.ui.views.attention_by_hand.changes import Given


def worked_out(row: WorkedRow, labels: Sequence[str], found: Attention) -> str:
    """One query's way to its context: score, scaled, e^, weight, weight × value, a line a key; as HTML."""
    query, keys, divided = found.queries[row.query].tolist(), found.keys.tolist(), found.divisor != 1
    base = torch.tensor(row.softmax.largest, dtype=torch.float64).exp()  # `exp` is without it
    lines = []
    for j, label in enumerate(labels):
        cells = [Cell(label, "word"), number(words.sum_of_products(query, keys[j], row.scores[j].item()))]
        cells += [number(words.four(row.scaled[j].item()))] if divided else []
        if j in row.seen:
            at = row.seen.index(j)
            weight, parts = words.four(row.softmax.weights[at].item()), words.vector(row.parts[at].tolist())
            part = f"{weight} × {words.vector(found.values[j].tolist())} = {parts}"
            cells += [number(_power((row.softmax.exp[at] * base).item())), number(weight), number(part)]
        else:
            cells += [number("masked: 0"), number("masked"), Cell("")]
        lines.append(Row(cells))
    total = number(_power((row.softmax.total * base).item()))
    context = number(words.vector(row.context.tolist()))
    lines.append(Row(["sum", *[""] * (1 + divided), total, number("1"), context], "chosen"))
    power, value = ("#e^scaled", "#weight × value") if divided else ("#e^score", "#weight × vector")
    head = ["key", "#score = query · key", *(["#÷ √d"] if divided else []), power, "#weight", value]
    return table("worked row", head, lines)


def slide_exponentials() -> tuple[list[float], list[float]]:
    """e^score of the slides' scores, and their softmax."""
    scores = torch.tensor(SLIDE_SCORES, dtype=torch.float64)
    return scores.exp().tolist(), scores.softmax(dim=0).tolist()


def softmax_table() -> str:
    """The slides' softmax, its two steps; as HTML."""
    exponentials, weights = slide_exponentials()
    rows = [
        Row([number(words.four(score)), number(words.four(exp)), number(words.four(weight))])
        for score, exp, weight in zip(SLIDE_SCORES, exponentials, weights, strict=True)
    ]
    total = Row([Cell("sum"), number(words.four(sum(exponentials))), number("1")], "chosen")
    return table("softmax", ["#score", "#e^score", "#÷ the sum: weight"], [*rows, total])


def _power(value: float) -> str:
    return words.four(value) if value < 1e6 else f"{value:.3g}"


def pairs(start: Given, found: Sequence[Attention]) -> pd.DataFrame:
    """A row a head, query and key; what is masked has no weight."""
    rows = [
        {
            "head": head,
            "query": query,
            "key": key,
            "score": one.scores[i, j].item(),
            "scaled": one.scaled[i, j].item(),
            "weight": one.weights[i, j].item() if one.masked[i, j] > -torch.inf else None,
        }
        for head, one in enumerate(found)
        for i, query in enumerate(start.words)
        for j, key in enumerate(start.words)
    ]
    return pd.DataFrame(rows).astype({"weight": float})


def vectors(start: Given, found: Sequence[Attention]) -> pd.DataFrame:
    """A row a word: its vector, each head's query, key and value, and its context."""
    columns: dict[str, list[float] | list[str]] = {"word": list(start.words)}
    columns |= {f"x{j}": start.x[:, j].tolist() for j in range(start.x.shape[1])}
    for head, one in enumerate(found):
        parts = {"q": one.queries, "k": one.keys, "v": one.values} if start.heads else {}
        for name, values in (parts | {"context": one.context}).items():
            columns |= {f"{name}{j} head {head}": values[:, j].tolist() for j in range(values.shape[1])}
    return pd.DataFrame(columns)
