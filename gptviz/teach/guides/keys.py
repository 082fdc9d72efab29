"""The keys of a guide's questions: what this model gives on this text, worked out and never written down.

A key is a function of what is asked (`answers.Asked`) and of its own arguments. It gives an `Answer`, from
the same public numbers that the pages draw, or raises CannotAsk where the question makes no sense of this
model or text. `KEYS` has each as `f(lm, t, position, given, ...)`.
"""

import copy
import functools
import inspect
import math
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import pandas as pd
import torch

from gptviz.analysis import ablation
from gptviz.analysis.activation_patching import patching
from gptviz.analysis.circuit_passes import Passes, all_heads
from gptviz.analysis.circuit_search import allowed, parse
from gptviz.analysis.embeddings import nearest_tokens
from gptviz.analysis.head_formulas import ROLES
from gptviz.analysis.head_roles import HeadRole, roles
from gptviz.analysis.lens import KEEP, followed, logit_lens, settled_from
from gptviz.analysis.loss import loss_steps, uniform_loss
from gptviz.analysis.moved import ROUNDING, Prediction, prediction
from gptviz.analysis.norms import find_norm, inside, norm_steps
from gptviz.analysis.reads import Sites, counted, reads, sites_of
from gptviz.analysis.stream import SITES as STREAM, stream
from gptviz.analysis.tokens import chapter
from gptviz.digits import fixed, many, percent, significant
from gptviz.engine import forward
from gptviz.engine.index import check_below, index_of, one_of
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.sampling import Sampling, distribution
from gptviz.engine.trace import Trace
from gptviz.lessons import bigram
from gptviz.lessons.attention import Heads, by_hand
from gptviz.lessons.scaling import by_size
from gptviz.lessons.sentences import SENTENCES, linear_weights
from gptviz.lessons.windows import Windows
from gptviz.teach.guides.answers import Answer, Asked, CannotAsk, Head, head_name, written
from gptviz.teach.guides.guide import Question
from gptviz.text.as_text import as_code, escaped
from gptviz.text.suggest import did_you_mean
from gptviz.tokenizer import show_token
from gptviz.training.live import side_by_side

MOST_COPIED = 10**9  # bytes of a model that is copied to be trained for a step
CACHED = 0.01  # of a logit: a pass that goes on from kept keys and values adds up in another order

MOST_TRAINED = 40  # steps of a question: two models take a second or two for 20
ABOUT = 0.01  # of the parameters: what is less is about as many

RANDOM_CIRCUITS = 10  # beside each circuit that was handed in
SENTENCE = 8  # tokens: on fewer, a large share is easily had

Key = Callable[..., Answer]
# name -> the kind of question it is a key of, and the function
KEYS: dict[str, tuple[str, Key]] = {}


def _key(kind: str, *sites: str | Callable[..., Sites]) -> Callable[[Key], Key]:
    """Mark `f(q, ...)` as a key that reads these sites, or those that a function of (lm, ...) gives."""

    def register(function: Key) -> Key:
        bind = counted(function, 1)

        @functools.wraps(function)
        def asked(lm: LanguageModel, t: Trace, position: int, given: Any, *args: Any) -> Answer:
            try:
                t.of(lm.model)
                q = Asked(lm, t, index_of("position", position, len(t)), given)
                return function(q, *bind(t, args, {})[0])
            except ValueError as error:  # such as a block that the model does not have
                raise CannotAsk(str(error)) from error

        KEYS[function.__name__] = (kind, reads(*sites)(asked))
        return asked

    return register


def arguments(name: str, kind: str, given: tuple[tuple[str, Any], ...]) -> tuple[Any, ...]:
    """The further arguments of this key's function, after (lm, t, position, given).

    Raises ValueError where that is wrong.
    """
    if name not in KEYS:
        raise ValueError(
            f"there is no key {name[:60]!r}{did_you_mean(name, KEYS)}; there are {', '.join(KEYS)}"
        )
    asks, function = KEYS[name]
    if kind != asks:
        raise ValueError(f"the key {name} answers a question of the kind {asks}, not {kind}")
    parameters = [*inspect.signature(function).parameters.values()][1:]
    named = dict(given)
    kinds = {argument.name: argument.annotation for argument in parameters}
    if named.keys() != kinds.keys():
        takes, has = (", ".join(names) or "nothing" for names in (kinds, named))
        raise ValueError(f"the key {name} takes {takes}, not {has}")
    accepted: dict[Any, Any] = {int: int, float: (int, float)}
    for parameter, value in named.items():
        kind_of_value = kinds[parameter]
        if not isinstance(value, accepted.get(kind_of_value, str)):
            must = f"it must be {kind_of_value.__name__}"
            raise ValueError(f"{parameter} of the key {name} is {value!r}; {must}")
    return tuple(named[parameter] for parameter in kinds)


def sites(name: str, lm: LanguageModel, position: int, given: Any, *arguments: Any) -> Sites:
    """The sites that this key reads, for `LanguageModel.trace`."""
    return sites_of(KEYS[name][1], lm, *arguments)


