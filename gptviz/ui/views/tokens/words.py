"""What the Tokens page says about this very prompt: sentences made of its own numbers.

A token may hold any character, so it stands in the Markdown as code.
"""

from collections.abc import Sequence

from gptviz.analysis.tokens import EndOfText, Spread
from gptviz.engine.trace import Token
from gptviz.tokenizer import END_OF_TEXT, show_token
from gptviz.tokenizer.steps import Piece, merges_of_part
from gptviz.ui.words import as_code as code

CARDS = (
    "Each card is a token: its position, its text, its id and its bytes. A · stands for a space, a ⏎ for a "
    "line break."
)

CHANGED = (
    "What is changed in the model **changes nothing here**: a text is cut into tokens before the model reads "
    "it, and the tokens are the same for the changed model and the unchanged one."
)

ABOUT_REGEX = (
    "Before any merge, a regular expression cuts the text from left to right: at each place the first of "
    "these rules that matches takes its piece. No token reaches across a cut, so that the vocabulary has no "
    "room taken up by `cat.`, `cat!` and `cat?`."
)


def built(token: Token) -> str:
    return f"#### How {code(show_token(token.raw))} was built"


def look_for(piece: Piece, token: Token) -> str:
    """The paragraph under the merges."""
    shown = code(show_token(token.raw))
    if piece.special:
        return (
            f"{shown} is id {token.id}, a special token: it has no spelling of its own, no merge leads to it."
        )
    cut = f"A regular expression first cuts the text; the line under the cards shows each piece. {shown} is "
    if len(piece.parts) == 1:
        cut += "a whole piece. "
    else:
        cut += f"one of {len(piece.parts)} tokens in the piece {code(show_token(piece.raw))}. "
    own = merges_of_part(piece, piece.parts.index(token.raw))
    if not own:
        one = "a single byte, where all merging begins" if len(token.raw) == 1 else "looked up as a whole"
        how = f"It is {one}: no merge was needed."
    else:
        ranks = ", ".join(str(merge.rank) for merge in own[:12]) + (", …" if len(own) > 12 else "")
        how = (
            f"Its {len(token.raw)} bytes took {len(own)} merge{'s' * (len(own) > 1)}, at rank {ranks}. "
            "A rank is the place in the vocabulary, in the order of learning: frequent pairs have low ranks "
            f"and join first; the last rank is the token's id, {token.id}."
        )
    return cut + how


def about_spaces(plain: tuple[str, Sequence[int]], spaced: tuple[str, Sequence[int]], capitals: bool) -> str:
    """What the table of spellings says: its first two rows, each as written and its ids."""
    both = f"{code(plain[0])} is {_ids(plain[1])}, and {code(spaced[0])} is "
    if list(spaced[1][-len(plain[1]) :]) == list(plain[1]):
        before = _ids(spaced[1][: -len(plain[1])])
        says = f"{both}the same after {before}: here no merge joins the space to what follows."
    else:
        says = (
            f"The space belongs to the word after it. {both}{_ids(spaced[1])}: to the model as different "
            "as any two tokens until training has taught it what they share."
        )
    return says + (" Capitals make other tokens, too." if capitals else "")


def about_bytes(spread: Spread | None, own: bool) -> str:
    """Why a lone byte prints as U+FFFD, with the prompt's first such character (`own`) or an example."""
    if spread is None:
        return "To this tokenizer every character of your prompt is one token: none comes apart."
    whose = "In your prompt, " if own else "Your prompt has no such character; as an example, "
    return (
        "Tokens are made of bytes, and a character is one to four of them. "
        f"{whose}{code(spread.character)} is {len(spread.character.encode())} bytes in UTF-8 and "
        f"{len(spread.ids)} tokens here. One of them alone is no character: decoded, it prints as "
        f"`\\ufffd`, �. Together they are whole again. This app shows such a token as its bytes, "
        f"{code(show_token(spread.raws[0]))}."
    )


def about_special(found: EndOfText | None, encoding: str, special: bool) -> str:
    """What the switch in the sidebar does, and what it does to this prompt."""
    if found is None:
        return f"This model's tokenizer, {encoding}, has no {code(END_OF_TEXT)}: all that you type is text."
    parts = " ".join(code(shown) for shown in found.typed)
    sentence = (
        f"{code(END_OF_TEXT)} stood between any two texts in training. Typed into a prompt it is plain text, "
        f"{len(found.typed)} tokens: {parts}. With *Special tokens* on, in the sidebar, it is one token, "
        f"id {found.id}. The switch is **{'on' if special else 'off'}**. "
    )
    if found.lengths is None:
        return sentence + "Your prompt does not hold it, so the switch changes nothing."
    off, on = found.lengths
    return sentence + f"Your prompt is {off} tokens with the switch off, {on} with it on."


def _ids(ids: Sequence[int]) -> str:
    return f"id {ids[0]}" if len(ids) == 1 else "ids " + ", ".join(map(str, ids))
