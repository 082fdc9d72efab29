"""What this text costs the model: from logits to cross-entropy, position by position."""

import math

import numpy as np
import pandas as pd
import streamlit as st
import torch

from gptviz.analysis import loss as lesson
from gptviz.analysis.next_token import losses, surprises
from gptviz.both import Both
from gptviz.digits import weight as short
from gptviz.engine.sampling import Sampling
from gptviz.figures import next_token as figures
from gptviz.figures.marks import token_ticks
from gptviz.ui import sheet, tables, words
from gptviz.ui.components.surprise import surprise_chips
from gptviz.ui.shell.target import candidates_at, logits_at

EXAMPLES = ("A copied passage", "A name comes back", "Once upon a time")
NAMED = 3  # of the most expensive positions
ROWS = 5  # of the largest logits
FEWEST = 8  # places on the axis: one bar alone would be a wall

frame = sheet.start_page("Loss")
prompt = sheet.read_text(frame)
scene = sheet.trace(prompt, keep=["final"])

st.html(tables.STYLE)
found = sheet.of(scene, losses)
labels = scene.labels
last = len(scene.tokens) - 1
vocabulary = scene.lm.config.vocab_size
# (T - 1,): of the positions that have a target
nats = found.map(lambda one: one["nats"].to_numpy()[1:])
mean = nats.map(lambda one: float(one.mean()) if len(one) else math.nan)
guess = lesson.uniform_loss(vocabulary)
loss = mean.map(lambda x: words.loss_text(x)[0])
perplexity = mean.map(lambda x: words.loss_text(x)[1])


def bar_says(one: pd.DataFrame) -> list[str]:
    rows = zip(one["probability"].iloc[1:], one["rank"].iloc[1:], one["nats"].iloc[1:], strict=True)
    return [
        f"After `{labels[i]}` (position {i}) came `{labels[i + 1]}`: the model gave it "
        f"{words.probability_text(float(p))}, rank {int(rank):,}, and so it costs "
        f"{short(float(cost))}."
        for i, (p, rank, cost) in enumerate(rows)
    ]


def picture() -> None:
    """Draw what the text costs, in a sentence, as bars, and on the text itself."""
    blind = f"ln {vocabulary:,} = {short(guess)}"
    against = f"Blindly guessing among all {vocabulary:,} tokens would cost no more: {blind}."
    if mean.now < guess:
        against = f"Blindly guessing among all {vocabulary:,} tokens would cost {blind}."
    text = (
        f"On average, predicting a token of this text costs the model **{loss.arrow('')} nats**: its loss. "
        "The higher a bar, the greater the surprise."
    )
    sheet.say(
        scene,
        text,
        terms=["token"],
        about=nats,
        what="these losses",
        sites=[("final", None)],
    )
    axis = {"title": {"text": "the target: the token that came next"}, "showgrid": False}
    # a click selects the token after which its target came
    sheet.bars(
        scene,
        "loss_bars",
        nats,
        labels[1:],
        "loss, in nats",
        "The loss of every position that has a target, the mean, and that of a blind guess",
        scene.select,
        at=scene.position if scene.position < last else None,
        says=found.map(bar_says),
        colors=[figures.surprise_color(float(cost), guess, scene.mode) for cost in nats.now],
        rests=[
            (guess, f"a blind guess: {blind}"),
            (mean.now, f"the mean, the cross-entropy: {loss}"),
        ],
        axis=axis | token_ticks(labels[1:]) | {"range": [-0.6, max(last, FEWEST) - 0.4]},
        height=330,
    )
    dearest = np.argsort(-nats.now, kind="stable")[:NAMED]
    parts = [
        f"{words.as_code(labels[i + 1])} after {words.as_code(labels[i])} ({short(nats.now[i])})"
        for i in dearest
    ]
    share = 0.0
    if nats.now.sum():
        share = 100 * nats.now[dearest].sum() / nats.now.sum()
    surprising = f"The most surprising: {', '.join(parts)}"
    if len(parts) < last:
        part = f"{words.significant(share, 2)} % of the total"
        surprising += f". These {len(parts)} of {last} tokens account for {part}"
    words.prose(
        f"Each bar shows what one token cost: −ln of its probability. {surprising}. A token that the "
        "model was sure of costs almost nothing; the cost of one that it "
        "thought impossible has no limit. "
        "Training makes the mean smaller. Click a bar, or a token of the text below.",
        "logit",
    )
    words.prose(
        f"{against} The perplexity is e^{loss.now} = {perplexity.now}: as if the model chose among "
        f"{perplexity.now} equally likely tokens each time. The last token, "
        f"{words.as_code(labels[last])}, has no target: what comes next is not in the text.",
        "perplexity",
    )
    chips, legend = figures.surprise_rows(found.now, labels, vocabulary, scene.mode, found.was)
    key = "loss_text"
    raws = [token.raw for token in scene.tokens]
    saved = scene.saved(key, "What each token cost, in nats")
    surprise_chips(chips, scene.position + 1, legend, scene.select, raws=raws, key=key, saved=saved)


