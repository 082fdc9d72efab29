"""The tables under *In numbers*, with their tokens."""

from collections.abc import Callable, Sequence

import pandas as pd
import torch

from gptviz.analysis.next_token import Candidates, rest_of
from gptviz.engine.trace import Token
from gptviz.tokenizer import show_token
from gptviz.ui.views.both import both


def candidate_table(
    found: Candidates, name: Callable[[int], str], unchanged: Candidates | None = None
) -> pd.DataFrame:
    """The rows of the bars, and one for all the other tokens."""
    rows = found.table.copy()
    if unchanged is not None:
        ids = torch.tensor(rows["id"].tolist())
        rows["unchanged rank"] = (unchanged.chosen.rank[ids] + 1).numpy()
        rows["unchanged probability"] = unchanged.chosen.probabilities[ids].numpy()
    rows.insert(1, "token", [name(int(i)) for i in rows["id"]])
    rest = {
        "token": f"{found.rest:,} others",
        "probability": found.rest_probability,
        "model_probability": found.rest_model_probability,
    }
    if unchanged is not None:
        rest["unchanged probability"] = rest_of(unchanged.chosen.probabilities, ids)
    whole = {"rank": "Int64", "id": "Int64", "unchanged rank": "Int64"}
    rows = rows.astype({column: kind for column, kind in whole.items() if column in rows})
    return pd.concat([rows, pd.DataFrame([rest])], ignore_index=True) if found.rest else rows


def entropy_table(found: Candidates, unchanged: Candidates | None = None) -> pd.DataFrame:
    """How unsure: the model by itself, and with the settings."""
    own = None if unchanged is None else entropy_table(unchanged)
    return both(_entropies(found), own, ["bits", "nats", "perplexity"])


def _entropies(found: Candidates) -> pd.DataFrame:
    both = {"the model": found.model_entropy, "with your settings": found.entropy}
    return pd.DataFrame(
        [
            {"": name, "bits": entropy.bits, "nats": entropy.nats, "perplexity": entropy.perplexity}
            for name, entropy in both.items()
        ]
    )


def surprise_table(
    table: pd.DataFrame, tokens: Sequence[Token], unchanged: pd.DataFrame | None = None
) -> pd.DataFrame:
    """The surprises with the tokens they belong to; a last row has the means that the sentence says."""
    own = None if unchanged is None else surprise_table(unchanged, tokens)
    return both(_surprises(table, tokens), own, ["probability", "nats", "bits", "rank"])


def _surprises(table: pd.DataFrame, tokens: Sequence[Token]) -> pd.DataFrame:
    named = table.drop(columns=["logit", "log_sum"])  # the Loss page has them
    named.insert(1, "token", [show_token(token.raw) for token in tokens])
    mean = {"token": "mean", "nats": table["nats"].mean(), "bits": table["bits"].mean()}
    if len(table) < 2:
        return named
    named = named.astype({"position": "Int64", "id": "Int64"})
    return pd.concat([named, pd.DataFrame([mean]).astype({"bits": float})], ignore_index=True)
