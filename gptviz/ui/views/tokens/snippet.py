"""The Tokens page in Python: a prompt's tokens, and every merge that made one of them."""

import gptviz
from gptviz.analysis.tokens import place_of, token_table
from gptviz.tokenizer.steps import own_piece, show_work, stages


def merge_rows(
    lm: gptviz.LanguageModel,
    text: str,
    position: int,
    special_tokens: bool = False,
    whole_piece: bool = True,
) -> list[tuple[bytes, ...]]:
    """The rows of the merges, from single bytes to tokens.

    They are those of the piece that holds the token at `position`, or of that token alone.
    """
    ids = lm.encode(text, special_tokens)[: lm.config.context_length]
    print(token_table(lm.tokenizer, ids))  # position, id, token, bytes, ...

    pieces = show_work(lm.tokenizer, text, special_tokens)  # the same ids, with every step
    index, part = place_of(pieces, position)
    piece = pieces[index] if whole_piece else own_piece(pieces[index], part)
    for merge in piece.merges:
        print(merge.rank, merge.left, "+", merge.right, "->", merge.result)

    return [stage.parts for stage in stages(lm.tokenizer, piece)]
