"""The sentences of the Generate page's panels: numbers in, Markdown out. Steps are counted from 1."""

from gptviz.digits import significant, weight
from gptviz.figures.next_token import probability_text
from gptviz.ui.words import Place, as_code


def many(number: float) -> str:
    """A large number that can be compared at a glance: "1.23 million", "45.6 billion"."""
    for size, name in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if number >= size:
            return f"{significant(number / size)} {name}"
    return f"{number:,.0f}"


def size(n_bytes: float) -> str:
    """Bytes as a person says them: "75.5 MB"."""
    for unit, name in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if n_bytes >= unit:
            return f"{significant(n_bytes / unit)} {name}"
    return f"{n_bytes:,.0f} bytes"


# ---- what it looked at ----


def looked(
    step: int, written: str | None, query: Place, block: int, head: int, first: tuple[Place, float] | None,
    itself: float,
) -> str:  # fmt: skip
    """Where the head looked; `first` is the token that got most of those before, if there is one."""
    what = "the next token is" if written is None else f"{as_code(written)} was"
    said = f"**Token {step}:** {what} written out of {query}: that is where the model stood. "
    if first is None:
        return said + "Nothing stands before it, so every head could look only there: at itself, with 1."
    place, most = first
    return (
        f"{said}From there block {block}, head {head} gave {weight(most)} of its attention to {place}, most "
        f"of all tokens before, and {weight(itself)} to itself."
    )


LOOKED_AT = (
    "The stronger a token's colour, the more attention it had. What was written is not there yet: a token is "
    "written before it exists. Click a token to see below which heads looked at it, step by step."
)


def head_map(key: Place, block: int, head: int, share: float, steps: int) -> str:
    """Of all heads, the one that gave the token most in these steps."""
    over = "in this step" if steps == 1 else f"on average over {steps} steps"
    return (
        f"**Who looked at {key}?** A row a head, a column a token that was written. Block {block}, head "
        f"{head} gave it most: {weight(share)} {over}. A click on a row chooses its head."
    )


def left_out(steps: int, context: int | None) -> str:
    """`context` was full; None: a change depends on the whole text."""
    why = "a change here depends on the whole text" if context is None else None
    why = why or f"the context of {context} tokens was full"
    return (
        f"{steps} steps are not in this picture: {why}, so that each of them read a text of its own, and "
        "takes a pass of its own."
    )


def ask_passes(steps: int, n_tokens: int) -> str:
    return f"Take them in: {steps} passes of {n_tokens:,} tokens"


HEADS_TABLE = "A row a head and a step: what it gave to this token when that step was written."
ROW_TABLE = "The row of the chosen head: its attention from the last token that the model read; it sums to 1."

# ---- what the cache saves ----


def saved(step: int, tokens: int, cached: int, with_cache: float, without: float, causal: bool = True) -> str:
    """The work of one step; not `causal`: a change in the model depends on the whole text."""
    if not causal:
        return (
            f"**Token {step}** cost {many(without)} multiply-adds: all {tokens:,} tokens went through the "
            "blocks. A change here depends on the whole text, so that each new token makes every earlier one "
            "another: no key and no value can be kept, and **no cache is used**."
        )
    if cached:
        return (
            f"**Token {step}** cost {many(with_cache)} multiply-adds: one token went through the blocks, "
            f"since keys and values of the {cached:,} before it were in the cache. Without the cache all "
            f"{tokens:,} would have gone through again, for {many(without)}: "
            f"{significant(without / with_cache)} times as much."
        )
    why = (
        f"The text of {tokens:,} tokens went through the blocks: nothing of it was in the cache yet."
        if step == 1
        else f"The context is full. It slides, as the book's loop has it: all {tokens:,} tokens stand at "
        "other positions than before, no key and no value is what it was, and the cache is void."
    )
    return f"**Token {step}** cost {many(with_cache)} multiply-adds, with or without a cache. {why}"


def totals(steps: int, passed: int, anew: int, with_cache: float, without: float, loop: float) -> str:
    """Of all steps. `passed` and `anew` count the tokens that go through the blocks."""
    return (
        f"**All {steps:,} so far:** with the cache {passed:,} tokens went through the blocks, without it "
        f"{anew:,} would have: until the context is full that grows with the square of the length. In "
        f"multiply-adds: {many(with_cache)} with the cache and {many(without)} without, "
        f"{significant(without / with_cache)} times as many. The book's own loop, which also makes "
        f"the logits of all positions and uses the "
        f"last, has {many(loop)}."
    )


def totals_without(steps: int, anew: int, without: float, loop: float) -> str:
    """Of all steps, where no cache is used."""
    return (
        f"**All {steps:,} so far:** {anew:,} tokens went through the blocks, in {many(without)} "
        "multiply-adds. The book's own loop, which also makes the logits of all positions and uses the "
        f"last, has {many(loop)}."
    )


def memory(n_bytes: int, tokens: int, layers: int, width: int, number: int, full: int, context: int) -> str:
    """What the cache takes: two rows a block and a token."""
    return (
        f"**The price is memory:** a key and a value for each token in each block, 2 × {layers} blocks × "
        f"{tokens:,} tokens × {width:,} numbers × {number} bytes = {size(n_bytes)} now, {size(full)} when "
        f"all {context:,} positions are taken."
    )


