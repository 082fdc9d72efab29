"""The Loss page's tables: one position from logits to loss, the slides' example, and In numbers."""

from collections.abc import Callable, Sequence

import pandas as pd
import torch

from gptviz.analysis.next_token import Candidates, rest_of
from gptviz.digits import fixed
from gptviz.engine.trace import Token
from gptviz.figures.next_token import probability_text
from gptviz.lessons.loss import SLIDE_LOGITS, SLIDE_TARGET, LossSteps, loss_steps
from gptviz.tokenizer import show_token
from gptviz.ui.tables import Cell, Row, number, table
from gptviz.ui.views.both import both
from gptviz.ui.views.loss import words


def position_table(
    found: Candidates,
    target: int,
    loss: float,
    name: Callable[[int], str],
    unchanged: Candidates | None = None,
) -> str:
    """The largest logits of one position and its target's, through the softmax; as HTML."""
    p = None if unchanged is None else unchanged.chosen.probabilities
    shown = torch.tensor(found.table["id"].tolist())
    columns = (found.table[column].tolist() for column in ("id", "rank", "logit", "probability"))
    rows = [
        Row(
            [
                Cell(name(i) + (", the target" if i == target else ""), "word"),
                number(f"{rank:,}"),
                number(fixed(logit, 4)),
                *([] if p is None else [number(probability_text(float(p[i])))]),
                number(probability_text(probability)),
                number(fixed(loss, 4) if i == target else ""),
            ],
            "chosen" if i == target else "line",
        )
        for i, rank, logit, probability in zip(*columns, strict=True)
    ]
    rest: list[Cell | str] = [
        words.others(found.rest),
        "",
        "",
        *([] if p is None else [number(probability_text(rest_of(p, shown)))]),
        number(probability_text(found.rest_probability)),
        "",
    ]
    last = ["#softmax", "#−ln: the loss"] if p is None else ["#unchanged", "#changed", "#−ln"]
    head = ["token", "#rank", "#logit", *last]
    return table("position", head, [*rows, Row(rest)] if found.rest else rows)


def slide_steps() -> LossSteps:
    """The slides' position with each of the five tokens as its target once."""
    logits = torch.tensor([SLIDE_LOGITS] * len(SLIDE_LOGITS), dtype=torch.float64)
    return loss_steps(logits, torch.arange(len(SLIDE_LOGITS)))


def slides_table() -> str:
    """Five logits, their softmax and what each would cost; the target's row is marked."""
    found = slide_steps()
    rows = [
        Row(
            [
                Cell(f"token {i}" + (", the target" if i == SLIDE_TARGET else ""), "word"),
                number(fixed(SLIDE_LOGITS[i], 4)),
                number(fixed(found.probability[i].item(), 4)),
                number(fixed(found.loss[i].item(), 4)),
            ],
            "chosen" if i == SLIDE_TARGET else "line",
        )
        for i in range(len(SLIDE_LOGITS))
    ]
    return table("slides", ["", "#logit", "#softmax", "#−ln"], rows)


def loss_table(
    losses: pd.DataFrame, tokens: Sequence[Token], unchanged: pd.DataFrame | None = None
) -> pd.DataFrame:
    """`analysis.next_token.surprises` with the tokens, and the means that the sentence says."""
    own = None if unchanged is None else loss_table(unchanged, tokens)
    return both(_losses(losses, tokens), own, ["logit", "log_sum", "probability", "loss", "bits", "rank"])


def _losses(losses: pd.DataFrame, tokens: Sequence[Token]) -> pd.DataFrame:
    named = losses.rename(columns={"position": "target_position", "nats": "loss"})
    named.insert(1, "target", [show_token(token.raw) for token in tokens])
    mean = {"target": "mean", "loss": losses["nats"].mean(), "bits": losses["bits"].mean()}
    if len(losses) < 2:
        return named
    named = named.astype({"target_position": "Int64", "id": "Int64"})
    return pd.concat([named, pd.DataFrame([mean])], ignore_index=True)
