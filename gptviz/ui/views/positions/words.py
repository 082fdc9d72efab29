"""The Positions page's sentences, with this model's and this text's numbers in them."""

from gptviz.digits import fixed, significant
from gptviz.figures.next_token import loss_text, probability_text
from gptviz.ui.words import as_code


def what_to_see(
    scheme: str, rows: int, size: int, distance: int, mean: float, least: float, most: float, slowest: float
) -> str:
    """What stands above the picture of one scheme.

    `mean`, `least` and `most` are the dot products of all pairs of rows that are `distance` apart; `slowest`
    is in how many tokens the last pair of dimensions turns round once.
    """
    apart = f"{distance} token{'s' * (distance != 1)} apart"
    if scheme == "learned":
        return (
            f"**A row for each position, learned in training.** This model has {rows:,} of them, {size} "
            "numbers each; row 7 is added to whatever token stands at position 7. That 7 comes after 6 is "
            f"written nowhere: two rows {apart} have a dot product of {significant(mean)} on average, but "
            f"from {significant(least)} to {significant(most)}, depending on where they stand (the band)."
        )
    same = (
        f"{apart[0].upper()}{apart[1:]}, the dot product is {significant(mean)} wherever the two stand: only "
        "the distance counts, and the band is as thin as the line."
    )
    if scheme == "sinusoidal":
        return (
            "**Sines and cosines, added to the token; nothing is learned.** Each pair of dimensions is a "
            "clock's hand: the first goes round in 6.28 tokens, the last in "
            f"{slowest:,.0f}. {same}"
        )
    if scheme == "rope":
        return (
            "**Nothing is added: in every head the queries and keys are turned**, pair by pair, the farther "
            f"the later they stand. The picture is what each position makes of the row (1, 0, 1, 0, …) of a "
            f"head's {size} dimensions. {same}"
        )
    return (
        "**No positions at all.** Nothing is added and nothing turned: for its queries and keys, a token is "
        "the same wherever it stands. What is left is the causal mask, which hides what comes later, so that "
        "*after* is known, but not *how far*."
    )


def cut_down(shown: tuple[int, int], whole: tuple[int, int]) -> str:
    """Under a table that is too large to be drawn as a whole; nothing where it is all there."""
    parts = []
    if shown[0] < whole[0]:
        parts.append(f"the first {shown[0]:,} of {whole[0]:,} positions")
    if shown[1] < whole[1]:
        parts.append(f"{shown[1]:,} of {whole[1]:,} dimensions, in pairs that are evenly spread")
    return f"Drawn are {' and '.join(parts)}; the curve is of all." if parts else ""


def a_step(steps: int, size: int, error: float) -> str:
    """That a step is one linear map of the sinusoidal rows, checked."""
    return (
        f"So {steps} step{'s' * (steps != 1)} further on is one {size} × {size} matrix, the same everywhere: "
        "M · p(pos) = p(pos + k). Over all positions the two sides differ by at most "
        f"{significant(error, 2)}: rounding."
    )


def dials(query: int, key: int, pairs: int, total: float) -> str:
    """Under the arrows."""
    return (
        f"Query (blue) at position {query}, key (red) at {key}. Move the slider: both turn, and the angle "
        f"between them, **{query - key}** times the pair's speed, stays. The dot product of the two is the "
        f"sum of the cosines of these angles over all {pairs} pairs, **{fixed(total, 3)}**."
    )


def along(query: str, key: str, head: int, distance: int, changes: dict[str, float]) -> str:
    """Above the scores of a pair of tokens along the text: by how much each scheme's differ."""
    apart = f"{distance} token{'s' * (distance != 1)}"
    learned = changes["Learned"]
    text = (
        f"The same two tokens, {as_code(query)} looking at {as_code(key)} {apart} before it, at every place "
        f"of a text: the score in head {head} of block 0, worked out with this model's own weights. With "
        f"its learned rows it runs over a range of **{significant(learned)}**; with sines added instead, of "
        f"**{significant(changes['Sinusoidal'])}**, since the matrices of query and key mix token and "
        "position. "
    )
    if "RoPE" in changes:
        text += (
            f"Turned as in RoPE it is the same everywhere, to {significant(changes['RoPE'], 2)}: only a "
            "rotation of query and key keeps the distance and nothing else. "
        )
    return text + (
        "Without positions it is the same, too, but at every distance. (Only the learned rows are what this "
        "model was trained with; the others show what the scheme does, not what a model would learn with it.)"
    )


WHAT_IF = {
    "shuffle": "Shuffled",
    "mean": "All the same",
    "zero": "None",
}


def what_if(value: str) -> str:
    """What is done to the model's position rows."""
    return {
        "shuffle": "Each position is given another one's row, in a random order; the tokens stay where they "
        "are. ",
        "mean": "Every position is given the mean of this text's rows: all are alike. ",
        "zero": "Nothing is added to the tokens. ",
    }[value]


def attention_moved(block: int, head: int, before: float | None, after: float | None, moved: float) -> str:
    """What became of a head's attention: how much went elsewhere, and its share for the previous token.

    All three are means over the rows from position 1 on; None where there is no such row.
    """
    if before is None or after is None:
        return "The only token can look at nothing but itself, whatever its position."
    return (
        f"In block {block}, **{fixed(100 * moved, 0)} %** of the attention of head {head} goes elsewhere, on "
        f"average over all tokens but the first: the token just before gets {fixed(100 * after, 0)} % of it, "
        f"and had {fixed(100 * before, 0)} %."
    )


def prediction(
    label: str, best: str, before: float, after: float, now: str, loss: tuple[float, float] | None
) -> str:
    """What became of the prediction after the selected token, and of the text's mean loss."""
    text = (
        f"After {as_code(label)} the model said {as_code(best)} with {fixed(100 * before, 1)} %; it now has "
        f"{fixed(100 * after, 1)} %, "
    )
    text += "and is still the first" if now == best else f"and {as_code(now)} is the first"
    if loss is None:
        return text + "."
    return (
        f"{text}. Over the whole text the mean loss goes from {loss_text(loss[0])[0]} to "
        f"**{loss_text(loss[1])[0]}**."
    )


# ---- where something is changed in the model already ----

AS_IT_IS, WITH_CHANGES = "As the model is", "With what is changed above"

OWN_WEIGHTS = (
    "Rows, dot products and scores up to here are worked out from the model's weights alone: what is "
    "changed in a pass cannot matter for them."
)


def on_top(label: str, best: str, unchanged: float, now: float) -> str:
    """That both passes have the app's changes in them; and the prediction without any."""
    return (
        "Both passes have what is changed above in them, and the second has other positions, too. Unchanged, "
        f"the model says {as_code(best)} after {as_code(label)} with {probability_text(unchanged)}; with "
        f"what is changed above, with {probability_text(now)}."
    )


def same_site(value: str) -> str:
    """That the app's changes have positions among them: then this one is made after it."""
    return (
        "Positions are changed above already, and are changed once more here: "
        + {
            "shuffle": "what stands there now is shuffled.",
            "mean": "what stands there now is averaged.",
            "zero": "nothing is left of them.",
        }[value]
    )


LOSSES = "Each token's loss, −ln of its probability, and the same with other positions (changed)."

NOTHING_MORE = "With other positions the prediction is the same as without them."

KEEP_IT = "Change it on every page"

COMPARED = (
    "Dot products of two rows by themselves, and the score of the pair of tokens above. *Changes* is the "
    "largest less the smallest over all places at one distance: 0 where only the distance counts."
)

ORDER = "Another number is another random order."
