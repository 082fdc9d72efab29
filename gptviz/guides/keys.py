"""The keys of a guide's questions: what this model gives on this text, worked out and never written down.

A key is `f(lm, t, position, given, ...)`: of a trace and the selected position, what was `given` as the
answer (None before there is one), and its own arguments. It gives an `Answer`, from the same public numbers
that the pages draw, or raises CannotAsk where the question makes no sense of this model or text.
"""

import copy
import functools
import inspect
import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
import torch

from gptviz.analysis import ablation
from gptviz.analysis.activation_patching import patching
from gptviz.analysis.circuit_passes import Passes, all_heads
from gptviz.analysis.circuit_search import allowed, parse
from gptviz.analysis.embeddings import nearest_tokens
from gptviz.analysis.head_formulas import ROLES
from gptviz.analysis.head_roles import roles
from gptviz.analysis.lens import KEEP, logit_lens, settled_from
from gptviz.analysis.loss import loss_steps, uniform_loss
from gptviz.analysis.moved import ROUNDING, Prediction, prediction
from gptviz.analysis.norms import find_norm, norm_input, norm_steps
from gptviz.analysis.reads import Sites, reads, sites_of
from gptviz.analysis.stream import SITES as STREAM
from gptviz.analysis.stream import stream
from gptviz.analysis.tokens import chapter
from gptviz.digits import fixed, many, percent, significant
from gptviz.engine import forward
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.sampling import Sampling, distribution
from gptviz.engine.trace import Trace
from gptviz.guides.guide import Question
from gptviz.lessons import bigram
from gptviz.lessons.attention import Heads, HeadWeights, multi_head_attention, simple_attention
from gptviz.lessons.scaling import by_size
from gptviz.lessons.sentences import SENTENCES, linear_weights
from gptviz.lessons.windows import Windows
from gptviz.tokenizer import show_token

MOST_COPIED = 10**9  # bytes of a model that is copied to be trained for a step
CACHED = 0.01  # of a logit: a pass that goes on from kept keys and values adds up in another order

RANDOM_CIRCUITS = 10  # beside each circuit that was handed in
SENTENCE = 8  # tokens: on fewer, a large share is easily had

Head = tuple[int, int]
Found = tuple[str, str]


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


Key = Callable[..., Answer]
KEYS: dict[str, tuple[str, Key]] = {}  # name -> the kind of question it is a key of, and the function


def _key(kind: str) -> Callable[[Key], Key]:
    def register(function: Key) -> Key:
        @functools.wraps(function)
        def asked(*args: Any) -> Answer:
            try:
                return function(*args)
            except CannotAsk:
                raise
            except ValueError as error:  # a block that there is not
                raise CannotAsk(str(error)) from error

        KEYS[function.__name__] = (kind, asked)
        return asked

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


def answer_at(place: Mapping[str, str], ask: Question, lm: LanguageModel) -> Answer:
    """The answer to a question at a place: of its text, at the token that it names. Raises CannotAsk."""
    ids = lm.encode(place["text"], special_tokens=place.get("special") == "on")[: lm.config.context_length]
    if not ids:
        raise CannotAsk("its text has no tokens")
    token, last = place.get("token", ""), len(ids) - 1
    position = min(int(token), last) if token.isdecimal() else last
    named = arguments(ask.key, ask.kind, ask.given)
    trace = lm.trace(ids, keep=sites(ask.key, lm, position, None, *named))
    return KEYS[ask.key][1](lm, trace, position, None, *named)


# ---- the keys ----


def _ids(t: Trace) -> list[int]:
    return [token.id for token in t.tokens]


def _called(lm: LanguageModel, token: int) -> str:
    return f"`{show_token(lm.tokens([token])[0].raw)}`"


@_key("word")
@reads()
def next_word(lm: LanguageModel, t: Trace, position: int, given: str | None) -> Answer:
    """The most probable next token. Right is what begins with it, with or without a space before."""
    p = t.logits(position).double().softmax(-1)  # (V,)
    best = int(p.argmax())
    facts = {"probability": percent(float(p[best]))}
    if given is None or not given.strip():
        return Answer(best, _called(lm, best), facts)
    spaced, plain = (lm.encode(text)[0] for text in (f" {given.lstrip()}", given))
    first = best if best == plain else spaced
    facts["given_probability"] = percent(float(p[first]))
    facts["given_rank"] = f"{int((p > p[first]).sum()) + 1:,}"
    return Answer(best, _called(lm, best), facts, first == best, _called(lm, first))


@_key("number")
@reads()
def chance(lm: LanguageModel, t: Trace, position: int, given: float | None, token: str) -> Answer:
    """The probability, in percent, that this token comes next; right within 15 points."""
    ids = lm.encode(token)
    if len(ids) != 1:
        raise CannotAsk(f"this model has no single token for `{token}`")
    p = float(t.logits(position).double().softmax(-1)[ids[0]])
    return Answer(100 * p, percent(p), {}, _near(given, 100 * p, 15), _number(given, " %"))