def answer_at(place: Mapping[str, str], ask: Question, lm: LanguageModel) -> Answer:
    """The answer to a question at a place: of its text, at the token that it names. Raises CannotAsk."""
    ids = lm.encode(place["text"], special_tokens=place.get("special") == "on")[
        : lm.config.context_length
    ]
    if not ids:
        raise CannotAsk("its text has no tokens")
    token = place.get("token", "")
    last = len(ids) - 1
    if token.isdecimal():
        position = min(int(token), last)
    else:
        position = last
    named = arguments(ask.key, ask.kind, ask.given)
    trace = lm.trace(ids, keep=sites(ask.key, lm, position, None, *named))
    return KEYS[ask.key][1](lm, trace, position, None, *named)


# ---- of the next token ----


@_key("word")
def next_word(q: Asked) -> Answer:
    """The most probable next token. Right is what begins with it, with or without a space before."""
    p = q.chances
    best = int(p.argmax())
    answer = Answer(best, q.called(best), {"probability": percent(float(p[best]))})
    if q.given is None or not q.given.strip():
        return answer
    firsts = [q.lm.encode(text, begin=False)[0] for word in q.words for text in (f" {word}", word)]
    # where no token begins with a space and the word, the space alone would come first: not what was typed
    firsts = [token_id for token_id in firsts if q.lm.decode([token_id]).strip()]
    first = best if best in firsts else firsts[0]
    if first >= len(p):  # a character that the model never saw
        return replace(answer, right=False, said=as_code(q.words[0]))
    facts = {"given_probability": percent(float(p[first]))}
    facts["given_rank"] = f"{int((p > p[first]).sum()) + 1:,}"
    shown = q.called(first)
    if q.lm.decode([first]).strip().lower() not in map(str.lower, q.words):
        shown += f" of {as_code(q.words[0])}"
    return replace(answer, facts=answer.facts | facts, right=first == best, said=shown)


@_key("number")
def chance(q: Asked, token: str) -> Answer:
    """The probability, in percent, that this token comes next; right within 15 points."""
    return q.percent(float(q.chances[q.id_of(token)]))


@_key("number")
def pieces(q: Asked, word: str) -> Answer:
    """Into how many tokens this word is cut, after a space."""
    cut = q.lm.tokens(q.lm.encode(f" {word.strip()}", begin=False))
    return q.count(len(cut), pieces=written(cut))


@_key("choice")
def nearest(q: Asked, token: str) -> Answer:
    """The token whose embedding is most like this one's, among three that are farther and farther away."""
    most = min(2000, q.lm.config.vocab_size - 1)
    table = nearest_tokens(q.lm.model.tok_emb.weight, q.id_of(token), most)
    neighbours = [int(table["id"][rank]) for rank in (0, 40, 400, 1999) if rank < len(table)]
    # by id: not by likeness
    options = [*dict.fromkeys(q.called(neighbour) for neighbour in sorted(neighbours))]
    cosine = fixed(float(table["cosine"][0]), 2)
    return replace(
        q.choice(options, options.index(q.called(neighbours[0])), cosine=cosine),
        truth=neighbours[0],
    )


@_key("number")
def at_temperature(q: Asked, temperature: float) -> Answer:
    """The probability, in percent, of the most probable token at this temperature."""
    if temperature <= 0:
        raise CannotAsk("the temperature must be above 0")
    plain = q.chances
    p = (q.t.logits(q.position).double() / float(temperature)).softmax(-1)
    best = int(plain.argmax())
    return q.percent(float(p[best]), token=q.called(best), before=percent(float(plain[best])))


@_key("number")
def nucleus(q: Asked, share: float) -> Answer:
    """Ask how many of the most probable tokens have this share of the probability together."""
    p = q.chances.sort(descending=True).values  # (V,)
    count = int((p.cumsum(0) < share).sum()) + 1
    if q.given is None:
        right = None
    else:
        right = count / 2 <= q.given <= 2 * count
    return replace(q.number(count, f"{count:,}", 0, vocabulary=f"{len(p):,}"), right=right)


@_key("number", *KEEP)
def settled(q: Asked) -> Answer:
    """After how many blocks the model's guess is the one that it ends with, to the end."""
    # (L + 1,): embedding, each block
    tops = logit_lens(q.t, q.lm.model, q.position).argmax(-1).numpy()[::2]
    return q.count(
        settled_from(tops), token=q.called(int(tops[-1])), blocks=str(q.lm.config.n_layers)
    )


# ---- of tokens, rows and windows ----


@_key("number")
def token_count(q: Asked) -> Answer:
    """Ask of how many tokens the text is made."""
    return q.count(
        len(q.t),
        pieces=written(q.t.tokens),
        words=str(len(q.lm.decode(q.ids, begin=False).split())),
    )


@_key("choice")
def same_id(q: Asked, one: str, other: str) -> Answer:
    """Ask whether two pieces of text are the same token; a space in front counts."""
    ids = [", ".join(map(str, q.lm.encode(text, begin=False))) for text in (one, other)]
    options = ("They have the same id", "They have different ids")
    return q.choice(options, int(ids[0] != ids[1]), one_ids=ids[0], other_ids=ids[1])


