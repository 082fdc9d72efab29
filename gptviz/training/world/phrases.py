"""Fill a wording with a cast: `[The capital|The chief city] of {country} is {capital}.`

A wording is written in three signs.

    [a|b|c]      one of these; `[very |]` is "very " or nothing; they may stand inside each other
    {country}    a column of one of the tables; `{country2}` is another row's, and `{capital2}` belongs to it
    ¶  ⏎         an empty line, a line's end

`{a animal}` sets "a" or "an" before it, and `{^animal}` a capital. `{A}`, `{B}`, `{C}` are people; `{F}`,
`{G}` are women or girls, `{M}`, `{N}` men or boys; a form stands behind a dot: `{A.he}`, `{A.him}`, `{A.his}`
(see `tables.FORMS`). Within a passage a slot is filled the same wherever it stands, and two rows of a table,
or two people, are never the same.
"""

import random
import re
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from gptviz.training.world.columns import COLUMNS
from gptviz.training.world.numbers import Row
from gptviz.training.world.tables import FEMALE, FORMS, MALE, PEOPLE

T = TypeVar("T")

PERSON = {"A": PEOPLE, "B": PEOPLE, "C": PEOPLE, "F": FEMALE, "G": FEMALE, "M": MALE, "N": MALE}
FEW = 31  # rows of which all are spoken of as often: days, months
SIGNS = re.compile(r"([\[\]|]|\{[^{}]*\})")
SLOT = re.compile(
    r"\{(?P<capital>\^?)(?P<article>a )?(?P<name>[A-Za-z_]+?)(?P<digit>\d?)(?:\.(?P<form>[a-z]+))?\}"
)


@dataclass(frozen=True)
class Slot:
    """`{a animal2}`: the column `animal` of row 2, behind an article; `{A.his}`: a form of a person."""

    name: str
    digit: str
    form: str | None
    article: bool
    capital: bool


@dataclass(frozen=True)
class Choice:
    """`[a|b]`: one of several runs of parts."""

    options: tuple["Parts", ...]


Parts = tuple[str | Slot | Choice, ...]


@cache
def parse(wording: str) -> Parts:
    """The parts of a wording. Raises ValueError for brackets that do not close, or a slot that is none."""
    # the options of every open bracket; the wording itself is the first, with one option
    open_choices: list[list[list[str | Slot | Choice]]] = [[[]]]
    for sign in SIGNS.split(wording):
        options = open_choices[-1]
        if sign == "[":
            open_choices.append([[]])
        elif sign == "|" and len(open_choices) > 1:
            options.append([])
        elif sign == "]" and len(open_choices) > 1:
            open_choices.pop()
            choice = Choice(tuple(tuple(option) for option in options))
            open_choices[-1][-1].append(choice)
        elif sign.startswith("{"):
            options[-1].append(read_slot(sign))
        elif sign in ("|", "]"):
            raise ValueError(f"{sign!r} stands outside of brackets in {wording!r}")
        elif sign:
            options[-1].append(sign)
    if len(open_choices) > 1:
        raise ValueError(f"a bracket does not close in {wording!r}")
    return tuple(open_choices[0][0])


def read_slot(text: str) -> Slot:
    """The slot that is written `{...}`. Raises ValueError for an unknown column or form."""
    match = SLOT.fullmatch(text)
    if match is None:
        raise ValueError(
            f"{text} is no slot; write {{country}}, {{a animal2}}, {{^A}} or {{A.his}}"
        )
    name = match["name"]
    form = match["form"]
    if name in PERSON:
        if form is not None and form not in FORMS:
            raise ValueError(f"{text}: a person has the forms {', '.join(FORMS)}")
    elif name not in COLUMNS:
        raise ValueError(
            f"{text}: no table has the column {name!r}; there are {', '.join(COLUMNS)}"
        )
    return Slot(name, match["digit"], form, match["article"] is not None, match["capital"] == "^")