@_key("number")
@reads()
def pieces(lm: LanguageModel, t: Trace, position: int, given: float | None, word: str) -> Answer:
    """Into how many tokens this word is cut, after a space."""
    cut = [f"`{show_token(token.raw)}`" for token in lm.tokens(lm.encode(f" {word.strip()}"))]
    right = _exactly(given, len(cut))
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
    _check_role(role)
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


def _moved(lm: LanguageModel, t: Trace, position: int, edits: list[str]) -> Prediction:
    """What these changes of the model make of its prediction."""
    plain, changed = _both(lm, t, edits)
    return prediction(plain.logits(position), changed.logits(position))


def _both(lm: LanguageModel, t: Trace, edits: list[str], keep: Sites = ()) -> tuple[Trace, Trace]:
    """The text's pass through the model as it is, and with these changes."""
    try:
        changed = lm.plain.trace(_ids(t), keep=keep, edits=edits)
    except ValueError as error:
        raise CannotAsk(f"this change cannot be made here: {error}") from error
    return lm.plain.trace(_ids(t), keep=keep), changed


@_key("number")
@reads()
def without(lm: LanguageModel, t: Trace, position: int, given: float | None, edit: str) -> Answer:
    """The probability, in percent, that is left of the model's prediction with this change in it.

    Several changes have a comma between them; `alone` tells what each of them by itself leaves.
    """
    edits = edit.split(",")
    moved = _moved(lm, t, position, edits)
    left = 100 * moved.after
    facts = {"token": _called(lm, moved.token), "now": _called(lm, moved.now)}
    facts["before"] = percent(moved.before)
    facts["alone"] = " or ".join(percent(_moved(lm, t, position, [one]).after) for one in edits)
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
    loss = _losses(lm, t)
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
    right = _exactly(given, blocks)
    return Answer(blocks, str(blocks), facts, right, _number(given))


# ---- of tokens, rows and windows ----


@_key("number")
@reads()
def token_count(lm: LanguageModel, t: Trace, position: int, given: float | None) -> Answer:
    """Of how many tokens the text is made."""
    words = lm.decode(_ids(t)).split()
    facts = {"pieces": " ".join(f"`{show_token(token.raw)}`" for token in t.tokens), "words": str(len(words))}
    return Answer(len(t), str(len(t)), facts, _exactly(given, len(t)), _number(given))


@_key("choice")
@reads()
def same_id(lm: LanguageModel, t: Trace, position: int, given: str | None, one: str, other: str) -> Answer:
    """Whether two pieces of text are the same token; a space in front counts."""
    first, second = lm.encode(one), lm.encode(other)
    ids = {"one_ids": ", ".join(map(str, first)), "other_ids": ", ".join(map(str, second))}
    return _chosen(given, ("They have the same id", "They have different ids"), int(first != second), ids)


@_key("choice")
@reads("tok_emb", "embed")
def row_again(lm: LanguageModel, t: Trace, position: int, given: str | None) -> Answer:
    """What the selected token shares with an earlier copy of it: its row, and what goes into block 0."""
    ids = _ids(t)
    if ids[position] not in ids[:position]:
        raise CannotAsk("the selected token does not stand in the text before")
    copy = ids.index(ids[position])
    same = [bool(torch.equal(t[site][copy], t[site][position])) for site in ("tok_emb", "embed")]
    options = (
        "The looked-up row is the same, and so is what goes into the first block",
        "The looked-up row is the same, what goes into the first block is not",
        "Already the looked-up row is different",
    )
    cosine = torch.cosine_similarity(t["embed"][copy].double(), t["embed"][position].double(), dim=0)
    facts = {"one": _place(t, copy), "other": _place(t, position), "cosine": fixed(float(cosine), 2)}
    return _chosen(given, options, 2 if not same[0] else 0 if same[1] else 1, facts)


def _windows(t: Trace, length: int, stride: int) -> Windows:
    found = Windows(tuple(token.id for token in t.tokens), length, stride, batch_size=1)
    if not len(found):
        raise CannotAsk(f"the text has {len(t)} tokens: too few for a window of {length} and its last target")
    return found


@_key("number")
@reads()
def window_count(
    lm: LanguageModel, t: Trace, position: int, given: float | None, length: int, stride: int
) -> Answer:
    """How many windows of this length the text has, each so many tokens further on."""
    count = len(_windows(t, length, stride))
    right = _exactly(given, count)
    return Answer(count, str(count), {"tokens": str(len(t))}, right, _number(given))