@_key("choice", "tok_emb", "embed")
def row_again(q: Asked) -> Answer:
    """Ask what the selected token shares with an earlier copy of it: its vector, and what enters block 0."""
    position = q.position
    copy = q.ids.index(q.ids[q.position])
    if copy == position:
        raise CannotAsk("the selected token does not appear earlier in the text")
    same = [
        bool(torch.equal(q.t[site][copy], q.t[site][position])) for site in ("tok_emb", "embed")
    ]
    options = (
        "They look up the same token vector, and the same sum enters the first block",
        "They look up the same token vector, but different sums enter the first block",
        "They look up different token vectors",
    )
    cosine = torch.cosine_similarity(
        q.t["embed"][copy].double(), q.t["embed"][position].double(), dim=0
    )
    facts = {"one": q.place(copy), "other": q.place(position), "cosine": fixed(float(cosine), 2)}
    if not same[0]:
        truth = 2
    elif same[1]:
        truth = 0
    else:
        truth = 1
    return q.choice(options, truth, **facts)


def _windows(q: Asked, length: int, stride: int) -> Windows:
    windows = Windows(tuple(q.ids), length, stride, batch_size=1)
    if not len(windows):
        raise CannotAsk(
            f"the text has {len(q.t)} tokens: too few for a window of {length} and a last target"
        )
    return windows


@_key("number")
def window_count(q: Asked, length: int, stride: int) -> Answer:
    """Ask how many windows of this length the text has, each `stride` tokens further on."""
    return q.count(len(_windows(q, length, stride)), tokens=str(len(q.t)))


@_key("token")
def last_target(q: Asked, length: int, window: int) -> Answer:
    """The target of the last input of a window, where they begin one token apart."""
    target = check_below("window", window, len(_windows(q, length, 1))) + length
    tokens = q.t.tokens
    return q.token(
        target,
        inputs=written(tokens[window:target]),
        targets=written(tokens[window + 1 : target + 1]),
    )


# ---- of choosing a token ----


@_key("choice")
def temperature_changes(q: Asked, temperature: float) -> Answer:
    """Ask what another temperature changes: the logits, the order of the tokens, or the chances alone."""
    other_temperature = float(temperature)
    plain_logits, other_logits = (
        next(iter(q.lm.generate(q.read, 1, t, seed=0))).logits for t in (1.0, other_temperature)
    )
    plain = distribution(plain_logits)
    scaled = distribution(other_logits, Sampling(other_temperature))
    options = (
        "The model's logits",
        "Not the logits, but which token comes first, second, third ...",
        "Only how likely each token is to be drawn",
        "Nothing at all",
    )
    if torch.equal(plain.probabilities, scaled.probabilities):
        truth = 3
    elif not torch.equal(plain_logits, other_logits):
        truth = 0
    elif not torch.equal(plain.order, scaled.order):
        truth = 1
    else:
        truth = 2
    best = int(plain.order[0])
    before, after = (percent(float(row.probabilities[best])) for row in (plain, scaled))
    facts = {
        "token": q.called(best),
        "before": before,
        "now": after,
        "logit": fixed(float(plain_logits[best]), 2),
    }
    return q.choice(options, truth, **facts)


@_key("number")
def with_top_k(q: Asked, k: int) -> Answer:
    """The probability, in percent, of the most probable token where only the first k may be drawn."""
    logits = q.t.logits(q.position)
    plain = distribution(logits)
    filtered = distribution(logits, Sampling(top_k=k))
    best = int(plain.order[0])
    facts = {"token": q.called(best), "before": percent(float(plain.probabilities[best]))}
    facts["kept"] = percent(float(plain.probabilities[filtered.kept].sum()))
    return q.percent(float(filtered.probabilities[best]), 10, **facts)


@_key("choice")
def drawn_twice(q: Asked, temperature: float, one: int, other: int, tokens: int) -> Answer:
    """Ask whether two texts drawn with these two seeds are the same."""
    first, second = (
        [step.id for step in q.lm.generate(q.read, tokens, float(temperature), seed=seed)]
        for seed in (one, other)
    )
    options = ("The same text, token by token", "Another text")
    truth = int(first != second)
    return q.choice(options, truth, first=_quoted(q, first), second=_quoted(q, second))


_AGAIN = ("The same list", "Another list")


@_key("choice")
def after_another(q: Asked, before: str) -> Answer:
    """Ask whether the list of next tokens is another one when the model has just read something else."""
    q.lm.trace(before, keep=())
    logits_again = q.lm.trace(q.ids, keep=()).logits(q.position)
    largest = float((logits_again - q.t.logits(q.position)).abs().max())
    return q.choice(_AGAIN, int(largest > ROUNDING), difference=fixed(largest, 5))


@_key("choice")
def written_or_read(q: Asked, tokens: int) -> Answer:
    """Ask whether the model's next tokens after a text it wrote are those after the same text, read."""
    *wrote, then = q.lm.generate(q.read, tokens + 1, 0.0)
    if len(q.read) + len(wrote) > q.lm.config.context_length:
        raise CannotAsk(f"this text leaves no room for {tokens} more tokens")
    new = [step.id for step in wrote]
    fresh = q.lm.trace(q.read + new, keep=()).logits(-1)
    largest = float((fresh - then.logits).abs().max())
    return q.choice(
        _AGAIN, int(largest > CACHED), wrote=_quoted(q, new), difference=fixed(largest, 4)
    )


# ---- of heads ----


def _in_block(lm: LanguageModel, block: int, head: int) -> Sites:
    if not (0 <= block < lm.config.n_layers and 0 <= head < lm.config.n_heads):
        raise CannotAsk(f"this model has no head {block}.{head}")
    return (("attn", block),)


def _share(head: HeadRole, role: str) -> float:
    return head.shares.get(role) or 0.0


