"""Many prompts, since one text proves little: a function of each, its mean and its standard error.

The prompts that are made here are sentences of the indirect object: "When Mary and John went to the store,
John gave a drink to" - to Mary, not to John. Of a frame, two names, a place and a thing, in which the name
that stands once is the answer. The other text has the other name a second time, so that the answer is the
other one; both have as many tokens, since only names, places and things are used that are one token of the
model. Wang et al., Interpretability in the Wild: a Circuit for Indirect Object Identification in GPT-2 small,
2022.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import compress
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gptviz.analysis.against import difference
from gptviz.analysis.patches import value_of
from gptviz.engine.given import ids_of
from gptviz.engine.index import whole
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.progress import Progress, ignore_progress
from gptviz.engine.undisturbed import undisturbed
from gptviz.tokenizer.one import OneToken

Texts = str | Sequence[Any]  # a text or its ids; or a list of texts, or of their ids
PAIR_OR_TOKEN = "a token, or a pair (token, against)"
OF_OTHER = (
    "other"  # a baseline of `measured`: a muted part gives what it gives in the prompt's other text
)
# the order of two names, up to the answer: A is the answer, and B comes again
ABBA = "ABBA"
BABA = "BABA"
ORDERS = (ABBA, BABA)


@dataclass(frozen=True)
class Prompt:
    """A text and its question: the logit of `token` minus that of `against`, None for the mean of all.

    Without a token it is what the model says first. `other` is the corrupt text that it is patched with. `order` is
    one of `ORDERS` where the text has two names (`gptviz.analysis.names.order_of`).
    """

    text: str
    token: OneToken | None = None
    against: OneToken | None = None
    other: str | None = None
    order: str | None = None

    @property
    def target(self) -> Any:
        """The token or the pair, as `knock_out` and `patching` take it."""
        if self.token is None or self.against is None:
            return self.token
        return (self.token, self.against)


def measured(
    lm: LanguageModel,
    function: Callable[..., pd.DataFrame],
    prompt: Prompt,
    pair: bool = False,
    progress: Progress = ignore_progress,
    **options: Any,
) -> tuple[pd.DataFrame, tuple[float, ...]]:
    """`function(lm, text, target)` of a prompt, or of a pair; and the difference of logits itself.

    Of a pair there are two, the clean text's and the corrupt one's. Without a token, against what the model says
    first after the other text. The baseline `OF_OTHER` is `baseline_of`. Raises ValueError as these functions do.
    """
    if options.get("baseline") == OF_OTHER:
        options["baseline"] = baseline_of(lm, prompt)
    trace = lm.trace(prompt.text, keep=())
    logits = trace.logits(-1)
    if prompt.token is None:
        token = int(logits.argmax())
    else:
        token = trace.token_id(prompt.token)
    if prompt.against is None:
        against = None
    else:
        against = trace.token_id(prompt.against)
    if not pair:
        table = function(lm, prompt.text, prompt.target, progress=progress, **options)
        return table, (float(difference(logits, token, against)),)
    table = function(lm, prompt.text, prompt.other, prompt.target, progress=progress, **options)
    others = lm.trace(prompt.other or "", keep=()).logits(-1)
    if prompt.token is None:  # as `patching` has it
        against = int(others.argmax())
    return table, tuple(float(difference(row, token, against)) for row in (logits, others))


def baseline_of(lm: LanguageModel, prompt: Prompt) -> str:
    """The baseline with which a muted part gives what it gives in the prompt's other text: "ids5+17+9".

    Raises ValueError, a sentence, for a prompt without one.
    """
    if prompt.other is None:
        raise ValueError("it has no other text for a muted part to take its value from")
    return value_of(ids_of(lm, prompt.other))


def is_many(text: Texts) -> bool:
    """Whether this is a list of texts (or of their ids) rather than one of them."""
    return isinstance(text, list | tuple) and len(text) > 0 and isinstance(text[0], str | Sequence)


def of_one_text(given: Any, name: str = "target", one: str = PAIR_OR_TOKEN) -> Any:
    """What is given for a single text. Raises ValueError for a list, which is for a list of texts."""
    if isinstance(given, list):
        raise ValueError(f"{name} is {given!r}; a list is for a list of texts: give {one}")
    return given


def over(
    function: Callable[..., Any],
    lm: LanguageModel,
    texts: Sequence[Any],
    target: Any,
    progress: Progress,
    each: Mapping[str, Any] | None = None,
    **options: Any,
) -> list[Any]:
    """Call `function(lm, text, target)` for each text. `target` is one for all, or a list with one for each.

    So are the options in `each`. `progress` is that of all of them. ValueError for lists of different lengths,
    and what the function raises, with the number of the text.
    """
    targets = _for_each("target", target, len(texts))
    lists = {name: _for_each(name, one, len(texts)) for name, one in (each or {}).items()}
    results = []

    def report(number: int, done: int, total: int) -> None:
        progress(number * total + done, len(texts) * total)

    for number, (text, aim) in enumerate(zip(texts, targets, strict=True)):
        try:
            own = {name: values[number] for name, values in lists.items()}
            told = partial(report, number)
            results.append(function(lm, text, aim, progress=told, **own, **options))
        except ValueError as error:
            raise ValueError(f"text {number}: {error}") from None
    return results


def _for_each(name: str, given: Any, count: int) -> list[Any]:
    """One for each of so many texts: a list has them, anything else is for all."""
    if not isinstance(given, list):
        return [given] * count
    if len(given) != count:
        raise ValueError(f"{count} texts and {len(given)} {name}s: give a {name} for each, or one")
    return given


def averaged(
    tables: Sequence[pd.DataFrame],
    columns: Sequence[str],
    orders: Sequence[str | None] = (),
    groups: Sequence[int] = (),
) -> pd.DataFrame:
    """The mean of these columns over tables of the same rows; `_se` is its `standard_error`, n their number.

    `groups` has the group of each table, such as `gptviz.analysis.names.groups_of` gives. With `orders`, one for each
    table, the same stands beside it for the tables of each order: logit_ABBA, logit_se_ABBA, n_ABBA. That is so
    where there are two orders (`has_two`); a table without one is in neither.
    """
    names = list(columns)
    of_tables = [table[names].astype(float) for table in tables]
    errors = standard_error(np.stack([table.to_numpy() for table in of_tables]), groups)
    means = tables[0].assign(
        **dict(pd.concat(of_tables).groupby(level=0).mean()),
        **{f"{name}_se": errors[:, place] for place, name in enumerate(names)},
        n=len(tables),
    )

    def of_order(chosen: Sequence[bool]) -> pd.DataFrame:
        """The means of the chosen tables alone."""
        return averaged([*compress(tables, chosen)], names, groups=[*compress(groups, chosen)])

    return beside_orders(means, names, orders, of_order)


def beside_orders(
    means: pd.DataFrame,
    columns: Sequence[str],
    orders: Sequence[str | None],
    of_chosen: Callable[[Sequence[bool]], pd.DataFrame],
) -> pd.DataFrame:
    """The means of tables, and beside them those of each order, if there are two (`has_two`).

    `of_chosen` gives the means of some of the tables, by whether each is chosen.
    """
    if not has_two(orders):
        return means
    found = [*columns, *(f"{column}_se" for column in columns), "n"]
    for order in ORDERS:
        own = of_chosen([of_table == order for of_table in orders])
        means = means.join(own[found].add_suffix(f"_{order}"))
    return means


def standard_error(numbers: NDArray[np.floating], groups: Sequence[int] = ()) -> Any:
    """That of the mean of texts' numbers, (n, ...) -> (...): NaN where there is a single group.

    It is the standard deviation (G - 1) of the G groups' numbers (`by_group`) divided by the root of G. Without
    `groups` each text is a group of its own.
    """
    of_groups = by_group(numbers, groups)
    if len(of_groups) == 1:
        return np.full(numbers.shape[1:], np.nan)
    return of_groups.std(axis=0, ddof=1) / len(of_groups) ** 0.5


def by_group(numbers: NDArray[np.floating], groups: Sequence[int]) -> NDArray[np.floating]:
    """A number for each group of texts, (n, ...) -> (G, ...), in the order of their first texts.

    It is the mean of the group's texts; where groups are not of one size, the larger one is further from the mean of
    all, and the smaller one nearer, so that the mean of all groups is that of all texts.
    """
    if not groups:
        return numbers
    of_texts = np.array(groups)
    each = [numbers[of_texts == group] for group in dict.fromkeys(groups)]
    mean = numbers.mean(axis=0)
    weights = [len(own) * len(each) / len(numbers) for own in each]
    return np.stack(
        [
            weight * own.mean(axis=0) + (1 - weight) * mean
            for weight, own in zip(weights, each, strict=True)
        ]
    )


def has_two(orders: Sequence[str | None]) -> bool:
    """Whether both `ORDERS` are among these."""
    return set(ORDERS) <= set(orders)


# ---- sentences with two names ----

NAMES = (
    "Mary", "John", "Tom", "James", "Peter", "Alice", "George", "Henry", "Jane", "William", "Charles", "Emma",
    "Anna", "Sarah", "David", "Robert", "Elizabeth", "Paul", "Laura", "Jack", "Kate", "Lucy", "Martha",
    "Edward", "Arthur", "Frank", "Harry", "Helen", "Margaret", "Joseph",
)  # fmt: skip
PLACES = (
    "store",
    "park",
    "school",
    "garden",
    "church",
    "house",
    "station",
    "market",
    "office",
    "library",
)
THINGS = (
    "drink",
    "book",
    "letter",
    "key",
    "ring",
    "flower",
    "kiss",
    "cup",
    "hat",
    "present",
    "box",
)
FRAMES = (
    "When {0} and {1} went to the {2}, {3} gave a {4} to",
    "After {0} and {1} went to the {2}, {3} gave a {4} to",
    "While {0} and {1} were at the {2}, {3} gave a {4} to",
)


@undisturbed
def indirect_objects(
    lm: LanguageModel, count: int = 24, seed: int = 0, exchanged: bool = False
) -> list[Prompt]:
    """`count` sentences, drawn at random; in every other one the giver is named first.

    The token is the name that is the answer, `against` the other one. None where `left_out` leaves too few. A model
    says some names more readily than others, whatever it reads. With `exchanged` every second sentence is the one
    before with its two names exchanged, as in ARENA's prompts: in a mean of both the names themselves cancel, and
    what is left is what the model makes of who is named twice. (Then the first two of four are ABBA, the others BABA.)
    """
    excluded = left_out(lm)
    names, places, things = (
        [word for word in words if word not in excluded] for words in (NAMES, PLACES, THINGS)
    )
    if len(names) < 2 or not places or not things:
        return []
    rng = np.random.default_rng(seed)
    count = whole("count", count, 0)
    prompts: list[Prompt] = []
    drawn = 0
    while len(prompts) < count:
        answer, giver = (str(name) for name in rng.choice(names, 2, replace=False))
        frame, place, thing = (str(rng.choice(words)) for words in (FRAMES, places, things))
        order = ORDERS[drawn % 2]
        prompts.append(_of_frame(frame, (answer, giver), (place, thing), order))
        if exchanged:
            prompts.append(_of_frame(frame, (giver, answer), (place, thing), order))
        drawn += 1
    return prompts[:count]


def _of_frame(frame: str, names: tuple[str, str], words: tuple[str, str], order: str) -> Prompt:
    """A sentence of the answer's name and the giver's, a place and a thing, and its other text."""
    answer, giver = names
    place, thing = words
    named = names if order == ABBA else names[::-1]
    text, other = (frame.format(*named, place, subject, thing) for subject in (giver, answer))
    return Prompt(text, f" {answer}", f" {giver}", other, order)


def left_out(lm: LanguageModel) -> dict[str, int]:
    """The words that are not a single token of this model, and how many tokens each one has."""
    tokens = {word: ids_of(lm, f" {word}") for word in (*NAMES, *PLACES, *THINGS)}
    return {
        word: len(ids)
        for word, ids in tokens.items()
        if len(ids) != 1 or ids[0] >= lm.config.vocab_size
    }
