"""Tokens that share a character, as the components get them."""

from collections.abc import Sequence

from gptviz.tokenizer import show_token
from gptviz.tokenizer.characters import character_groups


def shared_characters(raws: Sequence[bytes]) -> list[tuple[int, int, str]]:
    """(first token, the one after the last, the character as shown) of tokens that share a character."""
    return [
        (group.start, group.stop, show_token(group.text.encode()))
        for group in character_groups(raws)
        if group.text is not None and len(group.positions) > 1
    ]