@_key("token", _in_block)
def looked_at(q: Asked, block: int, head: int) -> Answer:
    """The token that this head looks at most, from the selected one."""
    row = q.t["attn", block][head, q.position]  # (T,)
    return q.token(int(row.argmax()), "weight", lambda position: percent(float(row[position])))


@_key("number", _in_block)
def to_later(q: Asked, block: int, head: int) -> Answer:
    """Ask how much attention this head gives to tokens that come later, in percent: the most of any token."""
    most = 100 * float(q.t["attn", block][head].triu(1).sum(-1).max())
    return q.number(most, f"{most:g} %", 0.5, " %")


@_key("head", "attn", "z")
def head_with(q: Asked, role: str) -> Answer:
    """The head with the largest share of this role on this text; right is every head that has the role."""
    one_of("role", role, ROLES)
    heads = {(head.block, head.head): head for row in roles(q.t) for head in row}
    with_role = [place for place in heads if heads[place].kind == role]
    if not with_role:
        raise CannotAsk(f"no head has the role “{ROLES[role].label}” on this text")

    def share(place: Head) -> str:
        return percent(_share(heads[place], role) if place in heads else 0.0)

    with_role.sort(key=lambda place: -_share(heads[place], role))
    return q.head(with_role, "share", share, heads=f"{len(with_role)}", role=ROLES[role].label)


@_key("number", "attn", "z")
def heads_with(q: Asked, role: str) -> Answer:
    """Ask how many heads have this role on this text; right within a tenth of all heads."""
    one_of("role", role, ROLES)
    kinds = [head.kind for row in roles(q.t) for head in row]
    count = kinds.count(role)
    n_heads = len(kinds)
    return q.number(count, str(count), n_heads / 10, heads=str(n_heads), role=ROLES[role].label)


@_key("choice", "attn", "z")
def role_here(q: Asked, block: int, head: int) -> Answer:
    """Ask what this head does on this text, by the words of the page "What each head does"."""
    kind = roles(q.t)[block][head].kind
    offered = [*dict.fromkeys(("induction", "previous", "even", "favourite", "mixed", kind))]
    options = [f"It {ROLES[role].does}" for role in offered]
    return q.choice(options, offered.index(kind), role=ROLES[kind].label)


# ---- of causes ----


def _both(q: Asked, edits: list[str], keep: Sites = ()) -> tuple[Trace, Trace]:
    """The text's pass through the model as it is, and with these changes."""
    try:
        changed_trace = q.lm.plain.trace(q.ids, keep=keep, edits=edits)
    except ValueError as error:
        raise CannotAsk(f"this change cannot be made here: {error}") from error
    return q.lm.plain.trace(q.ids, keep=keep), changed_trace


def _moved(q: Asked, edits: list[str]) -> Prediction:
    """The prediction of the model with these edits, beside its own."""
    return prediction(*(run.logits(q.position) for run in _both(q, edits)))


@_key("number")
def without(q: Asked, edit: str) -> Answer:
    """The probability, in percent, that is left of the model's prediction with this change in it.

    Several changes have a comma between them; `alone` tells what each of them by itself leaves.
    """
    edits = edit.split(",")
    moved = _moved(q, edits)
    alone = " or ".join(percent(_moved(q, [single_edit]).after) for single_edit in edits)
    facts = {
        "token": q.called(moved.token),
        "now": q.called(moved.now),
        "before": percent(moved.before),
    }
    return q.percent(moved.after, **facts, alone=alone)


@_key("choice")
def needed_more(q: Asked, one: str, other: str) -> Answer:
    """Ask which of two heads ("4.3") costs the prediction more when it is switched off."""
    places = [place for text in (one, other) for place in _heads(q.lm, text, 1)]
    first, second = (_moved(q, [f"z.{block}.{head}=zero"]) for block, head in places)
    options = (
        *(head_name(place).capitalize() for place in places),
        "Neither: the prediction stays as it is",
    )
    lost = [moved.before - moved.after for moved in (first, second)]
    if max(lost) < 0.01:
        worst = 2
    else:
        worst = int(lost[1] > lost[0])
    facts = {"first": percent(first.after), "second": percent(second.after)}
    return q.choice(
        options, worst, token=q.called(first.token), before=percent(first.before), **facts
    )


@_key("head")
def needed_most(q: Asked) -> Answer:
    """The head that the prediction loses most without. Of those that lose nearly as much each is right."""
    if len(q.t) * q.lm.config.n_layers * q.lm.config.n_heads > 20_000:
        raise CannotAsk("this text and model are too large to switch off every head in turn")
    if q.lm.config.n_layers * q.lm.config.n_heads == 1:
        raise CannotAsk("this model has one head only")
    # the unchanged model's, as each head is its
    token = int(_both(q, [])[0].logits(q.position).argmax())
    table = ablation.knock_out(q.lm.plain, q.ids, token, position=q.position)
    lost = table[table.kind == "head"].set_index(["block", "head"])["lost"].to_dict()
    order = sorted(lost, key=lambda place: -lost[place])
    most = lost[order[0]]
    if most < 0.01:
        raise CannotAsk("the prediction needs no single head")

    def points(head: Head) -> str:
        return f"{fixed(100 * lost.get(head, 0.0), 0)} points of 100"

    right = [place for place in order if lost[place] >= 0.9 * most]
    return q.head(right, "lost", points, token=q.called(token), second=head_name(order[1]))


