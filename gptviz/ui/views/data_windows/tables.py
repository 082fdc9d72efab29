"""The Data windows page's table of one window's examples: what may be looked at, and what comes next."""

from collections.abc import Sequence

import pandas as pd

from gptviz.digits import significant
from gptviz.figures.next_token import probability_text
from gptviz.ui.tables import Cell, Row, number, table

LONGEST = 12  # tokens of a context that are written out: its end is what matters most
SHOWN = 16  # examples


def examples_table(
    contexts: Sequence[Sequence[str]],
    targets: Sequence[str],
    losses: pd.DataFrame | None,
    unchanged: pd.DataFrame | None = None,
) -> str:
    """As HTML; `losses`, with the columns probability and nats, are None where the model cannot read these
    tokens. `unchanged` are those of the model without its changes, where it has some: they stand before an
    arrow."""
    runs = [table for table in (unchanged, losses) if table is not None]
    rows = []
    for i, (context, target) in enumerate(zip(contexts[:SHOWN], targets, strict=False)):
        seen = "… " * (len(context) > LONGEST) + " ".join(context[-LONGEST:])
        cells: list[Cell | str] = [number(str(i)), Cell(seen, "code"), Cell("→ " + target, "code")]
        if runs:
            chances = [probability_text(float(run["probability"].iloc[i])) for run in runs]
            nats = [significant(float(run["nats"].iloc[i])) for run in runs]
            cells += [number(" → ".join(chances)), number(" → ".join(nats))]
        rows.append(Row(cells))
    head = ["#example", "what the model may look at", "what comes next"]
    return table("examples", head + (["#probability", "#loss, −ln"] if runs else []), rows)
