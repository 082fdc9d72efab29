"""The Scaling page's sentences, with the numbers of its pictures in them."""

from collections.abc import Mapping, Sequence

from gptviz.digits import fixed, significant
from gptviz.lessons.scaling import KEYS, PRINTED, QUERIES


def what_to_see(row: Mapping[str, float]) -> str:
    """What stands above the three charts; `row` is one of `scaling.by_size`."""
    d = int(row["d"])
    return (
        f"**A score adds up d products, so that its variance is about d.** Here {QUERIES} random queries "
        f"meet {KEYS} random keys each, every number with variance 1. At d = {d} the scores' variance is "
        f"**{significant(row['variance'])}**; softmax then gives the best key "
        f"{significant(row['largest'], 2)} on average, and {_percent(row['gradient'])} of the gradient is "
        f"left. Divided by √d = {significant(d**0.5)} the variance is "
        f"**{significant(row['variance_scaled'])}**, the best key gets "
        f"{significant(row['largest_scaled'], 2)}, and {_percent(row['gradient_scaled'])} is left: much the "
        "same for every d."
    )


def what_is_left() -> str:
    """Under the charts: what each of them measures."""
    return (
        "Best key: the largest of a query's weights, on average. Gradient: how far each weight w moves when "
        "its own score moves a little, w · (1 − w), summed over the keys; 1 is what even weights let pass, "
        "the most there is. Where one key has everything, nothing moves and nothing is learned. "
        f"In one try with d = {PRINTED[0]}, a notebook after *Let's build GPT* prints a variance of "
        f"{significant(PRINTED[1], 4)} and, divided, {significant(PRINTED[2])}."
    )


def one_query(number: int, d: int, best: float, best_scaled: float) -> str:
    return (
        f"Query {number} at d = {d}: undivided, its best key gets **{significant(best)}** of the attention; "
        f"divided, **{significant(best_scaled)}**."
    )


def in_this_model(block: int, d: int, means: Sequence[tuple[float, float | None]]) -> str:
    """The heads of one block on this prompt: means over its heads, the unchanged model's beside each or None.

    `means` are the scores' variance, undivided and divided, and the largest weight, so too; without the
    latter where each query has one key.
    """
    raw, divided = (_both(*pair, 3) for pair in means[:2])
    text = (
        f"The queries and keys of this model are learned, not random, and have d = {d} numbers. In block "
        f"{block}, on this text, the scores of a head have a variance of {raw} on average, and {divided} "
        f"after the division by √{d} = {significant(d**0.5)}."
    )
    if len(means) < 4:
        return text
    undivided, own = (_both(*pair, 2) for pair in means[2:])
    return (
        f"{text} A query's largest weight is {own} on average; if this block did not divide, it would be "
        f"{undivided}."
    )


def _both(now: float, was: float | None, digits: int) -> str:
    """A number and, where something is changed, the unchanged model's."""
    return significant(now, digits) + ("" if was is None else f" (unchanged {significant(was, digits)})")


OUTLINES = "The bars are of the changed model; the outlines are of the unchanged one."


def scores_of(block: int) -> str:
    return f"the scores of block {block}"


def given(heads: Sequence[int]) -> str:
    """Heads whose weights are replaced by what is changed, and so are not worked out from scores."""
    listed = ", ".join(map(str, heads))
    whose = f"head {listed} are" if len(heads) == 1 else f"heads {listed} are"
    return f" The weights of {whose} replaced: what stands here is what their queries and keys would give."


def sharper(factor: int, before: float, after: float) -> str:
    """Softmax of the slide's five scores, times a number."""
    text = (
        f"The same five scores, times {factor}: the order stays, but the largest weight goes from "
        f"{significant(before, 4)} to **{significant(after, 4)}**. "
    )
    return text + (
        "Large scores make softmax take one and forget the others, and large scores are what undivided dot "
        "products are."
    )


def dropout(p: float, gone: int, kept: int, sums: tuple[float, float] | None) -> str:
    """What the mask did; `sums` are the least and the largest sum of a row afterwards."""
    every = gone + kept
    text = (
        f"**Dropout puts out each weight with probability {p:g}**, so that no token can rely on a single "
        f"other one: here {gone} of {every}. What is left is divided by 1 − {p:g} = {significant(1 - p, 2)}, "
        f"that is multiplied by {significant(1 / (1 - p))}, so that a sum stays what it was *on average*. "
    )
    if sums is not None:
        low, high = (fixed(total, 2) for total in sums)
        text += f"In this draw, rows that summed to 1 now sum to between {low} and {high}. "
    return text + "It is for training only: what you see on all other pages is a model that drops nothing."


def dropout_source(weights: str, p: float, seed: int) -> str:
    """Under the three squares: where the same numbers are printed."""
    call = f"`torch.manual_seed({seed}); torch.nn.Dropout({p:g})(weights)` gives the same numbers."
    if weights != "text" and (p, seed) == (0.5, 123):
        return f"{call} The book prints them in its section 3.5.2."
    return call


def whose(block: int, head: int, changed: bool) -> str:
    """Of which head the weights are, before anything is dropped."""
    return f"The weights are those of block {block}, head {head}, of the {'changed ' * changed}model."


def first_tokens(shown: int, whole: int) -> str:
    return f"The first {shown} of {whole} tokens." if shown < whole else ""


def cost(heads: int, d: int, most: int) -> str:
    """Above the button."""
    return (
        f"**Every token is compared with every other: T × T scores in each of {heads} heads.** Twice as many "
        "tokens are four times as much work and memory. One block's attention with this model's sizes "
        f"({heads} heads, d = {d}), on random numbers, up to {most:,} tokens, measured where this app runs:"
    )


def measured(tokens: int, seconds: float, size: float, times: float | None) -> str:
    """What came out for the longest text that was measured."""
    text = (
        f"{tokens:,} tokens took **{significant(1000 * seconds)} ms**, and the scores and weights "
        f"**{significant(size / 2**20)} MiB**"
    )
    if times is None:
        return text + "."
    return f"{text}. The last doubling took {significant(times, 2)} times as long; T² alone would make it 4."


def _percent(share: float) -> str:
    return f"{fixed(100 * share, 0)} %"
