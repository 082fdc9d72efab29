"""The Next token page's sentences: numbers in, Markdown out. Tokens come as the screen shows them."""

import math

from gptviz.analysis.next_token import Entropy
from gptviz.digits import fixed, percent, significant
from gptviz.figures.next_token import loss_text, probability_text
from gptviz.ui.words import as_code


def sentence(token: str, position: int, predicted: str, probability: float, entropy: Entropy) -> str:
    """Above the bars: what the model, by itself, expects after the selected token, and how sure it is."""
    return (
        f"After {as_code(token)} (position {position}) the model gives {as_code(predicted)} "
        f"{percent(probability)}, and is as unsure as between {significant(entropy.perplexity)} equally "
        "likely tokens."
    )


def changed_sentence(
    token: str,
    position: int,
    predicted: str,
    probability: float,
    entropy: Entropy,
    was: str,
    was_probability: float,
    now: float,
    was_entropy: Entropy,
) -> str:
    """The same of a changed model: `was` is what the unchanged one expects most, and has `now`."""
    start = f"After {as_code(token)} (position {position}) the **changed** model gives {as_code(predicted)} "
    if predicted == was:
        start += f"{percent(probability)}, where the unchanged one gives it {percent(was_probability)}. "
    else:
        start += (
            f"{percent(probability)}; the unchanged one expects {as_code(was)}, {percent(was_probability)}, "
            f"which now has {percent(now)}. "
        )
    return start + (
        f"It is as unsure as between {significant(entropy.perplexity)} equally likely tokens, unchanged "
        f"{significant(was_entropy.perplexity)}."
    )


def came_next(token: str, probability: float, rank: int, was: tuple[float, int] | None = None) -> str:
    """What became of it, where the prompt goes on; `was` is its probability and rank unchanged."""
    start = f"In the prompt {as_code(token)} came next: the "
    if was is None:
        return f"{start}model gave it {percent(probability)}, rank {rank:,}."
    return (
        f"{start}changed model gave it {percent(probability)}, rank {rank:,}; the unchanged one "
        f"{percent(was[0])}, rank {was[1]:,}."
    )


def uncertainty(entropy: Entropy, kept: int, was: Entropy | None = None) -> str:
    """Beside the headline, plain text: the entropy of the bars as they are set, in both units."""
    if was is not None:  # beside a longer headline
        both = f"entropy {fixed(entropy.bits, 2)} bits, unchanged {fixed(was.bits, 2)}"
        return f"{both} · {kept:,} tokens kept"
    return (
        f"entropy {fixed(entropy.bits, 2)} bits = {fixed(entropy.nats, 2)} nats · perplexity "
        f"{significant(entropy.perplexity)} · {kept:,} tokens kept"
    )


def look_for(
    vocabulary: int,
    model: Entropy,
    chosen: Entropy,
    changed: bool,
    was: tuple[Entropy, Entropy] | None = None,
) -> str:
    """The paragraph under the bars; `changed` says that the settings are not the model's own.

    `was` are both entropies of the unchanged model.
    """
    before = "" if was is None else f" (unchanged {fixed(was[0].bits, 2)})"
    start = (
        f"**What to look for.** The model ends in one logit for each of the {vocabulary:,} tokens of its "
        f"vocabulary; softmax makes them probabilities, with an entropy of {fixed(model.bits, 2)} bits"
        f"{before}. "
    )
    if was is not None:
        start += (
            "A grey outline is what the unchanged model gives that token: a bar that ends inside its outline "
            "lost, one that runs past it gained. "
        )
        if changed:
            start += (
                f"Both have your settings, which make it {fixed(chosen.bits, 2)} bits (unchanged "
                f"{fixed(was[1].bits, 2)})."
            )
        return start.rstrip()
    if not changed:
        return start + (
            "Lower the temperature and the largest logits pull away from the others; top-k keeps the k "
            "largest, top-p the fewest that together reach p."
        )
    return start + (
        f"With your settings it is {fixed(chosen.bits, 2)} bits. A dashed outline is what the model gives by "
        "itself; a token that is cut has exactly 0, and the others grow to a sum of 1."
    )


def along_the_prompt(tokens: int, mean: float, was: float | None = None) -> str:
    """What the surprises of a prompt come to: their mean in nats over all its tokens but the first.

    `was` is the unchanged model's.
    """
    if tokens < 2:
        return "The prompt has one token, and nothing stands before it that could have let one expect it."
    nats, perplexity = loss_text(mean)
    said = (
        "Each token with the bits of surprise at which it came: −log₂ of the probability it had. On average "
        f"{bits(mean)} ({nats} nats) per token, over all but the first: reading this text, the "
        f"{'' if was is None else 'changed '}model was as unsure as between {perplexity} equally likely "
        "tokens each time."
    )
    if was is None:
        return said
    nats, perplexity = loss_text(was)
    return f"{said} Unchanged: {bits(was)} ({nats} nats), as between {perplexity}."


def bits(nats: float) -> str:
    return f"{fixed(nats / math.log(2), 4)} bits"


def drew(seed: int, token: str, probability: float) -> str:
    return f"Seed {seed} drew {as_code(token)}, which had probability {probability_text(probability)}."


CURVE = (
    "Every token of the vocabulary, from the most probable to the least, both axes in powers of ten. Grey is "
    "what the model gives, purple what your settings make of it: temperature tilts the line, top-k and top-p "
    "cut it off."
)

CURVE_CHANGED = (
    "Every token of the vocabulary, from the most probable to the least, both axes in powers of ten. Purple "
    "is the changed model, the dashed grey line the unchanged one, each with your settings and its own "
    "ranks: a line that falls later is a model that is less sure."
)

NUMBERS = (
    "From logit to probability, for the bars above. `filter` says which filter cut a token; "
    "`model_probability` is without any settings. The last row is the sum over all other tokens."
)

SURE = "How unsure the model is by itself, and with your settings."

SURPRISES = (
    "How likely each token of the prompt was, from what stood before it, at temperature 1 with no filter. "
    "bits = −log₂ p, nats = −ln p."
)
