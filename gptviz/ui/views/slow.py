"""What takes so long that it waits for a click."""

from gptviz import LanguageModel

UNASKED = 4 * 10**10  # tokens times parameters of the blocks: about two seconds


def is_asked_for(lm: LanguageModel, n_tokens: int, passes: int) -> bool:
    """Whether so many passes take so long that they wait for a click."""
    blocks = sum(p.numel() for p in lm.model.trf_blocks.parameters())
    return n_tokens * passes * blocks > UNASKED
