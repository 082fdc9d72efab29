"""Which tokens of a long text a picture holds."""


def window(position: int, n_tokens: int, size: int) -> slice:
    """All of so many tokens, or `size` of them around a position."""
    start = max(0, min(position - size // 2, n_tokens - size))
    return slice(start, min(n_tokens, start + size))
