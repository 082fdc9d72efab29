"""The tables under *In numbers*, with their tokens."""

from collections.abc import Callable, Sequence

import pandas as pd

from gptviz.analysis.next_token import Candidates
from gptviz.tokenizer import show_token
from gptviz.trace import Token


def candidate_table(found: Candidates, name: Callable[[int], str]) -> pd.DataFrame:
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


def entropy_table(found: Candidates) -> pd.DataFrame:
    """How unsure: the model by itself, and with the settings."""
    both = {"the model": found.model_entropy, "with your settings": found.entropy}
    return pd.DataFrame(
        [
            {"": name, "bits": entropy.bits, "nats": entropy.nats, "perplexity": entropy.perplexity}
            for name, entropy in both.items()
        ]
    )


def surprise_table(table: pd.DataFrame, tokens: Sequence[Token]) -> pd.DataFrame:
    """The surprises with the tokens they belong to; a last row has the means that the sentence says."""
    named = table.drop(columns=["logit", "log_sum"])  # the Loss page has them
    named.insert(1, "token", [show_token(token.raw) for token in tokens])
    mean = {"token": "mean", "nats": table["nats"].mean(), "bits": table["bits"].mean()}
    if len(table) < 2:
        return named
    named = named.astype({"position": "Int64", "id": "Int64"})
    return pd.concat([named, pd.DataFrame([mean]).astype({"bits": float})], ignore_index=True)