@_key("token")
@reads()
def last_target(
    lm: LanguageModel, t: Trace, position: int, given: int | None, length: int, window: int
) -> Answer:
    """The target of the last input of a window, where they begin one token apart."""
    windows = _windows(t, length, 1)
    if not 0 <= window < len(windows):
        raise CannotAsk(f"the text has no window {window}")
    at = window + length
    if given is not None:
        _check_there(t, given)
    facts = {"inputs": " ".join(f"`{show_token(token.raw)}`" for token in t.tokens[window:at])}
    facts["targets"] = " ".join(f"`{show_token(token.raw)}`" for token in t.tokens[window + 1 : at + 1])
    return Answer(at, _place(t, at), facts, given == at, "" if given is None else _place(t, given))


# ---- of choosing a token ----


@_key("choice")
@reads()
def temperature_changes(
    lm: LanguageModel, t: Trace, position: int, given: str | None, temperature: float
) -> Answer:
    """What another temperature changes: the model's logits, the order of the tokens, or the chances alone."""
    ids = [token.id for token in t.tokens[: position + 1]]
    one, other = (next(iter(lm.generate(ids, 1, by, seed=0))).logits for by in (1.0, float(temperature)))
    plain, scaled = distribution(one), distribution(other, Sampling(float(temperature)))
    options = (
        "The model's logits",
        "Not the logits, but which token comes first, second, third ...",
        "Only how likely each token is to be drawn",
        "Nothing at all",
    )
    found = 0 if not torch.equal(one, other) else 1 if not torch.equal(plain.order, scaled.order) else 2
    if torch.equal(plain.probabilities, scaled.probabilities):
        found = 3
    best = int(plain.order[0])
    chances = [percent(float(row.probabilities[best])) for row in (plain, scaled)]
    facts = {"token": _called(lm, best), "before": chances[0], "now": chances[1]}
    return _chosen(given, options, found, facts | {"logit": fixed(float(one[best]), 2)})


@_key("number")
@reads()
def with_top_k(lm: LanguageModel, t: Trace, position: int, given: float | None, k: int) -> Answer:
    """The probability, in percent, of the most probable token where only the first k may be drawn."""
    logits = t.logits(position)
    plain, kept = distribution(logits), distribution(logits, Sampling(top_k=k))
    best = int(plain.order[0])
    p = float(kept.probabilities[best])
    facts = {"token": _called(lm, best), "before": percent(float(plain.probabilities[best]))}
    facts["kept"] = percent(float(plain.probabilities[kept.kept].sum()))
    return Answer(100 * p, percent(p), facts, _near(given, 100 * p, 10), _number(given, " %"))


@_key("choice")
@reads()
def drawn_twice(
    lm: LanguageModel,
    t: Trace,
    position: int,
    given: str | None,
    temperature: float,
    one: int,
    other: int,
    tokens: int,
) -> Answer:
    """Whether two texts drawn with these two seeds are the same."""
    ids = [token.id for token in t.tokens[: position + 1]]
    wrote = [
        [step.id for step in lm.generate(ids, tokens, float(temperature), seed=seed)] for seed in (one, other)
    ]
    facts = {name: _quoted(lm, new) for name, new in zip(("first", "second"), wrote, strict=True)}
    options = ("The same text, token by token", "Another text")
    return _chosen(given, options, int(wrote[0] != wrote[1]), facts)


_AGAIN = ("The same list", "Another list")


@_key("choice")
@reads()
def after_another(lm: LanguageModel, t: Trace, position: int, given: str | None, before: str) -> Answer:
    """Whether the list of next tokens is another one when the model has just read something else."""
    ids = _ids(t)
    lm.trace(before, keep=())
    again = lm.trace(ids, keep=()).logits(position)
    largest = float((again - t.logits(position)).abs().max())
    return _chosen(given, _AGAIN, int(largest > ROUNDING), {"difference": fixed(largest, 5)})


@_key("choice")
@reads()
def written_or_read(lm: LanguageModel, t: Trace, position: int, given: str | None, tokens: int) -> Answer:
    """Whether a text that the model wrote gives it the same next tokens as when it is handed that text."""
    ids = [token.id for token in t.tokens[: position + 1]]
    wrote = list(lm.generate(ids, tokens, 0.0))
    if len(ids) + len(wrote) > lm.config.context_length:
        raise CannotAsk(f"this text leaves no room for {tokens} tokens more")
    new = [step.id for step in wrote]
    fresh = lm.trace(ids + new[:-1], keep=()).logits(-1)
    largest = float((fresh - wrote[-1].logits).abs().max())
    facts = {"wrote": _quoted(lm, new), "difference": fixed(largest, 4)}
    return _chosen(given, _AGAIN, int(largest > CACHED), facts)


# ---- of heads ----


@_key("number")
@reads(_in_block)
def to_later(
    lm: LanguageModel, t: Trace, position: int, given: float | None, block: int, head: int
) -> Answer:
    """How much attention this head gives to tokens that come later, in percent: the most of any token."""
    most = 100 * float(t["attn", block][head].triu(1).sum(-1).max())
    return Answer(most, f"{most:g} %", {}, _near(given, most, 0.5), _number(given, " %"))


