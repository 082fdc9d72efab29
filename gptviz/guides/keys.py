"""The keys of a guide's questions: what this model gives on this text, worked out and never written down.

A key is `f(lm, t, position, given, ...)`: of a trace and the selected position, what was `given` as the
answer (None before there is one), and its own arguments. It gives an `Answer`, from the same public numbers
that the pages draw, or raises CannotAsk where the question makes no sense of this model or text.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from gptviz.analysis.embeddings import nearest_tokens
from gptviz.analysis.head_formulas import ROLES
from gptviz.analysis.head_roles import roles
from gptviz.analysis.lens import KEEP, logit_lens, settled_from
from gptviz.analysis.loss import loss_steps
from gptviz.analysis.moved import prediction
from gptviz.analysis.reads import Sites, reads, sites_of
from gptviz.digits import fixed, percent
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.trace import Trace
from gptviz.tokenizer import show_token

Head = tuple[int, int]


class CannotAsk(ValueError):
    """Why a question cannot be asked of this model or text, as a sentence."""


@dataclass(frozen=True)
class Answer:
    """`truth` is what the model gives, `shown` how the screen says it, `facts` what a sentence may tell.

    `right` says whether what was given is that, and `said` how the screen says what was given. `options` are
    offered in a choice.
    """

    truth: Any
    shown: str
    facts: dict[str, str]
    right: bool | None = None
    said: str = ""
    options: tuple[str, ...] = ()


Key = Callable[..., Answer]
KEYS: dict[str, tuple[str, Key]] = {}  # name -> the kind of question it is a key of, and the function


def _key(kind: str) -> Callable[[Key], Key]:
    def register(function: Key) -> Key:
        KEYS[function.__name__] = (kind, function)
        return function

    return register


def arguments(name: str, kind: str, given: tuple[tuple[str, Any], ...]) -> tuple[Any, ...]:
    """What follows (lm, t, position, given) in a call of this key. Raises ValueError where that is wrong."""
    if name not in KEYS:
        raise ValueError(f"there is no key {name[:60]!r}; there are {', '.join(KEYS)}")
    asks, function = KEYS[name]
    if kind != asks:
        raise ValueError(f"the key {name} answers a question of the kind {asks}, not {kind}")
    parameters = [*inspect.signature(function).parameters.values()][4:]
    named, kinds = dict(given), {one.name: one.annotation for one in parameters}
    if named.keys() != kinds.keys():
        takes, has = (", ".join(one) or "nothing" for one in (kinds, named))
        raise ValueError(f"the key {name} takes {takes}, not {has}")
    for one, value in named.items():
        if not isinstance(value, int if kinds[one] is int else (int, float) if kinds[one] is float else str):
            raise ValueError(f"{one} of the key {name} is {value!r}; it must be {kinds[one].__name__}")
    return tuple(named[parameter.name] for parameter in parameters)


def sites(name: str, lm: LanguageModel, *arguments: Any) -> Sites:
    """The sites that this key reads, for `LanguageModel.trace`."""
    return sites_of(KEYS[name][1], lm, *arguments)


# ---- the keys ----


def _called(lm: LanguageModel, token: int) -> str:
    return f"`{show_token(lm.tokens([token])[0].raw)}`"


@_key("word")
@reads()
def next_word(lm: LanguageModel, t: Trace, position: int, given: str | None) -> Answer:
    """The most probable next token. Right is a word that begins with it, with or without its space."""
    p = t.logits(position).double().softmax(-1)  # (V,)
    best = int(p.argmax())
    facts = {"probability": percent(float(p[best]))}
    if given is None or not given.strip():
        return Answer(best, _called(lm, best), facts)
    first = lm.encode(given if given[:1].isspace() else f" {given}")[0]
    facts["given_probability"] = percent(float(p[first]))
    facts["given_rank"] = f"{int((p > p[first]).sum()) + 1:,}"
    return Answer(best, _called(lm, best), facts, first == best, _called(lm, first))


@_key("number")
@reads()
def pieces(lm: LanguageModel, t: Trace, position: int, given: float | None, word: str) -> Answer:
    """Into how many tokens this word is cut, after a space."""
    cut = [f"`{show_token(token.raw)}`" for token in lm.tokens(lm.encode(f" {word.strip()}"))]
    right = None if given is None else int(given) == len(cut)
    return Answer(len(cut), str(len(cut)), {"pieces": " ".join(cut)}, right, _number(given))


@_key("choice")
@reads()
def nearest(lm: LanguageModel, t: Trace, position: int, given: str | None, token: str) -> Answer:
    """The token whose embedding is most like this one's, among three that are farther and farther away."""
    ids = lm.encode(token)
    if len(ids) != 1:
        raise CannotAsk(f"this model has no single token for `{token}`")
    table = nearest_tokens(lm.model.tok_emb.weight, ids[0], min(2000, lm.config.vocab_size - 1))
    ranks = [rank for rank in (0, 40, 400, 1999) if rank < len(table)]
    found = [int(table["id"][rank]) for rank in ranks]
    options = tuple(dict.fromkeys(_called(lm, one) for one in sorted(found)))  # by id: not by likeness
    shown = _called(lm, found[0])
    facts = {"cosine": fixed(float(table["cosine"][0]), 2)}
    return Answer(found[0], shown, facts, None if given is None else given == shown, given or "", options)


def _in_block(lm: LanguageModel, position: int, given: Any, block: int, head: int) -> Sites:
    if not (0 <= block < lm.config.n_layers and 0 <= head < lm.config.n_heads):
        raise CannotAsk(f"this model has no head {block}.{head}")
    return (("attn", block),)


