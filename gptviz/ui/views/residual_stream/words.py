"""The Residual stream page's sentences, with the numbers of the prompt in them."""

import math
from collections.abc import Sequence

from gptviz.analysis.stream import Block
from gptviz.digits import fixed, significant
from gptviz.ui.words import as_code

PARTS = ("attention", "feed-forward")

# by what a write does to the stream: `gptviz.analysis.stream.does`
MEANS = {
    "adds": "it points the way the stream does and makes it longer",
    "turns, adds": "some of it points the way the stream does, most of it is new",
    "turns": "it stands at about right angles to the stream: nearly all of it is new",
    "turns, erases": "some of it points against the stream and takes that much back, most of it is new",
    "erases": "it points against the stream and takes away what is there",
}

LOOK_FOR = (
    "Read it from left to right. Grey is how large the stream is before a write, the bar beside it how "
    "large the write is. The cosine below says what the write does: 1 is more of the same, 0 something new, "
    "−1 takes back what is there. A click on a bar chooses its block."
)

MAPS = (
    "A row is a write, the embedding on top; a column is a token. The colours are logarithmic; on the right "
    "paper is a write as large as the stream that it joins. A click chooses token and block."
)


def what_to_see(label: str, first: float, last: float, largest: int, write: float, stream: float) -> str:
    """Above the ladder: from the first size to the last, and the largest write, the `largest`-th."""
    return (
        f"{as_code(label)} enters block 0 as a row of size {significant(first)} and leaves the last block "
        f"with size **{significant(last)}**. On the way every block adds two rows to the residual stream, "
        "one of attention and one of the feed-forward. The largest write is "
        f"{_part(largest)}'s of block {largest // 2}: size {significant(write)}, {_times(write, stream)}."
    )


def write(part: str, stream: float, size: float, cosine: float, does: str, turn: float, after: float) -> str:
    """What one write of the chosen block does."""
    if size == 0:
        return f"Its {part} writes nothing."
    if stream == 0:
        return f"Its {part} writes a row of size {significant(size)} to a stream of zeros."
    return (
        f"Its {part} writes a row of size {significant(size)} to one of {significant(stream)} (cosine "
        f"{fixed(cosine, 2)}): {MEANS[does]}. It turns the stream by {fixed(turn, 0)}°, to size "
        f"{significant(after)}."
    )


def shortcuts(block: int, label: str) -> str:
    return (
        "`shortcut = x` puts the stream aside, `x = x + shortcut` adds it back: so attention and "
        "feed-forward need not carry along what is known, they only write what they change. The lines of "
        f"block {block}, with the sizes that `x` and `shortcut` have for {as_code(label)} after each:"
    )


def identity(block: int, found: Block, size: int, everywhere: float, dtype: str) -> str:
    """Below the additions; `everywhere` is the largest difference of all blocks, dimensions and tokens."""
    return (
        f"The four dimensions of {size} that block {block} changes most"
        if size > 4
        else f"The dimensions of block {block}"
    ) + (
        f". The largest difference between sum and stream: {_difference(found.difference)} for this token in "
        f"this block, {_difference(everywhere)} over all blocks, tokens and dimensions of the text, "
        f"which is what rounding to {dtype} leaves."
    )


def edited(block: int, found: Block, everywhere: float) -> str:
    """The same for a run whose numbers were changed on the way: there the sum need not hold."""
    return (
        f"The largest difference between sum and stream: {_difference(found.difference)} for this token in "
        f"block {block}, {_difference(everywhere)} over the whole text: a change put something else into "
        "the stream itself."
    )


def without(block: int, last: int, found: Block) -> str:
    """What would go on if the block had no shortcuts, from this pass's own numbers."""
    (alone, whole, cosine), (alone2, whole2, cosine2) = found.without
    reader = "the final LayerNorm" if block == last else f"block {block + 1}"
    return (
        f"Without the first shortcut `norm2` of block {block} would be given attention's row alone: size "
        f"{significant(alone)} where it now reads {significant(whole)}, cosine {fixed(cosine, 2)} with it. "
        f"Without the second, {reader} would be given the feed-forward's row alone: size "
        f"{significant(alone2)} where it now reads {significant(whole2)}, cosine {fixed(cosine2, 2)}. What "
        f"the stream brought into block {block} makes up **{_percent(found.share)}** of the stream behind "
        "it, measured along that stream; without shortcuts it would go on only in what the two parts made "
        "of it."
    )


