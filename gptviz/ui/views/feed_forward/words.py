"""The Feed-forward page's sentences, with the numbers of the prompt in them."""

from gptviz.digits import percent, significant
from gptviz.ui.words import as_code


def what_to_see(
    block: int, label: str, units: int, fired: int, half: int, size: float, replaced: bool = False
) -> str:
    """Above the dots: how many units fire, and how few write most.

    `size` is that of what comes out, which a change may have `replaced`.
    """
    text = (
        f"In block {block} the feed-forward turns {as_code(label)} into {units:,} numbers, one a unit. "
        f"**{fired:,} of them fire{'s' if fired == 1 else ''}** ({percent(fired / units)}), with numbers "
        "above 0, which GELU lets through; of the others it leaves little. "
    )
    if half == 0:
        return text + "None of them writes anything."
    make = "1 unit makes" if half == 1 else f"{half:,} units make"
    text += f"{make} up half of all that is written, size by size. "
    if replaced:
        return (
            text + f"A change replaces what they write together: a row of size {significant(size)} comes out."
        )
    return text + f"All together write a row of size {significant(size)}."


def relu(tanh: bool, quiet: int, left: float, size: float) -> str:
    """Below the dots: GELU against ReLU, and what the units below 0 still write."""
    which = "the book's GELU, GPT-2's with a tanh in it" if tanh else "the exact GELU"
    text = f"The line is {which}; the dashed one is ReLU, which makes 0 of all that is below 0. "
    if quiet == 0:
        return text + "Here no unit is below 0."
    who, them, write = (
        ("the one unit that does", "it", "it writes")
        if quiet == 1
        else (f"the {quiet:,} units that do", "them", "they write")
    )
    return text + (
        f"ReLU would silence {who} not fire. GELU leaves {them} a little, and what {write} with it is a row "
        f"of size {significant(left)}, where the feed-forward writes {significant(size)}. A dot's area is "
        "what its unit writes; a click chooses the unit."
    )


def largest(count: int) -> str:
    """Above the table of the units that write most."""
    return (
        "How active a unit is does not say how much it writes: that is its activation times the size of its "
        f"column in the second matrix. The {count} that write most, with the tokens that they raise and "
        "lower most directly."
    )


READING = (
    "Raised and lowered is a token's logit minus the mean over the vocabulary: the direct effect, with the "
    "final LayerNorm's divisor held as it is. What later blocks make of a write is not in it."
)
CUT = (
    "A change puts other numbers into the stream: where that is behind this block, what the units write does "
    "not reach the output head."
)


def unit(number: int, label: str, before: float, after: float, column: float, share: float) -> str:
    """What the chosen unit does for the selected token."""
    fires = "it fires" if before > 0 else "it does not fire"
    return (
        f"For {as_code(label)} unit {number} is {significant(before)} before GELU, so {fires}, and "
        f"**{significant(after)}** after. It writes that many times its column, which has size "
        f"{significant(column)}: a row of size {significant(abs(after) * column)}. Of what the feed-forward "
        f"writes, measured along it, that is {percent(share)}."
    )


def column(number: int, label: str, divisor: float) -> str:
    """Above the tokens that a unit's column raises and lowers."""
    return (
        f"Whatever the text, unit {number} writes along one and the same column. Each 1 of its activation at "
        f"{as_code(label)} adds this to the logits of these tokens, minus the mean over the vocabulary. It "
        f"is the direct effect, with the final LayerNorm's divisor held as it is ({significant(divisor, 4)}):"
    )


def over_text(number: int, fired: int, tokens: int, label: str, position: int, value: float) -> str:
    """Above the bars of one unit over the text."""
    counted = "the one token" if tokens == 1 == fired else f"{fired:,} of {tokens:,} tokens"
    return (
        f"In this text unit {number} fires at {counted}. It is largest at {as_code(label)} "
        f"(position {position}): {significant(value)}."
    )


SAMPLE_HELP = (
    "The beginnings of five books that the bundled model was never trained on, 13 kB. The model reads them "
    "in windows of 256 tokens; switch off to stop."
)


def progress(read: int, windows: int) -> str:
    return f"window {read} of {windows}"


def sample(number: int, fired: int, read: int, tokens: int, books: int) -> str:
    """Above what excites the unit in the sample: `read` of its `tokens` were looked at."""
    counted = f"{read:,} tokens" if read == tokens else f"{read:,} of {tokens:,} tokens"
    return (
        f"In the sample ({counted} of {books} books, without each window's first) unit {number} fires at "
        f"{percent(fired / read if read else 0)} of the tokens. What excites it most in each window, the "
        "largest first:"
    )


def no_sample(name: str) -> str:
    return f"{name} cannot read the sample: there are characters in it that it has no tokens for."


def expansion(size: int, units: int, least: float, ghosts: bool = False) -> str:
    """`least`: the lowest number after GELU; `ghosts`: below some strips stand the unchanged model's."""
    framed = " Below a strip, in a dashed frame, is the unchanged model's." if ghosts else ""
    return (
        f"The first matrix makes {units:,} numbers of {size:,}, the second {size:,} of {units:,} again. What "
        f"GELU does to the units stands between: after it nothing is below {significant(least, 2)}. The "
        f"chosen unit is framed.{framed}"
    )


def adds_up(difference: float, dtype: str, replaced: bool) -> str:
    """What the sum of all writes lacks to what comes out, which a change may have `replaced`."""
    gap = "0" if difference == 0 else significant(difference, 2)
    why = "a change put something else there" if replaced else f"that is what rounding to {dtype} leaves"
    return (
        "All units' activations times their columns, and the bias, add up to what the feed-forward writes: "
        f"the largest difference of any number is {gap}; {why}."
    )


# ---- unchanged and changed ----


def made_of(block: int, label: str) -> str:
    """What the page shows, in a sentence about a change that is not seen in it."""
    return f"what the feed-forward of block {block} makes of {as_code(label)}"


def what_changed(
    label: str, fired: tuple[int, int], size: tuple[float, float], moved: int, units: int
) -> str:
    """What changes in the model did to a block's feed-forward at a token; the pairs are unchanged, changed.

    `moved` of the `units` fire in one of the two runs only.
    """
    text = (
        f"**Unchanged,** {fired[0]:,} of them fire for {as_code(label)} and write a row of size "
        f"{significant(size[0])}; **changed,** {fired[1]:,} do, and what comes out has size "
        f"{significant(size[1])}. "
    )
    if moved == 0:
        return text + "No unit fires in only one of the two."
    return text + f"{moved:,} of the {units:,} fire in only one of the two."


def unchanged_unit(before: float, after: float) -> str:
    return f"Unchanged, it is {significant(before)} before GELU and {significant(after)} after."


def left_out(count: int) -> str:
    """Of changes that are about a place of the prompt, where the sample is read."""
    what = "One change is" if count == 1 else f"{count} changes are"
    return f"{what} about a place of your text, and not made where the sample is read."


def dots_alt(block: int, label: str, units: int) -> str:
    return f"GELU with the {units} units of block {block} at {label}"


TABLE = (
    "A row a unit, the one that writes most first: its number before and after GELU, whether it fires, the "
    "size of its column and of what it writes, and its share of what the feed-forward writes, measured along "
    "that; with the bias's the shares add up to 1."
)