@_key("number")
@reads("attn", "z")
def heads_with(lm: LanguageModel, t: Trace, position: int, given: float | None, role: str) -> Answer:
    """How many heads have this role on this text; right within a tenth of all heads."""
    _check_role(role)
    every = [one.kind for row in roles(t) for one in row]
    count = every.count(role)
    facts = {"heads": str(len(every)), "role": ROLES[role].label}
    return Answer(count, str(count), facts, _near(given, count, len(every) / 10), _number(given))


@_key("choice")
@reads("attn", "z")
def role_here(lm: LanguageModel, t: Trace, position: int, given: str | None, block: int, head: int) -> Answer:
    """What this head does on this text, by the words of the page "Heads on trial"."""
    _in_block(lm, position, given, block, head)
    kind = roles(t)[block][head].kind
    offered = dict.fromkeys(("induction", "previous", "even", "favourite", "mixed", kind))
    options = tuple(f"It {ROLES[role].does}" for role in offered)
    return _chosen(given, options, [*offered].index(kind), {"role": ROLES[kind].label})


# ---- of causes ----


@_key("choice")
@reads()
def needed_more(
    lm: LanguageModel, t: Trace, position: int, given: str | None, one: str, other: str
) -> Answer:
    """Which of two heads ("4.3") costs the prediction more when it is switched off."""
    places = [_read_head(lm, text) for text in (one, other)]
    left = [_moved(lm, t, position, [f"z.{block}.{head}=zero"]) for block, head in places]
    facts = {"token": _called(lm, left[0].token), "before": percent(left[0].before)}
    facts |= {"first": percent(left[0].after), "second": percent(left[1].after)}
    options = (*(_head(place).capitalize() for place in places), "Neither: the prediction stays as it is")
    lost = [one.before - one.after for one in left]
    worst = 2 if max(lost) < 0.01 else int(lost[1] > lost[0])
    return _chosen(given, options, worst, facts)


@_key("head")
@reads()
def needed_most(lm: LanguageModel, t: Trace, position: int, given: Head | None) -> Answer:
    """The head that the prediction loses most without. Of those that lose nearly as much each is right."""
    if len(t) * lm.config.n_layers * lm.config.n_heads > 20_000:
        raise CannotAsk("this text and model are too large to switch off every head in turn")
    ids = _ids(t)
    token = int(t.logits(position).argmax())
    table = ablation.knock_out(lm.plain, ids, token, position=position)
    heads = table[table.kind == "head"]
    lost = {
        (int(b), int(h)): float(p) for b, h, p in zip(heads.block, heads["head"], heads.lost, strict=True)
    }
    best = max(lost, key=lambda place: lost[place])
    if lost[best] < 0.01:
        raise CannotAsk("no single head is missed here")
    facts = {"token": _called(lm, token), "lost": _points(lost[best])}
    facts["second"] = _head(sorted(lost, key=lambda place: -lost[place])[1])
    if given is None:
        return Answer(best, _head(best), facts)
    given = (int(given[0]), int(given[1]))
    facts["given_lost"] = _points(lost.get(given, 0.0))
    return Answer(best, _head(best), facts, lost.get(given, 0.0) >= 0.9 * lost[best], _head(given))


def _patched(lm: LanguageModel, t: Trace, position: int, other: str, site: str) -> pd.DataFrame:
    ids = _ids(t)
    if len(ids) > 64:
        raise CannotAsk("this takes a text of 64 tokens at most")
    try:
        return patching(lm.plain, ids, lm.encode(other), sites=site, position=position)
    except ValueError as error:
        raise CannotAsk(f"the two texts cannot be patched: {error}") from error


@_key("token")
@reads()
def carries(lm: LanguageModel, t: Trace, position: int, given: int | None, other: str, block: int) -> Answer:
    """The token whose stream, on its way into this block, brings back most of the answer."""
    table = _patched(lm, t, position, other, "resid_pre")
    metric = {int(r.position): float(r.metric) for r in table[table.block == block].itertuples()}
    if not metric:
        raise CannotAsk(f"this model has no block {block}")
    best = max(metric, key=lambda place: metric[place])
    facts = {"back": percent(metric[best]), "block": str(block)}
    if given is not None:
        _check_there(t, given)
        facts["given_back"] = percent(metric.get(given, 0.0))
    return Answer(best, _place(t, best), facts, given == best, "" if given is None else _place(t, given))


@_key("head")
@reads()
def hands_over(lm: LanguageModel, t: Trace, position: int, given: Head | None, other: str) -> Answer:
    """The head whose output, taken from this text into the other's pass, brings back most of the answer."""
    table = _patched(lm, t, position, other, "z")
    metric = {(int(r.block), int(r.head)): float(r.metric) for r in table.itertuples()}
    best = max(metric, key=lambda place: metric[place])
    facts = {"back": percent(metric[best])}
    if given is None:
        return Answer(best, _head(best), facts)
    given = (int(given[0]), int(given[1]))
    facts["given_back"] = percent(metric.get(given, 0.0))
    return Answer(best, _head(best), facts, given == best, _head(given))


