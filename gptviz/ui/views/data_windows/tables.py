"""The Data windows page's table of one window's examples: what may be looked at, and what comes next."""

from collections.abc import Sequence

from gptviz.digits import significant
from gptviz.figures.next_token import probability_text
from gptviz.ui.tables import Cell, Row, number, table

LONGEST = 12  # tokens of a context that are written out: its end is what matters most
SHOWN = 16  # examples


def examples_table(
    contexts: Sequence[Sequence[str]],
    targets: Sequence[str],
    probabilities: Sequence[float],
    nats: Sequence[float],
) -> str:
    """As HTML; `probabilities` and `nats` are empty where the model cannot read these tokens."""
    rows = []
    for i, (context, target) in enumerate(zip(contexts[:SHOWN], targets, strict=False)):
        seen = "… " * (len(context) > LONGEST) + " ".join(context[-LONGEST:])
        cells: list[Cell | str] = [number(str(i)), Cell(seen, "code"), Cell("→ " + target, "code")]
        if probabilities:
            cells += [number(probability_text(probabilities[i])), number(significant(nats[i]))]
        rows.append(Row(cells))
    head = ["#example", "what the model may look at", "what comes next"]
    return table("examples", head + (["#probability", "#loss, −ln"] if probabilities else []), rows)