def _patched(q: Asked, other: str, site: str) -> pd.DataFrame:
    """What each patch brings back of the other text's answer, as on the page "Patching" at first."""
    if len(q.t) > 64:
        raise CannotAsk("the text may have at most 64 tokens")
    try:
        return patching(q.lm.plain, q.lm.encode(other), q.ids, sites=site, position=q.position)
    except ValueError as error:
        raise CannotAsk(f"the two texts cannot be patched: {error}") from error


@_key("token")
def carries(q: Asked, other: str, block: int) -> Answer:
    """The token whose stream, on its way into this block, brings back most of the answer."""
    table = _patched(q, other, "resid_pre")
    back = table[table.block == block].set_index("position")["metric"]
    return q.token(
        int(back.idxmax()),
        "back",
        lambda position: percent(float(back.get(position, 0.0))),
        block=str(block),
    )


@_key("head")
def hands_over(q: Asked, other: str) -> Answer:
    """The head whose output, put from the other text into this one's pass, brings back most of its answer."""
    back = _patched(q, other, "z").set_index(["block", "head"])["metric"]
    block, head = back.idxmax()
    return q.head(
        [(int(block), int(head))], "back", lambda head: percent(float(back.get(head, 0.0)))
    )


# ---- of the loss ----


def _losses(t: Trace) -> torch.Tensor:
    """The loss of each token but the first, in nats: (T - 1,)."""
    if len(t) < 3:
        raise CannotAsk("the text must have at least three tokens")
    logits = torch.stack([t.logits(position) for position in range(len(t) - 1)])  # (T - 1, V)
    return loss_steps(logits, torch.tensor([token.id for token in t.tokens[1:]])).loss


@_key("token", "final")
def dearest(q: Asked) -> Answer:
    """The token of the text that the model expected least: the one with the largest loss."""
    loss = _losses(q.t)

    def cost(position: int) -> str:
        if position:
            return fixed(float(loss[position - 1]), 2)
        return "none: nothing stands before it"

    return q.token(int(loss.argmax()) + 1, "loss", cost, mean=fixed(float(loss.mean()), 2))


@_key("number")
def loss_of(q: Asked, probability: float) -> Answer:
    """Ask what a token costs, in nats, that had this probability, in percent."""
    if not 0 < probability <= 100:
        raise CannotAsk("the probability must be above 0 % and at most 100 %")
    loss = -math.log(probability / 100)
    return q.number(loss, fixed(loss, 2), 0.15)


@_key("number")
def blind_loss(q: Asked) -> Answer:
    """Ask what each token costs, in nats, with a uniform guess over the whole vocabulary."""
    loss = uniform_loss(q.lm.config.vocab_size)
    return q.number(loss, fixed(loss, 2), 1.0, vocabulary=f"{q.lm.config.vocab_size:,}")


@_key("number", "final")
def mean_loss(q: Asked) -> Answer:
    """The mean loss of the text, in nats; right within 1."""
    loss = float(_losses(q.t).mean())
    vocabulary = q.lm.config.vocab_size
    facts = {"perplexity": significant(math.exp(loss)), "blind": fixed(uniform_loss(vocabulary), 2)}
    facts |= dict.fromkeys(("vocabulary", "blind_perplexity"), f"{vocabulary:,}")
    return q.number(loss, fixed(loss, 2), 1.0, **facts)


@_key("choice", "final")
def second_part(q: Asked, start: int) -> Answer:
    """Ask whether the tokens from this position on cost less, on average, than those before."""
    losses = _losses(q.t)
    if not 2 <= start < len(q.t):
        raise CannotAsk(f"the text has no second part from position {start} on")
    first = float(losses[: start - 1].mean())
    second = float(losses[start - 1 :].mean())
    options = ("Less than the first time", "About as much", "More than the first time")
    if abs(second - first) < 0.1:
        truth = 1
    elif second < first:
        truth = 0
    else:
        truth = 2
    return q.choice(options, truth, first=fixed(first, 2), second=fixed(second, 2))


@_key("choice")
def loss_without(q: Asked, edit: str) -> Answer:
    """Ask whether the loss of the text rises with this change in the model."""
    before, after = map(_losses, _both(q, edit.split(","), keep=("final",)))
    rise = float(after.mean() - before.mean())
    token = int((after - before).argmax())
    facts = {"before": fixed(float(before.mean()), 2), "after": fixed(float(after.mean()), 2)}
    facts |= {"token": q.place(token + 1), "token_before": fixed(float(before[token]), 2)}
    options = ("It rises", "It stays, within a hundredth", "It falls")
    if abs(rise) < 0.01:
        truth = 1
    elif rise > 0:
        truth = 0
    else:
        truth = 2
    return q.choice(options, truth, **facts, token_after=fixed(float(after[token]), 2))


# ---- of the stream ----


def _norm(lm: LanguageModel, norm: str) -> Sites:
    try:
        site, block = find_norm(lm.model, norm).source
    except ValueError as error:
        raise CannotAsk(str(error)) from error
    return (site if block is None else (site, block),)