# ---- of the loss ----


@_key("number")
@reads()
def loss_of(lm: LanguageModel, t: Trace, position: int, given: float | None, probability: float) -> Answer:
    """What a token costs, in nats, that had this probability, in percent."""
    if not 0 < probability <= 100:
        raise CannotAsk("a probability is above 0 % and at most 100 %")
    loss = -math.log(probability / 100)
    return Answer(loss, fixed(loss, 2), {}, _near(given, loss, 0.15), _number(given))


@_key("number")
@reads()
def blind_loss(lm: LanguageModel, t: Trace, position: int, given: float | None) -> Answer:
    """What each token costs, in nats, with a guess that gives the whole vocabulary the same probability."""
    loss = uniform_loss(lm.config.vocab_size)
    facts = {"vocabulary": f"{lm.config.vocab_size:,}"}
    return Answer(loss, fixed(loss, 2), facts, _near(given, loss, 1.0), _number(given))


def _losses(lm: LanguageModel, t: Trace) -> torch.Tensor:
    """What each token but the first cost, (T - 1,)."""
    if len(t) < 3:
        raise CannotAsk("this takes a text of three tokens or more")
    logits = torch.stack([t.logits(at) for at in range(len(t) - 1)])  # (T - 1, V)
    return loss_steps(logits, torch.tensor([token.id for token in t.tokens[1:]])).loss


@_key("number")
@reads("final")
def mean_loss(lm: LanguageModel, t: Trace, position: int, given: float | None) -> Answer:
    """The mean loss of the text, in nats; right within 1."""
    loss = float(_losses(lm, t).mean())
    facts = {"perplexity": significant(math.exp(loss)), "vocabulary": f"{lm.config.vocab_size:,}"}
    facts |= {"blind": fixed(uniform_loss(lm.config.vocab_size), 2), "blind_perplexity": facts["vocabulary"]}
    return Answer(loss, fixed(loss, 2), facts, _near(given, loss, 1.0), _number(given))


@_key("choice")
@reads("final")
def second_part(lm: LanguageModel, t: Trace, position: int, given: str | None, start: int) -> Answer:
    """Whether the tokens from this position on cost less, on average, than those before."""
    losses = _losses(lm, t)
    if not 2 <= start < len(t):
        raise CannotAsk(f"the text has no second part from position {start} on")
    first, second = float(losses[: start - 1].mean()), float(losses[start - 1 :].mean())
    options = ("Less than the first time", "About as much", "More than the first time")
    found = 1 if abs(second - first) < 0.1 else 0 if second < first else 2
    return _chosen(given, options, found, {"first": fixed(first, 2), "second": fixed(second, 2)})


@_key("choice")
@reads()
def loss_without(lm: LanguageModel, t: Trace, position: int, given: str | None, edit: str) -> Answer:
    """Whether the loss of the text rises with this change in the model."""
    before, after = (_losses(lm, run) for run in _both(lm, t, edit.split(","), keep=("final",)))
    rise = float(after.mean() - before.mean())
    token = int((after - before).argmax())
    facts = {"before": fixed(float(before.mean()), 2), "after": fixed(float(after.mean()), 2)}
    facts |= {"token": _place(t, token + 1), "token_before": fixed(float(before[token]), 2)}
    facts["token_after"] = fixed(float(after[token]), 2)
    options = ("It rises", "It stays, within a hundredth", "It falls")
    return _chosen(given, options, 1 if abs(rise) < 0.01 else 0 if rise > 0 else 2, facts)


# ---- of the stream ----


def _norm(lm: LanguageModel, position: int, given: Any, norm: str) -> Sites:
    try:
        site, block = find_norm(lm.model, norm).source
    except ValueError as error:
        raise CannotAsk(str(error)) from error
    return (site if block is None else (site, block),)


@_key("number")
@reads(_norm)
def normalised(lm: LanguageModel, t: Trace, position: int, given: float | None, norm: str) -> Answer:
    """The variance of the selected token's numbers once this LayerNorm has divided them."""
    found = find_norm(lm.model, norm)
    steps = norm_steps(found, norm_input(t, found)[position])
    variance = float(steps.normalised.var())
    facts = {"before": significant(steps.variance), "mean": significant(steps.mean)}
    facts["scaled"] = significant(float(steps.after.var()))
    return Answer(variance, fixed(variance, 3), facts, _near(given, variance, 0.1), _number(given))


