"""The Attention page's sentences: numbers in, Markdown out. `shown` are the tokens for the screen."""

from collections.abc import Sequence

from gptviz.analysis.attention import CellArithmetic, FirstToken
from gptviz.analysis.head_formulas import ROLES
from gptviz.analysis.head_roles import HeadRole
from gptviz.analysis.head_scores import spans
from gptviz.digits import fixed, percent, significant
from gptviz.ui.words import as_code, does, term

# A row's sentence names this many keys, those that get at least so much.
NAMED, LEAST = 3, 0.005


def name(shown: Sequence[str], position: int) -> str:
    """A token in a sentence: `·it` (position 7)."""
    return f"{as_code(shown[position])} (position {position})"


def role(found: HeadRole, shown: Sequence[str]) -> str:
    """What a head does on this text, in one sentence of its own, and over which rows that was measured."""
    if found.kind == "alone":
        return "The only token can look at nothing but itself: 100 %."
    over = f"on average over {_rows(found.rows[found.kind])}"
    says = f"This head {does(found, shown)}"
    if found.kind == "even":
        return f"{says}, as if at {fixed(found.spread, 1)} of them, {over}."
    if found.kind == "mixed":
        return f"{says} here: it looks at {fixed(found.spread, 1)} tokens, {over}; {_mostly(found)}."
    assert found.share is not None
    return f"{says}: {percent(found.share)} of its attention, {over}."


def thumbnail(found: HeadRole, write: float, largest: float) -> str:
    """What is said of a head while it is pointed at, as plain text."""
    share = f", over {fixed(found.spread, 1)} tokens" if found.share is None else f", {percent(found.share)}"
    return (
        f"{ROLES[found.kind].label}{share}. It writes {fixed(write, 1)} (the bar; the longest is "
        f"{fixed(largest, 1)})."
    )


def _rows(rows: Sequence[int]) -> str:
    """The rows that a mean is taken over: "rows 1 to 18", or how many, where a list would be too long."""
    if len(rows) == 1:
        return f"row {rows[0]}"
    written = spans(rows)
    return f"rows {written}" if written.count(",") < 3 else f"the {len(rows)} rows listed below"


def _mostly(found: HeadRole) -> str:
    """The largest of what can be said of any head."""
    names = {"first": "the first token", "previous": "the token just before", "itself": "the token itself"}
    share, target = max((found.shares[kind] or 0.0, target) for kind, target in names.items())
    return f"{percent(share)} goes to {target}"


WITHDRAWN = (
    "Its label was withdrawn in its trial: the model needs the head for more than that (see Heads on trial)."
)


def struck(label: str) -> str:
    """A label that was withdrawn, struck out wherever it stands."""
    return "".join(f"{character}\u0336" for character in label)


# ---- above the picture ----


def one_head(block: int, head: int, found: HeadRole, shown: Sequence[str]) -> str:
    return f"**Block {block}, head {head}.** {role(found, shown)}"


def average(block: int, heads: int) -> str:
    return f"**Block {block}, the average of its {heads} heads.**"


def row(shown: Sequence[str], weights: Sequence[float]) -> str:
    """What the selected row gives: `weights` (query + 1,) are the model's own."""
    query = len(weights) - 1
    if len(shown) == 1:
        return (
            "Attention always sums to 1, so every head gives it 1.00. Type a longer text to see heads differ."
        )
    parts = [f"{significant(weights[key], 2)} to {name(shown, key)}" for key in _largest(weights)]
    return f"{name(shown, query)} gives {', '.join(parts)}."


def rescaled_row(shown: Sequence[str], weights: Sequence[float]) -> str:
    """The same with the first token hidden: what is drawn, and beside it the model's own weights."""
    query, left = len(weights) - 1, sum(weights[1:])
    start = (
        "**The first token is hidden, and what remains of each row is scaled up to sum to 1:** these are "
        "not the model's own weights."
    )
    if not left:
        return (
            f"{start} Nothing of the row of {name(shown, query)} remains: all of it goes to the first token."
        )
    drawn = [0.0, *(weight / left for weight in weights[1:])]
    parts = [
        f"{significant(drawn[key], 2)} to {name(shown, key)} (the model: {significant(weights[key], 2)})"
        for key in _largest(drawn)
    ]
    return (
        f"{start} Drawn, {name(shown, query)} gives {', '.join(parts)}; the model gives the first token "
        f"{significant(weights[0], 2)}."
    )


def _largest(weights: Sequence[float]) -> list[int]:
    ranked = sorted(range(len(weights)), key=lambda key: -weights[key])[:NAMED]
    return [key for key in ranked if weights[key] >= LEAST]


# ---- below the picture ----


def over_all(found: HeadRole) -> str:
    """What a head does where its text has no repeats: for the roles that are measured on repeats alone."""
    return f"Over all rows, {_mostly(found)}." if found.kind in ("induction", "copies") else ""


LOOK_FOR = (
    "**What to look for.** Read along a row: the token on the left asks (its query), and each cell says how "
    "much of its attention goes to the token above (that token's key). A row sums to 1; what is right of the "
    "diagonal comes later and is masked. A line just below the diagonal is a head that looks at the token "
    "just before, a line further down one that found a repeat, a column one token that everybody looks at."
)

LOOK_FOR_ARCS = (
    "**In the lines**, which are the same weights, each token stands twice: on the left it looks (its "
    "query), on the right it is looked at (its key), and a line is as thick as the weight between the two. "
    "Lines only go up or straight across: what comes later is masked. Parallel lines one step up are a head "
    "that looks at the token just before, a fan into one token on the right is one that everybody looks at. "
    "The block's other heads, each with its colour, can be switched on beside this one."
)


