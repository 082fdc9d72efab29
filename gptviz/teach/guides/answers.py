"""The input of a key of a guide's question, and the answer that the key gives."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from gptviz.digits import percent
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.tokens import Token
from gptviz.engine.trace import Trace
from gptviz.text.as_text import as_code
from gptviz.tokenizer import show_token

Head = tuple[int, int]
Told = Callable[[Any], str]


class CannotAsk(ValueError):
    """Why a question cannot be asked of this model or text, as a sentence."""


@dataclass(frozen=True)
class Answer:
    """`truth` is what the model gives, `shown` how the screen says it, `facts` what a sentence may tell.

    `right` says whether what was given is that, and `said` how the screen says what was given. `options` are
    offered in a choice. `score` ranks what was found, the largest first; None where it does not count.
    """

    truth: Any
    shown: str
    facts: dict[str, str]
    right: bool | None = None
    said: str = ""
    options: tuple[str, ...] = ()
    score: float | None = None


@dataclass(frozen=True)
class Asked:
    """A model, its trace of a text, the selected position, and what was `given` (None: nothing yet).

    Its methods make the answers, a kind of question each; what follows by name are the answer's facts.
    """

    lm: LanguageModel
    t: Trace
    position: int
    given: Any

    @property
    def ids(self) -> list[int]:
        return [token.id for token in self.t.tokens]

    @property
    def read(self) -> list[int]:
        """The ids up to the selected token, with it."""
        return self.ids[: self.position + 1]

    @property
    def chances(self) -> torch.Tensor:
        """The probabilities of the next token: (V,), float64."""
        return self.t.logits(self.position).double().softmax(-1)

    def place(self, position: int) -> str:
        """The token at a position, as the screen shows it."""
        return f"{written([self.t.tokens[position]])} (position {position})"

    def called(self, token: int) -> str:
        """A token of the vocabulary, as the screen shows it."""
        return written(self.lm.tokens([token]))

    @property
    def words(self) -> tuple[str, ...]:
        """The word that was typed: without quotes, a full stop and the screen's sign for a space; as it was
        typed, a "." or "'s" say; small, since a phone begins with a capital; and as a name."""
        typed = self.given.strip()
        word = typed.strip(" ·.\"'`“”‘’„«»") or typed
        return word, typed, word.lower(), word.capitalize()

    def id_of(self, token: str) -> int:
        """The id of a text that is one token. Raises CannotAsk for any other."""
        ids = self.lm.encode(token, begin=False)
        if len(ids) != 1 or ids[0] >= self.lm.config.vocab_size:
            raise CannotAsk(f"this model has no single token for {token!r}")
        return ids[0]

    def number(
        self, truth: float, shown: str, by: float, unit: str = "", /, **facts: str
    ) -> Answer:
        """A number: right is what is given within `by`."""
        if self.given is None:
            return Answer(truth, shown, facts)
        return Answer(
            truth, shown, facts, abs(self.given - truth) <= by, f"{self.given:.12g}{unit}"
        )

    def percent(self, share: float, by: float = 15, /, **facts: str) -> Answer:
        """A share, asked for in percent."""
        return self.number(100 * share, percent(share), by, " %", **facts)

    def count(self, number: int, /, **facts: str) -> Answer:
        """Mark a count: right is this number, whatever is given behind its decimal point."""
        if self.given is None:
            right = None
        else:
            right = int(self.given) == number
        return replace(self.number(number, str(number), 0, **facts), right=right)

    def choice(self, options: Sequence[str], truth: int, /, **facts: str) -> Answer:
        """One of the options: that with this number."""
        if self.given is None:
            right = None
        else:
            right = self.given == options[truth]
        given_text = self.given or ""
        if given_text and given_text not in options:
            given_text = as_code(given_text)
        return Answer(options[truth], options[truth], facts, right, given_text, tuple(options))

    def token(self, truth: int, /, fact: str = "", told: Told = str, **facts: str) -> Answer:
        """The token at a position. `told` gives the fact named `fact` of it, `given_...` of the given one."""
        # it was answered when the text was another
        if self.given is not None and self.given >= len(self.t):
            raise CannotAsk(
                f"position {self.given} was your answer, and this text ends at {len(self.t) - 1}"
            )
        return self._one_of([truth], self.given, self.place, {fact: told} if fact else {}, facts)

    def head(self, right: Sequence[Head], fact: str, told: Told, /, **facts: str) -> Answer:
        """A head, of which the first is the truth and each is right; the `fact` as of a token."""
        if self.given is None:
            given_head = None
        else:
            given_head = (int(self.given[0]), int(self.given[1]))
        return self._one_of(right, given_head, head_name, {fact: told}, facts)

    def _one_of(
        self,
        right: Sequence[Any],
        answer: Any,
        name: Told,
        texts: dict[str, Told],
        facts: dict[str, str],
    ) -> Answer:
        truth = right[0]
        facts |= {fact: text_of(truth) for fact, text_of in texts.items()}
        if answer is None:
            return Answer(truth, name(truth), facts)
        facts |= {f"given_{fact}": text_of(answer) for fact, text_of in texts.items()}
        return Answer(truth, name(truth), facts, answer in right, name(answer))


def written(tokens: Sequence[Token]) -> str:
    """Tokens as the screen shows them, one after the other."""
    return " ".join(as_code(show_token(token.raw)) for token in tokens)


def head_name(head: Head) -> str:
    return f"block {head[0]}, head {head[1]}"