NOT_ANOTHER_MODEL = (
    "These are the numbers of this pass, taken apart. A model that had no shortcuts would compute others "
    "from block 0 on."
)


def shares(embedding: float, largest: str, share: float, rest: float | None = None) -> str:
    """Above the bars of what each write gave of the end; `rest` is what a change of the stream put there."""
    text = (
        "The stream at the end is a sum: the embedding and every write. Measured along its own direction, "
        f"the embedding gave {_percent(embedding)} of it and {largest} {_percent(share)}; "
    )
    if rest is None:
        return text + "all bars together are 100 %, and one below 0 points against the end."
    return text + (
        f"the bars together are {_percent(1 - rest)}, and one below 0 points against the end. The rest, "
        f"{_percent(rest)}, is what a change put into the stream in place of what was written."
    )


# ---- unchanged and changed ----

CHANGES = (
    "A row is a write, the embedding on top; a column is a token. On the left, how far the stream has moved: "
    "the length of the difference to the unchanged one, as a share of that; paper is where nothing has. On "
    "the right, how many times as large each write has become. A click chooses token and block."
)


def step(name: str) -> str:
    """ "block 4 · attention" in a sentence."""
    if name == "embedding":
        return "the embedding"
    block, part = name.split(" · ")
    return f"the {part} of {block}"


def stream_of(label: str) -> str:
    return f"the residual stream of {as_code(label)}"


def writes_of(block: int, label: str) -> str:
    return f"what block {block} writes to {as_code(label)}"


def what_changed(label: str, first: str, before: float, after: float, distance: float, angle: float) -> str:
    """What changes in the model did to a token's stream.

    `first` is the step from which it is another; then its size at the end, unchanged and changed, and how far
    the two ends are apart: in terms of the unchanged one's size, and in degrees.
    """
    return (
        f"**What was changed is seen from {first} on.** Unchanged, {as_code(label)} leaves the last block "
        f"with size {significant(before)}; changed, with size {significant(after)}, at an angle of "
        f"**{fixed(angle, 0)}°** to that: the two are {_percent(distance)} of the unchanged size apart."
    )


def unchanged_writes(sizes: Sequence[float], cosines: Sequence[float]) -> str:
    """A block's two writes in the unchanged model."""
    first, second = (
        f"{significant(size)} (cosine {fixed(cosine, 2)})"
        for size, cosine in zip(sizes, cosines, strict=True)
    )
    return f"Unchanged, the two rows have sizes {first} and {second}."


def ladder_alt(label: str, position: int, writes: int) -> str:
    return (
        f"The residual stream of {label} (position {position}) and the {writes} rows that are written to it"
    )


TABLE = (
    "A row a write: the size of the stream that it joins, its own, their ratio and cosine, how much of it "
    "points along the stream, by how many degrees it turns it, the size after, and its share of the stream "
    "at the end. It adds (erases) from a cosine of 0.71 (−0.71) on, and turns up to 0.1."
)

ALL = "A row a write and token: the numbers of the two maps."


def _part(write: int) -> str:
    return ("attention", "the feed-forward")[write % 2]


def _times(write: float, stream: float) -> str:
    if stream == 0:
        return "to a stream of zeros"
    ratio = write / stream
    if ratio >= 0.995:
        return f"{significant(ratio, 3 if ratio < 100 else 2)} times the stream that it joins"
    return f"{_percent(ratio)} of the stream that it joins"


def _percent(share: float) -> str:
    return f"{significant(100 * share, 2)} %" if math.isfinite(share) else "all"


def _difference(value: float) -> str:
    return "0" if value == 0 else significant(value, 2)
