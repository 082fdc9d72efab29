"""The Attention by hand page's sentences: numbers in, Markdown or plain text out."""

from collections.abc import Sequence

from gptviz.digits import fixed, significant
from gptviz.ui.words import as_code, term

WAYS = {
    "simple": "without weights",
    "weights": "query, key, value",
    "causal": "causal mask",
    "heads": "two heads",
}
STEPS = {
    "vectors": "vectors",
    "queries": "queries, keys, values",
    "scores": "scores",
    "scaled": "scaled",
    "weights": "weights",
    "context": "context",
}
DRAWN = {
    "linear-789": "nn.Linear, seed 789",
    "linear-123": "nn.Linear, seed 123",
    "rand-123": "torch.rand, seed 123",
}


def four(value: float) -> str:
    """A number with the four decimals that the book prints; a large one with the digits that it has."""
    value = round(value, 12)  # two ways to one number give one text, also where it lies between two
    return fixed(value, 4) if abs(value) < 1000 else significant(value, 6)


def vector(values: Sequence[float]) -> str:
    """ "[0.4419, 0.6515, 0.5683]"."""
    return f"[{', '.join(four(value) for value in values)}]"


def sum_of_products(left: Sequence[float], right: Sequence[float], total: float, digits: int = 4) -> str:
    """ "0.53 × 0.29 + 0.34 × 0.54 = 0.3373": numbers as short as they are, at most `digits` decimals."""
    parts = [f"{short(a, digits)} × {term(short(b, digits))}" for a, b in zip(left, right, strict=True)]
    return f"{' + '.join(parts)} = {four(total)}"


def short(value: float, digits: int = 4) -> str:
    """As many decimals as it needs, at most `digits`: 0.34, −0.2354, 2."""
    text = fixed(value, digits)
    return text.rstrip("0").rstrip(".") if "." in text else text


# ---- above the picture ----


def sentence(
    way: str, words: Sequence[str], query: int, weights: Sequence[float], context: Sequence[float], seen: int
) -> str:
    """What the selected word's row comes to. `weights` (T,) and `context` are head 0's; `seen` keys are not
    masked."""
    name = as_code(words[query])
    if seen == 1:
        only = "There is no other word" if len(words) == 1 else "Nothing stands before it"
        start = f"{only}, so {name} gives itself a weight of 1.0000: "
        return start + f"its context vector is its own {_kind(way)}, **{vector(context)}**."
    shares = [
        f"{four(weight)} of {as_code(word)}"
        for word, weight in zip(words[:seen], weights[:seen], strict=True)
    ]
    return (
        f"{'In head 0, ' if way == 'heads' else ''}{name} mixes {', '.join(shares[:-1])} and {shares[-1]}: "
        f"weights that sum to 1, made of {'dot products' if way == 'simple' else 'its query · their keys'}. "
        f"Its context vector is this mix of their {_kind(way)}s, **{vector(context)}**."
    )


def _kind(way: str) -> str:
    return "vector" if way == "simple" else "value"


def so_far(step: str, word: str, values: Sequence[Sequence[float]]) -> str:
    """What stands above the picture until all steps are shown; `values` are the word's own of this step."""
    numbers = ", ".join(vector(each) for each in values)
    return f"So far: **{STEPS[step]}**. For {as_code(word)}: {numbers}."


# What the seeds' texts print for the word that they work out, where nothing is changed.
PRINTED = {
    ("hello", "simple", None): (0.3992, 0.3858, 0.8610),
    ("journey", "simple", None): (0.4419, 0.6515, 0.5683),
    ("journey", "weights", "rand-123"): (0.3061, 0.8210),
    ("journey", "weights", "linear-789"): (-0.0748, 0.0703),
    ("journey", "causal", "linear-123"): (-0.5874, 0.0058),
    ("journey", "heads", "linear-123"): (-0.5874, 0.0058, 0.5891, 0.3257),
}


def printed(example: str, way: str, drawn: str | None, word: str, ours: Sequence[float]) -> str:
    """What is printed of this example; "" where nothing is, or where its text does not work it out."""
    found = PRINTED.get((example, way, drawn))
    if found is None:
        return ""
    if vector(found) == vector(ours):
        return f"The book prints the same for {as_code(word)}: {vector(found)}."
    return (
        f"The text that this example is from prints {vector(found)} for {as_code(word)}: it went on with "
        "numbers "
        f"that were already rounded. With all their digits it is {vector(ours)}."
    )


# ---- what is said of a number ----


def given_number(word: str, column: int, value: float) -> str:
    return f"Number {column} of the vector of {word}: {short(value, 6)}. Click, and type another."


def given_weight(name: str, row: int, column: int, value: float) -> str:
    return (
        f"{name}, row {row}, column {column}: {short(value, 6)}. So much of a vector's number {row} goes "
        "into "
        f"number {column}. Click, and type another."
    )


def made(
    kind: str, word: str, column: int, left: Sequence[float], right: Sequence[float], value: float
) -> str:
    return f"Number {column} of the {kind} of {word} = {sum_of_products(left, right, value)}"