@_key("choice")
@reads(_norm)
def doubled(lm: LanguageModel, t: Trace, position: int, given: str | None, norm: str) -> Answer:
    """What becomes of the output of this LayerNorm when all numbers that go in are doubled."""
    found = find_norm(lm.model, norm)
    x = norm_input(t, found)[position]
    one, two = (norm_steps(found, by * x).after for by in (1, 2))
    moved = float(abs(two - one).max() / max(abs(one).max(), 1e-12))
    options = ("All of them are doubled, too", "They stay the same, or very nearly", "They are halved")
    truth = 1 if moved < 0.05 else 0 if (abs(two) > abs(one)).mean() > 0.5 else 2
    return _chosen(given, options, truth, {"moved": percent(moved)})


@_key("choice")
@reads(*STREAM)
def longer(lm: LanguageModel, t: Trace, position: int, given: str | None) -> Answer:
    """Whether the selected token's row grows longer from the embedding to the end."""
    sizes = stream(lm, t).sizes[:, position]
    options = ("Longer", "About as long", "Shorter")
    truth = 0 if sizes[-1] > 1.25 * sizes[0] else 2 if sizes[-1] < 0.8 * sizes[0] else 1
    facts = {"first": significant(float(sizes[0])), "last": significant(float(sizes[-1]))}
    return _chosen(given, options, truth, facts)


@_key("choice")
@reads(*STREAM)
def adds_up(lm: LanguageModel, t: Trace, position: int, given: str | None) -> Answer:
    """Whether embedding and all writes of all blocks sum to the stream at the end."""
    found = stream(lm, t)
    options = ("Yes, exactly, but for rounding", "No, something is left over")
    largest = float(abs(t["resid_post", lm.config.n_layers - 1].double()).max())
    facts = {"parts": str(1 + len(found.writes)), "difference": significant(found.difference, 2)}
    return _chosen(given, options, int(found.is_broken), facts | {"largest": significant(largest)})


@_key("word")
@reads(*KEEP)
def lens_word(lm: LanguageModel, t: Trace, position: int, given: str | None, blocks: int) -> Answer:
    """What the lens reads after so many blocks; after 0 of the embedding. Right is the token's own text."""
    if not 0 <= blocks <= lm.config.n_layers:
        raise CannotAsk(f"this model has {lm.config.n_layers} blocks")
    rows = logit_lens(t, lm.model, position).double().softmax(-1)  # (2L + 1, V)
    best, end = int(rows[2 * blocks].argmax()), int(rows[-1].argmax())
    facts = {"probability": percent(float(rows[2 * blocks, best])), "end": _called(lm, end)}
    if given is None or not given.strip():
        return Answer(best, _called(lm, best), facts)
    right = given.strip() == lm.decode([best]).strip()
    return Answer(best, _called(lm, best), facts, right, f"`{given.strip()}`")


@_key("choice")
@reads(*KEEP)
def lens_rises(lm: LanguageModel, t: Trace, position: int, given: str | None, block: int) -> Answer:
    """Whether the lens gives the final prediction a larger logit after this block than before it."""
    if not 0 <= block < lm.config.n_layers:
        raise CannotAsk(f"this model has no block {block}")
    rows = logit_lens(t, lm.model, position).double()  # (2L + 1, V)
    end = int(rows[-1].argmax())
    before, after = (float(rows[2 * at, end]) for at in (block, block + 1))
    facts = {"token": _called(lm, end), "before": fixed(before, 2), "after": fixed(after, 2)}
    facts["middle"] = fixed(float(rows[2 * block + 1, end]), 2)
    return _chosen(given, ("Larger", "Smaller"), int(after < before), facts)


# ---- of attention by hand, and of training ----


def _by_hand(way: str) -> tuple[tuple[str, ...], Heads]:
    """The words of the book's sentence, and its attention as the page "Attention by hand" works it out."""
    sentence = SENTENCES["Your journey starts with one step"]
    x = torch.tensor(sentence.vectors, dtype=torch.float64)
    if way == "simple":
        simple = simple_attention(x)
        return sentence.words, Heads((simple,), simple.context)
    if way not in _DRAWN:
        raise CannotAsk(f"there is no way {way!r}; there are simple, {', '.join(_DRAWN)}")
    drawn = [
        HeadWeights(one.query.double(), one.key.double(), one.value.double())
        for one in linear_weights(*_DRAWN[way])
    ]
    return sentence.words, multi_head_attention(x, drawn, causal=way != "weights")


_DRAWN = {"weights": (789, 1), "causal": (123, 1), "heads": (123, 2)}  # seed and heads, as on the page


def _row(way: str, word: str) -> tuple[tuple[str, ...], torch.Tensor]:
    """The words, and the weights that this one gives to each, (T,)."""
    words, found = _by_hand(way)
    if word not in words:
        raise CannotAsk(f"{word!r} is none of the words {', '.join(words)}")
    return words, found.heads[0].weights[words.index(word)]


@_key("choice")
@reads()
def hand_most(lm: LanguageModel, t: Trace, position: int, given: str | None, way: str, word: str) -> Answer:
    """To which word of the book's sentence this one gives the most weight."""
    words, row = _row(way, word)
    facts = {"weight": fixed(float(row.max()), 4), "least": words[int(row.argmin())]}
    return _chosen(given, words, int(row.argmax()), facts | {"least_weight": fixed(float(row.min()), 4)})


