"""Drills: whatever a line says, and however it says it, is true."""

import random
import re
from collections import Counter

import pytest

from gptviz.training.world.drills import (
    FEWEST,
    KINDS,
    MOST,
    differences,
    drill,
    from_table,
    line_of,
    products,
    sums,
    tables_of,
)
from gptviz.training.world.numbers import in_words

WORDS = {in_words(number): number for number in range(101)}
# the longer ones first: "twenty-one" begins with "twenty"
IS_A_NUMBER = re.compile(rf"\b({'|'.join(sorted(WORDS, key=len, reverse=True))})\b")
# what a line says of its numbers: the first pattern that it has
READ = (
    (r"double|twice", lambda a, c: 2 * a == c),
    (r"halved|half", lambda a, c: a == 2 * c),
    (r"divided", lambda a, two, c: a == two * c),
    (r"after \d+", lambda a, c: a + 1 == c),
    (r"before \d+", lambda a, c: a - 1 == c),
    (r"less than|from", lambda taken, a, c: a - taken == c),
    (r"-|minus|less|take away|difference|without", lambda a, taken, c: a - taken == c),
    (r"x|\*|times|multipl|product", lambda a, b, c: a * b == c),
    (r"\+|plus|and|add|sum|more", lambda a, b, c: a + b == c),
)


def lines_of(text):
    """The lines of a drill in small letters, its number words written as digits."""
    text = IS_A_NUMBER.sub(lambda match: str(WORDS[match[0]]), text.lower())
    return [line for line in re.split(r"[,;.\n]+ ?", text) if line]


def is_true(line):
    numbers = [int(number) for number in re.findall(r"\d+", line)]
    truths = [truth for pattern, truth in READ if re.search(pattern, line)]
    return truths[0](*numbers)


@pytest.fixture(scope="module")
def texts():
    return [drill(random.Random(seed)) for seed in range(5_000)]


def test_every_line_is_true(texts):
    for text in texts:
        lines = lines_of(text)
        assert FEWEST <= len(lines) <= MOST, text
        for line in lines:
            assert is_true(line), (line, text)
            numbers = [int(number) for number in re.findall(r"\d+", line)]
            product = re.search(r"x|\*|times|multipl|product", line)
            assert max(numbers) <= (100 if product else 20), line


@pytest.mark.parametrize(
    "line", ["2 + 3 = 6", "2 from 5 leaves 2", "7 x 8 = 54", "half of 8 is 5", "after 4 comes 6"]
)
def test_a_line_that_is_not_true_would_be_seen(line):
    assert not is_true(line)


def test_the_lines_of_a_drill_have_one_form_and_drills_have_many(texts):
    forms = Counter()
    for text in texts:
        shapes = {re.sub(r"\d+", "#", line) for line in lines_of(text)}
        signs = {shape.replace("-", "+").replace("minus", "plus") for shape in shapes}
        assert len(signs) == 1, text
        forms.update(shapes)
    assert len(forms) > 90
    assert forms.most_common(1)[0][0] == "# + # = #"


def test_digits_and_words_and_what_stands_between_lines(texts):
    in_digits = sum(bool(re.search(r"\d", text)) for text in texts)
    assert 0.5 < in_digits / len(texts) < 0.8
    for between in (", ", "; ", ".\n", ". ", "\n"):
        assert sum(between in text for text in texts) > 200, between
    assert sum(text[0].islower() for text in texts) > 200
    assert all(text.isascii() and text == text.strip() and "  " not in text for text in texts)
    assert not any("{" in text for text in texts)


def test_small_sums_are_more_frequent(texts):
    results = Counter()
    for text in texts:
        for line in lines_of(text):
            match = re.fullmatch(r"(\d+) ?\+ ?(\d+) ?= ?(\d+)", line)
            if match:
                results[int(match[3])] += 1
    small = sum(count for result, count in results.items() if result <= 10)
    assert 0.55 < small / results.total() < 0.8
    assert set(results) == set(range(21))


@pytest.mark.parametrize(
    "said",
    [
        "1 + 1 = 2, 2 + 1 = 3, 3 + 1 = 4, 4 + 1 = 5",
        "5 + 1 = 6, 5 + 2 = 7, 5 + 3 = 8, 5 + 4 = 9",
        "1 + 9 = 10, 2 + 8 = 10, 3 + 7 = 10, 4 + 6 = 10",
        "10 - 1 = 9, 10 - 2 = 8, 10 - 3 = 7, 10 - 4 = 6",
        "6 - 2 = 4, 7 - 2 = 5, 8 - 2 = 6, 9 - 2 = 7",
        "3 x 2 = 6, 3 x 3 = 9, 3 x 4 = 12, 3 x 5 = 15",
        "4 x 7 = 28, 5 x 7 = 35, 6 x 7 = 42, 7 x 7 = 49",
    ],
)
def test_a_table_is_of_one_number(said):
    facts = sums(0) + differences(0) + products(1)
    tables = [
        ", ".join(line_of(fact, "{a} {sign} {b} = {c}", str) for fact in table)
        for table in tables_of(facts)
    ]
    assert any(said in table for table in tables)


def test_a_table_in_every_order():
    table = products(1)[10:20]
    orders = Counter()
    for seed in range(400):
        rows = from_table([table], 9, random.Random(seed))
        ordered = sorted(rows, key=table.index)
        assert ordered in (table[:9], table[1:])
        if rows == ordered:
            orders["in order"] += 1
        elif rows == ordered[::-1]:
            orders["backwards"] += 1
        else:
            orders["shuffled"] += 1
    assert orders["in order"] > 160 and min(orders["backwards"], orders["shuffled"]) > 70


def test_the_same_seed_gives_the_same_drill():
    assert drill(random.Random(3)) == drill(random.Random(3))
    assert len({drill(random.Random(seed)) for seed in range(300)}) > 295


def test_the_shares_are_of_a_hundred():
    assert sum(kind.share for kind in KINDS) == 100