def one_position() -> None:
    """From logits to loss at the selected position; at the most expensive one where that has no target."""
    if scene.position < last:
        position = scene.position
    else:
        position = int(np.argmax(nats.now))
    st.markdown(
        f"#### After {words.Place(labels[position], position)} came {words.as_code(labels[position + 1])}"
    )
    if scene.position == last:
        st.markdown(
            f"The selected token, {words.Place(scene.label, last)}, has no target, so we look at "
            "the position that cost most."
        )
    row = found.map(lambda one: one.iloc[position + 1])
    logit = words.fixed(float(row.now["logit"]), 4)
    log_sum = words.fixed(float(row.now["log_sum"]), 4)
    p = row.map(lambda one: words.probability_text(float(one["probability"])))
    losses_summed = " + ".join(map(short, nats.now[:3].tolist()))
    if last > 3:
        losses_summed += " + …"
    if last > 1:
        losses_summed = f"({losses_summed})"
    lines = (
        f"**logits**: {vocabulary:,} scores, one per token; the target's is **{logit}**",
        f"**softmax**: e^{words.term(logit)}, divided by the sum of e^logit over the vocabulary. The "
        f"sum's logarithm is {log_sum}, so p = e^({logit} − {words.term(log_sum)}) = **{p.now}**",
        f"**−ln** of the target's probability: −ln {p.now} = "
        f"**{words.fixed(float(row.now['nats']), 4)}** nats, or {log_sum} − "
        f"{words.term(logit)}",
        f"**mean** over {words.counted(last, 'position')} with a target: {losses_summed} ÷ "
        f"{last:,} = **{loss.now}**, the cross-entropy. e^{loss.now} = **{perplexity.now}**, the "
        f"perplexity; in bits it is {loss.now} ÷ ln 2 = {words.fixed(mean.now / math.log(2), 4)}.",
    )
    left, right = st.columns([4, 6], gap="medium")
    with left:
        words.prose(
            "\n".join(f"{i}. {line}" for i, line in enumerate(lines, start=1)), "softmax", "logit"
        )
    with right:
        st.html(largest_logits(position, float(row.now["nats"])))


def largest_logits(position: int, cost: float) -> str:
    """The largest logits after a position and its target's, through the softmax, as HTML."""
    target = scene.tokens[position + 1].id
    if scene.other is None:
        was = None
    else:
        was = logits_at(scene.other, position).double().softmax(-1)
    found = candidates_at(scene.run, position, Sampling(), ROWS, (target,))
    rows = []
    rest = 1.0
    for id, rank, logit, p in found.table[["id", "rank", "logit", "probability"]].itertuples(
        index=False
    ):
        before = None if was is None else float(was[id])
        chance = Both(float(p), before).map(words.probability_text)
        rest = rest - (before or 0.0)
        name = words.show_id(scene.lm, int(id))
        own_cost = ""
        kind = "line"
        if id == target:
            name += ", the target"
            own_cost = words.fixed(cost, 4)
            kind = "chosen"
        numbers = [f"{rank:,}", words.fixed(float(logit), 4), f"{chance}", own_cost]
        rows.append(tables.Row([tables.Cell(name, "word"), *numbers], kind))
    if found.rest:
        left = Both(found.rest_probability, None if was is None else max(0.0, rest)).map(
            words.probability_text
        )
        rows.append(tables.Row([f"{found.rest:,} others", "", "", f"{left}", ""]))
    return tables.table("position", ["token", "#rank", "#logit", "#softmax", "#−ln"], rows)


