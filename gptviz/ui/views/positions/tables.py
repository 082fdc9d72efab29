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
    """Tokens with their probability in the model as it is and in the changed pass, which is `named`.

    Where something is changed already, the column `unchanged` has what the model says without any of it.
    """
    columns = [name for name in ("unchanged", "own", "changed") if name in found]
    rows = [
        Row(
            [
                Cell(row["token"], "code"),
                *(number(probability_text(row[name])) for name in columns),
            ]
        )
        for row in found.to_dict("records")
    ]
    own = "as it is" if len(columns) == 2 else "changed above"
    heads = {"unchanged": "#unchanged", "own": f"#{own}", "changed": f"#{named}"}
    return table("predictions", ["token", *(heads[name] for name in columns)], rows)
