"""The Generate page's sentences: numbers in, Markdown out. Tokens come as the screen shows them."""

from collections.abc import Sequence

from gptviz.digits import fixed, significant
from gptviz.figures.draws import place_text
from gptviz.figures.next_token import probability_text
from gptviz.ui.words import as_code

Way = tuple[int, float]  # of a text that was written: how many tokens, and ln of its probability


def short(probability: float) -> str:
    """Of a chip: two digits that mean something, and never 0 or 1 by rounding."""
    if probability in (0, 1) or probability >= 0.995:
        return probability_text(probability)
    return significant(probability, 2)


def progress(done: int, length: int) -> str:
    return f"writing token {done} of {length}"


def drawn(
    number: int, count: int, token: str, at: float, start: float, stop: float, probability: float
) -> str:
    """Of a token that was drawn by the random number `at`; `number` counts from 1."""
    return (
        f"**Token {number} of {count}.** The random number {_place(at, start, stop)} fell on "
        f"{as_code(token)}: {_stretch(start, stop, probability)}."
    )


def _place(place: float, start: float, stop: float) -> str:
    return place_text(place, stop - start)


def _stretch(start: float, stop: float, probability: float) -> str:
    return (
        f"its stretch of the bar, from {_place(start, start, stop)} to {_place(stop, start, stop)}, is as "
        f"wide as its probability, {probability_text(probability)}"
    )


def greedy(number: int, count: int, token: str, model_probability: float) -> str:
    """Of a token at temperature 0."""
    return (
        f"**Token {number} of {count}.** Temperature 0 draws nothing: {as_code(token)} is the most probable, "
        f"and it is taken. The model itself gives it {probability_text(model_probability)}."
    )


def put(number: int, count: int, token: str, model_probability: float, rank: int, vocabulary: int) -> str:
    """Of a token that a person chose."""
    return (
        f"**Token {number} of {count}.** {as_code(token)} was not drawn: you put it here. The model itself "
        f"gave it {probability_text(model_probability)}, rank {rank:,} of {vocabulary:,}."
    )


def to_come(token: str, number: float | None, start: float, stop: float, probability: float) -> str:
    """Of the token that is not written yet, and the random `number` that will draw it."""
    if number is None:
        return (
            f"**The next token** is not written yet. {as_code(token)} is the most probable, and at "
            "temperature 0 it is what comes. Press One step, or Play."
        )
    return (
        f"**The next token** is not written yet. The next random number is {_place(number, start, stop)}, "
        f"and will fall on {as_code(token)}: {_stretch(start, stop, probability)}. Press One step, or Play."
    )


def ended(stop: str) -> str:
    """Why nothing more is written."""
    if stop:
        return f"The text has {as_code(stop)} in it, where you asked to stop."
    return "The model ended its text here: it wrote its own token for that."


def longest(tokens: int) -> str:
    return f"A branch has at most {tokens} tokens here. Put it into the prompt to write on from its end."


def full(context: int, slid: int) -> str:
    """Where the text is longer than what the model reads."""
    gone = "its first token is" if slid == 1 else f"its first {slid:,} tokens are"
    return (
        f"**The context is full.** The model reads {context:,} tokens at most, so here {gone} out of its "
        "sight: it saw only the end of the text. Each new token pushes all others one position forward, so "
        "every key and value of before is void, and the whole window is read anew at each step."
    )


def in_the_middle(token: str, position: int) -> str:
    """Where the selected token is not the prompt's last."""
    return (
        f"Written on after {as_code(token)} (position {position}), the selected token. Select the last one "
        "to write on from the end."
    )


def look_for(seed: int | None) -> str:
    """The paragraph under the picture; None: nothing is drawn, at temperature 0."""
    all_it_is = (
        "**What to look for.** This is all that writing is: one forward pass gives every token of the "
        "vocabulary a probability"
    )
    if seed is None:
        return (
            f"{all_it_is}, and at temperature 0 the most probable one is taken. That token is appended, "
            "and the next pass reads it too. No random number has a say, and so no seed: the same text comes "
            "every time. Raise the temperature, and see where a random number falls on the bar."
        )
    return (
        f"{all_it_is}, side by side they fill a bar from 0 to 1, and a random number falls on "
        f"one of them. That token is appended, and the next pass reads it too. Seed {seed} gives the same "
        "random numbers on every branch: change the temperature, and see the same numbers fall on other "
        "tokens."
    )


def chip(token: str, probability: float, put: bool) -> str:
    """Of a written token, plain text."""
    if put:
        return f"You put {token} here; its probability was {probability_text(probability)}"
    return f"{token} had probability {probability_text(probability)}"


