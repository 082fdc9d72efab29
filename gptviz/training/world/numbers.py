"""Tables of numbers for the small world: sums, what comes next in a sequence, and the same in words."""

from dataclasses import dataclass

Row = dict[str, str]

BELOW_TWENTY = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "
    "seventeen eighteen nineteen"
).split()
TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
ORDINALS = (
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth "
    "fifteenth"
).split()
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
LENGTHS = (3, 4, 5, 6, 7, 8, 10, 12, 14)  # of a sequence that stands alone
SHOWN = 6  # numbers of a sequence that a wording may name: step1 to step6


def in_words(number: int) -> str:
    """The English word of a number from 0 to 100.

    >>> in_words(42)
    'forty-two'
    """
    if number < 20:
        return BELOW_TWENTY[number]
    if number == 100:
        return "a hundred"
    tens, units = divmod(number, 10)
    if units == 0:
        return TENS[tens - 2]
    return f"{TENS[tens - 2]}-{BELOW_TWENTY[units]}"


@dataclass(frozen=True)
class Fact:
    """Two numbers, what is done with them ("+", "-" or "x"), and what that gives."""

    a: int
    sign: str
    b: int
    c: int


def sums(least: int, most: int = 20) -> list[Fact]:
    """Every sum up to `most` of two numbers from `least` on."""
    numbers = range(least, most + 1)
    return [Fact(a, "+", b, a + b) for a in numbers for b in numbers if a + b <= most]


def differences(least: int, most: int = 20) -> list[Fact]:
    """Every difference from a number up to `most`, where `least` or more is taken away."""
    return [Fact(a, "-", b, a - b) for a in range(most + 1) for b in range(least, a + 1)]


def products(least: int, most: int = 100) -> list[Fact]:
    """Every product up to `most` of two numbers from `least` to ten."""
    numbers = range(least, 11)
    return [Fact(a, "x", b, a * b) for a in numbers for b in numbers if a * b <= most]


def is_asked_most(fact: Fact) -> bool:
    """Whether people ask for this one most: numbers up to ten, or products of small numbers."""
    if fact.sign == "x":
        return min(fact.a, fact.b) <= 3 and max(fact.a, fact.b) <= 6
    return max(fact.a, fact.c) <= 10


def rows_of(operation: str, facts: list[Fact]) -> list[Row]:
    """A row for each fact, in digits and in words; three for those that are asked for most."""
    rows = []
    for fact in facts:
        row = three_numbers(operation, fact.a, fact.b, fact.c)
        rows.append(row)
        if is_asked_most(fact):
            rows.extend([row] * 2)
    return rows


def with_rest(least: int) -> list[Fact]:
    """The differences that leave `least` or more."""
    return [fact for fact in differences(least) if fact.c >= least]


def three_numbers(operation: str, first: int, second: int, result: int) -> Row:
    """A row `plus_a`, `plus_b`, `plus_result`, and the same in words: `plus_a_word` and so on."""
    row = {}
    for name, number in (("a", first), ("b", second), ("result", result)):
        row[f"{operation}_{name}"] = str(number)
        row[f"{operation}_{name}_word"] = in_words(number)
    return row


def sequence(name: str, values: list[str]) -> Row:
    """A row `name1` ... `name6`, what comes one after another."""
    return {f"{name}_{chr(ord('a') + index)}": value for index, value in enumerate(values)}


def runs(name: str, sequences: list[list[str]], separator: str = ", ") -> list[Row]:
    """Sequences of several lengths, each written out in one cell."""
    rows = []
    for values in sequences:
        for length in LENGTHS:
            if length <= len(values):
                rows.append({name: separator.join(values[:length])})
    return rows


def steps_from(first: int, step: int, count: int = 14) -> list[str]:
    """Numbers from the first one on with one step, as long as they are not negative."""
    numbers = [first + step * index for index in range(count)]
    return [str(number) for number in numbers if number >= 0]


def words_from(first: int, step: int, count: int = 14) -> list[str]:
    """As `steps_from`, in words, from zero to a hundred."""
    numbers = [first + step * index for index in range(count)]
    return [in_words(number) for number in numbers if 0 <= number <= 100]


UP = [steps_from(first, 1) for first in [*range(1, 21), *range(1, 21), *range(21, 100, 2)]]
DOWN = [steps_from(first, -1) for first in [*range(5, 21), *range(5, 21), *range(22, 100, 3)]]
STEPS = [
    steps_from(first, step)
    for step in (2, 2, 3, 4, 5, 10, 10, 100)
    for first in (step, step, 0, 1, 2, 3, 5, 7, 10, 20)
]
STEPS_DOWN = [steps_from(step * 10, -step) for step in (2, 3, 4, 5, 10, 10, 100)]
WORDS_UP = [words_from(first, 1) for first in [*range(1, 15), *range(1, 15), *range(20, 60, 7)]]
WORDS_DOWN = [words_from(first, -1) for first in [*range(5, 21), 10, 10]]
WORDS_STEPS = [
    words_from(first, step) for step in (2, 2, 5, 10, 10) for first in (step, step, 0, 1, 10)
]


