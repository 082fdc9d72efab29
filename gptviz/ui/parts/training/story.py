"""The results of a training run, in sentences."""

from itertools import takewhile

from gptviz.analysis.birth import Birth
from gptviz.digits import fixed, significant
from gptviz.training.live import Status, Task
from gptviz.training.live.seen import Seen
from gptviz.ui.waiting import place_in_line
from gptviz.ui.words import is_or_are

WORDS = {
    "training": "Training",
    "paused": "Paused",
    "stopped": "Stopped",
    "done": "Done",
    "failed": "Broken off",
    "killed": "Ended from outside",
}


def progress(status: Status, state: str, place: int | None, at_once: int) -> str:
    """A line that says where a run stands: its state, its step, its speed.

    `place` is its place in the queue, `at_once` how many runs this server trains at a time.
    """
    where = f"step {status.step:,} of {status.steps:,}"
    if state == "waiting":
        one = "one run trains"
        if at_once > 1:
            one = f"{at_once} runs train"
        waits = "Waiting"
        if status.step:
            waits = f"Waiting at {where}"
        where = place_in_line(place or 1).lower()
        return f"{waits}: {where}. On this server {one} at a time; yours starts by itself."
    if state == "starting":
        return "Starting: this takes a few seconds."
    if not status.tokens_per_second:
        return f"{WORDS[state]}: {where}."
    speed = f"{status.seconds:.1f} s of training, {status.tokens_per_second:,.0f} tokens per second"
    return f"{WORDS[state]}: {where}, {speed}."


def repeats(seen: Seen, task: Task, over: bool) -> str:
    """The story of an induction head, as far as this run has come."""
    assert task.floor is not None
    last = seen.measures[-1]
    born = seen.birth
    blind = significant(task.ln_v, 3)
    if born is None:
        best, block, head = last.best_induction
        start = "No induction head yet."
        if over:
            start = f"No induction head by step {last.step:,}."
        costs = f"The validation loss is {significant(last.validation, 3)} nats per token. Guessing blindly "
        costs += f"would cost {blind}; what nobody can predict costs {significant(task.floor, 3)}."
        if not seen.config.attention:
            return f"**Without attention there is no induction head.** {costs}"
        sentences = [f"**{start}** {costs}"]
        sentences.append(
            f"The best induction score is {fixed(best, 2)} (block {block}, head {head})."
        )
        if over and seen.config.n_layers == 1:
            sentences.append("With one block, no head can use what another head found.")
        return " ".join(sentences)
    before = seen.measures[born.before]
    after = seen.measures[born.there]
    previous_head = born.previous
    score_before = before.induction[born.head.block][born.head.head]
    text = (
        f"**An induction head was born by step {after.step:,}.** From step {before.step:,} to there, the "
        f"score of block {born.head.block}, head {born.head.head} rose from {fixed(score_before, 2)} to "
        f"{fixed(born.head.score, 2)}, and the validation loss went from "
        f"{significant(before.validation, 3)} to {significant(after.validation, 3)} nats. Guessing blindly "
        f"would cost {blind}."
    )
    if previous_head is None:
        return text
    return text + (
        f" Of the heads in earlier blocks, block {previous_head.block}, head {previous_head.head} then looks "
        f"most at the previous token: its score is {fixed(previous_head.score, 2)}, against "
        f"{fixed(previous_head.score - born.rise, 2)} at step {seen.measures[0].step:,}."
    )


def characters(seen: Seen, task: Task) -> str:
    """The story of a text's characters: what they cost, and since when less than a bigram's."""
    last = seen.measures[-1]
    best = min(seen.measures, key=lambda measures: measures.validation)
    text = "Predicting text that it never trained on costs the model "
    text += f"**{significant(last.validation, 3)} nats** per character. That is after step {last.step:,}; "
    text += f"guessing blindly costs {significant(task.ln_v, 3)}, a bigram model {significant(task.bigram, 3)}."
    passed = list(
        takewhile(lambda measures: measures.validation < task.bigram, reversed(seen.measures))
    )
    if passed:
        text += f" Since step {passed[-1].step:,} the model beats the bigram: it uses more than the last "
        text += "character."
    if last.validation > best.validation + 0.05:
        text += (
            f" The model was better at step {best.step:,}: {significant(best.validation, 3)} nats."
        )
        if best.train is not None and last.train is not None:
            cost_then = significant(best.train, 3)
            cost_now = significant(last.train, 3)
            text += f" The text that it trains on cost {cost_then} then and costs {cost_now} now."
    return text


def beside(seen: Seen) -> str:
    """A sentence about the other run."""
    last = seen.measures[-1]
    score, block, head = last.best_induction
    text = f" Dashed, for comparison: **{seen.name}**. After step {last.step:,} its validation loss is "
    text += significant(last.validation, 3)
    if seen.config.attention:
        text += f", its best induction score {fixed(score, 2)} (block {block}, head {head})"
    return f"{text}."


def forked(step: int, heads: tuple[tuple[int, int], ...]) -> str:
    """A sentence about a fork: the step that it starts from, and the (block, head) that are off."""
    if not heads:
        return f"This fork continues another run from step {step:,}, with nothing changed."
    off = ", ".join(f"head {head} of block {block}" for block, head in heads)
    return f"This run is a fork: from step {step:,} on, {off} {is_or_are(len(heads))} off."


def tested(head: tuple[int, int], step: int, off: Seen, on: Seen, birth: Birth, over: bool) -> str:
    """The result of a fork `off` that had a head off from a step before the `birth` in `on`.

    `over`: the fork trains no further.
    """
    before = on.measures[birth.before].step
    after = on.measures[birth.there].step
    born = off.birth
    text = f"**Tested: head {head[0]}.{head[1]} off from step {step:,} on** ({off.name}), all else unchanged. "
    if born is None:
        if off.measures:
            last = off.measures[-1].step
        else:
            last = step
        text += f"There is no induction head by step {last:,}; with the head on ({on.name}) one appeared "
        text += f"between step {before:,} and step {after:,}."
        if last >= after:
            return f"{text} So far, this training needs the head."
        if over:
            return f"{text} The run ended too early to tell."
        return f"{text} It may still come."
    born_at = off.measures[born.there].step
    when = "the same step as"
    if born_at > after:
        when = f"{born_at - after:,} steps later than"
    elif born_at < after:
        when = f"{after - born_at:,} steps earlier than"
    return (
        f"{text}An induction head appeared anyway: block {born.head.block}, head {born.head.head}, "
        f"{fixed(born.head.score, 2)} at step {born_at:,}. That is {when} with the head on ({on.name}, "
        f"{fixed(birth.head.score, 2)}). So nothing shows that the head is needed; others may replace it."
    )
