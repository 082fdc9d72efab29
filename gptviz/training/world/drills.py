"""Drills: passages of eight to twelve small sums in one form, as in a copybook.

A passage with a single sum is mostly words; what is learnt from it is where an answer stands, and not which.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from gptviz.training.world.numbers import Fact, differences, in_words, products, sums

FEWEST = 8  # lines of a drill
MOST = 12
IN_WORDS = 0.5  # of the drills in a form without signs
IN_SENTENCES = 0.5  # of the drills that ask nothing


SPOKEN = {"+": "plus", "-": "minus", "x": "times"}


# ---- the facts of a passage ----

Draw = Callable[[int, random.Random], list[Fact]]  # so many facts


def drawn(facts: list[Fact], count: int, chance: random.Random) -> list[Fact]:
    """Facts in no order, none of them twice.

    There are more sums of nine than of four. By these weights a total of sums is as likely as another.
    """
    weights = [1 / (1 + max(fact.a, fact.c)) for fact in facts]
    rows: list[Fact] = []
    while len(rows) < count:
        [fact] = chance.choices(facts, weights)
        if fact not in rows:
            rows.append(fact)
    return rows


def from_table(tables: list[list[Fact]], count: int, chance: random.Random) -> list[Fact]:
    """A stretch of a table, more often near its beginning: in order, backwards or shuffled."""
    table = chance.choice(tables)
    room = max(0, len(table) - count)
    start = min(chance.randint(0, room), chance.randint(0, room))
    rows = table[start : start + count]
    order = chance.choice(("in order", "in order", "backwards", "shuffled"))
    if order == "backwards":
        rows.reverse()
    elif order == "shuffled":
        chance.shuffle(rows)
    return rows


def families(count: int, chance: random.Random) -> list[Fact]:
    """The four facts of three numbers: 2 + 3 = 5, 3 + 2 = 5, 5 - 2 = 3, 5 - 3 = 2; then those of others."""
    rows: list[Fact] = []
    for fact in drawn(sums(1), count // 4, chance):
        a = fact.a
        b = fact.b
        turned = Fact(b, "+", a, fact.c)
        rows.extend([fact, turned, Fact(fact.c, "-", a, b), Fact(fact.c, "-", b, a)])
    return rows


def tables_of(facts: list[Fact]) -> list[list[Fact]]:
    """The facts of one first number, of one second number, and of one result, where they are enough."""
    tables: dict[tuple[str, int], list[Fact]] = {}
    for fact in facts:
        for place in ("a", "b", "c"):
            tables.setdefault((place, getattr(fact, place)), []).append(fact)
    return [table for table in tables.values() if len(table) >= FEWEST]


# ---- the forms ----

OF_ANY = (
    "{a} {sign} {b} = {c}",
    "{a} {sign} {b} = {c}",
    "{a} {sign} {b} = {c}",
    "{a}{sign}{b}={c}",
    "{a} {sign} {b} is {c}",
    "{a} {spoken} {b} is {c}",
    "{a} {spoken} {b} is {c}",
    "{a} {spoken} {b} equals {c}",
    "{a} {sign} {b}? {c}",
    "what is {a} {sign} {b}? {c}",
    "what is {a} {spoken} {b}? {c}",
    "what is {a} {spoken} {b}? it is {c}",
    "how much is {a} {spoken} {b}? {c}",
    "Q: {a} {sign} {b}? A: {c}",
)
OF_SUMS = (
    "{a} and {b} make {c}",
    "{a} and {b} make {c}",
    "{a} and {b} is {c}",
    "{a} and {b} are {c}",
    "{a} and {b} together are {c}",
    "{a} plus {b} makes {c}",
    "{a} added to {b} is {c}",
    "{b} more than {a} is {c}",
    "add {a} and {b} and you get {c}",
    "add {b} to {a} and you have {c}",
    "if you add {a} and {b} you get {c}",
    "the sum of {a} and {b} is {c}",
    "how much is {a} and {b}? {c}",
    "how many are {a} and {b}? {c}",
    "what is the sum of {a} and {b}? {c}",
)
OF_DIFFERENCES = (
    "{b} from {a} leaves {c}",
    "{b} from {a} leaves {c}",
    "{b} from {a} is {c}",
    "{a} minus {b} leaves {c}",
    "{a} take away {b} is {c}",
    "{a} take away {b} leaves {c}",
    "{a} less {b} is {c}",
    "{b} less than {a} is {c}",
    "take {b} from {a} and {c} is left",
    "take {b} away from {a} and you have {c}",
    "if you take {b} from {a} you get {c}",
    "the difference between {a} and {b} is {c}",
    "what is {a} take away {b}? {c}",
    "what is left of {a} without {b}? {c}",
    "how much is {b} less than {a}? {c}",
)
OF_PRODUCTS = (
    "{a} * {b} = {c}",
    "{a} times {b} makes {c}",
    "{a} multiplied by {b} is {c}",
    "multiply {a} by {b} and you get {c}",
    "the product of {a} and {b} is {c}",
    "how many are {a} times {b}? {c}",
    "what is {a} multiplied by {b}? {c}",
)
ONE_MORE = (
    "one more than {a} is {c}",
    "{a} and one more is {c}",
    "{a} and one more make {c}",
    "after {a} comes {c}",
    "the number after {a} is {c}",
    "the next number after {a} is {c}",
    "add one to {a} and you get {c}",
    "what comes after {a}? {c}",
    "what is one more than {a}? {c}",
    "which number comes after {a}? {c}",
)
ONE_LESS = (
    "one less than {a} is {c}",
    "{a} less one is {c}",
    "before {a} comes {c}",
    "the number before {a} is {c}",
    "the number just before {a} is {c}",
    "take one from {a} and {c} is left",
    "what comes before {a}? {c}",
    "what is one less than {a}? {c}",
    "which number comes before {a}? {c}",
)
DOUBLES = (
    "{a} + {a} = {c}",
    "double {a} is {c}",
    "twice {a} is {c}",
    "{a} doubled is {c}",
    "{a} and {a} are {c}",
    "two times {a} is {c}",
    "the double of {a} is {c}",
    "what is double {a}? {c}",
    "what is twice {a}? {c}",
    "how much is twice {a}? {c}",
)
HALVES = (
    "half of {a} is {c}",
    "half {a} is {c}",
    "{a} halved is {c}",
    "the half of {a} is {c}",
    "{a} divided by two is {c}",
    "what is half of {a}? {c}",
    "how much is half of {a}? {c}",
    "what is {a} divided by two? {c}",
)


@dataclass(frozen=True)
class Kind:
    """`share`: of a hundred drills, how many are of this kind."""

    share: int
    draw: Draw
    forms: tuple[str, ...]


ALL_SUMS = sums(0)
MAKE_TEN = [fact for fact in ALL_SUMS if fact.c == 10]
SUM_TABLES = [*tables_of(ALL_SUMS), *[MAKE_TEN] * 5]
SUCCESSORS = [fact for fact in ALL_SUMS if fact.b == 1]
PREDECESSORS = [Fact(a, "-", 1, a - 1) for a in range(1, 21)]
TWICE = [fact for fact in ALL_SUMS if fact.a == fact.b]
HALVED = [Fact(2 * half, "-", half, half) for half in range(11)]
KINDS = (
    Kind(12, partial(drawn, sums(1, 10)), OF_ANY + OF_SUMS),
    Kind(12, partial(drawn, sums(1)), OF_ANY + OF_SUMS),
    Kind(16, partial(from_table, SUM_TABLES), OF_ANY + OF_SUMS),
    Kind(8, partial(drawn, differences(1, 10)), OF_ANY + OF_DIFFERENCES),
    Kind(7, partial(drawn, differences(1)), OF_ANY + OF_DIFFERENCES),
    Kind(9, partial(from_table, tables_of(differences(0))), OF_ANY + OF_DIFFERENCES),
    Kind(3, partial(drawn, products(2, 20)), OF_ANY + OF_PRODUCTS),
    Kind(3, partial(drawn, products(2)), OF_ANY + OF_PRODUCTS),
    Kind(6, partial(from_table, tables_of(products(1))), OF_ANY + OF_PRODUCTS),
    Kind(5, partial(drawn, sums(1) + differences(1)), OF_ANY),
    Kind(4, families, OF_ANY),
    Kind(4, partial(from_table, [SUCCESSORS]), ONE_MORE),
    Kind(4, partial(from_table, [PREDECESSORS]), ONE_LESS),
    Kind(4, partial(from_table, [TWICE]), DOUBLES),
    Kind(3, partial(from_table, [HALVED]), HALVES),
)

# ---- the passage ----

# what stands between two lines, and behind the last one
BETWEEN_SENTENCES = ((". ", "."), (".\n", "."), ("\n", ""))
WITHIN_A_LIST = ((", ", "."), (", ", ""), ("; ", "."), ("\n", ""))


def drill(chance: random.Random) -> str:
    """A passage of facts that are all written in one form."""
    [kind] = chance.choices(KINDS, [kind.share for kind in KINDS])
    facts = kind.draw(chance.randint(FEWEST, MOST), chance)
    form = chance.choice(kind.forms)
    number: Callable[[int], str] = str
    if not any(sign in form for sign in ("{sign}", "=")) and chance.random() < IN_WORDS:
        number = in_words
    lines = [line_of(fact, form, number) for fact in facts]
    if "?" in form or chance.random() < IN_SENTENCES:
        between, end = chance.choice(BETWEEN_SENTENCES)
        return between.join(map(sentence, lines)) + end
    between, end = chance.choice(WITHIN_A_LIST)
    text = between.join(lines) + end
    if end:
        return sentence(text)
    return text


def line_of(fact: Fact, form: str, number: Callable[[int], str]) -> str:
    """The fact in this form, its numbers in digits or in words."""
    return form.format(
        a=number(fact.a),
        b=number(fact.b),
        c=number(fact.c),
        sign=fact.sign,
        spoken=SPOKEN[fact.sign],
    )


def sentence(line: str) -> str:
    """The line with a capital at its beginning, and behind a question mark.

    >>> sentence("what is two plus three? five")
    'What is two plus three? Five'
    """
    return "? ".join(part[:1].upper() + part[1:] for part in line.split("? "))