@_key("number", _norm)
def normalised(q: Asked, norm: str) -> Answer:
    """The variance of the selected token's numbers once this LayerNorm has divided them."""
    steps = inside(q.lm, q.t, norm, q.position)
    variance = float(steps.normalised.var())
    facts = {"before": significant(steps.variance), "mean": significant(steps.mean)}
    return q.number(
        variance, fixed(variance, 3), 0.1, **facts, scaled=significant(float(steps.after.var()))
    )


@_key("choice", _norm)
def doubled(q: Asked, norm: str) -> Answer:
    """Ask what becomes of the output of this LayerNorm when all numbers that go in are doubled."""
    steps = inside(q.lm, q.t, norm, q.position)
    after_doubling = norm_steps(find_norm(q.lm.model, norm), 2 * steps.before).after
    moved = float(abs(after_doubling - steps.after).max() / max(abs(steps.after).max(), 1e-12))
    options = (
        "All of them are doubled, too",
        "They stay the same, or very nearly",
        "They are halved",
    )
    if moved < 0.05:
        truth = 1
    elif (abs(after_doubling) > abs(steps.after)).mean() > 0.5:
        truth = 0
    else:
        truth = 2
    return q.choice(options, truth, moved=percent(moved))


@_key("choice", *STREAM)
def longer(q: Asked) -> Answer:
    """Ask whether the selected token's row grows longer from the embedding to the end."""
    first, *_, last = stream(q.lm, q.t).sizes[:, q.position].tolist()
    if last > 1.25 * first:
        truth = 0
    elif last < 0.8 * first:
        truth = 2
    else:
        truth = 1
    facts = {"first": significant(first), "last": significant(last)}
    return q.choice(("Longer", "About as long", "Shorter"), truth, **facts)


@_key("choice", *STREAM)
def adds_up(q: Asked) -> Answer:
    """Ask whether embedding and all writes of all blocks sum to the stream at the end."""
    residual = stream(q.lm, q.t)
    options = ("Yes, exactly, but for rounding", "No, something is left over")
    largest = float(abs(q.t["resid_post", q.lm.config.n_layers - 1].double()).max())
    facts = {
        "parts": str(1 + len(residual.writes)),
        "difference": significant(residual.difference, 2),
    }
    return q.choice(options, int(residual.is_broken), **facts, largest=significant(largest))


@_key("word", *KEEP)
def lens_word(q: Asked, blocks: int) -> Answer:
    """Ask what the lens reads after this number of blocks (0: of the embedding).

    Right is the token's own text.
    """
    if not 0 <= blocks <= q.lm.config.n_layers:
        raise CannotAsk(f"this model has {q.lm.config.n_layers} blocks")
    rows = logit_lens(q.t, q.lm.model, q.position).double().softmax(-1)  # (2L + 1, V)
    best = int(rows[2 * blocks].argmax())
    end = int(rows[-1].argmax())
    facts = {"probability": percent(float(rows[2 * blocks, best])), "end": q.called(end)}
    typed = (q.given or "").strip()
    right = None
    if typed:
        right = q.lm.decode([best]).strip() in q.words
    return Answer(best, q.called(best), facts, right, as_code(typed) if typed else "")


@_key("choice", *KEEP)
def lens_rises(q: Asked, block: int) -> Answer:
    """Ask whether the lens gives the final prediction a larger probability after this block than before."""
    rows = logit_lens(q.t, q.lm.model, q.position)  # (2L + 1, V)
    end = int(rows[-1].argmax())
    lens = followed(rows[[2 * block, 2 * block + 2]], [end])
    before, after = lens.probabilities[:, 0].tolist()
    facts = {"before": significant(before), "after": significant(after)}
    facts |= dict(
        zip(("rank_before", "rank_after"), map("{:,}".format, lens.ranks[:, 0]), strict=True)
    )
    return q.choice(("Larger", "Smaller"), int(after < before), token=q.called(end), **facts)


# ---- of attention by hand, and of training ----


def _by_hand(way: str) -> tuple[tuple[str, ...], Heads]:
    """The words of the book's sentence, and its attention as the page "Attention by hand" works it out."""
    sentence = SENTENCES["Your journey starts with one step"]
    seed, count, causal = _WAYS[one_of("way", way, _WAYS)]
    heads = [
        [matrix.tolist() for matrix in vars(weights).values()]
        for weights in linear_weights(seed, count)
    ]
    return sentence.words, by_hand(sentence.vectors, heads, causal)


# as on the page: the seed of the weights, how many heads have some, and whether there is a mask
_WAYS = {"simple": (0, 0, False), "weights": (789, 1, False)}
_WAYS |= {"causal": (123, 1, True), "heads": (123, 2, True)}


def _row(way: str, word: str) -> tuple[tuple[str, ...], torch.Tensor]:
    """The words, and the weights that this one gives to each, (T,)."""
    words, attention = _by_hand(way)
    return words, attention.heads[0].weights[words.index(one_of("word", word, words))]


@_key("choice")
def hand_most(q: Asked, way: str, word: str) -> Answer:
    """To which word of the book's sentence this one gives the most weight."""
    words, row = _row(way, word)
    facts = {"weight": fixed(float(row.max()), 4), "least_weight": fixed(float(row.min()), 4)}
    return q.choice(words, int(row.argmax()), **facts, least=words[int(row.argmin())])


