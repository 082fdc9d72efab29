"""In which block the answer comes: the sum of all contributions, in the order of the pass."""

from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from gptviz.analysis.logit_attribution import by_depth
from gptviz.analysis.shares import spoken
from gptviz.both import Both
from gptviz.digits import fixed, significant
from gptviz.figures.theme import palette
from gptviz.ui import sheet
from gptviz.ui.shell import state
from gptviz.ui.shell.scene import Scene
from gptviz.ui.words import prose

HEIGHT = 300
NAMED = 15  # bars up to which each has its name; of more only the blocks have theirs


def draw(scene: Scene, shares: Both[pd.DataFrame], title: str) -> None:
    """Draw the section; `shares` are `attribution`'s rows, `title` says what they add up to."""
    st.subheader("In which block does the answer come?", anchor=False)
    depths = shares.map(by_depth)
    now = depths.now
    steps = now[now["block"].notna()]
    most = int(steps["own"].abs().idxmax())
    before = float(now["so_far"].iloc[most - 1])
    after = float(now["so_far"].iloc[most])
    source = spoken(now["part"][most], now["block"][most], None)
    moves = "raises"
    if after < before:
        moves = "lowers"
    prose(
        f"The largest step: {source} {moves} the sum from {significant(before, 3)} to "
        f"**{significant(after, 3)}**. In the end it is {significant(now['so_far'].iloc[-1], 3)}.",
        "block",
        "attention",
        "feed-forward",
    )
    names = [_called(part, block) for part, block in zip(now["part"], now["block"], strict=True)]
    values = depths.map(lambda table: np.array([*table["own"], table["so_far"].iloc[-1]]))
    base = np.array([0.0, *now["so_far"].iloc[:-1], 0.0])
    colors = palette(scene.mode)
    tints = [colors.positive if own >= 0 else colors.negative for own in now["own"]]
    says = depths.map(lambda table: _says(table, names))

    def open_block(place: int) -> None:
        """A click on a bar chooses its block."""
        if place < len(now) and not pd.isna(now["block"][place]):
            state.BLOCK.set(int(now["block"][place]))

    options: dict[str, Any] = {"signed": True, "says": says, "base": base, "height": HEIGHT}
    sheet.bars(
        scene,
        "why_by_block",
        values,
        _ticks(names, now),
        "sum so far",
        f"{title[0].upper()}{title[1:]}, as the blocks add to it",
        open_block,
        colors=[*tints, colors.ink],
        **options,
    )
    said = (
        "Each bar is what attention (att) or the feed-forward layer (ff) of a block adds, and begins where "
        f"the one before it ended: its end is the sum so far, with the final {scene.norm}’s divisor held as it is "
        "in the end. The logit lens reads each depth by its own."
    )
    if (now["part"] == "rest").any():
        source = "what a change put in, or rounding"
        if "final shift" in set(shares.now["part"]):
            source = f"such as the final {scene.norm}’s shift"
        said += f" The rest comes from no block, {source}."
    st.caption(said)


def _called(part: str, block: Any) -> str:
    """A bar's name: "3 att", "embedding"."""
    if pd.isna(block):
        return part
    short = "att"
    if part == "feed-forward":
        short = "ff"
    return f"{block} {short}"


def _ticks(names: list[str], table: pd.DataFrame) -> list[str]:
    """What stands below the bars: of many only each block's number, below its attention."""
    if len(names) < NAMED:
        return [*names, "sum"]
    ticks = []
    for name, part in zip(names, table["part"], strict=True):
        if part == "attention":
            ticks.append(name.removesuffix(" att"))
        else:
            ticks.append("")
    return [*ticks, "sum"]


def _says(table: pd.DataFrame, names: list[str]) -> list[str]:
    """The hovers."""
    sentences = []
    for name, own, so_far in zip(names, table["own"], table["so_far"], strict=True):
        verb = "raises"
        if own < 0:
            verb = "lowers"
        sentences.append(f"{name}: {verb} it by {significant(abs(own))}, to {fixed(so_far, 3)}")
    return [*sentences, f"sum: {fixed(table['so_far'].iloc[-1], 4)}"]