def how(drawn: bool, put: bool, written: bool) -> str:
    """At the candidate that stands in the text, or comes next."""
    if not written:
        return "comes next"
    return "put by you" if put else "drawn" if drawn else "taken"


def branches(count: int) -> str:
    """Above the tree of branches."""
    if count == 1:
        return (
            "Click a candidate that was not drawn, and the text forks there: a tree of branches grows here."
        )
    return (
        f"{count} branches of one text. ln p is the sum of the logarithms of what the model itself gave "
        "each token: the nearer to 0, the more probable the whole branch. Perplexity is the same for a "
        "token on average: among how many equally likely tokens the model seemed to choose."
    )


def branch_unchanged(changed: float, unchanged: float | None) -> str:
    """Under the tree: ln p of the branch on the screen, in both models; None: it is longer than a context."""
    if unchanged is None:
        return (
            "The text is longer than the model reads at once: what the unchanged model gives all of it is "
            "left out."
        )
    return (
        f"The branch on the screen has ln p {fixed(changed, 2)}; the **unchanged** model gives the same text "
        f"{fixed(unchanged, 2)}."
    )


def beams(count: int, best: Way, greedy: Way, sampled: Way | None) -> str:
    """Above the tree of the beam search: the ways to write; `sampled` is None where nothing is drawn."""
    start = (
        f"Greedy takes the best token each time, and may so miss the best text. Beam search carries {count} "
        "texts forward at once: after each token it looks at the whole vocabulary behind each of them, "
        f"keeps the {count} that are most probable as a whole, and drops the others. "
    )
    if count == 1:
        start = "A single beam is greedy: the best token each time, which may miss the best text. "
    lengths = {way[0] for way in (best, greedy, sampled) if way is not None}
    even = len(lengths) == 1

    def ln(way: Way) -> str:
        return fixed(way[1], 2) + ("" if even else f" ({_tokens(way[0])})")

    after = f"After {_tokens(best[0])} its" if even else "Its"
    drawn = "" if sampled is None else f", and the one that the seed draws {ln(sampled)}"
    last = "The more probable text is not always the better one."
    if not even:
        last = (
            "Of texts of different lengths these cannot be compared, since each token makes ln p less: the "
            "perplexity below is for a token on average."
        )
    glue = " and" if sampled is None else ","
    return f"{start}{after} best text has ln p {ln(best)}{glue} the greedy one {ln(greedy)}{drawn}. {last}"


def _tokens(count: int) -> str:
    return f"{count} token{'s' * (count != 1)}"


BEAMS = (
    "Every beam that was kept after each token, and the next ones, which were dropped; ln p is of all its "
    "tokens."
)

BEAM_ENDS = "At the ends: ln p of the whole text, unchanged → changed. Elsewhere both are in the hover."

STEPS = (
    "A row for each written token. `probability` is the one it was drawn with, `model_probability` the "
    "model's own; `point` is the random number, which fell between `start` and `stop`."
)

CANDIDATES = (
    "What the chosen token was drawn from, with the stretches of the bar. The last row sums all others."
)

BRANCHES = "The sum of ln p over all tokens of each branch, under the model's own probabilities."

# ---- a changed model beside the unchanged one ----


def unchanged_step(probability: float, rank: int, would: str, same: bool, drawn: bool) -> str:
    """Behind the sentence about a step: what the unchanged model gives this token after the same text.

    `would` is the token that it would have written there, `drawn` by the same number of the seed.
    """
    how = "with the same number it would write" if drawn else "it would write"
    return (
        f"**Unchanged**, the model gives it {probability_text(probability)}, rank {rank:,}; {how} "
        f"{'it, too' if same else as_code(would)}."
    )


def unchanged_text(text: str, step: int | None, count: int) -> str:
    """Under the text: what the unchanged model writes with the same seed; from `step` (from 1) on another."""
    if step is None:
        return f"**Unchanged**, the model writes the same {count} token{'' if count == 1 else 's'}."
    where = "from the first token on" if step == 1 else f"from token {step} on"
    return f"**Unchanged**, with the same seed, the model writes another text {where}: {as_code(text)}"


def left_out(edits: Sequence[str]) -> str:
    """Of the changes that are not made while writing."""
    many = len(edits) > 1
    return (
        f"{', '.join(as_code(edit) for edit in edits)} {'are' if many else 'is'} left out here: "
        f"{'they are' if many else 'it is'} about tokens after the selected one, where another text is "
        "written."
    )