def fill(wording: str, chance: random.Random) -> str:
    """A passage: the wording with its choices made and its slots filled."""
    parts = chosen(parse(wording), chance)
    people = draw_people(parts, chance)
    rows = draw_rows(parts, chance)
    words = []
    for part in parts:
        if isinstance(part, str):
            words.append(part)
        elif part.name in people:
            words.append(said(part, person_form(people[part.name], part.form)))
        else:
            table, _ = COLUMNS[part.name]
            words.append(said(part, rows[table, part.digit][part.name]))
    return "".join(words).replace(" ¶ ", "\n\n").replace(" ⏎ ", "\n")


def chosen(parts: Parts, chance: random.Random) -> list[str | Slot]:
    """The parts with every choice made."""
    flat: list[str | Slot] = []
    for part in parts:
        if isinstance(part, Choice):
            flat.extend(chosen(chance.choice(part.options), chance))
        else:
            flat.append(part)
    return flat


def draw_people(parts: list[str | Slot], chance: random.Random) -> dict[str, Row]:
    """A person for each letter that is asked for, all of different names."""
    people: dict[str, Row] = {}
    for part in parts:
        if isinstance(part, Slot) and part.name in PERSON and part.name not in people:
            taken = list(people.values())
            free = [person for person in PERSON[part.name] if person not in taken]
            people[part.name] = chance.choice(free)
    return people


def draw_rows(parts: list[str | Slot], chance: random.Random) -> dict[tuple[str, str], Row]:
    """A row for each table and digit that is asked for, without an empty cell among those that are wanted.

    No two rows of a table are alike, and where it can be, they share nothing that is said of them: a second
    pair of opposites is no answer to the first.
    """
    wanted: dict[tuple[str, str], set[str]] = {}
    for part in parts:
        if isinstance(part, Slot) and part.name not in PERSON:
            table, _ = COLUMNS[part.name]
            wanted.setdefault((table, part.digit), set()).add(part.name)
    rows: dict[tuple[str, str], Row] = {}
    used_cells: dict[str, set[str]] = {}  # table -> what the passage already says of its rows
    for (table, digit), columns in wanted.items():
        possible = rows_with(table, frozenset(columns))
        used = used_cells.setdefault(table, set())
        fresh = [
            row for row in possible if not used.intersection(row[column] for column in columns)
        ]
        taken = [row for (name, _), row in rows.items() if name == table]
        distinct = [row for row in possible if row not in taken]
        row = drawn_row(fresh or distinct, chance)
        rows[table, digit] = row
        used.update(row[column] for column in columns)
    return rows


def drawn_row(rows: list[Row], chance: random.Random) -> Row:
    """A row, the first ones more often: in a table they are those that people ask for."""
    if len(rows) <= FEW:
        return chance.choice(rows)
    return first_more_often(rows, chance)


def first_more_often(items: list[T], chance: random.Random) -> T:
    """Half of the time any of them, else by Zipf's law: number n about 1/n as often as the first.

    That is how much more often people speak of France than of Moldova, and a small model learns what it is
    told often.
    """
    if chance.random() < 0.5:
        return chance.choice(items)
    return items[int(len(items) ** chance.random()) - 1]


@cache
def rows_with(table: str, columns: frozenset[str]) -> list[Row]:
    """The table's rows in which none of these cells is empty."""
    rows = next(rows for name, rows in COLUMNS.values() if name == table)
    return [row for row in rows if all(row[column] for column in columns)]


def person_form(person: Row, form: str | None) -> str:
    """The person's name, or "he", "his" ... of the person's gender."""
    if form is None:
        return person["name"]
    return FORMS[form][person["gender"]]


def said(slot: Slot, word: str) -> str:
    """The word with the article and the capital that its slot asks for."""
    if slot.article:
        word = with_article(word)
    if slot.capital:
        word = word[0].upper() + word[1:]
    return word


def with_article(word: str) -> str:
    """The word behind "a" or "an"."""
    sounds_like_consonant = word.startswith(
        ("uni", "use", "Eu", "one", "Uk", "Ur", "Un", "UK", "US")
    )
    begins_with_vowel = word[0].lower() in "aeiou" and not sounds_like_consonant
    if begins_with_vowel or word.startswith(("hour", "honest")):
        return f"an {word}"
    return f"a {word}"