def counting() -> list[Row]:
    """Six numbers in a row, upwards, in digits (`up_a` to `up_f`)."""
    return [
        sequence("up", [str(start + i) for i in range(SHOWN)])
        for start in [*range(1, 21), *range(1, 95)]
    ]


def counting_down() -> list[Row]:
    """Six numbers in a row, downwards, in digits."""
    return [
        sequence("down", [str(start - i) for i in range(SHOWN)])
        for start in [*range(6, 21), *range(6, 100)]
    ]


def steps() -> list[Row]:
    """Six numbers, each the same step from the last: by 2, 3, 4, 5, 10, 20, 100, up or down."""
    rows = []
    for step in (2, 2, 2, 3, 4, 5, 5, 10, 10, 10, 20, 100):
        for first in (step, step, step, 1, 2, 3, 10, 20):
            rows.append(sequence("step", [str(first + step * i) for i in range(SHOWN)]))
        last = step * 10
        rows.append(sequence("step", [str(last - step * i) for i in range(SHOWN)]))
    return rows


def counting_in_words() -> list[Row]:
    """Six number words in a row, upwards."""
    starts = [*range(1, 15), *range(1, 8), *range(1, 40)]
    return [sequence("word", [in_words(start + i) for i in range(SHOWN)]) for start in starts]


def counting_down_in_words() -> list[Row]:
    """Six number words in a row, downwards."""
    starts = [*range(6, 21), *range(6, 13), 10, 10, 10]
    return [sequence("back", [in_words(start - i) for i in range(SHOWN)]) for start in starts]


def steps_in_words() -> list[Row]:
    """Six number words with the same step: twos, fives, tens."""
    rows = []
    for step in (2, 5, 10, 10):
        for first in (step, step, 10, 20):
            rows.append(sequence("tens", [in_words(first + step * i) for i in range(SHOWN)]))
    return rows


def ordinals() -> list[Row]:
    """Six ordinals in a row."""
    return [
        sequence("nth", ORDINALS[start : start + SHOWN])
        for start in [0, 0, 0, *range(len(ORDINALS) - SHOWN + 1)]
    ]


def letters() -> list[Row]:
    """Six letters of the alphabet in a row."""
    return [
        sequence("letter", list(LETTERS[start : start + SHOWN])) for start in [0, 0, *range(21)]
    ]


def pairs() -> list[Row]:
    """A smaller number and a larger one, in digits and in words."""
    rows = []
    for smaller in range(1, 40):
        for gap in (1, 3, 7, 20, 40):
            larger = smaller + gap
            rows.append(
                {
                    "smaller": str(smaller),
                    "larger": str(larger),
                    "smaller_word": in_words(smaller),
                    "larger_word": in_words(larger),
                }
            )
    return rows


NUMBER_TABLES = {
    "sums": rows_of("add", sums(1)),
    "sums_of_things": rows_of("plus", sums(2)),  # "two balls": never one
    "differences": rows_of("sub", with_rest(1)),
    "differences_of_things": rows_of("minus", with_rest(2)),
    "products": rows_of("times", products(2)),
    "counting": counting(),
    "counting_down": counting_down(),
    "steps": steps(),
    "counting_in_words": counting_in_words(),
    "counting_down_in_words": counting_down_in_words(),
    "steps_in_words": steps_in_words(),
    "ordinals": ordinals(),
    "letters": letters(),
    "pairs": pairs(),
    "runs": runs("run", UP + UP + DOWN + STEPS + STEPS + STEPS_DOWN),
    "spaced_runs": runs("spaced_run", UP + STEPS + DOWN, " "),
    "word_runs": runs("word_run", WORDS_UP + WORDS_UP + WORDS_DOWN + WORDS_STEPS),
    "ordinal_runs": runs(
        "ordinal_run", [list(ORDINALS), list(ORDINALS), list(ORDINALS[1:]), list(ORDINALS[2:])]
    ),
    "letter_runs": runs(
        "letter_run", [list(LETTERS[start:]) for start in (0, 0, 0, *range(1, 23))]
    ),
    "small_runs": runs(
        "small_run", [list(LETTERS.lower()[start:]) for start in (0, 0, 0, *range(1, 24))]
    ),
}
