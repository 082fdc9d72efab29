"""Words of which one can stand for another: countries, weekdays, he and she. No model reads these lists.

A class of words is a tuple. In an ordered one each word follows the one before it; a round one begins anew
behind its last word.
"""

import re
from dataclasses import dataclass

# the capitals of countries, of one word each
CAPITALS = {
    "France": "Paris",
    "Germany": "Berlin",
    "Italy": "Rome",
    "Spain": "Madrid",
    "England": "London",
    "Russia": "Moscow",
    "China": "Beijing",
    "Japan": "Tokyo",
    "Greece": "Athens",
    "Egypt": "Cairo",
    "Poland": "Warsaw",
    "Austria": "Vienna",
    "Hungary": "Budapest",
    "Norway": "Oslo",
    "Sweden": "Stockholm",
    "Portugal": "Lisbon",
    "Denmark": "Copenhagen",
    "Ireland": "Dublin",
    "Scotland": "Edinburgh",
    "Switzerland": "Bern",
    "Finland": "Helsinki",
    "Belgium": "Brussels",
    "Canada": "Ottawa",
    "Cuba": "Havana",
    "Peru": "Lima",
    "Turkey": "Ankara",
}
COUNTRIES = (*CAPITALS, "India", "Brazil", "Mexico", "Australia", "Iran")
CITIES = tuple(CAPITALS.values())
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
    "November", "December",
)  # fmt: skip
NUMBERS = (
    "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
)  # fmt: skip
ORDINALS = (
    "first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth",
)  # fmt: skip
LETTERS = tuple("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
ALSO_WORDS = ("March", "May", "Turkey")  # months and a country that are as well something else
# words that "the opposite of" may stand before; each second one is the opposite of the one before it
OPPOSITES = (
    "hot", "cold", "big", "small", "old", "young", "good", "bad", "high", "low", "long", "short", "dark", "light",
    "rich", "poor", "hard", "soft", "black", "white", "up", "down", "left", "right", "true", "false",
)  # fmt: skip


@dataclass(frozen=True)
class Ordered:
    """Words in an order, `noun` for one of them; `turns` where the first follows the last."""

    noun: str
    words: tuple[str, ...]
    turns: bool = False


ORDERED = (
    Ordered("weekday", WEEKDAYS, turns=True),
    Ordered("month", MONTHS, turns=True),
    Ordered("number", NUMBERS),
    Ordered("number", ORDINALS),
    Ordered("letter", LETTERS),
)

# ---- he and she ----

HE = (
    "Tom", "John", "Jim", "Peter", "Paul", "Jack", "James", "Henry", "George", "William", "Charles", "David",
    "Robert", "Edward", "Arthur", "Frank", "Harry", "Joseph", "Thomas", "Ben", "Bob", "Daniel", "Michael",
)  # fmt: skip
SHE = (
    "Mary", "Anna", "Kate", "Emma", "Lucy", "Alice", "Jane", "Laura", "Helen", "Elizabeth", "Margaret", "Martha",
    "Sarah", "Julia", "Clara", "Ellen", "Susan", "Ruth", "Emily", "Maria", "Nancy", "Betty", "Rachel",
)  # fmt: skip
_PAIRS = """
he she | himself herself | man woman | men women | boy girl | boys girls | king queen | prince princess
father mother | brother sister | son daughter | sons daughters | brothers sisters | uncle aunt | husband wife
gentleman lady | grandfather grandmother | nephew niece | lord lady | actor actress | Mr Mrs
"""
_EXCHANGED: dict[str, str] = {}
for _he, _she in re.findall(r"(\w+) (\w+)", _PAIRS.lower()):
    _EXCHANGED.setdefault(_he, _she)
    _EXCHANGED.setdefault(_she, _he)
_OF_HIM = {"him": "her", "hers": "his"}
# behind "her" these words begin something else: it was "him", not "his"
_BEHIND_HIM = (
    "a|an|and|as|at|but|by|for|from|if|in|into|of|on|or|so|that|the|then|to|when|while|with"
)
GENDERED = re.compile(
    rf"(?<![\w-])(?i:{'|'.join((*_EXCHANGED, 'his', 'him', 'hers', 'her'))})(?![\w-])"
)
_HIM = re.compile(rf"(?! *[^\W\d_])| +(?:{_BEHIND_HIM})(?!\w)")


def of_the_other(match: re.Match[str]) -> str:
    """The word of the other sex for a match of `GENDERED`, in letters as large; itself if it is none.

    "her" becomes "him" where no noun follows, else "his": as before the end of the text.
    """
    found = match[0]
    word = found.lower()
    behind = match.string[match.end() :]
    ends = not behind.strip()
    if word == "her":
        other = "his"
        if not ends and _HIM.match(behind):
            other = "him"
    elif word == "his":
        other = "hers"
        if ends or re.match(r" +[^\W\d_]", behind):
            other = "her"
    elif word in _OF_HIM:
        other = _OF_HIM[word]
    elif word in _EXCHANGED:
        other = _EXCHANGED[word]
    else:  # a letter that only stands for another one in any case: an old s
        return found
    if found.isupper():
        return other.upper()
    if found[0].isupper():
        return other.capitalize()
    return other
