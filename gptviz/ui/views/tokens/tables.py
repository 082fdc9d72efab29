"""The Tokens page's two small tables: spellings of a word, and the bytes of a character."""

import pandas as pd

from gptviz.analysis.tokens import Spread
from gptviz.ui.tables import Row, number, table


def spellings_table(found: pd.DataFrame) -> str:
    """`analysis.tokens.spellings` as HTML: each way of writing with its tokens and their ids."""
    rows = [
        Row(
            [
                row["written"],
                number(str(row["tokens"])),
                ", ".join(map(str, row["ids"])),
                " | ".join(row["cut"]),
            ]
        )
        for row in found.to_dict("records")
    ]
    return table("spellings", ["written", "#tokens", "ids", "cut"], rows)


def pieces_table(spread: Spread) -> str:
    """A broken character's tokens, each decoded alone, and then all of them, as HTML."""
    pairs = [(str(id), raw) for id, raw in zip(spread.ids, spread.raws, strict=True)]
    pairs.append((", ".join(map(str, spread.ids)), b"".join(spread.raws)))
    rows = [Row([ids, raw.hex(" "), raw.decode("utf-8", "replace")]) for ids, raw in pairs]
    return table("pieces of a character", ["tokens", "bytes", "decoded"], rows)
