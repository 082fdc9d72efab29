"""The Positions page's tables: the four schemes, and the prediction before and after."""

import pandas as pd

from gptviz.digits import significant
from gptviz.figures.next_token import probability_text
from gptviz.ui.tables import Cell, Row, number, table


def compared(found: pd.DataFrame) -> str:
    """`schemes.properties` as HTML."""
    rows = [
        Row([str(row[0]), *(number(significant(float(value), 3)) for value in row[1:])])
        for row in found.itertuples(index=False)
    ]
    return table("schemes", ["", *(f"#{column}" for column in found.columns[1:])], rows)


def predictions(found: pd.DataFrame, named: str) -> str:
    """Tokens with their probability in the model as it is and in the changed pass, which is `named`."""
    rows = [
        Row(
            [
                Cell(row.token, "code"),
                number(probability_text(row.own)),
                number(probability_text(row.changed)),
            ]
        )
        for row in found.itertuples()
    ]
    return table("predictions", ["token", "#as it is", f"#{named}"], rows)
