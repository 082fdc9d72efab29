"""What is drawn and said of `attribution`'s table: the largest shares, sums by block, a grid of all heads."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

Floats = NDArray[np.float64]

BIAS, FEED_FORWARD = "attention bias", "feed-forward"


@dataclass(frozen=True)
class Group:
    """Parts that belong together: the heads of a block, or one other part. `label` names it in a sentence."""

    label: str
    block: int | None
    heads: bool
    contribution: float


def label_of(part: str, block: object, head: object) -> str:
    """ "block 5 · head 3", "block 5 · feed-forward", "embedding"."""
    if pd.isna(block):
        return part
    return f"block {block} · {part if pd.isna(head) else f'head {head}'}"


def labels(table: pd.DataFrame) -> list[str]:
    """A name for every row of the table."""
    return [label_of(*row) for row in zip(table["part"], table["block"], table["head"], strict=True)]


def waterfall(table: pd.DataFrame, count: int = 12) -> pd.DataFrame:
    """The `count` largest shares, what raises most first and what lowers most last, then all others as one.

    Columns: label, block and head (<NA> where there is none), parts (how many the row stands for),
    contribution, start and end: each row starts where the one before it ended, and the last one ends at
    the sum of the whole table.
    """
    order = table["contribution"].abs().sort_values(ascending=False, kind="stable").index
    shown = table.loc[order[:count]].sort_values("contribution", ascending=False, kind="stable")
    rest = table.loc[order[count:]]
    rows = pd.DataFrame(
        {
            "label": labels(shown),
            "block": shown["block"].array,
            "head": shown["head"].array,
            "parts": 1,
            "contribution": shown["contribution"].to_numpy(),
        }
    )
    if len(rest):
        others = {
            "label": f"{len(rest)} other parts" if len(rest) > 1 else labels(rest)[0],
            "block": pd.NA,
            "head": pd.NA,
            "parts": len(rest),
            "contribution": rest["contribution"].sum(),
        }
        rows = pd.concat([rows, pd.DataFrame([others])], ignore_index=True)
    rows["end"] = rows["contribution"].cumsum()
    rows["start"] = rows["end"] - rows["contribution"]
    return rows


def grid(
    table: pd.DataFrame, n_layers: int, n_heads: int, others: Sequence[str] = (BIAS, FEED_FORWARD)
) -> tuple[Floats, list[str]]:
    """The parts of the blocks, (L, C), and what the columns are: the heads, and what there is of `others`."""
    others = [part for part in others if (table["part"] == part).any()]
    values = np.zeros((n_layers, n_heads + len(others)))
    heads = table[table["part"] == "head"]
    values[heads["block"].to_numpy(int), heads["head"].to_numpy(int)] = heads["contribution"]
    for column, part in enumerate(others, start=n_heads):
        rows = table[table["part"] == part]
        values[rows["block"].to_numpy(int), column] = rows["contribution"]
    return values, [*(f"head {head}" for head in range(n_heads)), *others]


def groups(table: pd.DataFrame) -> list[Group]:
    """Sums over the heads of a block, and every other part alone; the largest first, whatever its sign."""
    found = []
    of_heads = table[table["part"] == "head"]
    for block, heads in of_heads.groupby("block"):
        name = "heads" if len(heads) > 1 else "head"
        found.append(Group(f"the {name} of block {block}", int(block), True, heads["contribution"].sum()))
    for row in table[table["part"] != "head"].to_dict("records"):
        of = "" if pd.isna(row["block"]) else f" of block {row['block']}"
        block = None if pd.isna(row["block"]) else int(row["block"])
        found.append(Group(f"the {row['part']}{of}", block, False, float(row["contribution"])))
    return sorted(found, key=lambda group: -abs(group.contribution))


def strongest_head(table: pd.DataFrame) -> tuple[int, int]:
    """(block, head) with the largest share, whatever its sign."""
    heads = table[table["part"] == "head"]
    row = heads.loc[heads["contribution"].abs().idxmax()]
    return int(row["block"]), int(row["head"])


def direct_and_total(table: pd.DataFrame, muted: pd.DataFrame) -> pd.DataFrame:
    """Each part of `knock_out` with its direct share: kind, block, head, direct, total, label.

    `total` is what muting takes away, the reverse of `knock_out`'s effect: as much as `direct` where
    nothing else reacts. The direct share of a whole attention is that of its heads and its bias.
    """
    direct = []
    for kind, block, head in zip(muted["kind"], muted["block"], muted["head"], strict=True):
        here = table["block"] == block
        parts = ("head", BIAS) if kind == "attention" else (kind,)
        rows = here & table["part"].isin(parts)
        if not pd.isna(head):
            rows &= (table["head"] == head).fillna(False).astype(bool)
        direct.append(float(table.loc[rows, "contribution"].sum()))
    found = muted[["kind", "block", "head"]].copy()
    found["direct"], found["total"] = direct, -muted["effect"].to_numpy()
    found["label"] = [
        label_of(*row) for row in zip(found["kind"], found["block"], found["head"], strict=True)
    ]
    return found


def source_table(sources: Floats, tokens: Sequence[str], block: int) -> pd.DataFrame:
    """A block's source tokens, (H, T), as a table: position, token, a column a head, and their sum."""
    heads = {f"head {head}": row for head, row in enumerate(sources)}
    table = pd.DataFrame({"position": range(len(tokens)), "token": list(tokens), **heads})
    table[f"all of block {block}"] = sources.sum(axis=0)
    total = {"position": pd.NA, "token": "sum", **{name: table[name].sum() for name in table.columns[2:]}}
    return pd.concat([table.astype({"position": "Int64"}), pd.DataFrame([total])], ignore_index=True)
