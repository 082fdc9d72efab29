"""Every column that a wording may name: of the tables, of the numbers, and of opposites told both ways."""

from collections import Counter

from gptviz.training.world.numbers import NUMBER_TABLES, Row
from gptviz.training.world.tables import OPPOSITES, TABLES


def both_ways(rows: list[Row]) -> list[Row]:
    """The pairs, and those turned round that have one answer: "short" is the opposite of two words."""
    times = Counter(row["opposite"] for row in rows)
    turned = []
    for row in rows:
        if times[row["opposite"]] == 1:
            turned.append({"word": row["opposite"], "opposite": row["word"], "kind": row["kind"]})
    return rows + turned


def of_kind(rows: list[Row], kind: str, short: str) -> list[Row]:
    """The pairs of one part of speech, in columns of their own: `adj`, `adj_opposite`."""
    return [
        {short: row["word"], f"{short}_opposite": row["opposite"]}
        for row in rows
        if row["kind"] == kind
    ]


PAIRS = both_ways(OPPOSITES)
ALL_TABLES = (
    TABLES
    | NUMBER_TABLES
    | {
        "opposites": PAIRS,
        "adjectives": of_kind(PAIRS, "adjective", "adj"),
        "verbs": of_kind(PAIRS, "verb", "verb"),
        "adverbs": of_kind(PAIRS, "adverb", "adv"),
        "nouns": of_kind(PAIRS, "noun", "noun"),
    }
)
# a column's name -> (its table's name, that table's rows); a name stands in one table only (a test holds it)
COLUMNS = {column: (name, rows) for name, rows in ALL_TABLES.items() for column in rows[0]}
