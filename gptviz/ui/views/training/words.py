"""The training page's sentences, with the numbers of the run in them."""

from collections.abc import Sequence

from gptviz.analysis.birth import Birth
from gptviz.digits import fixed, significant
from gptviz.training.live import LiveConfig, Snapshot, Status

INTRO = (
    "A small GPT, the book's own `GPTModel`, learns while you watch: its loss, what each of its heads "
    "looks at, "
    "and what it writes. Begin with random tokens in which a passage repeats. Nobody can foresee a "
    "random token; "
    "but once it is there, what comes after it the second time is what came after it the first time. "
    "An **induction head** looks there."
)

PROBE = "One of the texts that it will be watched on: 16 random tokens, again and again."

TASK_NAMES = {"repeats": "repeated random tokens", "chapter": "a chapter of Alice", "own": "your own text"}

FIELDS = {
    "n_layers": "Blocks",
    "n_heads": "Heads",
    "emb_dim": "Width",
    "context_length": "Context",
    "batch_size": "Batch",
    "learning_rate": "Learning rate",
    "steps": "Steps",
    "seed": "Seed",
    "layer_norm": "LayerNorm",
    "shortcut": "Shortcuts",
    "positions": "Positions",
    "feed_forward": "Feed-forward",
}

HELP = {
    "n_layers": "How many blocks, one after the other.",
    "n_heads": "How many heads in each block; they divide the width among them.",
    "emb_dim": "How many numbers stand for a token.",
    "context_length": "How many tokens it reads at once.",
    "batch_size": "How many windows of text at each step.",
    "learning_rate": "How far each step goes. 0.003 is usual for a model of this size.",
    "steps": "How often all numbers of the model are changed.",
    "seed": "The same seed gives the same first weights, the same batches, and the same curve.",
}

CURVES = (
    "A row every so many steps: the mean training loss since the row before and the validation loss, in "
    "nats a "
    "token, the heads with the highest scores (block.head), and what the model then wrote."
)
HEADS = "Every head's two scores at every point: the mean attention to where such a head would look."
LEVELS = (
    "In nats a token: who guesses evenly; who knows only the token before; and, where it is known, what "
    "is left "
    "for one who knows how the texts are made."
)
TENSORS = "What will be trained: every tensor of the model, with its shape."


def parameters(count: int, vocabulary: int, config: LiveConfig) -> str:
    """What the form's model is."""
    blocks = "1 block" if config.n_layers == 1 else f"{config.n_layers} blocks"
    heads = "1 head" if config.n_heads == 1 else f"{config.n_heads} heads"
    return (
        f"**{count:,} parameters**: {blocks} of {heads}, {config.emb_dim} wide, a vocabulary of "
        f"{vocabulary:,} "
        f"characters. {config.steps:,} steps of {config.batch_size} windows are "
        f"{config.steps * config.batch_size * config.context_length:,} tokens."
    )


def progress(status: Status, state: str, place: int | None, at_once: int) -> str:
    """Where the run stands, in a line."""
    if state == "waiting":
        if status.step:
            return f"Waiting at step {status.step:,} of {status.steps:,}: {_queued(place, at_once)}"
        return f"Waiting: {_queued(place, at_once)}"
    if state == "starting":
        return "Starting: a process of its own is being set up, which takes a few seconds."
    where = f"step {status.step:,} of {status.steps:,}"
    speed = (
        f", {status.seconds:.1f} s of training, {status.tokens_per_second:,.0f} tokens a second"
        if status.tokens_per_second
        else ""
    )
    word = {
        "training": "Training",
        "paused": "Paused",
        "stopped": "Stopped",
        "done": "Done",
        "failed": "Broken off",
        "killed": "Ended from outside",
    }[state]
    return f"{word}: {where}{speed}."


def _queued(place: int | None, at_once: int) -> str:
    one = "one run trains" if at_once == 1 else f"{at_once} runs train"
    return f"place {place} in the queue. On this server {one} at a time, and yours begins by itself."


