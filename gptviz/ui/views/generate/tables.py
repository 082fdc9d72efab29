"""The tables under *In numbers*."""

import math
from collections.abc import Callable, Sequence

import pandas as pd

from gptviz.figures.draws import Draw
from gptviz.ui.views.both import both
from gptviz.ui.views.generate.written import Written


def step_table(
    written: Written,
    stretches: Sequence[tuple[float, float]],
    name: Callable[[int], str],
    unchanged: Sequence[tuple[float, int]] = (),
) -> pd.DataFrame:
    """A row a written token; `unchanged` are its probability and rank in the unchanged model."""
    rows = [
        {
            "number": number,
            "token": name(step.id),
            "id": step.id,
            "by": "you" if step.forced else "the model",
            "probability": step.probability,
            "point": math.nan if step.point is None else step.point,
            "start": start,
            "stop": stop,
            "rank": step.rank,
            "model_probability": step.model_probability,
            "ln p": math.log(step.model_probability) if step.model_probability else -math.inf,
        }
        for number, (step, (start, stop)) in enumerate(zip(written.steps, stretches, strict=True), 1)
    ]
    columns = ["number", "token", "id", "by", "probability", "point", "start", "stop", "rank"]
    table = pd.DataFrame(rows, columns=[*columns, "model_probability", "ln p"])
    before = pd.DataFrame(list(unchanged), columns=["probability", "rank"]) if unchanged else None
    return both(table, before, ["probability", "rank"])


def candidate_table(drawn: Draw) -> pd.DataFrame:
    """A row a candidate, and one for all others."""
    columns = {"rank": "rank", "id": "id", "shown": "token", "probability": "probability"}
    columns |= {"model_probability": "model_probability", "start": "start", "stop": "stop"}
    if any(row["ghost_text"] for row in drawn.rows):  # a changed model's
        columns |= {"ghost": "unchanged probability"}
    rows = [{title: row[column] for column, title in columns.items()} for row in drawn.rows]
    if drawn.rest is not None:
        rest = {"token": drawn.rest["shown"], "probability": drawn.rest["probability"]}
        rows.append(rest | {"unchanged probability": drawn.rest["ghost"]})
    return pd.DataFrame(rows, columns=list(columns.values())).astype({"rank": "Int64", "id": "Int64"})


def branch_table(
    branches: Sequence[Written],
    parents: Sequence[int | None],
    unchanged: Sequence[float | None] | None = None,
) -> pd.DataFrame:
    """A row a branch; `unchanged` is ln p of the same texts in the unchanged model."""
    table = pd.DataFrame(
        {
            "branch": range(len(branches)),
            "from": pd.Series(parents, dtype="Int64"),
            "tokens": [len(branch.steps) for branch in branches],
            "ln p": [branch.log_probability for branch in branches],
            "perplexity": [branch.perplexity for branch in branches],
        }
    )
    own = None if unchanged is None else pd.DataFrame({"ln p": unchanged}, dtype=float)
    return both(table, own, ["ln p"])
