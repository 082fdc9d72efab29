"""The Loss page's sentences: numbers in, Markdown out. Tokens come as the screen shows them."""

import math
from collections.abc import Sequence

from gptviz.digits import fixed, significant
from gptviz.figures.next_token import loss_text, probability_text
from gptviz.ui.words import as_code


def place(token: str, position: int) -> str:
    return f"{as_code(token)} (position {position})"


def nats(loss: float) -> str:
    """A loss with two decimals, or the digits that mean something where it is small."""
    return fixed(loss, 2) if loss >= 0.1 or loss == 0 else significant(loss, 2)


# ---- above the picture ----


def sentence(
    mean: float,
    uniform: float,
    vocabulary: int,
    last: str,
    position: int,
    was: float | None = None,
) -> str:
    """What reading this text costs the model, and where there is no target.

    `was` is the mean of the unchanged model.
    """
    loss, perplexity = loss_text(mean)
    guess = f"ln {vocabulary:,} = {nats(uniform)}"
    if mean < uniform:
        against = f"A guess that gives all {vocabulary:,} tokens the same would cost {guess}."
    else:
        against = f"That is no better than giving all {vocabulary:,} tokens the same, which costs {guess}."
    model, before = "model", ""
    if was is not None:
        model = "changed model"
        before = "Unchanged, it is **{} nats**, a perplexity of {}. ".format(*loss_text(was))
    return (
        f"The loss of this text is **{loss} nats** per token: a perplexity of e^{loss} = {perplexity}, as if "
        f"the {model} chose among {perplexity} equally likely tokens each time. {before}{against} "
        "The last token, "
        f"{place(last, position)}, has no target: what comes next is not in the text."
    )


def no_target(token: str, uniform: float, vocabulary: int) -> str:
    """For a text of one token."""
    return (
        f"{as_code(token)} is the only token, so nothing came next: there is no target, and no loss. Type "
        "a longer "
        f"text. A guess that gives all {vocabulary:,} tokens the same would cost ln {vocabulary:,} = "
        f"{nats(uniform)}."
    )


def costliest(found: Sequence[tuple[str, str, float]], total: float, positions: int) -> str:
    """Which positions cost most: (the target, the token before it, its loss), largest first."""
    parts = [f"{as_code(target)} after {as_code(before)} ({nats(loss)})" for target, before, loss in found]
    listed = parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    share = sum(loss for _, _, loss in found) / total if total else 0.0
    start = (
        "**What to look for.** A bar is what one token cost: −ln of the probability that it had. "
        f"Most expensive {'was' if len(parts) == 1 else 'were'} {listed}"
    )
    if len(parts) < positions:
        of_all = f"{significant(100 * share, 2)} % of all that this text cost"
        start += f": {of_all}, in {len(parts)} of {positions} positions"
    return (
        f"{start}. A token that the model was sure of costs almost nothing; one that it thought impossible "
        "costs "
        "without limit, since −ln p grows for ever as p goes to 0. Training makes the mean smaller, for "
        "billions of such "
        "positions. Click on a bar or on a token of the text below."
    )


def moved(found: Sequence[tuple[str, str, float, float]], dearer: int, positions: int) -> str:
    """What the change did, where: (the target, the token before it, its loss unchanged and changed) of the
    positions that moved most; `dearer` of all `positions` cost more than unchanged."""
    if not found:
        return f"**What the change did.** No loss of this text moves by more than {nats(STILL)} nats."
    parts = [
        f"{as_code(target)} after {as_code(before)}, {nats(was)} → {nats(now)}"
        for target, before, was, now in found
    ]
    listed = parts[0] if len(parts) == 1 else f"{'; '.join(parts[:-1])}; and {parts[-1]}"
    return (
        f"**What the change did.** It made {dearer} of {positions} positions cost more. Moved most "
        f"{'was' if len(parts) == 1 else 'were'} {listed}. A grey outline is what the unchanged model paid."
    )


