"""The facts: no fact contradicts another, no name has two genders, a column has one table."""

from collections import Counter, defaultdict

import pytest

from gptviz.training.world.columns import ALL_TABLES, COLUMNS, both_ways
from gptviz.training.world.numbers import in_words
from gptviz.training.world.tables import FEMALE, FORMS, MALE, TABLES

# (what it is known by, what is then known of it): one answer each
FACTS = [
    ("country", "capital"),
    ("animal", "young"),
    ("animal", "sound"),
    ("animal", "home"),
    ("animal", "legs"),
    ("coloured", "colour"),
    ("word", "opposite"),
    ("job", "workplace"),
    ("job", "tool"),
    ("food", "does"),
    ("day", "day_after"),
    ("day", "day_before"),
    ("month", "month_after"),
    ("month", "season"),
    ("relation", "relative"),
    ("shape", "sides"),
    ("time_unit", "unit_number"),
    ("number", "number_after"),
]


@pytest.mark.parametrize("known, asked", FACTS)
def test_a_fact_has_one_answer(known, asked):
    _, rows = COLUMNS[known]
    answers = defaultdict(set)
    for row in rows:
        if row[known] and row[asked]:
            answers[row[known]].add(row[asked])
    two = {name: found for name, found in answers.items() if len(found) > 1}
    assert not two
    assert answers


def test_no_name_in_two_genders_and_none_twice():
    men = [person["name"] for person in MALE]
    women = [person["name"] for person in FEMALE]
    assert not set(men) & set(women)
    assert max(Counter(men + women).values()) == 1
    assert all(set(forms) == {"m", "f"} for forms in FORMS.values())


def test_a_column_has_one_table_and_no_row_is_short():
    names = Counter(column for rows in ALL_TABLES.values() for column in rows[0])
    assert [name for name, times in names.items() if times > 1] == []
    for name, rows in TABLES.items():
        assert all(row.keys() == rows[0].keys() for row in rows), name


def test_days_and_months_go_round():
    for thing in ("day", "month"):
        _, rows = COLUMNS[thing]
        after = {row[thing]: row[f"{thing}_after"] for row in rows}
        before = {row[thing]: row[f"{thing}_before"] for row in rows}
        assert all(before[after[name]] == name for name in after)
        name = rows[0][thing]
        for _ in rows:
            name = after[name]
        assert name == rows[0][thing]


def test_sums_are_right_in_digits_and_in_words():
    for operation, calculate in (
        ("add", lambda a, b: a + b),
        ("plus", lambda a, b: a + b),
        ("sub", lambda a, b: a - b),
        ("minus", lambda a, b: a - b),
        ("times", lambda a, b: a * b),
    ):
        _, rows = COLUMNS[f"{operation}_a"]
        for row in rows:
            first, second, result = (
                int(row[f"{operation}_{name}"]) for name in ("a", "b", "result")
            )
            assert result == calculate(first, second)
            assert row[f"{operation}_result_word"] == in_words(result)


@pytest.mark.parametrize(
    "number, word",
    [
        (0, "zero"),
        (7, "seven"),
        (13, "thirteen"),
        (20, "twenty"),
        (42, "forty-two"),
        (100, "a hundred"),
    ],
)
def test_numbers_in_words(number, word):
    assert in_words(number) == word


def test_an_opposite_is_turned_round_only_where_it_is_the_one_answer():
    rows = [
        {"word": "hot", "opposite": "cold", "kind": "adjective"},
        {"word": "tall", "opposite": "short", "kind": "adjective"},
        {"word": "long", "opposite": "short", "kind": "adjective"},
    ]
    turned = both_ways(rows)[3:]
    assert turned == [{"word": "cold", "opposite": "hot", "kind": "adjective"}]
