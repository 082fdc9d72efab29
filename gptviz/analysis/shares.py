"""What is drawn and said of `attribution`'s table: the largest shares, sums by block, a grid of all heads."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

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
    return [label_of(*row) for row in _rows(table)]


def _rows(table: pd.DataFrame) -> list[tuple[str, Any, Any]]:
    """(part, block, head) of every row."""
    return list(zip(*(table[name].tolist() for name in ("part", "block", "head")), strict=True))


def waterfall(table: pd.DataFrame, count: int = 12) -> pd.DataFrame:
    """The `count` largest shares, what raises most first and what lowers most last, then all others as one.

    Columns: label, block and head (<NA> where there is none), parts (how many the row stands for),
    contribution, start and end: each row starts where the one before it ended, and the last one ends at
    the sum of the whole table.
    """
    values = table["contribution"].to_numpy(float)
    largest = np.argsort(-np.abs(values), kind="stable")
    shown = largest[:count][np.argsort(-values[largest[:count]], kind="stable")]
    rest = largest[count:]
    names, blocks, heads = labels(table), table["block"].tolist(), table["head"].tolist()
    rows = [(names[i], blocks[i], heads[i], 1, values[i]) for i in shown]
    if len(rest):
        name = f"{len(rest)} other parts" if len(rest) > 1 else names[rest[0]]
        rows.append((name, pd.NA, pd.NA, len(rest), values[rest].sum()))
    label, block, head, parts, contribution = zip(*rows, strict=True)
    end = np.cumsum(contribution)
    return pd.DataFrame(
        {
            "label": label,
            "block": pd.array(block, dtype="Int64"),
            "head": pd.array(head, dtype="Int64"),
            "parts": parts,
            "contribution": contribution,
            "start": end - np.array(contribution),
            "end": end,
        }
    )


def beside(steps: pd.DataFrame, unchanged: pd.DataFrame) -> Floats:
    """The unchanged model's shares of the rows of a changed run's `waterfall`, (n,).

    `unchanged` is its whole table; the last row's, of several parts, is what all rows before it leave.
    """
    values = dict(zip(labels(unchanged), unchanged["contribution"].tolist(), strict=True))
    found = np.array([values.get(label, 0.0) for label in steps["label"]])
    if steps["parts"].iloc[-1] > 1:
        found[-1] = sum(values.values()) - found[:-1].sum()
    return found


def grid(
    table: pd.DataFrame, n_layers: int, n_heads: int, others: Sequence[str] = (BIAS, FEED_FORWARD)
) -> tuple[Floats, list[str]]:
    """The parts of the blocks, (L, C), and what the columns are: the heads, and what there is of `others`."""
    rows = list(zip(_rows(table), table["contribution"].tolist(), strict=True))
    there = {part for (part, _, _), _ in rows}
    columns = [
        *((("head", head)) for head in range(n_heads)),
        *((part, pd.NA) for part in others if part in there),
    ]
    place = {part if part != "head" else (part, head): i for i, (part, head) in enumerate(columns)}
    values = np.zeros((n_layers, len(columns)))
    for (part, block, head), contribution in rows:
        column = place.get((part, head) if part == "head" else part)
        if column is not None:
            values[block, column] = contribution
    return values, [part if part != "head" else f"head {head}" for part, head in columns]


def groups(table: pd.DataFrame) -> list[Group]:
    """Sums over the heads of a block, and every other part alone; the largest first, whatever its sign."""
    found: list[Group] = []
    of_heads: dict[int, list[float]] = {}
    for (part, block, _), contribution in zip(_rows(table), table["contribution"].tolist(), strict=True):
        if part == "head":
            of_heads.setdefault(block, []).append(contribution)
        elif pd.isna(block):
            found.append(Group(f"the {part}", None, False, contribution))
        else:
            found.append(Group(f"the {part} of block {block}", block, False, contribution))
    for block, shares in of_heads.items():
        name = "heads" if len(shares) > 1 else "head"
        found.append(Group(f"the {name} of block {block}", block, True, sum(shares)))
    return sorted(found, key=lambda group: -abs(group.contribution))


def strongest_head(table: pd.DataFrame) -> tuple[int, int]:
    """(block, head) with the largest share, whatever its sign."""
    rows = zip(_rows(table), table["contribution"].tolist(), strict=True)
    _, block, head = max((abs(share), -b, -h) for (part, b, h), share in rows if part == "head")
    return -block, -head


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