STILL = 0.005  # nats: what no sentence calls a move


# ---- one position ----


def shown_instead(token: str, position: int) -> str:
    """Why the steps are of another position than the selected one."""
    return f"{place(token, position)} is selected and has no target: below is the position that cost most."


def step_title(token: str, position: int, target: str) -> str:
    return f"After {place(token, position)} came {as_code(target)}"


def steps(logit: float, log_sum: float, probability: float, loss: float, vocabulary: int) -> list[str]:
    """From the logits to this position's loss, a line each."""
    p = probability_text(probability)
    return [
        f"**logits**: {vocabulary:,} numbers, one a token; the target's is **{fixed(logit, 4)}**",
        f"**softmax**: e^{_power(logit)} ÷ the sum of such powers over the vocabulary = "
        f"e^({fixed(logit, 4)} − "
        f"{_bracket(log_sum)}) = **{p}**, where {fixed(log_sum, 4)} is the sum's logarithm",
        f"**−ln** of the target's probability: −ln {p} = **{fixed(loss, 4)}** nats, or "
        f"{fixed(log_sum, 4)} − {_bracket(logit)}",
    ]


def unchanged_line(probability: float, loss: float) -> str:
    """The same position, read by the unchanged model."""
    return (
        f"**unchanged**: the model without the changes gave the target {probability_text(probability)}, a "
        f"loss of {fixed(loss, 4)}"
    )


def mean_line(losses: Sequence[float], mean: float) -> str:
    """The mean over all positions, and the perplexity."""
    loss, perplexity = loss_text(mean)
    some = " + ".join(nats(loss) for loss in losses[:3]) + (" + …" if len(losses) > 3 else "")
    top = f"({some})" if len(losses) > 1 else some
    return (
        f"**mean** over the {len(losses):,} position{'s' * (len(losses) != 1)} with a target: {top} ÷ "
        f"{len(losses):,} = "
        f"**{loss}**, the cross-entropy. e^{loss} = **{perplexity}**, the perplexity; in bits it is {loss} ÷ "
        f"ln 2 = {fixed(mean / math.log(2), 4)}."
    )


def others(count: int) -> str:
    return f"{count:,} others"


def _power(value: float) -> str:
    return f"({fixed(value, 4)})" if value < 0 else fixed(value, 4)


def _bracket(value: float) -> str:
    return f"({fixed(value, 4)})" if value < 0 else fixed(value, 4)


# ---- hovers, plain text ----


def bar(token: str, position: int, target: str, probability: float, rank: int, loss: float) -> str:
    return (
        f"After `{token}` (position {position}) came `{target}`: the model gave it "
        f"{probability_text(probability)}, "
        f"rank {rank:,}, and so it costs {nats(loss)}."
    )


# ---- the seeds' examples ----


def slides(others: Sequence[str]) -> str:
    """The slides' example; `others` says where they print another last digit."""
    if not others:
        return SLIDES
    return f"{SLIDES} Its logits have more digits than it prints, and so it has {', '.join(others)}."


SLIDES = (
    "A vocabulary of five, as in a lecture's slides: five logits, their softmax, and the loss that each "
    "token would "
    "cost as the target. The target is token 0. The lecture prints 1.4411, and so does "
    "`torch.nn.functional.cross_entropy`."
)


def notebook(characters: int, printed: float, uniform: float) -> str:
    """What a table of random logits costs before any training."""
    return (
        "Before training, a model should start near ln V. The notebook's first one, a table of random "
        "logits over "
        f"{characters} characters, prints a loss of **{fixed(printed, 4)}**, while ln {characters} = "
        f"**{fixed(uniform, 4)}**: random logits are worse than none, since they are sure of the wrong "
        "things."
    )


NUMBERS = (
    "A row for each token of the text, as the target of the position before it: its logit, log_sum (the "
    "logarithm of "
    "the sum of e^logit over the vocabulary), the probability, and the loss in nats and in bits. The first "
    "token is no target. The last row is the mean."
)
