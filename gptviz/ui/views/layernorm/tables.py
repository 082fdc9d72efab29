"""The LayerNorm page's two tables: the stages of one norm, and the arithmetic of one dimension."""

from gptviz.analysis.norms import Steps, arithmetic, stage_table
from gptviz.digits import significant
from gptviz.figures.ghosts import UNCHANGED
from gptviz.ui.tables import Row, number, table


def stages(steps: Steps, unchanged: Steps | None = None) -> str:
    """Mean, variance, smallest and largest value of each stage, as HTML; below each the unchanged model's."""
    found, old = stage_table(steps), None if unchanged is None else stage_table(unchanged)
    columns = list(found.columns[1:])
    rows = []
    for place, row in enumerate(found.to_dict("records")):
        rows.append(Row([row["stage"], *(number(_written(row[column])) for column in columns)]))
        if old is not None:
            cells = [number(_written(value)) for value in old.loc[place, columns]]
            rows.append(Row([f"{row['stage']}, {UNCHANGED}", *cells]))
    return table("stages", ["stage", *(f"#{column}" for column in columns)], rows)


def worked_out(steps: Steps, dimension: int) -> str:
    """LayerNorm of one dimension, line by line, as HTML."""
    rows = [
        Row([line.name, line.formula, line.numbers, number(_written(line.value))])
        for line in arithmetic(steps, dimension)
    ]
    return table("step by step", ["step", "formula", "with these numbers", "#gives"], rows)


def _written(value: float) -> str:
    """With four digits; what is left of rounding is 0."""
    return "0" if abs(value) < 1e-12 else significant(float(value), 4)
