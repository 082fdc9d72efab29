"""The Logit lens page's sentences: numbers in, Markdown out. Tokens come as the screen shows them."""

from collections.abc import Sequence

from gptviz.digits import fixed, percent, significant
from gptviz.figures.lens import Bar
from gptviz.ui.words import as_code


def place(row_name: str) -> str:
    """ "block 3 · attention" as it stands in a sentence: "block 3's attention"."""
    block, _, part = row_name.partition(" · ")
    return f"{block}'s {part}" if part else f"the {block}"


def sentence(
    token: str,
    position: int,
    final: str,
    probability: float,
    rows: Sequence[str],
    settled: int,
    before: tuple[str, float] | None,
    changed: bool = False,
) -> str:
    """Above the grid: what the model says in the end, and from which depth on it would say so.

    `before` is what the row just above says instead, with its probability; None where there is no such row.
    """
    model = "**changed** model" if changed else "model"
    start = (
        f"After {as_code(token)} (position {position}) the {model} says {as_code(final)} "
        f"({percent(probability)}). "
    )
    if before is None:
        return f"{start}Stopped at any depth, from {place(rows[0])} on, it would say so, too."
    other, p = before
    earlier = f"stopped after {place(rows[settled - 1])} it would have said {as_code(other)} ({percent(p)})."
    if settled == len(rows) - 1:
        return f"{start}That is decided by the very last step: {earlier}"
    return f"{start}It would say so from {place(rows[settled])} on: {earlier}"


def unchanged(final: str, probability: float, rows: Sequence[str], settled: int) -> str:
    """The same of the unchanged model, behind the sentence about the changed one."""
    where = f"from {place(rows[settled])} on" if settled else "at every depth"
    return f"**Unchanged**, it says {as_code(final)} ({percent(probability)}), {where}."


def unchanged_answer(
    row_name: str, final: str, here: tuple[float, float], end: tuple[float, float], last: bool
) -> str:
    """Under a cell's sentence: the final answer's probability, unchanged and changed, here and in the end."""
    text = f"{as_code(final)} has {percent(end[1])} in the end, unchanged {percent(end[0])}"
    if last:
        return f"{text}. Outlines are the unchanged model."
    return (
        f"{text}; after {place(row_name)} {percent(here[1])}, unchanged {percent(here[0])}. Outlines are "
        "the unchanged model."
    )


MOVED = (
    " A dashed frame marks a cell where the unchanged model has another token on top: point at it to read "
    "which. In rows before the change there are none."
)

LOOK_FOR = (
    "**What to look for.** A column is a token, a row a depth: the residual stream as it is there, put "
    "through the final LayerNorm, worked out anew for this depth, and through the output head. The cell "
    "shows the token that comes out on top; point at it for the first ten. Follow a column down and see the "
    "answer take shape. The last row is no reading: it is the model's own output. "
)

NOT = (
    "**What it is not.** The model never reads itself like this. Its final norm and head were trained for "
    "the last depth alone, so an odd token in an early row may say more about this way of reading than about "
    "what the model is at, and what stands in no row may still be on its way."
)


def look_for(itself: int, columns: int, tied: bool) -> str:
    """Below the grid; in `itself` of its `columns` the first row gives back the token that was read."""
    if not itself:
        return LOOK_FOR + NOT
    text = f" In {itself} of {columns} columns the first row gives back the very token that was read"
    return LOOK_FOR + NOT + text + (": the output head is the token embedding." if tied else ".")


def pieces(cells: int, of: int, example: str | None) -> str:
    """Behind what is below the grid, where the token on top of some cells is a piece of a character."""
    if example is None:
        return ""
    return (
        f" In {cells:,} of {of:,} cells the token on top is a **piece of a character**, such as "
        f"{as_code(example)}: one or more of the bytes that write it. A character that is not in the "
        "vocabulary is put together from such tokens."
    )


def limit(rows: int, tokens: int, read: int, vocabulary: int) -> str:
    """Where only some columns are read unasked."""
    return (
        f"{read:,} of {tokens:,} columns are read, those around the selected token: each of the {rows} rows "
        f"of a column takes {vocabulary:,} logits. The others are grey; selecting a token reads those around "
        "it."
    )


def progress(done: int, total: int) -> str:
    return f"Reading the columns: part {done} of {total}"


def cell(row_name: str, token: str, position: int, last: bool) -> str:
    """The heading above the two distributions."""
    if last:
        return f"The model's own output after {as_code(token)} (position {position})"
    return f"After {place(row_name)} beside the end, for {as_code(token)} (position {position})"


def distribution(
    row_name: str, bars: Sequence[Bar], entropy: float, kl: float, final_entropy: float, last: bool
) -> str:
    """What the two distributions have to do with each other."""
    if last:
        return (
            f"In the last row the lens and the model are the same. Its entropy is {_bits(entropy)}. Click "
            "a cell of another row to set that one beside it."
        )
    first = min(bars, key=lambda bar: bar.here_rank)
    end = min(bars, key=lambda bar: bar.final_rank)
    if first.id == end.id:
        text = (
            f"Stopped after {place(row_name)} the model would say {as_code(first.shown)}, as in the end, "
            f"with {percent(first.here)} instead of {percent(first.final)}. "
        )
    else:
        text = (
            f"Stopped after {place(row_name)} the model would say {as_code(first.shown)} "
            f"({percent(first.here)}; in the end rank {first.final_rank:,}). Its final answer "
            f"{as_code(end.shown)} stands at rank {end.here_rank:,} there, with {percent(end.here)}. "
        )
    return text + (
        f"The entropy is {_bits(entropy)} here and {_bits(final_entropy)} in the end; the distance to the "
        f"end (KL divergence) is {_bits(kl)}."
    )


def followed(
    shown: str, peak_row: str, peak: float, end: float, best_rank: int, rank: int, default: bool
) -> str:
    """Under the curves, of a token that peaks in the middle; `default`: nobody has pinned any."""
    text = (
        f"{as_code(shown)} peaks and loses: {percent(peak)} after {place(peak_row)} (rank {best_rank:,}), "
        f"{percent(end)} in the end (rank {rank:,})."
    )
    return text + (" " + LEADERS if default else "")


LEADERS = "As long as none is chosen, the curves are those of tokens that some depth has on top."

ROWS = (
    "The selected token's column: what stands on top at each depth, how unsure the reading is, and how far "
    "from the end, in bits (KL divergence of the final distribution from the row's)."
)
CURVES = "The followed tokens at each depth: their probability, and their rank in the whole vocabulary."
CELL = "The ten first of the selected row and of the last, in both."
GRID = "Every cell that has been read. kl_bits: distance to the end; it is 0 in the last row."


def _bits(bits: float) -> str:
    return f"{fixed(bits, 2)} bits" if bits >= 0.005 or bits == 0 else f"{significant(bits, 2)} bits"