def score(query: str, key: str, left: Sequence[float], right: Sequence[float], value: float) -> str:
    return f"{query} · {key} = {sum_of_products(left, right, value)}"


def scaled(query: str, key: str, value: float, divisor: float, size: int, result: float) -> str:
    return f"{query}, {key}: {four(value)} ÷ √{size} = {four(value)} ÷ {four(divisor)} = {four(result)}"


def masked(query: str, key: str) -> str:
    return f"{query} cannot see {key}, which comes later: the causal mask hides it."


def weight(query: str, key: str, value: float, result: float) -> str:
    power = f"e^{term(four(value))} ÷ the sum of such powers over the row"
    return f"{query} gives {key} the weight {four(result)}: {power}."


def context(word: str, column: int, left: Sequence[float], right: Sequence[float], value: float) -> str:
    return f"Number {column} of the context of {word} = {sum_of_products(left, right, value)}"


def at(word: str, column: int, value: float) -> str:
    return f"{word}, number {column}: {four(value)}"


def takes(word: str, other: str, value: float) -> str:
    return f"{word} takes {four(value)} of {other}."


def equal(word: str, other: str, later: bool) -> str:
    return masked(word, other) if later else f"{word} scores {other} as all others: 0."


def beside(word: str, column: int, head: int, value: float) -> str:
    return f"Number {column} of {word}'s context, both heads side by side: head {head} gives {four(value)}."


REST = (
    "Point at a number to see what it is made of. Dotted numbers and words can be typed anew; a click on a "
    "row follows its word."
)


def not_a_number(typed: str, kept: str, largest: float) -> str:
    """What is said of a typed text that no cell can hold."""
    shown = as_code(typed.strip()) if typed.strip() else "Nothing"
    verb = "is no number" if typed.strip() else "was typed, which is no number"
    return f"{shown} {verb} between −{largest:g} and {largest:g}; the cell keeps {kept}."


# ---- below the picture ----


def look_for(way: str) -> str:
    """How to read the picture."""
    start = (
        "**What to look for.** Read along a row, from a word's vector on the left to its context on the "
        "right. "
    )
    if way == "simple":
        return start + (
            "A score is a dot product: large where two vectors point the same way. Softmax makes each row "
            "sum to 1, "
            "and the context is the words' vectors mixed in these shares. Change one number of a vector, "
            "and its "
            "row, its column and every context move. Nothing here is learned yet."
        )
    if way == "weights":
        return start + (
            "Three matrices give every word a query, a key and a value, and training can set them. Now a "
            "score is "
            "query · key, so that what `a` gives `b` is no longer what `b` gives `a`. The scores are "
            "divided by √2, "
            "since a query has 2 numbers; without that, longer queries would make softmax all or nothing."
        )
    if way == "causal":
        return start + (
            "A word may look at itself and back. What comes later is set to −∞ before the softmax, so that "
            "e^−∞ = 0 "
            "and each row still sums to 1: the first word can only look at itself. Change the last word's "
            "vector, and "
            "no row above it moves."
        )
    return start + (
        "Two heads read the same vectors with matrices of their own, and so look at different words. Their "
        "contexts "
        "stand side by side: 2 + 2 numbers a word. A GPT does this with dozens of heads, and mixes the "
        "result by one "
        "more matrix, out_proj."
    )


def row_title(word: str) -> str:
    return f"{as_code(word)}, step by step"


AVERAGING = (
    "Before attention there was a simpler way to let words mix: each takes the **average** of itself and "
    "all before "
    "it. Three programs for it give the same numbers. The loop says what is meant; the matrix does all "
    "rows at once, "
    "with a row of equal shares for each; softmax over zeros makes these shares, where −∞ is what comes "
    "later. "
    "Replace the zeros by query · key, and it is attention."
)


def agree(difference: float) -> str:
    """How far the three versions are apart."""
    apart = "not at all" if difference == 0 else f"by at most {significant(difference, 2)}"
    return f"The three results differ {apart}."


def notebook(others: Sequence[str]) -> str:
    """`others` says where the notebook prints another last digit."""
    if not others:
        return "The notebook prints the same averages."
    return (
        "The notebook prints the same averages but for the last digit of a few, since its vectors have more "
        f"digits than it prints: {', '.join(others)}."
    )


def softmax(exponentials: Sequence[str], weights: Sequence[str]) -> str:
    """The slides' example of softmax; both say where the slides print another last digit."""
    text = (
        "Softmax is two steps: e to the power of each score, which makes all of them positive, then each "
        "divided by their sum. These five scores are a lecture's, which prints the same weights"
    )
    text += f" but for {', '.join(weights)}." if weights else "."
    if exponentials:
        text += f" Its scores have more digits than it prints: its e^score is {', '.join(exponentials)}."
    return text


ROWS = "A row for each pair of query and key. Where the mask hides a key there is a score, but no weight."
VECTORS = "A row for each word: its vector, what each head makes of it, and its context."