@_key("number")
def hand_sum(q: Asked, way: str, word: str) -> Answer:
    """The sum of the weights that this word of the book's sentence gives."""
    _, row = _row(way, word)
    total = float(row.sum())
    return q.number(
        total, fixed(total, 2), 0.001, row=" + ".join(fixed(weight, 4) for weight in row.tolist())
    )


@_key("number")
def hand_seen(q: Asked, way: str, word: str) -> Answer:
    """Ask how many words this word of the book's sentence gives any weight to."""
    words, row = _row(way, word)
    seen = [seen_word for seen_word, weight in zip(words, row, strict=True) if weight > 0]
    return q.count(len(seen), words=", ".join(seen))


@_key("choice")
def hand_mirror(q: Asked, way: str, one: str, other: str) -> Answer:
    """Ask whether the score of one word with another is that of the other with it."""
    words, attention = _by_hand(way)
    i, j = (words.index(one_of("word", word, words)) for word in (one, other))
    scores = attention.heads[0].scores
    forth = float(scores[i, j])
    back = float(scores[j, i])
    truth = int(abs(forth - back) > 1e-9)
    return q.choice(("Yes, always", "No"), truth, forth=fixed(forth, 4), back=fixed(back, 4))


@_key("number")
def hand_width(q: Asked, way: str) -> Answer:
    """Ask how many numbers each word's context has."""
    _, attention = _by_hand(way)
    return q.count(attention.context.shape[1], heads=str(len(attention.heads)))


@_key("number")
def undivided(q: Asked, size: int) -> Answer:
    """Among how many of 8 random keys a softmax of q · k is spread that is not divided by the root of d."""
    table = by_size().set_index("d")
    one_of("size", str(size), map(str, table.index))
    row = table.loc[size].astype(float)
    facts = {"divided": fixed(row["keys_scaled"], 1), "largest": percent(row["largest"])}
    facts["gradient"] = percent(row["gradient"])
    return q.number(float(row["keys"]), fixed(row["keys"], 1), 0.5, **facts)


@_key("choice")
def after_character(q: Asked, character: str) -> Answer:
    """Ask what follows this character most often in the chapter that the page "Baselines" counts."""
    counts = bigram.count(chapter())
    if character not in counts.characters:
        raise CannotAsk(f"the chapter has no {character!r}")
    chances = counts.probabilities[counts.characters.index(character)]
    shown = [as_code(show_token(char.encode())) for char in counts.characters]
    best = int(chances.argmax())
    frequent = counts.pairs.sum(axis=0).argsort()[::-1][:4].tolist()
    options = sorted(shown[index] for index in {best, *frequent})
    facts = {"probability": percent(float(chances[best])), "seen": f"{int(counts.firsts.sum()):,}"}
    return q.choice(options, options.index(shown[best]), **facts)


@_key("number")
def one_step(q: Asked, rate: float) -> Answer:
    """Ask how many of the model's numbers, in percent, one step of training on this text changes.

    The step is Adam's, on a copy of the model.
    """
    if q.lm.nbytes > MOST_COPIED or len(q.t) < 2:
        raise CannotAsk(
            "this model is too large to be copied and trained, or the text has one token"
        )
    ids = torch.tensor([q.ids])
    with forward.alone(), torch.enable_grad():
        model = copy.deepcopy(q.lm.model).cpu().float().requires_grad_(True)
        old_parameters = [parameter.detach().clone() for parameter in model.parameters()]
        adam = torch.optim.Adam(model.parameters(), lr=float(rate))

        def loss() -> torch.Tensor:
            return torch.nn.functional.cross_entropy(model(ids)[0, :-1], ids[0, 1:])

        before = loss()
        before.backward()
        adam.step()
        facts = {"before": fixed(before.item(), 2), "after": fixed(loss().item(), 2)}
        changed = sum(
            int((a != b).sum()) for a, b in zip(old_parameters, model.parameters(), strict=True)
        )
    total = sum(parameter.numel() for parameter in old_parameters)
    return q.percent(changed / total, 10, **facts, parameters=many(total))


# ---- of five switches from GPT-2 to Llama, as the page "Train one now" trains them ----


@functools.lru_cache(maxsize=1)
def _switch_sizes() -> pd.DataFrame:
    """What each variant takes, a row each: parameters, and bytes of the cache for a full context."""
    return side_by_side.sizes(side_by_side.usual("chapter")).set_index("variant")


@_key("number")
def switch_cache(q: Asked, variant: str) -> Answer:
    """Ask how much of GPT-2's cache this variant's takes, in percent."""
    caches = _switch_sizes()["cache"]
    cache = int(caches[one_of("variant", variant, caches.index)])
    base = int(caches[side_by_side.BASE])
    tokens = side_by_side.usual("chapter").context_length
    facts = {"cache": f"{cache:,}", "base_cache": f"{base:,}", "tokens": str(tokens)}
    return q.percent(cache / base, 2, **facts)


@_key("number")
def switch_saves(q: Asked, variant: str) -> Answer:
    """Ask how many parameters less than GPT-2 this variant has."""
    sizes = _switch_sizes()["parameters"]
    own = int(sizes[one_of("variant", variant, sizes.index)])
    base = int(sizes[side_by_side.BASE])
    return q.number(base - own, f"{base - own:,}", 0.5, parameters=f"{own:,}", base=f"{base:,}")


