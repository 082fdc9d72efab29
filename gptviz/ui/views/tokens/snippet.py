"""The Python that reproduces the Tokens page."""


def tokens(
    model: str, text: str, position: int, special_tokens: bool = False, whole_piece: bool = True
) -> str:
    """`picture` is the rows of the merges, from the bytes to the tokens: of the piece that holds the token
    at `position`, or, with `whole_piece` off, of that token alone. `ids` are those of all tokens."""
    drawn = "pieces[index]" if whole_piece else "own_piece(pieces[index], part)"
    names = "show_work, stages" if whole_piece else "own_piece, show_work, stages"
    return f"""\
import gptviz
from gptviz.analysis.tokens import place_of, token_table
from gptviz.tokenizer.steps import {names}

lm = gptviz.load({model})
text = {text!r}
special_tokens = {special_tokens!r}

ids = lm.encode(text, special_tokens)[: lm.config.context_length]
print(token_table(lm.tokenizer, ids))  # position, id, token, bytes, ...

pieces = show_work(lm.tokenizer, text, special_tokens)  # the same ids, with every step
index, part = place_of(pieces, {position})
drawn = {drawn}
for merge in drawn.merges:
    print(merge.rank, merge.left, "+", merge.right, "->", merge.result)

picture = [stage.parts for stage in stages(lm.tokenizer, drawn)]
"""
