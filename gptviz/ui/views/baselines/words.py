"""The Baselines page's sentences, with the numbers of the text in them."""

from gptviz.digits import fixed, significant
from gptviz.lessons.compared import Counted
from gptviz.lessons.mlp import Recipe
from gptviz.ui.words import as_code

CHAPTER = "a chapter of *Alice*"
PROMPTED = "your prompt"

NUMBERS = (
    "Every pair of characters: how often it was counted, what share that is of all that came after the first "
    "of the two, and the probability that the network gives it at the step that is shown."
)
STEPS = "The network's loss before the first step and after each, in nats a character."
SCALE = "Nats, summed over the whole held-out text, turned into bits (by ln 2), and divided by its bytes."
LEARNING = "What the MLP cost at each of these steps: its own text, and the held-out one, in bits a byte."


def headline(source: str, length: int, bits: Counted, model: tuple[str, float] | None) -> str:
    """What the page is about. `model` is a name and its bits, None while it has not been measured."""
    text = (
        f"Count which character follows which in {source} ({length:,} characters), and you have the smallest "
        f"language model. A byte of books that it never saw costs it **{fixed(bits.bigram, 2)} bits**; a "
        f"blind guess among {bits.characters} characters costs {fixed(bits.blind, 2)}"
    )
    if model is None:
        return text + "."
    return f"{text}, and the model {as_code(model[0])} needs **{fixed(model[1], 2)}**."


def look_for(step: int, loss: float, floor: float, character: str, best: str, share: float) -> str:
    """What to look at in the two tables."""
    left = f"Left, the counts: after {as_code(character)} comes {as_code(best)} {percent(share)} of the time."
    if step == 0:
        right = (
            "Right, a network of one matrix before it has learnt anything: random numbers, and a loss of "
            f"{significant(loss, 4)} nats a character."
        )
    else:
        right = (
            f"Right, a network of one matrix after {step} {'step' if step == 1 else 'steps'} on the same "
            f"text: its loss is {significant(loss, 4)} nats a character."
        )
    return (
        f"{left} {right} Move the steps: it arrives at the counts, whose own loss is "
        f"{significant(floor, 4)}. No table of pairs can have less."
    )


def learnt(step: int) -> str:
    """Over the right table."""
    if step == 0:
        return "Random, before the first step"
    return f"Learnt, after {step} {'step' if step == 1 else 'steps'}"


def percent(share: float) -> str:
    """A share as a person says it; 100 % is for what is always so."""
    if share == 1:
        return "100 %"
    return f"{fixed(min(100 * share, 99.9), 1)} %"


def shown_of(shown: int, all: int) -> str:
    """Which rows and columns the picture has."""
    colour = "The ground is 0, the strongest purple 0.5 and more. A click on a row follows that character."
    if shown == all:
        return colour
    return (
        f"The {shown} most frequent of {all} characters are shown; *In numbers* has all, and the losses are "
        f"those of all. {colour}"
    )


def falling(first: float, blind: float, floor: float, last: float, steps: int) -> str:
    """What the loss curve says."""
    start = (
        f"Random numbers begin at {significant(first, 4)} nats, above the {significant(blind, 4)} of a blind "
        "guess: they are sure of things they do not know. "
        if first > blind
        else f"Random numbers begin at {significant(first, 4)} nats. "
    )
    gap = last - floor
    close = "less than 0.0001" if gap < 0.0001 else significant(gap, 2)
    return f"{start}After {steps} steps {close} is left above the counts."


def after(character: str, times: int) -> str:
    """Over the bars of one row."""
    if times == 0:
        return f"Nothing ever followed {as_code(character)} in this text: the counts have nothing to say."
    return (
        f"After {as_code(character)}, which is followed {times:,} times: what was counted, and what is "
        "learnt at this step."
    )


def mlp(recipe: Recipe, parameters: int, size: int) -> str:
    """What the MLP is."""
    table = f"a table of {size} rows of {recipe.embedding} numbers"
    if recipe.context == 1:
        looks = f"the last character up in {table}, and sends its row"
    else:
        looks = (
            f"the last {recipe.context} characters up in {table}, lays the rows side by side, and sends them"
        )
    return (
        f"A bigram forgets all but one character. This network looks {looks} through {recipe.hidden} hidden "
        f"units: {parameters:,} parameters, {recipe.steps} steps of {recipe.batch} examples (Bengio and "
        "others, 2003)."
    )


def mlp_result(
    step: int, own: float, held_out: float, best: tuple[int, float], bigram: float, done: bool
) -> str:
    """How far the MLP is, and whether it learns or only remembers."""
    verb = "ends" if done else "is"
    text = (
        f"After {step} steps it {verb} at {fixed(own, 2)} bits a byte for the text it learns from, and "
        f"**{fixed(held_out, 2)}** for the held-out one"
    )
    difference = bigram - held_out
    if abs(difference) < 0.005:
        text += ", where the bigram is as well."
    else:
        way = "fewer" if difference > 0 else "more"
        text += f": {fixed(abs(difference), 2)} {way} than the bigram."
    if held_out > best[1] + 0.02:
        text += (
            f" After {best[0]} steps it was {fixed(best[1], 2)} there: since then it has learnt this text by "
            "heart, and nothing about others."
        )
    return text


def scale(bits: Counted, steps: int, model: tuple[str, float] | None) -> str:
    """What can be compared, and what cannot."""
    text = (
        "Characters and tokens are different units: a loss a token says nothing beside a loss a character. "
        "So each pays for the same text, the beginnings of five books that none of them was trained on, and "
        f"what it pays is divided by the text's bytes. The bigram is mixed with the single characters (k = "
        f"{bits.strength:g}): a pair that it never saw would otherwise cost infinitely much."
    )
    if model is not None:
        text += (
            f" {as_code(model[0])} has read far more than this text: part of its lead is what it read, part "
            "is how far back it looks."
        )
    if not steps:
        text += " The MLP joins them when it has been trained."
    return text


def no_model(name: str) -> str:
    return (
        f"{as_code(name)} is not among them: it lacks a token that the held-out text has, or predicts none."
    )


def ask(name: str, passes: int) -> str:
    return f"Measure {as_code(name)} ({passes:,} passes)"


def reading(window: int, windows: int) -> str:
    return f"the model reads the held-out text: window {window} of {windows}"


def training(step: int, steps: int) -> str:
    return f"the MLP learns: step {step} of {steps}"


def too_short(length: int, least: int) -> str:
    return (
        f"This text has {length:,} characters; to count pairs in it takes at least {least}. Type more, or "
        "choose the chapter."
    )


def too_many(characters: int, most: int) -> str:
    return (
        f"This text has {characters:,} different characters; this page's table goes up to {most}. Choose a "
        "text of an alphabet, or the chapter."
    )


def cut(most: int) -> str:
    return f"Only the first {most:,} characters are counted."


SAMPLES = (
    "Each draws one character after the other from its own probabilities, after the same beginning. The "
    "bigram knows which letters go together; the MLP begins to spell. A GPT writes words: see the page *Next "
    "token*."
)
