"""What the Tokens page says about this very prompt: sentences and small tables made of its own numbers.

A token may hold any character, so it stands in the Markdown as code.
"""

from collections.abc import Sequence

import pandas as pd
import tiktoken

from gptviz.analysis.tokens import Spread, spread_characters
from gptviz.tokenizer import END_OF_TEXT, encode, show_token, token_bytes
from gptviz.tokenizer.steps import Piece, merges_of_part
from gptviz.trace import Token
from gptviz.ui.words import as_code as code

# For a prompt whose every character lies in one token: three bytes that no English text makes one.
EXAMPLE = "你"

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


def about_spaces(table: pd.DataFrame) -> str:
    """What the table of spellings says."""
    plain, spaced = table.iloc[0], table.iloc[1]
    both = f"{code(plain['written'])} is {_ids(plain['ids'])}, and {code(spaced['written'])} is "
    if list(spaced["ids"][-len(plain["ids"]) :]) == list(plain["ids"]):
        before = _ids(spaced["ids"][: -len(plain["ids"])])
        says = f"{both}the same after {before}: here no merge joins the space to what follows."
    else:
        says = (
            f"The space belongs to the word after it. {both}{_ids(spaced['ids'])}: to the model as different "
            "as any two tokens until training has taught it what they share."
        )
    return says + (" Capitals make other tokens, too." if len(table) > 2 else "")


def joined(table: pd.DataFrame) -> pd.DataFrame:
    """The spellings for the screen: lists as text."""
    return table.assign(
        ids=[", ".join(map(str, ids)) for ids in table["ids"]], cut=[" | ".join(cut) for cut in table["cut"]]
    )


def about_bytes(found: Sequence[Spread], encoding: tiktoken.Encoding) -> str:
    """Why a lone byte prints as U+FFFD, with the prompt's first such character or an example."""
    own = "In your prompt, " if found else "Your prompt has no such character; as an example, "
    shown = found or example(encoding)
    if not shown:
        return "To this tokenizer every character of your prompt is one token: none comes apart."
    spread = shown[0]
    return (
        "Tokens are made of bytes, and a character is one to four of them. "
        f"{own}{code(spread.character)} is {len(spread.character.encode())} bytes in UTF-8 and "
        f"{len(spread.ids)} tokens here. One of them alone is no character: decoded, it prints as "
        "`\\ufffd`, �. Together they are whole again. This app shows such a token "
        "as its bytes, like `\\xe4\\xbd`."
    )


def example(encoding: tiktoken.Encoding) -> list[Spread]:
    return spread_characters(encoding, encode(encoding, EXAMPLE))


def alone(found: Sequence[Spread], encoding: tiktoken.Encoding) -> pd.DataFrame:
    """The tokens of the first broken character, each decoded alone, and then all of them."""
    shown = found or example(encoding)
    if not shown:
        return pd.DataFrame(columns=["tokens", "bytes", "decoded"])
    spread = shown[0]
    rows = [
        {"tokens": str(id), "bytes": raw.hex(" "), "decoded": raw.decode("utf-8", "replace")}
        for id, raw in zip(spread.ids, spread.raws, strict=True)
    ]
    together = b"".join(spread.raws)
    rows.append(
        {
            "tokens": ", ".join(map(str, spread.ids)),
            "bytes": together.hex(" "),
            "decoded": together.decode("utf-8", "replace"),
        }
    )
    return pd.DataFrame(rows)


def about_special(encoding: tiktoken.Encoding, text: str, special: bool) -> str:
    """What the switch in the sidebar does, and what it does to this prompt."""
    if END_OF_TEXT not in encoding.special_tokens_set:
        return (
            f"This model's tokenizer, {encoding.name}, has no {code(END_OF_TEXT)}: all that you type is text."
        )
    typed = encode(encoding, END_OF_TEXT)
    parts = " ".join(code(show_token(token_bytes(encoding, id))) for id in typed)
    sentence = (
        f"{code(END_OF_TEXT)} stood between any two texts in training. Typed into a prompt it is plain text, "
        f"{len(typed)} tokens: {parts}. With *Special tokens* on, in the sidebar, it is one token, "
        f"id {encoding.eot_token}. The switch is **{'on' if special else 'off'}**. "
    )
    if END_OF_TEXT not in text:
        return sentence + "Your prompt does not hold it, so the switch changes nothing."
    off, on = (len(encode(encoding, text, switch)) for switch in (False, True))
    return sentence + f"Your prompt is {off} tokens with the switch off, {on} with it on."


def _ids(ids: Sequence[int]) -> str:
    return f"id {ids[0]}" if len(ids) == 1 else "ids " + ", ".join(map(str, ids))
