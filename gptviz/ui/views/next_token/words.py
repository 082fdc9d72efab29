"""The sentences of the Next token page, with this prompt's numbers."""

from collections.abc import Callable, Sequence
from html import escape

import pandas as pd

from gptviz.analysis.next_token import Candidates
from gptviz.digits import fixed, significant
from gptviz.figures.next_token import probability_text
from gptviz.figures.theme import palette
from gptviz.sampling import Options
from gptviz.tokenizer import show_token
from gptviz.trace import Token
from gptviz.ui.shell.page import Scene
from gptviz.ui.words import as_code

TAIL = 36  # characters of the prompt before the predicted token


def headline(scene: Scene, found: Candidates, predicted: str) -> str:
    """HTML: the end of the text up to the selected token, and the most probable next one right after it."""
    colors = palette(scene.mode)
    raw = b"".join(token.raw for token in scene.tokens[: scene.position + 1])
    before = show_token(raw).replace("·", " ")  # shown together, so that a character of several tokens is one
    tail = ("…" if len(before) > TAIL else "") + before[-TAIL:]
    best = found.table.iloc[0]
    return (
        '<div data-testid="headline" style="font-size: 1.15rem; line-height: 1.5; overflow-wrap: anywhere">'
        f'<span style="color: {colors.quiet}">{escape(tail)}</span>'
        f'<b data-testid="predicted" data-id="{int(best["id"])}" style="color: {colors.accent}; '
        f'border-bottom: 2px solid {colors.accent}; white-space: pre">{escape(predicted)}</b>'
        f'<span style="color: {colors.quiet}; font-size: 0.9rem; margin-left: 0.7em">'
        f"{probability_text(float(best['probability']))}</span></div>"
    )


def uncertainty(found: Candidates) -> str:
    """HTML: the entropy of the bars, in both units, and its perplexity."""
    entropy = found.entropy
    return (
        f'<div data-testid="entropy" data-nats="{entropy.nats}" style="font-size: 0.92rem">'
        f"entropy <b>{fixed(entropy.bits, 2)} bits</b> = {fixed(entropy.nats, 2)} nats · "
        f"perplexity <b>{significant(entropy.perplexity)}</b> · {found.kept:,} tokens kept</div>"
    )


def look_for(scene: Scene, found: Candidates, options: Options, came: int | None) -> str:
    """The page's one paragraph."""
    here = as_code(show_token(scene.tokens[scene.position].raw))
    parts = [
        f"**What to look for.** At {here} (position {scene.position}) the model ends in one logit for each "
        f"of the {scene.lm.config.vocab_size:,} tokens of its vocabulary; softmax makes them probabilities. "
        f"It is as unsure as between {significant(found.model_entropy.perplexity)} equally likely tokens: "
        f"an entropy of {fixed(found.model_entropy.bits, 2)} bits."
    ]
    if options == Options():
        parts.append(
            "Lower the temperature and the largest logits pull away from the others; top-k keeps the k "
            "largest, top-p the fewest that together reach p."
        )
    else:
        parts.append(
            f"With your settings it is {fixed(found.entropy.bits, 2)} bits. A dashed outline is what the "
            "model gives by itself; a token that is cut has exactly 0, and the others grow to a sum of 1."
        )
    if came is not None:
        row = found.table[found.table["id"] == came].iloc[0]
        shown = as_code(show_token(scene.tokens[scene.position + 1].raw))
        had = probability_text(float(row["model_probability"]))
        parts.append(f"In the prompt {shown} came next: the model gave it {had}, rank {int(row['rank']):,}.")
    return " ".join(parts)


def along_the_prompt(table: pd.DataFrame) -> str:
    """What the surprises of a prompt come to."""
    if len(table) < 2:
        return "The prompt has one token, and nothing stands before it that could have let one expect it."
    nats, bits = float(table["nats"].mean()), float(table["bits"].mean())
    return (
        "Each token with the bits of surprise at which it came: −log₂ of the probability it had. On average "
        f"{fixed(bits, 2)} bits ({fixed(nats, 2)} nats) a token: reading this text, the model was as unsure "
        f"as between {significant(2**bits)} equally likely tokens each time."
    )


CURVE = (
    "Every token of the vocabulary, from the most probable to the least, both axes in powers of ten. Grey is "
    "what the model gives, purple what your settings make of it: temperature tilts the line, top-k and top-p "
    "cut it off."
)

NUMBERS = (
    "From logit to probability, for the bars above. `filter` says which filter cut a token; "
    "`model_probability` is without any settings. The last row is the sum over all other tokens."
)

SURPRISES = (
    "How likely each token of the prompt was, from what stood before it, at temperature 1 with no filter. "
    "bits = −log₂ p, nats = −ln p."
)


def shapes(scene: Scene) -> dict[str, str]:
    """The shapes of the forward pass's end, for this prompt."""
    tokens, config = len(scene.tokens), scene.lm.config
    return {
        "in_idx": f"(1, {tokens})",
        "x after final_norm": f"(1, {tokens}, {config.emb_dim})",
        "out_head.weight": f"({config.vocab_size}, {config.emb_dim})",
        "logits, one position": f"({config.vocab_size},)",
    }


def next_token_table(found: Candidates, name: Callable[[int], str]) -> pd.DataFrame:
    """The rows of the bars, and one for all the other tokens."""
    rows = found.table.copy()
    rows.insert(1, "token", [name(int(i)) for i in rows["id"]])
    rest = {
        "token": f"{found.rest:,} others",
        "probability": found.rest_probability,
        "model_probability": found.rest_model_probability,
    }
    rows = rows.astype({"rank": "Int64", "id": "Int64"})
    return pd.concat([rows, pd.DataFrame([rest])], ignore_index=True) if found.rest else rows


def surprise_table(table: pd.DataFrame, tokens: Sequence[Token]) -> pd.DataFrame:
    """The surprises with the tokens they belong to."""
    named = table.copy()
    named.insert(1, "token", [show_token(token.raw) for token in tokens])
    return named