@_key("token")
@reads(_in_block)
def looked_at(lm: LanguageModel, t: Trace, position: int, given: int | None, block: int, head: int) -> Answer:
    """The token that this head looks at most, from the selected one."""
    row = t["attn", block][head, position]  # (T,)
    key = int(row.argmax())
    facts = {"weight": percent(float(row[key]))}
    right, said = None, ""
    if given is not None:
        _check_there(t, given)
        right, said = given == key, _place(t, given)
        facts["given_weight"] = percent(float(row[given]))
    return Answer(key, _place(t, key), facts, right, said)


@_key("head")
@reads("attn", "z")
def head_with(lm: LanguageModel, t: Trace, position: int, given: Head | None, role: str) -> Answer:
    """The head with the largest share of this role on this text; right is every head that has the role."""
    if role not in ROLES:
        raise CannotAsk(f"there is no role {role!r}; there are {', '.join(ROLES)}")
    every = {(one.block, one.head): one for row in roles(t) for one in row}
    those = {place: one.shares.get(role) or 0.0 for place, one in every.items() if one.kind == role}
    if not those:
        raise CannotAsk(f"no head has the role “{ROLES[role].label}” on this text")
    best = max(those, key=lambda place: those[place])
    facts = {"share": percent(those[best]), "heads": f"{len(those)}", "role": ROLES[role].label}
    if given is None:
        return Answer(best, _head(best), facts)
    given = (int(given[0]), int(given[1]))
    facts["given_share"] = percent((every[given].shares.get(role) or 0.0) if given in every else 0.0)
    return Answer(best, _head(best), facts, given in those, _head(given))


@_key("number")
@reads()
def without(lm: LanguageModel, t: Trace, position: int, given: float | None, edit: str) -> Answer:
    """The probability, in percent, that is left of the model's prediction with this change in it."""
    try:
        changed = lm.plain.trace([token.id for token in t.tokens], keep=(), edits=[edit])
    except ValueError as error:
        raise CannotAsk(f"this change cannot be made here: {error}") from error
    plain = lm.plain.trace([token.id for token in t.tokens], keep=())
    moved = prediction(plain.logits(position), changed.logits(position))
    left = 100 * moved.after
    facts = {"token": _called(lm, moved.token), "now": _called(lm, moved.now)}
    facts["before"] = percent(moved.before)
    return Answer(left, percent(moved.after), facts, _near(given, left, 15), _number(given, " %"))


@_key("number")
@reads()
def at_temperature(
    lm: LanguageModel, t: Trace, position: int, given: float | None, temperature: float
) -> Answer:
    """The probability, in percent, of the most probable token at this temperature."""
    if temperature <= 0:
        raise CannotAsk("a temperature is above 0")
    plain, p = ((t.logits(position).double() / by).softmax(-1) for by in (1.0, float(temperature)))
    best = int(plain.argmax())
    facts = {"token": _called(lm, best), "before": percent(float(plain[best]))}
    right = _near(given, 100 * float(p[best]), 15)
    return Answer(100 * float(p[best]), percent(float(p[best])), facts, right, _number(given, " %"))


@_key("number")
@reads()
def nucleus(lm: LanguageModel, t: Trace, position: int, given: float | None, share: float) -> Answer:
    """How many of the most probable tokens have this share of the probability together."""
    p = t.logits(position).double().softmax(-1).sort(descending=True).values  # (V,)
    count = int((p.cumsum(0) < share).sum()) + 1
    right = None if given is None else count / 2 <= given <= 2 * count
    return Answer(count, f"{count:,}", {"vocabulary": f"{len(p):,}"}, right, _number(given))


@_key("token")
@reads("final")
def dearest(lm: LanguageModel, t: Trace, position: int, given: int | None) -> Answer:
    """The token of the text that the model expected least: the one with the largest loss."""
    if len(t) < 3:
        raise CannotAsk("this takes a text of three tokens or more")
    ids = torch.tensor([token.id for token in t.tokens])
    logits = torch.stack([t.logits(at) for at in range(len(t) - 1)])  # (T - 1, V)
    loss = loss_steps(logits, ids[1:]).loss
    worst = int(loss.argmax()) + 1
    facts = {"loss": fixed(float(loss[worst - 1]), 2), "mean": fixed(float(loss.mean()), 2)}
    if given is None:
        return Answer(worst, _place(t, worst), facts)
    _check_there(t, given)
    facts["given_loss"] = fixed(float(loss[given - 1]), 2) if given else "none: nothing stands before it"
    return Answer(worst, _place(t, worst), facts, given == worst, _place(t, given))


@_key("number")
@reads(*KEEP)
def settled(lm: LanguageModel, t: Trace, position: int, given: float | None) -> Answer:
    """After how many blocks the model's guess is the one that it ends with, to the end."""
    tops = logit_lens(t, lm.model, position).argmax(-1).numpy()[::2]  # (L + 1,): the embedding, each block
    blocks = settled_from(tops)
    facts = {"token": _called(lm, int(tops[-1])), "blocks": str(lm.config.n_layers)}
    right = None if given is None else int(given) == blocks
    return Answer(blocks, str(blocks), facts, right, _number(given))


def _check_there(t: Trace, position: int) -> None:
    """Raise CannotAsk for a position that was answered when the text was another."""
    if position >= len(t):
        raise CannotAsk(f"position {position} was your answer, and this text ends at {len(t) - 1}")


def _place(t: Trace, position: int) -> str:
    return f"`{show_token(t.tokens[position].raw)}` (position {position})"


def _head(place: Head) -> str:
    return f"block {place[0]}, head {place[1]}"


def _number(given: float | None, unit: str = "") -> str:
    return "" if given is None else f"{given:g}{unit}"


def _near(given: float | None, truth: float, by: float) -> bool | None:
    return None if given is None else abs(given - truth) <= by