def repeats(
    measures: Sequence[Snapshot],
    born: Birth | None,
    blind: float,
    floor: float,
    config: LiveConfig,
    over: bool,
) -> str:
    """The story of an induction head, as far as this run has come."""
    last = measures[-1]
    if born is not None:
        return _born(measures, born, blind)
    best, block, head = last.best_induction
    loss = f"The validation loss is {significant(last.validation, 3)} nats a token"
    if not over:
        return (
            f"**No head has found it yet.** {loss}; a blind guess costs {significant(blind, 3)}, and "
            "what nobody "
            f"can foresee {significant(floor, 3)}. The best induction score is {fixed(best, 2)} (block "
            f"{block}, "
            f"head {head})."
        )
    text = (
        f"**No induction head came in {last.step:,} steps.** {loss}; what nobody can foresee costs "
        f"{significant(floor, 3)}. The best induction score is {fixed(best, 2)} (block {block}, head {head})."
    )
    if config.n_layers == 1:
        text += " With one block no head can read what another head wrote."
    return text


def _born(measures: Sequence[Snapshot], born: Birth, blind: float) -> str:
    before, there = measures[born.before], measures[born.there]
    was = before.induction[born.head.block][born.head.head]
    text = (
        f"**An induction head was born between step {before.step:,} and step {there.step:,}**: block "
        f"{born.head.block}, head {born.head.head}, from a score of {fixed(was, 2)} to "
        f"{fixed(born.head.score, 2)}. In these steps the validation loss went from "
        f"{significant(before.validation, 3)} to {significant(there.validation, 3)} nats; a blind guess "
        "costs "
        f"{significant(blind, 3)}."
    )
    if born.previous is not None:
        text += (
            f" At step {there.step:,} the head of an earlier block that looks most at the previous token is "
            f"block {born.previous.block}, head {born.previous.head}: a score of "
            f"{fixed(born.previous.score, 2)}, and {fixed(born.previous.score - born.rise, 2)} at step "
            f"{measures[0].step:,}."
        )
    return text


def test_it(head: tuple[int, int], step: int) -> str:
    """The button that forks with the head off that the sentence names."""
    return f"Is head {_dotted(head)} needed? Train again from step {step:,} with it off"


def tested(
    head: tuple[int, int],
    step: int,
    off: tuple[str, Sequence[Snapshot], Birth | None],
    on: tuple[str, Sequence[Snapshot], Birth],
    over: bool,
) -> str:
    """What came of a fork that had a head off from a step before the birth on: each its name, what was
    measured, the birth."""
    (name, measures, born), (origin, before, birth) = off, on
    where = f"between step {before[birth.before].step:,} and step {before[birth.there].step:,}"
    text = f"**Tested: head {_dotted(head)} off from step {step:,} on** ({name}), all else the same. "
    if born is None:
        last = measures[-1].step if measures else step
        text += f"There is no induction head by step {last:,}; with the head on ({origin}) one came {where}."
        if last < before[birth.there].step:
            return f"{text} {'It ended too early to tell.' if over else 'It is not there yet.'}"
        return f"{text} Up to here this training needs the head."
    came = f"block {born.head.block}, head {born.head.head}, {fixed(born.head.score, 2)} at step"
    text += f"An induction head came all the same: {came} {measures[born.there].step:,}. "
    later = measures[born.there].step - before[birth.there].step
    if later == 0:
        text += f"That is the same step as with the head on ({origin}, {fixed(birth.head.score, 2)})."
    else:
        when = f"{abs(later):,} steps {'later' if later > 0 else 'earlier'}"
        text += f"That is {when} than with the head on ({origin})."
    return text + " The head is not shown to be needed: others may stand in for it."


def _dotted(head: tuple[int, int]) -> str:
    return f"{head[0]}.{head[1]}"


