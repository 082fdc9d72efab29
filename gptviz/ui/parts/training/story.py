"""What a run has come to, in sentences."""

from itertools import takewhile

from gptviz.analysis.birth import Birth
from gptviz.digits import fixed, significant
from gptviz.training.live import Status, Task
from gptviz.training.live.seen import Seen
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
        if at_once == 1:
            one = "one run trains"
        else:
            one = f"{at_once} runs train"
        waits = "Waiting"
        if status.step:
            waits = f"Waiting at {where}"
        return f"{waits}: place {place} in the queue. On this server {one} at a time; yours begins by itself."
    if state == "starting":
        return "Starting: a process of its own is being set up, which takes a few seconds."
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
        start = "No head has found it yet."
        if over:
            start = f"No induction head by step {last.step:,}."
        costs = f"The validation loss is {significant(last.validation, 3)} nats per token; a blind "
        costs += f"guess costs {blind}, and what nobody can foresee {significant(task.floor, 3)}."
        if not seen.config.attention:
            return f"**There is no attention, and so no induction head.** {costs}"
        sentences = [f"**{start}** {costs}"]
        sentences.append(f"The best induction score is {fixed(best, 2)} (block {block}, head {head}).")
        if over and seen.config.n_layers == 1:
            sentences.append("With one block no head can read what another head wrote.")
        return " ".join(sentences)
    before = seen.measures[born.before]
    there = seen.measures[born.there]
    told = born.previous
    was = before.induction[born.head.block][born.head.head]
    text = (
        f"**An induction head was born between step {before.step:,} and step {there.step:,}**: block "
        f"{born.head.block}, head {born.head.head}, from a score of {fixed(was, 2)} to "
        f"{fixed(born.head.score, 2)}. In these steps the validation loss went from "
        f"{significant(before.validation, 3)} to {significant(there.validation, 3)} nats; a blind guess "
        f"costs {blind}."
    )
    if told is None:
        return text
    return text + (
        f" At step {there.step:,} the head of an earlier block that looks most at the previous token is "
        f"block {told.block}, head {told.head}: a score of {fixed(told.score, 2)}, and "
        f"{fixed(told.score - born.rise, 2)} at step {seen.measures[0].step:,}."
    )


def characters(seen: Seen, task: Task) -> str:
    """The story of a text's characters: what they cost, and since when less than a bigram's."""
    last = seen.measures[-1]
    best = min(seen.measures, key=lambda m: m.validation)
    text = f"After step {last.step:,} a character that it never trained on costs "
    text += f"**{significant(last.validation, 3)} nats**; a blind guess costs {significant(task.ln_v, 3)}, "
    text += f"the bigram {significant(task.bigram, 3)}."
    passed = list(takewhile(lambda m: m.validation < task.bigram, reversed(seen.measures)))
    if passed:
        text += f" Since step {passed[-1].step:,} it costs less than with the bigram: the model knows "
        text += "more than the last character."
    if last.validation > best.validation + 0.05:
        text += f" At step {best.step:,} it cost {significant(best.validation, 3)}, less than now."
        if best.train is not None and last.train is not None:
            was = significant(best.train, 3)
            now = significant(last.train, 3)
            text += f" What it does train on cost {was} then, and costs {now} now."
    return text


def beside(seen: Seen) -> str:
    """The other run, in a sentence."""
    last = seen.measures[-1]
    score, block, head = last.best_induction
    said = f" Beside it, dashed, **{seen.name}**: after step {last.step:,} its validation loss is "
    said += significant(last.validation, 3)
    if seen.config.attention:
        said += f", its best induction score {fixed(score, 2)} (block {block}, head {head})"
    return f"{said}."


def forked(step: int, heads: tuple[tuple[int, int], ...]) -> str:
    """A sentence about a fork: the step that it starts from, and the (block, head) that are off."""
    if not heads:
        return f"A fork: it goes on from step {step:,} of another run with nothing changed."
    off = ", ".join(f"head {head} of block {block}" for block, head in heads)
    return f"A fork: from step {step:,} on, {off} {is_or_are(len(heads))} off."


def tested(head: tuple[int, int], step: int, off: Seen, on: Seen, birth: Birth, over: bool) -> str:
    """The result of a fork `off` that had a head off from a step before the `birth` in `on`.

    `over`: the fork trains no further.
    """
    before = on.measures[birth.before].step
    there = on.measures[birth.there].step
    born = off.birth
    text = f"**Tested: head {head[0]}.{head[1]} off from step {step:,} on** ({off.name}), all else the same. "
    if born is None:
        if off.measures:
            last = off.measures[-1].step
        else:
            last = step
        text += f"There is no induction head by step {last:,}; with the head on ({on.name}) one came between "
        text += f"step {before:,} and step {there:,}."
        if last >= there:
            return f"{text} Up to here this training needs the head."
        if over:
            return f"{text} It ended too early to tell."
        return f"{text} It is not there yet."
    came = off.measures[born.there].step
    when = "the same step as"
    if came > there:
        when = f"{came - there:,} steps later than"
    elif came < there:
        when = f"{there - came:,} steps earlier than"
    return (
        f"{text}An induction head came all the same: block {born.head.block}, head {born.head.head}, "
        f"{fixed(born.head.score, 2)} at step {came:,}. That is {when} with the head on ({on.name}, "
        f"{fixed(birth.head.score, 2)}). The head is not shown to be needed here: others may stand in for it."
    )
