"""The Next token page's sentences: numbers in, Markdown out. Tokens come as the screen shows them."""

from gptviz.analysis.next_token import Entropy
from gptviz.digits import fixed, significant
from gptviz.figures.next_token import probability_text
from gptviz.ui.words import as_code


def sentence(token: str, position: int, predicted: str, probability: float, entropy: Entropy) -> str:
    """Above the bars: what the model, by itself, expects after the selected token, and how sure it is."""
    return (
        f"After {as_code(token)} (position {position}) the model gives {as_code(predicted)} "
        f"{_percent(probability)}, and is as unsure as between {significant(entropy.perplexity)} equally "
        "likely tokens."
    )


def came_next(token: str, probability: float, rank: int) -> str:
    """What became of it, where the prompt goes on."""
    return (
        f"In the prompt {as_code(token)} came next: the model gave it {_percent(probability)}, rank {rank:,}."
    )


def _percent(share: float) -> str:
    return f"{significant(100 * share, 2)} %"


def uncertainty(entropy: Entropy, kept: int) -> str:
    """Beside the headline, plain text: the entropy of the bars as they are set, in both units."""
    return (
        f"entropy {fixed(entropy.bits, 2)} bits = {fixed(entropy.nats, 2)} nats · perplexity "
        f"{significant(entropy.perplexity)} · {kept:,} tokens kept"
    )


def look_for(vocabulary: int, model: Entropy, chosen: Entropy, changed: bool) -> str:
    """The paragraph under the bars; `changed` says that the settings are not the model's own."""
    start = (
        f"**What to look for.** The model ends in one logit for each of the {vocabulary:,} tokens of its "
        f"vocabulary; softmax makes them probabilities, with an entropy of {fixed(model.bits, 2)} bits. "
    )
    if not changed:
        return start + (
            "Lower the temperature and the largest logits pull away from the others; top-k keeps the k "
            "largest, top-p the fewest that together reach p."
        )
    return start + (
        f"With your settings it is {fixed(chosen.bits, 2)} bits. A dashed outline is what the model gives by "
        "itself; a token that is cut has exactly 0, and the others grow to a sum of 1."
    )


def along_the_prompt(tokens: int, bits: float, nats: float) -> str:
    """What the surprises of a prompt come to: their means over all its tokens but the first."""
    if tokens < 2:
        return "The prompt has one token, and nothing stands before it that could have let one expect it."
    return (
        "Each token with the bits of surprise at which it came: −log₂ of the probability it had. On average "
        f"{fixed(bits, 2)} bits ({fixed(nats, 2)} nats) a token, over all but the first: reading this text, "
        f"the model was as unsure as between {significant(2**bits)} equally likely tokens each time."
    )


def drew(seed: int, token: str, probability: float) -> str:
    return f"Seed {seed} drew {as_code(token)}, which had probability {probability_text(probability)}."


CURVE = (
    "Every token of the vocabulary, from the most probable to the least, both axes in powers of ten. Grey is "
    "what the model gives, purple what your settings make of it: temperature tilts the line, top-k and top-p "
    "cut it off."
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
