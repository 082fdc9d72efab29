"""The LayerNorm page's two tables: the stages of one norm, and the arithmetic of one dimension."""

from gptviz.analysis.norms import Steps, arithmetic, stage_table
from gptviz.digits import significant
from gptviz.ui.tables import Row, number, table


def stages(steps: Steps) -> str:
    """Mean, variance, smallest and largest value of each stage, as HTML."""
    found = stage_table(steps)
    columns = list(found.columns[1:])
    rows = [
        Row([row["stage"], *(number(_written(row[column])) for column in columns)])
        for row in found.to_dict("records")
    ]
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