@_key("number")
@reads()
def hand_sum(lm: LanguageModel, t: Trace, position: int, given: float | None, way: str, word: str) -> Answer:
    """The sum of the weights that this word of the book's sentence gives."""
    _, row = _row(way, word)
    total = float(row.sum())
    facts = {"row": " + ".join(fixed(float(one), 4) for one in row)}
    return Answer(total, fixed(total, 2), facts, _near(given, total, 0.001), _number(given))


@_key("number")
@reads()
def hand_seen(lm: LanguageModel, t: Trace, position: int, given: float | None, way: str, word: str) -> Answer:
    """How many words this word of the book's sentence gives any weight to."""
    words, row = _row(way, word)
    seen = [one for one, weight in zip(words, row, strict=True) if weight > 0]
    right = _exactly(given, len(seen))
    return Answer(len(seen), str(len(seen)), {"words": ", ".join(seen)}, right, _number(given))


@_key("choice")
@reads()
def hand_mirror(
    lm: LanguageModel, t: Trace, position: int, given: str | None, way: str, one: str, other: str
) -> Answer:
    """Whether the score of one word with another is that of the other with it."""
    words, found = _by_hand(way)
    if one not in words or other not in words:
        raise CannotAsk(f"the words are {', '.join(words)}")
    i, j = words.index(one), words.index(other)
    scores = found.heads[0].scores
    forth, back = float(scores[i, j]), float(scores[j, i])
    facts = {"forth": fixed(forth, 4), "back": fixed(back, 4)}
    return _chosen(given, ("Yes, always", "No"), int(abs(forth - back) > 1e-9), facts)


@_key("number")
@reads()
def hand_width(lm: LanguageModel, t: Trace, position: int, given: float | None, way: str) -> Answer:
    """How many numbers each word's context has."""
    _, found = _by_hand(way)
    width = found.context.shape[1]
    right = _exactly(given, width)
    return Answer(width, str(width), {"heads": str(len(found.heads))}, right, _number(given))


@_key("number")
@reads()
def undivided(lm: LanguageModel, t: Trace, position: int, given: float | None, size: int) -> Answer:
    """Among how many of 8 random keys a softmax of q · k is spread that is not divided by the root of d."""
    table = by_size().set_index("d")
    if size not in table.index:
        raise CannotAsk(f"there is no size {size}; there are {', '.join(map(str, table.index))}")
    row = table.loc[size]
    facts = {"divided": fixed(float(row["keys_scaled"]), 1), "largest": percent(float(row["largest"]))}
    facts["gradient"] = percent(float(row["gradient"]))
    keys = float(row["keys"])
    return Answer(keys, fixed(keys, 1), facts, _near(given, keys, 0.5), _number(given))


@_key("choice")
@reads()
def after_character(lm: LanguageModel, t: Trace, position: int, given: str | None, character: str) -> Answer:
    """What follows this character most often in the chapter that the page "Baselines" counts."""
    counts = bigram.count(chapter())
    if character not in counts.characters:
        raise CannotAsk(f"the chapter has no {character!r}")
    chances = counts.probabilities[counts.characters.index(character)]
    best = int(chances.argmax())
    often = counts.pairs.sum(axis=0).argsort()[::-1][:4].tolist()
    options = tuple(sorted(f"`{show_token(counts.characters[one].encode())}`" for one in {best, *often}))
    shown = f"`{show_token(counts.characters[best].encode())}`"
    facts = {"probability": percent(float(chances[best])), "seen": f"{int(counts.firsts.sum()):,}"}
    return _chosen(given, options, options.index(shown), facts)


@_key("number")
@reads()
def one_step(lm: LanguageModel, t: Trace, position: int, given: float | None, rate: float) -> Answer:
    """How many of the model's numbers, in percent, one step of training on this text changes.

    The step is Adam's, on a copy of the model.
    """
    if lm.nbytes > MOST_COPIED or len(t) < 2:
        raise CannotAsk("this model is too large to be copied and trained, or the text has one token")
    ids = torch.tensor([_ids(t)])
    with forward.alone(), torch.enable_grad():
        model = copy.deepcopy(lm.model).cpu().float().requires_grad_(True)
        before = [parameter.detach().clone() for parameter in model.parameters()]
        adam = torch.optim.Adam(model.parameters(), lr=float(rate))
        losses = []
        for step in range(2):
            logits = model(ids)[0, :-1]
            loss = torch.nn.functional.cross_entropy(logits, ids[0, 1:])
            losses.append(float(loss.detach()))
            if step == 0:
                loss.backward()
                adam.step()
        changed = sum(int((old != new).sum()) for old, new in zip(before, model.parameters(), strict=True))
    share = changed / sum(old.numel() for old in before)
    facts = {"parameters": many(sum(old.numel() for old in before))}
    facts |= {name: fixed(one, 2) for name, one in zip(("before", "after"), losses, strict=True)}
    return Answer(100 * share, percent(share), facts, _near(given, 100 * share, 10), _number(given, " %"))