@_key("choice")
def switch_size(q: Asked, variant: str) -> Answer:
    """Ask whether this variant has more parameters than GPT-2, fewer, or as many within 1 %."""
    sizes = _switch_sizes()["parameters"]
    own = int(sizes[one_of("variant", variant, sizes.index)])
    base = int(sizes[side_by_side.BASE])
    change = own / base - 1
    truth = 1
    if change > ABOUT:
        truth = 0
    elif change < -ABOUT:
        truth = 2
    facts = {"parameters": f"{own:,}", "base": f"{base:,}"}
    return q.choice(("More", "About as many", "Fewer"), truth, **facts)


@functools.lru_cache(maxsize=8)
def _after(variant: str, steps: int) -> float:
    """The validation loss of a variant after so many steps on the chapter, with the first seed."""
    config = replace(side_by_side.usual("chapter"), steps=steps, every=steps)
    with forward.alone(), torch.enable_grad():
        return side_by_side.learn(variant, config).final


@_key("choice")
def switch_loss(q: Asked, variant: str, steps: int) -> Answer:
    """Ask whether this variant's loss on unseen text of the chapter is lower than GPT-2's after a few steps.

    Both are trained here, with the first seed.
    """
    if not 1 <= steps <= MOST_TRAINED:
        raise CannotAsk(f"steps is {steps}; a question may train {MOST_TRAINED} steps at most")
    own = _after(variant, steps)
    base = _after(side_by_side.BASE, steps)
    return q.choice(("Lower", "Higher"), int(own > base), loss=fixed(own, 2), base=fixed(base, 2))


@_key("number")
def seeds_agree(q: Asked, seeds: int) -> Answer:
    """Ask how probable it is, in percent, that all seeds show the same sign where a switch changes nothing."""
    return q.percent(side_by_side.by_luck(seeds), 3, ways=f"{2**seeds:,}")


# ---- what a class hunts for: what is given is (a text, "4.3" or "4.3+5.0") of the finder's own screen ----


@_key("find", "attn")
def strongest(q: Asked, role: str) -> Answer:
    """The head with the largest share of this role on the finder's text, of `SENTENCE` tokens at least."""
    one_of("role", role, ROLES)
    facts = {"role": ROLES[role].label}
    trace = q.t
    ids = q.ids
    if q.given is not None:
        ids = q.lm.encode(q.given[0])[: q.lm.config.context_length]
        if len(ids) < SENTENCE:
            sentence = f"a text of {len(ids)} tokens, which is too short: {SENTENCE} at least"
            return Answer(None, "no head", facts, False, sentence)
        trace = q.lm.trace(ids, keep=["attn"])
    shares = {(head.block, head.head): _share(head, role) for row in roles(trace) for head in row}
    best = max(shares, key=lambda place: shares[place])
    share = percent(shares[best])
    answer = Answer(best, f"{head_name(best)} with {share}", facts | {"share": share})
    if q.given is None:
        return answer
    (place,) = _heads(q.lm, q.given[1], 1)
    sentence = f"{head_name(place)} with {percent(shares[place])} on {_quoted(q, ids[:12])}"
    return replace(answer, right=place == best, said=sentence, score=shares[place])


@_key("find")
def smallest_circuit(q: Asked) -> Answer:
    """The fewest heads that keep the prediction: neither less nor more of it than the model gives, while the
    others give their mean over this text. Beside them, random choices of as many heads."""
    token = int(q.t.logits(q.position).argmax())
    passes = Passes(q.lm, q.ids, token, "mean", position=q.position)
    if q.given is None:
        heads = []
    else:
        heads = _heads(q.lm, q.given[1])
    model_heads = all_heads(q.lm)
    draw = random.Random(len(heads))
    random_choices = [draw.sample(model_heads, len(heads)) for _ in range(RANDOM_CIRCUITS)]
    empty, value, *by_chance = passes.of([(), heads, *(random_choices if q.given else ())]).tolist()
    with_all = passes.whole
    enough = allowed(passes.whole, empty)
    low, high = (percent(min(1.0, max(0.0, with_all + sign * enough))) for sign in (-1, 1))
    facts = {"token": q.called(token), "whole": percent(with_all), "empty": percent(empty)}
    answer = Answer(
        with_all, f"{percent(with_all)} with all heads; {low} to {high} keeps it", facts
    )
    if q.given is None:
        return answer
    is_kept, *chance_kept = (abs(with_all - share) <= enough for share in (value, *by_chance))
    verdict = "kept" if is_kept else "not kept"
    number_of_heads = f"{len(heads)} heads"
    if len(heads) == 1:
        number_of_heads = "1 head"
    sentence = f"{number_of_heads} with {percent(value)}: {verdict}"
    sentence += (
        f". Of {RANDOM_CIRCUITS} random choices of {number_of_heads}, {sum(chance_kept)} keep it"
    )
    return replace(
        answer, right=is_kept, said=sentence, score=-float(len(heads)) if is_kept else None
    )


def _heads(lm: LanguageModel, text: str, count: int | None = None) -> list[Head]:
    """The heads that were handed in; exactly `count` of them, if that is given."""
    heads = parse(text, lm)
    if count is not None and len(heads) != count:
        raise CannotAsk(f"{text!r} names {len(heads)} heads; hand in {count}")
    return heads


def _quoted(q: Asked, ids: list[int]) -> str:
    return f"“{escaped(q.lm.decode(ids, begin=False).strip())}”".replace("\n", " ")