def sink(first: FirstToken, shown: Sequence[str]) -> str | None:
    """The answer to "why is it so often the first token?", only where these numbers ask it."""
    if not (first.draws_all or first.draws_own):
        return None
    question = "Why is it so often the first token?" if first.draws_all else "Why the first token?"
    share = (
        f"{name(shown, 0)} gets {percent(first.own)} of the attention of this head and {percent(first.mean)} "
        f"of that of all {first.of} heads, on average over {_rows(range(1, first.tokens))}; from heads that "
        f"look at all tokens alike it would be {percent(first.even)}"
    )
    if first.heads:
        share += f". {first.heads} {'head gives' if first.heads == 1 else 'heads give'} it more than half"
    cost = ""
    if first.own > 0.5 and first.value_norm < 0.8 * first.other_norms:
        cost = (
            " Resting there hands over little: in this head the first token's value has the length "
            f"{fixed(first.value_norm, 1)}, the other tokens' {fixed(first.other_norms, 1)} on average."
        )
    return (
        f"**{question}** {share}. Attention cannot go nowhere: every row must sum to 1, also where a head "
        "finds nothing that it is made for. The first token is the one that every row can see, and so a "
        f"place to rest, an *attention sink*: attention there mostly means that the head is off.{cost} Hide "
        "it with the switch, to see what is left."
    )


def steps_of(block: int, head: int, heads: int, average: bool, hide_first: bool) -> str:
    """What the steps are of, where the picture above shows something else; "" where it does not."""
    if average and hide_first:
        return (
            f"The picture above is the average of {heads} heads, rescaled without the first token. Neither "
            f"has steps of its own: these are what the model computes in head {head} of block {block} alone."
        )
    if average:
        return (
            f"The picture above is the average of {heads} heads, and an average has no steps of its own: "
            f"these are of head {head} of block {block} alone."
        )
    if hide_first:
        return "These are the model's own numbers: nothing is hidden here, and nothing rescaled."
    return ""


def arithmetic(cell: CellArithmetic, shown: Sequence[str]) -> list[str]:
    """The steps from two vectors to one weight, a line each."""
    query, key = name(shown, cell.query), name(shown, cell.key)
    some = " + ".join(term(fixed(p.item(), 2)) for p in cell.products[:3])
    d = len(cell.products)
    rest = f" + … ({d} products)" if d > 3 else ""
    lines = [
        f"**query · key** of {query} and {key}: {some}{rest} = **{fixed(cell.score, 2)}**",
        f"**scaled** by √{d}: {fixed(cell.score, 2)} ÷ {fixed(cell.divisor, 2)} = "
        f"**{fixed(cell.scaled, 2)}**",
    ]
    if cell.weight is None:
        return [
            *lines,
            f"**masked**: {key} comes after {query}, so the model replaces this score by −∞ before the "
            "softmax: whatever the score, no attention can go there.",
        ]
    softmax = cell.row
    keys = f"{cell.query + 1} keys" if cell.query else "one key"
    exp, total = significant(softmax.exp[cell.key].item(), 4), significant(softmax.total, 4)
    return [
        *lines,
        f"**softmax** over the {keys} that {query} can see: e^({fixed(cell.scaled, 2)} − "
        f"{term(fixed(softmax.largest, 2))}) = {exp}, and {exp} ÷ {total} = "
        f"**{significant(cell.weight, 4)}**, where {total} is the sum of the row. (Its largest score is "
        "taken off first; that changes no weight, and nothing overflows.)",
        f"**weight × value**: {significant(cell.weight)} of the value of {key} goes into the output for "
        f"{query}.",
    ]


def drawn(weight: float, average: float | None, first: float | None) -> list[str]:
    """How this head's weight became what the picture shows, as a line; none where that is the weight itself.

    `average` is the mean over the block's heads where that is drawn; `first` what the drawn row, before it
    was rescaled, gives the first token, where that is hidden.
    """
    if average is None and first is None:
        return []
    base = weight if average is None else average
    parts = [] if average is None else [f"the average over the block's heads is {significant(average, 4)}"]
    if first is not None:
        left = 1 - first
        rescaled = f"{significant(base, 4)} ÷ (1 − {significant(first, 4)})"
        parts.append(
            f"without the first token it is {rescaled} = {significant(base / left, 4)}"
            if left > 0
            else "without the first token nothing of this row is left"
        )
    return [f"**in the picture**: {', and '.join(parts)}."]


# ---- the tables ----


def table_caption(block: int, head: int, average: bool, hide_first: bool) -> str:
    which = f"the average of block {block}'s heads" if average else f"block {block}, head {head}"
    hidden = (
        " The first token is hidden, and the rows are scaled up to sum to 1 without it." if hide_first else ""
    )
    return f"Attention weights of {which}: a row a query, a column a key. What comes later is masked.{hidden}"


ROLES_NUMBERS = (
    "A row a head. `share` is the mean of its role's attention over the rows (queries) of `row_positions`, "
    "each summed over the keys that the role means; `to_…` is the same for every role. Row 0 can only look "
    "at itself and counts nowhere. `rest` is what the same rows leave on the first token, and "
    "`share_of_rest` the share of what is not left there: by this a head is named. `spread` is e to the mean "
    "entropy over rows 1 and up: over so many tokens the attention reaches. `mean_write` is the length of "
    "what the head adds to the residual stream, on average over all tokens."
)