# ---- what a class hunts for: what is given is (a text, "4.3" or "4.3+5.0") of the finder's own screen ----


@_key("find")
@reads("attn")
def strongest(lm: LanguageModel, t: Trace, position: int, given: Found | None, role: str) -> Answer:
    """The head with the largest share of this role on the finder's text, of `SENTENCE` tokens at least."""
    _check_role(role)
    ids = _ids(t) if given is None else lm.encode(given[0])[: lm.config.context_length]
    trace = t if given is None else lm.trace(ids, keep=["attn"]) if len(ids) >= SENTENCE else None
    if trace is None:
        said = f"a text of {len(ids)} tokens, which is too short: {SENTENCE} at least"
        return Answer(None, "no head", {"role": ROLES[role].label}, False, said)
    shares = {(one.block, one.head): one.shares.get(role) or 0.0 for row in roles(trace) for one in row}
    best = max(shares, key=lambda place: shares[place])
    facts = {"role": ROLES[role].label, "share": percent(shares[best])}
    shown = f"{_head(best)} with {percent(shares[best])}"
    if given is None:
        return Answer(best, shown, facts)
    (place,) = _heads(lm, given[1], 1)
    said = f"{_head(place)} with {percent(shares[place])} on {_quoted(lm, ids[:12])}"
    return Answer(best, shown, facts, place == best, said, score=shares[place])


@_key("find")
@reads()
def smallest_circuit(lm: LanguageModel, t: Trace, position: int, given: Found | None) -> Answer:
    """The fewest heads that keep the prediction: neither less nor more of it than the model gives, while the
    others give their mean over this text. Beside them, random choices of as many heads."""
    ids, token = _ids(t), int(t.logits(position).argmax())
    passes = Passes(lm, ids, token, "mean", position=position)
    heads = [] if given is None else _heads(lm, given[1])
    everyone, draw = all_heads(lm), random.Random(len(heads))
    others = [draw.sample(everyone, len(heads)) for _ in range(RANDOM_CIRCUITS)]
    empty, value, *by_chance = passes.of([(), heads, *(others if given else ())]).tolist()
    enough = allowed(passes.whole, empty)
    low, high = (percent(min(1.0, max(0.0, passes.whole + sign * enough))) for sign in (-1, 1))
    shown = f"{percent(passes.whole)} with all heads; {low} to {high} keeps it"
    facts = {"token": _called(lm, token), "whole": percent(passes.whole), "empty": percent(empty)}
    if given is None:
        return Answer(passes.whole, shown, facts)
    kept = abs(passes.whole - value) <= enough
    lucky = sum(abs(passes.whole - one) <= enough for one in by_chance)
    said = f"{len(heads)} heads with {percent(value)}: {'kept' if kept else 'not kept'}"
    said += f". Of {RANDOM_CIRCUITS} random choices of {len(heads)} heads {lucky} keep it"
    return Answer(passes.whole, shown, facts, kept, said, score=-float(len(heads)) if kept else None)


def _heads(lm: LanguageModel, text: str, count: int | None = None) -> list[Head]:
    """The heads that were handed in; so many of them, where that is said."""
    try:
        heads = parse(text, lm)
    except ValueError as error:
        raise CannotAsk(str(error)) from error
    if count is not None and len(heads) != count:
        raise CannotAsk(f"{text!r} names {len(heads)} heads; hand in {count}")
    return heads


def _check_role(role: str) -> None:
    """Raise CannotAsk where there is none of this name."""
    if role not in ROLES:
        raise CannotAsk(f"there is no role {role!r}; there are {', '.join(ROLES)}")


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


def _exactly(given: float | None, count: int) -> bool | None:
    return None if given is None else int(given) == count


def _near(given: float | None, truth: float, by: float) -> bool | None:
    return None if given is None else abs(given - truth) <= by


def _chosen(given: str | None, options: tuple[str, ...], truth: int, facts: dict[str, str]) -> Answer:
    """The answer of a choice among these options, of which the one with this number is true."""
    right = None if given is None else given == options[truth]
    return Answer(options[truth], options[truth], facts, right, given or "", options)


def _quoted(lm: LanguageModel, ids: list[int]) -> str:
    return f"“{lm.decode(ids).strip()}”".replace("\n", " ")


def _points(share: float) -> str:
    return f"{fixed(100 * share, 0)} points of 100"


def _read_head(lm: LanguageModel, text: str) -> Head:
    """The head that "4.3" names."""
    try:
        block, head = map(int, text.split("."))
    except ValueError:
        raise CannotAsk(f"{text!r} names no head; one is named like 4.3") from None
    _in_block(lm, 0, None, block, head)
    return block, head
