"""Tables of a changed run that have the unchanged numbers, too."""

from collections.abc import Sequence

import pandas as pd

from gptviz.figures.ghosts import UNCHANGED

COLUMNS = f" Columns that begin with `{UNCHANGED}` are the same numbers of the model without the changes."


def caption(said: str, other: object | None) -> str:
    """What stands over such a table; `other` is the unchanged run, None where nothing is changed."""
    return said if other is None else said + COLUMNS


def both(table: pd.DataFrame, unchanged: pd.DataFrame | None, columns: Sequence[str]) -> pd.DataFrame:
    """`table` with each of these columns of `unchanged` before its own: "unchanged bits", then "bits".

    Row by row: both have the same rows in the same order, ValueError otherwise. As it is where there is no
    `unchanged` (a run without edits).
    """
    if unchanged is None:
        return table
    if len(table) != len(unchanged):
        raise ValueError(f"{len(table)} rows and {len(unchanged)} unchanged ones cannot stand side by side")
    found = table.copy()
    for column in columns:
        place = int(found.columns.get_indexer([column])[0])
        found.insert(place, f"{UNCHANGED} {column}", unchanged[column].to_numpy())
    return found
