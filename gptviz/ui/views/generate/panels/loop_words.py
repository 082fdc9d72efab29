"""The sentences of the panel about loops and dull text: numbers in, Markdown out. Tokens count from 1."""

from collections.abc import Sequence

from gptviz.digits import fixed, weight
from gptviz.ui.words import as_code


def loops(shares: tuple[float, float], counts: tuple[int, int], n: int, temperature: float, seed: int) -> str:
    """How much of either text repeats, the greedy one first: shares from 0 to 1, of so many tokens."""
    (greedy, drawn), (of_greedy, of_drawn) = shares, counts
    other = "" if of_drawn == of_greedy else f" of {of_drawn}"
    return (
        f"Of {of_greedy} token{'s' * (of_greedy != 1)} written at temperature 0, {_percent(greedy)} end a "
        f"piece of {n} that stood in the text before;{other} at temperature {temperature:g} (seed {seed}) "
        f"{_percent(drawn)} do."
    )


def loops_unchanged(shares: tuple[float, float]) -> str:
    """The same shares of what the model without its changes writes."""
    greedy, drawn = shares
    return f"**Unchanged**, the model writes other texts: {_percent(greedy)} and {_percent(drawn)} do."


def goes_round(start: int, period: int, piece: str) -> str:
    """`start` is the first token of the text that is a copy, counted from 1 among those written."""
    tokens = "the same token" if period == 1 else f"the same {period} tokens"
    return f"From token {start} on the greedy text goes round and round, {tokens} again: {as_code(piece)}."


NO_LOOP = "The greedy text does not end in a loop, as far as it was written."


def induction(block: int, head: int, share: float, heads: int, round: bool) -> str:
    """The head that looks most at what followed, and how many such heads there are; `round`: it is a loop."""
    others = "" if heads < 2 else f" ({heads} heads of this model do so clearly)"
    does = (
        f"Block {block}, head {head} is an induction head: at a token that stood there before, it gives "
        f"{weight(share)} of its attention, on average, to what followed then{others}."
    )
    if round:
        return f"**Who makes it go round?** {does} That is how what was said once comes to be said again."
    return (
        f"**Who looks at what was said?** {does} Where a text goes round, it goes round by such heads; this "
        "one does not, or not yet."
    )


def no_induction(block: int, head: int, share: float) -> str:
    return (
        f"No head of this model looks clearly at what followed last time; most does block {block}, head "
        f"{head}: {weight(share)} of its attention, on average."
    )


def induction_unchanged(block: int, head: int, share: float) -> str:
    """In the model without its changes the head that looks most at what followed, on the same text."""
    return f"**Unchanged**, block {block}, head {head} looks there most on the same text: {weight(share)}."


def muted(
    heads: Sequence[tuple[int, int]],
    before: float,
    after: float,
    tokens: str,
    others: tuple[float, int] | None,
    unchanged: float | None,
) -> str:
    """What the tokens' mean probability becomes without these heads: a real pass.

    `others`: the mean over so many sets of as many other heads; `unchanged`: in the model without its
    changes, with all heads.
    """
    names = ", ".join(f"{block}.{head}" for block, head in heads)
    one = len(heads) == 1
    said = (
        f"**Tried out:** with {'head' if one else 'the heads'} {names} (block.head) giving nothing, {tokens} "
        f"have a probability of {fixed(after, 2)} on average, instead of {fixed(before, 2)}."
    )
    if others is not None:
        mean, sets = others
        said += (
            f" Without {'another head' if one else f'{len(heads)} other heads'}, drawn at random, it is "
            f"{fixed(mean, 2)} (the mean of {sets} such tries)."
        )
    if unchanged is not None:
        said += f" The **unchanged** model gives them {fixed(unchanged, 2)}."
    return said


def window(context: int) -> str:
    return f"The heads were asked about the last {context:,} tokens: more the model cannot read at once."


WHOLE_TEXT = (
    "A change here depends on the whole text, so a head looked a little different at each step: the heads "
    "were asked in one pass over the text as it stands in the end."
)

REPEATS = "Marked: tokens that end a piece that stood in the text, or in the prompt, before."
LOOPS_TABLE = "A row a written token: whether it ends a piece that stood there before, and the share so far."
NOTHING_REPEATS = "No token stood in the text before: there is nothing that followed it."


def ask_write(tokens: int, texts: int) -> str:
    times = {2: "twice", 4: "four times"}[texts]
    return f"Write them: {times} {tokens} tokens, which takes a while"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
