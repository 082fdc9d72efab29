"""Which part did it? One question about one text or many, and every number that answers it.

The question is an answer instead of another word: " Anna" instead of " Tom". Each method is a thin call of the
function that measures it, with the question, the other text and the baseline filled in:

    votes          what each part writes for the answer and against the other word (`logit_attribution`)
    knock_out      what the difference loses without each part (`ablation`)
    patching       what each place carries of the difference between the two texts (`activation_patching`)
    role_patching  the same by block and role, over texts with two names (`role_patches`)
    path_patching  what one head passes to another, or to the logits (`patched_paths`)
    ranking        the heads in the order in which a circuit needs them (`circuit_search`)
    circuit        few heads that keep the difference (`circuit_search`)
    circuit_on     what a circuit keeps, its heads kept everywhere or at roles alone (`circuit_texts`)
    heads_by_role  at which role each head of a circuit works (`circuit_texts`)
    story          the roles of the field, each with its test (`circuit_story`, `copied_story`)
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

import numpy as np
import pandas as pd
import torch

from gptviz.analysis.abc_means import ABC
from gptviz.analysis.ablation import BASELINES, check, knock_out
from gptviz.analysis.activation_patching import patching
from gptviz.analysis.against import difference
from gptviz.analysis.asked import COPIED, asked_of, stood_before
from gptviz.analysis.circuit_claims import Story
from gptviz.analysis.circuit_passes import Head
from gptviz.analysis.circuit_search import Circuit, Ranking, circuit, ranking
from gptviz.analysis.circuit_story import story
from gptviz.analysis.circuit_texts import Given, circuit_on, heads_by_role
from gptviz.analysis.copied_story import copied_story
from gptviz.analysis.logit_attribution import attributions, source_tokens
from gptviz.analysis.names import groups_of, order_of
from gptviz.analysis.other_texts import SAME_ANSWER, other_texts
from gptviz.analysis.patched_paths import LOGITS, Receiver, path_patching
from gptviz.analysis.patches import value_of
from gptviz.analysis.prompts import (
    OF_OTHER,
    ORDERS,
    Prompt,
    has_two,
    is_many,
    standard_error,
)
from gptviz.analysis.role_patches import role_patching
from gptviz.engine.given import ids_of
from gptviz.engine.index import one_of
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.undisturbed import undisturbed
from gptviz.tokenizer.one import OneToken, one_token

MEASURES = ("logit", "probability")  # what a circuit keeps
MEAN = "mean"  # what muted parts give as long as nobody chose

Question = tuple[
    int, int
]  # the ids of the answer, and of the word instead of which it is asked for


@dataclass(frozen=True)
class WhichPart:
    """A question about texts, with everything that is chosen once. `which_part` makes one.

    `texts` and `questions` are of one length, and so are `others` where there are other texts. Every method
    takes the further options of the function that it calls. Of a single text its table has that text's
    numbers; of several their means, standard errors and number.
    """

    lm: LanguageModel
    texts: tuple[str, ...]
    questions: tuple[Question, ...]
    others: tuple[str, ...]
    measure: str = "logit"
    baseline: str | None = None

    @property
    @undisturbed
    def differences(self) -> list[float]:
        """The logit of the answer minus that of the other word, of each text."""
        logits = [self.lm.trace(text, keep=()).logits(-1) for text in self.texts]
        return [
            float(difference(row, *question))
            for row, question in zip(logits, self.questions, strict=True)
        ]

    @property
    def logit_difference(self) -> float:
        """The mean of `differences`."""
        return float(np.mean(self.differences))

    @property
    def logit_difference_se(self) -> float:
        """The standard error of that mean, as every method has it: NaN of a single text."""
        groups = groups_of(self.lm, self.texts, [*self.questions])
        return float(standard_error(np.array(self.differences), groups))

    @property
    def orders(self) -> list[str | None]:
        """Of each text "ABBA" where its answer is the name that it has first, "BABA" where it is the second.

        None for a text that does not name the answer once and the other word twice.
        """
        return [
            order_of(text, *(self.lm.decode([word]) for word in question))
            for text, question in zip(self.texts, self.questions, strict=True)
        ]

    def by_order(self) -> dict[str, "WhichPart"]:
        """The same question of the texts of either order, "ABBA" and "BABA": every mean of theirs alone.

        Empty where the texts do not have both orders; a text without one is in neither.
        """
        orders = self.orders
        if not has_two(orders):
            return {}
        return {order: self._of_texts([own == order for own in orders]) for order in ORDERS}

    def _of_texts(self, chosen: Sequence[bool]) -> "WhichPart":
        """The same question of the texts that are chosen, (texts,)."""

        def of(values: Sequence[Any]) -> tuple[Any, ...]:
            return tuple(compress(values, chosen))

        others = of(self.others)
        return replace(self, texts=of(self.texts), questions=of(self.questions), others=others)

    def votes(self, **options: Any) -> pd.DataFrame:
        """What each part writes for the answer and against the other word: see `attributions`."""
        return attributions(self.lm, *self._asked(), **options)

    def votes_by_token(self) -> torch.Tensor:
        """What each head takes from each token for the answer, (L, H, T) of the one text: see `source_tokens`."""
        self._is_one("votes_by_token")
        trace = self.lm.trace(self.texts[0])
        return source_tokens(trace, self.lm, *self.questions[0])

    def knock_out(self, **options: Any) -> pd.DataFrame:
        """What the difference loses with each part muted in turn: see `knock_out`."""
        return knock_out(self.lm, *self._asked(), **self._muted(MEAN) | options)

    def patching(self, **options: Any) -> pd.DataFrame:
        """What each place carries of the difference between the two texts: see `patching`."""
        text, questions = self._asked()
        return patching(self.lm, text, self._other(), questions, **options)

    def role_patching(self, **options: Any) -> pd.DataFrame:
        """The same at IO, S1, S1+1, S2 and END of two names, of texts of any lengths: see `role_patching`."""
        text, questions = self._asked()
        return role_patching(self.lm, text, self._other(), questions, **options)

    def path_patching(
        self, receivers: str | Sequence[Receiver] = LOGITS, **options: Any
    ) -> pd.DataFrame:
        """What each head passes to the receivers and to nobody else: see `path_patching`."""
        text, questions = self._asked()
        return path_patching(self.lm, text, self._other(), questions, receivers, **options)

    def ranking(self, **options: Any) -> Ranking:
        """All heads of the one text, in the order in which a circuit needs them: see `ranking`."""
        return ranking(self.lm, *self._kept("ranking"), **self._muted(MEAN) | options)

    def circuit(self, **options: Any) -> Circuit:
        """Few heads that keep what is measured in the one text: see `circuit`."""
        return circuit(self.lm, *self._kept("circuit"), **self._muted(MEAN) | options)

    def circuit_on(self, heads: Given, **options: Any) -> pd.DataFrame:
        """What only these heads keep of the difference, at every position or at their roles: see `circuit_on`."""
        options = self._muted(MEAN) | options
        return circuit_on(self.lm, *self._asked(), heads, **options)

    def heads_by_role(self, heads: Iterable[Head], **options: Any) -> pd.DataFrame:
        """At which role (IO, S1, S1+1, S2, END) each head of a circuit works: see `heads_by_role`."""
        options = self._muted(MEAN) | options
        return heads_by_role(self.lm, *self._asked(), heads, **options)

    def story(self, **options: Any) -> Story:
        """The roles of the heads, each shown or not shown: see `gptviz.analysis.circuit_claims`.

        Where the answers are what came next in a passage that the texts repeat, the story of the copied word
        (`copied_story`), over made texts of their form. Else that of two names (`circuit_story`): of several texts,
        of these; of one text, of two dozen ready-made sentences. Muted heads give what the bench says, and as
        long as nobody chose, their mean over a sample: one over the text itself would still carry its words. The other
        texts of a story are its own: those that the functions make.
        """
        muted = {"baseline": self.baseline or "sample"}
        if self._copies():
            return copied_story(self.lm, self._asked()[0], **muted | options)
        prompts = None
        if len(self.texts) > 1:
            prompts = [
                Prompt(text, *question)
                for text, question in zip(self.texts, self.questions, strict=True)
            ]
        return story(self.lm, prompts, **muted | options)

    def _copies(self) -> bool:
        """Whether every answer is what came next last time, behind two tokens or more."""
        for text, (answer, _) in zip(self.texts, self.questions, strict=True):
            ids = ids_of(self.lm, text)
            place, length = stood_before(ids)
            if length < COPIED or ids[place] != answer:
                return False
        return True

    def _muted(self, usual: str) -> dict[str, Any]:
        """What a muted part gives, as the functions take it: as it was chosen, else as it is usual.

        Where that is the other text's, its ids, or a list of them.
        """
        baseline: Any = self.baseline or usual
        if baseline == OF_OTHER:
            other = self._other()
            if isinstance(other, str):
                baseline = value_of(ids_of(self.lm, other))
            else:
                baseline = [value_of(ids_of(self.lm, one)) for one in other]
        return {"baseline": baseline}

    def _asked(self) -> tuple[Any, Any]:
        """The text and its question, or the lists of both."""
        if len(self.texts) == 1:
            return self.texts[0], self.questions[0]
        return [*self.texts], [*self.questions]

    def _other(self) -> Any:
        """The other text, or the list of them. Raises ValueError without one: it says which text has none."""
        if not self.others:
            lacking = next((text for text in self.texts if _other_of(self.lm, text) is None), "")
            raise ValueError(
                "another text is needed to take values from, and none that keeps step with it could be "
                f"made of {lacking!r} (the other of two names, another fact, another copied word): give other=..."
            )
        if len(self.others) == 1:
            return self.others[0]
        return [*self.others]

    def _kept(self, name: str) -> tuple[str, Any]:
        """The one text, and what a circuit keeps of it."""
        self._is_one(name)
        if self.measure == "probability":
            return self.texts[0], self.questions[0][0]
        return self.texts[0], self.questions[0]

    def _is_one(self, name: str) -> None:
        if len(self.texts) > 1:
            raise ValueError(
                f"{name} is of one text, and this question is asked of {len(self.texts)}: make one of each"
            )


@undisturbed
def which_part(
    lm: LanguageModel,
    text: str | Sequence[str],
    answer: OneToken | Sequence[OneToken] | None = None,
    instead: OneToken | Sequence[OneToken] | None = None,
    other: str | Sequence[str] | None = None,
    measure: str = "logit",
    baseline: str | None = None,
) -> WhichPart:
    """Ask a text, or each of a list of texts, which part of the model makes it say `answer` rather than `instead`.

    Args:
        text: a text, or a list of texts.
        answer, instead: tokens, by id or text (" Anna", with its space), one for all texts or a list of one
            for each. A word of several tokens is asked for by its first. Without them, the two words that the
            text asks for (`gptviz.analysis.asked`).
        other: the text, or texts, whose values are patched in. Without it, the best one of as many tokens
            that `gptviz.analysis.other_texts` makes: with two names, the same text in which the other one comes again.
        measure: what a circuit keeps: the "logit" difference, or the "probability" of the answer.
        baseline: what a muted part gives: "zero", its "mean" over the text, or over a "sample", or with "other"
            what it gives in the other text, or with "abc", of two names, its mean over sentences with three different
            ones, position by position (`gptviz.analysis.abc_means`). Without one it is the mean over the text, and
            for the story that over a sample. (A `story` takes all but "abc".)

    Of several texts the methods give means and standard errors. Where two are each other's with `answer` and `instead`
    exchanged, as in `indirect_objects(exchanged=True)`, the errors are over such pairs
    (`gptviz.analysis.names.groups_of`): which of the two words a model likes to say does not count.

    Raises ValueError for unknown tokens, measures and baselines, for the same token twice, for one of the two
    words without the other, for lists of different lengths, and for a word without the space that it has in the
    text.
    """
    one_of("measure", measure, MEASURES)
    if baseline is not None:
        one_of("baseline", baseline, (*BASELINES, OF_OTHER, ABC))
    texts = _listed("text", text, 1)
    count = len(texts)
    if (answer is None) != (instead is None):
        raise ValueError("give both answer and instead, or neither: then the text is asked")
    if answer is None or instead is None:
        asked = [asked_of(lm, one) for one in texts]
        questions = [(one.answer, one.instead) for one in asked]
    else:
        words = _listed("answer", answer, count), _listed("instead", instead, count)
        questions = [_question(lm, *asked_for) for asked_for in zip(texts, *words, strict=True)]
    if other is None:
        others = [one for one in (_other_of(lm, text) for text in texts) if one is not None]
        if len(others) < count:
            others = []
    else:
        others = _listed("other", other, count)
    return WhichPart(lm, tuple(texts), tuple(questions), tuple(others), measure, baseline)


def _other_of(lm: LanguageModel, text: str) -> str | None:
    """The best other text that is in step and has another answer; None where none is made."""
    for other in other_texts(lm, text, last_resort=False):
        if other.is_equal and other.kind not in SAME_ANSWER:
            return other.text
    return None


def _question(lm: LanguageModel, text: str, answer: Any, instead: Any) -> Question:
    """The ids of both words, which are not the same one."""
    words = (answer, "answer"), (instead, "instead")
    for word, name in words:
        if isinstance(word, str):
            _check_space(lm, text, word, name)
    token, against = (_first_token(lm, *word) for word in words)
    check(lm, (token, against), "zero")
    return token, against


def _check_space(lm: LanguageModel, text: str, word: str, name: str) -> None:
    """Raise a ValueError for "Mary" where the text has " Mary": without the space it is other tokens."""
    spaced = f" {word}"
    alone = re.compile(rf"(?<!\S){re.escape(word)}(?!\w)")
    stands = [place.start() for place in alone.finditer(text)]
    if not word[:1].isalpha() or text[-1:].isspace() or not stands or stands[0] == 0:
        return
    # a model of characters has no token with a space before it
    if len(lm.encode(spaced, begin=False)) <= len(lm.encode(word, begin=False)):
        raise ValueError(
            f"{name} is {word!r}, which stands in the text with a space before it: give {spaced!r}, or an id"
        )


def _first_token(lm: LanguageModel, word: Any, name: str) -> int:
    """The id of a token, or of the first token of a word."""
    if isinstance(word, str) and len(lm.encode(word, begin=False)) > 1:
        word = lm.encode(word, begin=False)[0]
    return one_token(lm.tokenizer, lm.config.vocab_size, word, name)


def _listed(name: str, given: Any, count: int) -> list[Any]:
    """What is given as a list of so many; one for all is repeated."""
    if name in ("text", "other"):
        many = is_many(given)
    else:
        many = isinstance(given, list | tuple)
    if not many:
        return [given] * count
    values = [*given]
    if name != "text" and len(values) != count:
        raise ValueError(f"{count} texts and {len(values)} of {name}: give one of {name} for each")
    return values
