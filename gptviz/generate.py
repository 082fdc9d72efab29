"""Writing on: the model's own next token, appended, and again."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pandas as pd
import tiktoken
import torch

from gptviz.candidates import next_tokens_of
from gptviz.forward import last_logits
from gptviz.model import GPTModel
from gptviz.sampling import Sampling, distribution, draw
from gptviz.tokenizer import END_OF_TEXT, named_bytes
from gptviz.trace import Trace

if TYPE_CHECKING:
    from gptviz.language_model import LanguageModel


def generate_text_simple(
    model: GPTModel, idx: torch.Tensor, max_new_tokens: int, context_size: int
) -> torch.Tensor:
    """The book's greedy loop (section 4.7): (b, T) ids in, (b, T + max_new_tokens) ids out."""
    for _ in range(max_new_tokens):
        idx_next = torch.argmax(last_logits(model, idx[:, -context_size:]), dim=-1, keepdim=True)  # (b, 1)
        idx = torch.cat((idx, idx_next), dim=1)
    return idx


@dataclass(frozen=True)
class Step:
    """One token that was written.

    A broken piece of UTF-8 shows as the replacement character, and an id that the tokenizer has no
    token for by its number, `<id 50300>`: no text can hold it, so `text_so_far` then encodes to other ids.
    """

    id: int
    token: str  # the token alone
    probability: float  # what this token had when it was drawn, after temperature and filters
    text_so_far: str  # prompt and everything written since
    point: float | None  # the number in [0, 1) that drew it, see `sampling.draw`; None where nothing is drawn
    model_probability: float  # what the model itself gave it: temperature 1, nothing filtered
    cropped: int  # how many of the first tokens the model did not see: the context was full
    logits: torch.Tensor = field(repr=False, compare=False)  # (V,) CPU float32, as the model gave them
    sampling: Sampling = field(repr=False)
    tokenizer: tiktoken.Encoding = field(repr=False, compare=False)
    trace: Trace | None = field(default=None, repr=False, compare=False)

    def candidates(self, k: int = 10, sampling: Sampling | None = None) -> pd.DataFrame:
        """The `k` most probable tokens of those it was drawn from: rank, id, token, logit, probability.

        Probabilities are over the whole vocabulary after temperature and filters, as in `Trace.next_tokens`;
        `sampling` gives them for other settings (`Sampling()`: the model's own).
        """
        return next_tokens_of(self.tokenizer, self.logits, k, sampling or self.sampling)


def generate(
    lm: "LanguageModel",
    text: str | Sequence[int],
    max_new_tokens: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    seed: int | None = None,
    special_tokens: bool = False,
) -> Iterator[Step]:
    """Write on after `text` (or ids), one `Step` a forward pass, until the caller stops iterating.

    Ends after `max_new_tokens`, or with the model's own end-of-text token (that step is yielded
    too). The model sees the last `context_length` tokens. The same seed gives the same tokens: the i-th
    drawn token by the i-th of `Sampling(seed=seed).points(n)`. Temperature 0 is greedy.

    Raises ValueError, at once and not at the first step, for an empty text and for options out of range.
    """
    sampling = Sampling(temperature, top_k, top_p, seed)
    ids = lm.encode(text, special_tokens=special_tokens) if isinstance(text, str) else list(text)
    if not ids:
        raise ValueError("there is nothing to write on from: the text is empty")
    return steps(lm, ids, max_new_tokens, sampling)


def steps(
    lm: "LanguageModel", ids: Sequence[int], max_new_tokens: int, sampling: Sampling, skip: int = 0
) -> Iterator[Step]:
    """`generate`, for ids (at least one) and settings that stand together already.

    `skip` leaves out the first numbers of the seed's stream: those that drew the end of `ids`.
    """
    ids, points = list(ids), sampling.stream(skip)
    text = b"".join(named_bytes(lm.tokenizer, i) for i in ids)
    end = _end_of_text(lm)
    device = lm.model.tok_emb.weight.device
    for _ in range(max_new_tokens):
        cropped = max(0, len(ids) - lm.config.context_length)
        logits = last_logits(lm.model, torch.tensor([ids[cropped:]], device=device))[0].float().cpu()  # (V,)
        chosen, probability, own, point = _choose(logits, sampling, points)
        raw = named_bytes(lm.tokenizer, chosen)
        ids.append(chosen)
        text += raw
        yield Step(
            chosen,
            raw.decode("utf-8", "replace"),
            probability,
            text.decode("utf-8", "replace"),
            point,
            own,
            cropped,
            logits,
            sampling,
            lm.tokenizer,
        )
        if chosen == end:
            return


def _choose(
    logits: torch.Tensor, sampling: Sampling, points: Iterator[float]
) -> tuple[int, float, float, float | None]:
    """A token for these (V,) logits: its id, its probability here and by the model, and the point."""
    if sampling.greedy and torch.isfinite(logits.max()):  # no need to sort 50,257 of them
        chosen, point, probability = int(logits.argmax()), None, 1.0  # of equals the lowest id
    else:
        chances, point = distribution(logits, sampling), next(points)
        chosen = draw(chances, point)
        probability = float(chances.probabilities[chosen])
    own = probability if sampling.changes_nothing else float(logits.double().softmax(0)[chosen])
    return chosen, probability, own, point


def _end_of_text(lm: "LanguageModel") -> int | None:
    if END_OF_TEXT not in lm.tokenizer.special_tokens_set:
        return None
    return lm.tokenizer.encode_single_token(END_OF_TEXT)
