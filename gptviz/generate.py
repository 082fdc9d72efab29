"""Writing on: the model's own next token, appended, and again."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from gptviz.forward import last_logits
from gptviz.model import GPTModel
from gptviz.sampling import Sampling, distribution, draw
from gptviz.tokenizer import END_OF_TEXT

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
    too). The model sees the last `context_length` tokens. The same seed gives the same tokens.

    Raises ValueError, at once and not at the first step, for an empty text and for options out of range.
    """
    sampling = Sampling(temperature, top_k, top_p, seed)
    ids = lm.encode(text, special_tokens=special_tokens) if isinstance(text, str) else list(text)
    if not ids:
        raise ValueError("there is nothing to write on from: the text is empty")
    return steps(lm, ids, max_new_tokens, sampling)


def steps(lm: "LanguageModel", ids: Sequence[int], max_new_tokens: int, sampling: Sampling) -> Iterator[Step]:
    """`generate`, for ids (at least one) and settings that stand together already."""
    ids, generator = list(ids), sampling.generator()
    end = _end_of_text(lm)
    device = lm.model.tok_emb.weight.device
    for _ in range(max_new_tokens):
        window = torch.tensor([ids[-lm.config.context_length :]], device=device)  # (1, T)
        logits = last_logits(lm.model, window)[0].cpu()  # (V,)
        probabilities = distribution(logits, sampling).probabilities
        chosen = draw(probabilities, generator)
        ids.append(chosen)
        yield Step(chosen, lm.decode([chosen]), float(probabilities[chosen]), lm.decode(ids))
        if chosen == end:
            return


def _end_of_text(lm: "LanguageModel") -> int | None:
    if END_OF_TEXT not in lm.tokenizer.special_tokens_set:
        return None
    return lm.tokenizer.encode_single_token(END_OF_TEXT)