def measured(steps: int, cached: float | None, without: float | None, same: int, checked: int) -> str:
    """Milliseconds a step, the middle ones, and whether the tokens were the same."""
    parts = []
    if cached is not None:
        parts.append(f"{significant(cached, 2)} ms with the cache")
    if without is not None:
        parts.append(f"{significant(without, 2)} ms without")
    times = "" if cached is None or without is None else f": {significant(without / cached, 2)} times as long"
    tokens = "Every token" if same == checked else f"{same} of {checked} tokens"
    again = f" {tokens} came out the same again." if checked else ""
    which = "the one step" if steps == 1 else f"the middle one of {steps} steps"
    return f"**Measured on this machine**, {which}: {' and '.join(parts)}{times}.{again}"


def took(steps: int, ms: float) -> str:
    """While the tokens are written again."""
    return f"{steps} token{'s' * (steps != 1)}, {ms:,.0f} ms"


NOT_COUNTED = (
    "Counted are multiplications with the addition that follows: of matrices with tokens, queries with keys, "
    "weights with values. LayerNorm, softmax and GELU are left out: they are little beside these."
)
COST_TABLE = "Worked out from the model's sizes alone: a row a written token, in multiply-adds."
TIMES_TABLE = "Measured on this machine, the model's passes only; other visitors' work may stand between."
NOTHING_WRITTEN = "Nothing is written yet: press One step, or Play."


def some_left(done: int, steps: int) -> str:
    return f"It stopped after {done} of {steps} tokens, to leave the model to others. Press again to go on."


# ---- surgery ----


def check(difference: float, vocabulary: int, agrees: bool) -> str:
    """Whether the cache is what it should be, before anything is done to it."""
    if agrees:
        return (
            f"**Check.** Left as it is, the cache gives the {vocabulary:,} logits of a whole pass, with no "
            f"difference above {significant(difference, 2)}: what changes below, the operation does."
        )
    return (
        f"**The check failed.** Left as it is, the cache gives logits that differ from those of a whole pass "
        f"by up to {significant(difference, 2)}: nothing of an operation is shown."
    )


def deleted(at: Place, attention: float, most: bool) -> str:
    """`attention` is the mean over all heads of what it had, `most` whether no other had more."""
    sink = " No token had more: it is the attention sink." if most and at.position == 0 else ""
    return (
        f"**Deleted:** {at} has no key and no value any more, in no block. What it had of the last "
        f"token's attention, {weight(attention)} on average over all heads, goes to the others.{sink} Their "
        "keys and values stay as they were, at their positions, with what they took from it before."
    )


def swapped_values(at: Place, other: Place) -> str:
    return (
        f"**Values swapped:** {at} and {other} are found by their own keys, as before, and hand over each "
        "other's values. All other keys and values stay as they were."
    )


def swapped(at: Place, other: Place) -> str:
    return (
        f"**Swapped whole:** {at} and {other} have changed places in the cache, keys and values together. "
        "Attention does not know the order of the cache: where a token stood is in its key. So nothing may "
        "change but the last digits."
    )


def frozen(at: Place, other: Place, put: str, last: int) -> str:
    """`at` keeps what it had while another token stands at `other`; `last` is the last cached position."""
    read = f"the text was read anew with {as_code(put)} in the place of {other}."
    if at.position < other.position:
        sink = ""
        if at.position == 0:
            sink = " What is frozen at position 0 matters only where position 0 itself has another token."
        return (
            f"**Frozen, to no effect:** {read} But {at} stands before it, and never saw it: its keys and "
            f"values are the same in both texts, so nothing is held back.{sink}"
        )
    if at == other:
        kept = "its own old keys and values stay, as if the old one still stood there"
    else:
        kept = f"those of {at} stay as they were: it remembers the old one"
    same = ""
    if at == other and at.position == last:
        same = " Nothing cached stands behind it, so all is as it was."
    return f"**Frozen:** {read} All keys and values are of that text, but {kept}.{same}"


def became(before: str, p: float, after: str, q: float, left: float, kl: float) -> str:
    """The first choice before and after; `left` is what the first one before has after."""
    if before == after:
        what = f"{as_code(before)} stays the first choice: {probability_text(p)} before, "
        what += f"{probability_text(q)} after."
    else:
        what = f"{as_code(before)} goes from {probability_text(p)} to {probability_text(left)}, and "
        what += f"{as_code(after)} is first now, with {probability_text(q)}."
    bits = "0" if kl < 1e-6 else significant(kl, 2)
    return f"**What comes next:** {what} KL divergence from before to after: {bits} bits."


def unfrozen(token: str, p: float, left: str, q: float) -> str:
    """What the changed text gives with nothing held back, beside what the old first choice has there."""
    old = "" if token == left else f", and {as_code(left)} {probability_text(q)}"
    return f"With nothing frozen, the changed text gives {as_code(token)} {probability_text(p)}{old}."


def became_unchanged(token: str, p: float, left: float, kl: float) -> str:
    """The same token in the model without its changes, before the operation and after it."""
    return (
        f"**Unchanged**, the model gives {as_code(token)} {probability_text(p)} before and "
        f"{probability_text(left)} after: {'0' if kl < 1e-6 else significant(kl, 2)} bits."
    )


def not_operated(error: str) -> str:
    """Of a change that a cache cannot have."""
    return f"This cannot be done with the model as it is changed now: {error}."


ONE_TOKEN = (
    "The model reads one token only: it looks at itself, and nothing is cached. Write another token first."
)
SURGERY_TABLE = "The first choices before and after, with their logits."