def smallest() -> None:
    """The slides' vocabulary of five, and the notebook's first loss."""
    st.markdown("#### The smallest example")
    logits = torch.tensor([lesson.SLIDE_LOGITS] * len(lesson.SLIDE_LOGITS), dtype=torch.float64)
    # each token as the target once
    steps = lesson.loss_steps(logits, torch.arange(len(lesson.SLIDE_LOGITS)))
    others = words.unlike_printed(lesson.SLIDE_LOSSES, steps.loss.tolist())
    left, right = st.columns([5, 6], gap="medium")
    with left:
        text = (
            "Here the vocabulary has five tokens (from Fijalkow's slides *Transformers from scratch*): "
            "five logits, their softmax, and what each token would cost as the target. The target is "
            "token 0. The slides print 1.4411, and so does `torch.nn.functional.cross_entropy`."
        )
        if others:
            text += f" They computed with more digits than they print, so they have {', '.join(others)}."
        words.prose(text, "softmax")
        characters = lesson.NOTEBOOK_CHARACTERS
        start = words.fixed(lesson.uniform_loss(characters), 4)
        st.markdown(
            "Before training, a model should start near ln V. Karpathy's *Let's build GPT* starts "
            f"with a table of random logits over {characters} characters. Its loss is "
            f"**{words.fixed(lesson.NOTEBOOK_LOSS, 4)}**, while ln {characters} = **{start}**: "
            "random logits do worse than equal ones, because they are sure of the wrong things."
        )
    with right:
        rows = []
        columns = (lesson.SLIDE_LOGITS, steps.probability.tolist(), steps.loss.tolist())
        for i, cells in enumerate(zip(*columns, strict=True)):
            name = f"token {i}"
            kind = "line"
            if i == lesson.SLIDE_TARGET:
                name += ", the target"
                kind = "chosen"
            numbers = [words.fixed(value, 4) for value in cells]
            rows.append(tables.Row([tables.Cell(name, "word"), *numbers], kind))
        st.html(tables.table("slides", ["", "#logit", "#softmax", "#−ln"], rows))


def table_of(one: pd.DataFrame) -> pd.DataFrame:
    """The losses with the tokens, and the means that the sentence says."""
    named = one.rename(columns={"position": "target_position", "nats": "loss"})
    named.insert(1, "target", labels)
    if len(one) < 2:
        return named
    means = {"target": "mean", "loss": one["nats"].mean(), "bits": one["bits"].mean()}
    named = named.astype({"target_position": "Int64", "id": "Int64"})
    return pd.concat([named, pd.DataFrame([means])], ignore_index=True)


if last:
    picture()
    one_position()
else:
    st.markdown(
        f"{words.as_code(labels[0])} is the only token: nothing comes next, so there is no loss. Type a "
        f"longer text. Blindly guessing among all {vocabulary:,} tokens would cost "
        f"ln {vocabulary:,} = {short(guess)}."
    )
sheet.example_row(*EXAMPLES)
smallest()
caption = (
    "One row per token of the text, as the target of the position before it: its logit, log_sum (the "
    "logarithm of the sum of e^logit over the vocabulary), the probability, and the loss in nats "
    "and in bits. The first token is no target."
)
if last:
    caption += " The last row is the mean."
with sheet.details():
    sheet.numbers_of("loss", lambda: found.map(table_of), caption)
    sheet.code_of(scene, [lesson.loss_steps, surprises, "model"], losses)