def characters(measures: Sequence[Snapshot], blind: float, bigram: float) -> str:
    """The story of a text's characters: what they cost, and since when less than a bigram's."""
    last = measures[-1]
    text = (
        f"After step {last.step:,} a character that it never trained on costs "
        f"**{significant(last.validation, 3)} nats**; a blind guess costs {significant(blind, 3)}, the "
        "bigram "
        f"{significant(bigram, 3)}."
    )
    passed = next((m for m in measures if m.validation < bigram), None)
    if passed is not None:
        text += f" Since step {passed.step:,} it knows more than the last character."
    best = min(measures, key=lambda m: m.validation)
    if last.validation > best.validation + 0.05:
        text += f" At step {best.step:,} it cost {significant(best.validation, 3)}, less than now."
        if best.train is not None and last.train is not None:
            text += (
                f" What it does train on cost {significant(best.train, 3)} then, and costs "
                f"{significant(last.train, 3)} now."
            )
    return text


def beside(name: str, last: Snapshot) -> str:
    """The other run, in a sentence."""
    score, block, head = last.best_induction
    return (
        f"Beside it, dashed, **{name}**: after step {last.step:,} its validation loss is "
        f"{significant(last.validation, 3)}, its best induction score {fixed(score, 2)} (block {block}, head "
        f"{head})."
    )


def head_label(induction: float, previous: float, off: bool) -> str:
    """Under a head's small picture."""
    if off:
        return "off"
    if max(induction, previous) < 0.15:
        return "–"
    return f"induction {fixed(induction, 2)}" if induction >= previous else f"previous {fixed(previous, 2)}"


def head_says(induction: float, previous: float, off: bool) -> str:
    """When a head is pointed at."""
    start = "Switched off in training: what it looks at reaches nobody. " if off else ""
    return f"{start}Induction score {fixed(induction, 3)}, previous-token score {fixed(previous, 3)}."


def large(block: int, head: int, step: int, period: int | None, induction: float, previous: float) -> str:
    """Over the large head."""
    text = (
        f"Block {block}, head {head}, after step {step:,}: induction {fixed(induction, 2)}, previous token "
        f"{fixed(previous, 2)}. "
    )
    if period is None:
        return text + "The probe is ordinary text."
    return (
        text + f"The probe's passage has {period} tokens, again and again: an induction head draws a line "
        f"{period - 1} places left of the diagonal, a previous-token head one place left of it."
    )


def right(count: int, of: int) -> str:
    """How much of what it wrote is the passage, where there is one right answer."""
    return f"{count} of these {of} tokens are the passage's."


def fork(step: int) -> str:
    return (
        f"Go back to the snapshot of step {step:,}, switch a head off from there on, and go on with the very "
        "same batches. Whatever differs then comes of that head being off."
    )


def forked(step: int, heads: Sequence[tuple[int, int]]) -> str:
    """What a fork is, above its story."""
    if not heads:
        return f"A fork: it goes on from step {step:,} of another run with nothing changed."
    off = ", ".join(f"head {head} of block {block}" for block, head in heads)
    return f"A fork: from step {step:,} on, {off} is off." if len(heads) == 1 else (
        f"A fork: from step {step:,} on, {off} are off."
    )  # fmt: skip


def head_choice(head: tuple[int, int] | None) -> str:
    """A head in the list of those that can be switched off."""
    return "none" if head is None else f"block {head[0]}, head {head[1]}"


def slider(step: int) -> str:
    """Over the slider of the snapshots."""
    return f"Snapshot of step {step:,}"


OPENED = (
    "All pages now show this model, and the probe is their prompt. It is among your models until you "
    "leave; the "
    "sidebar leads back to the bundled one."
)


RELOAD = (
    "`model.pth` is what the book saves: `torch.save(model.state_dict(), ...)`. With `config.json` and "
    "`meta.pkl` "
    "beside it the file picker (*More models*) opens it again, and so does `gptviz.load` of the "
    "unpacked folder."
)
