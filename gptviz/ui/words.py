"""Pieces of prose that pages share."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from gptviz import LanguageModel
from gptviz.analysis.head_formulas import ROLES
from gptviz.analysis.head_roles import HeadRole
from gptviz.digits import fixed
from gptviz.tokenizer import has_token, named_bytes, show_token, token_bytes


def as_code(label: str) -> str:
    """A token in a sentence of Markdown: as code, whatever signs it is made of.

    The fence is one backtick longer than any run of them in the label; blanks keep apart a fence and a
    label that begins or ends with a backtick, as CommonMark has it.
    """
    longest = max((len(run) for run in re.findall(r"`+", label)), default=0)
    fence = "`" * (longest + 1)
    gap = " " if label.startswith("`") or label.endswith("`") or not label.strip() else ""
    return f"{fence}{gap}{label}{gap}{fence}"


def does(role: HeadRole, shown: Sequence[str]) -> str:
    """What a head does on a text, as a sentence goes on: "looks at the token just before"."""
    if role.favourite is None or role.kind != "favourite":
        return ROLES[role.kind].does
    return f"keeps looking at {Place(shown[role.favourite], role.favourite)}"


def compared_with(against: str | None) -> str:
    """What a token's logit is compared with, in a sentence: another token's, or the mean of all."""
    return "the mean over the vocabulary" if against is None else f"that of {as_code(against)}"


def towards(token: str, against: str | None) -> str:
    """A token and what it is compared with, in a sentence."""
    other = "the mean over the vocabulary" if against is None else as_code(against)
    return f"{as_code(token)} against {other}"


def escaped(name: str) -> str:
    """A file's name in Markdown, where none of its signs means anything."""
    return re.sub(r"([!-/:-@\[-`{-~])", r"\\\1", name)


@dataclass(frozen=True)
class Place:
    """A token of the text, as the screen shows it."""

    token: str
    position: int

    def __str__(self) -> str:
        return f"{as_code(self.token)} (position {self.position})"


def show_id(lm: LanguageModel, token_id: int) -> str:
    """A token of the vocabulary as the screen shows it.

    A model's matrix may be padded with rows that its tokenizer has no token for: they go by their number.
    """
    raw = named_bytes(lm.tokenizer, token_id)
    return show_token(raw) if is_named(lm, token_id) else raw.decode()


def is_named(lm: LanguageModel, token_id: int) -> bool:
    """Whether the tokenizer has a token of this id at all."""
    return has_token(lm.tokenizer, token_id)


def is_whole(lm: LanguageModel, token_id: int) -> bool:
    """Whether a text can end in this token: one of the tokenizer's, and no piece of a character."""
    try:
        token_bytes(lm.tokenizer, token_id).decode()
    except ValueError:  # a UnicodeDecodeError is one
        return False
    return is_named(lm, token_id)


def is_piece(lm: LanguageModel, token_id: int) -> bool:
    """Whether a token is some bytes that are no whole characters, shown as such: `\\xe4`."""
    return is_named(lm, token_id) and not is_whole(lm, token_id)


def nameless(token: str) -> str:
    """Why a row of the model without a token cannot go into the prompt."""
    return (
        f"{as_code(token)} is a row of the model that its tokenizer has no token for: a text cannot hold it, "
        "and your prompt is left as it was."
    )


def no_single_token(typed: str, pieces: Sequence[str], spaced: str | None) -> str:
    """What is said of a typed text that is not exactly one token; `spaced` is one with a space before it."""
    if not pieces:
        return "Nothing was typed. Choose a token, or type one; what was chosen before still holds."
    among = ", ".join(as_code(piece) for piece in pieces[:MOST_PIECES])
    more = f" and {len(pieces) - MOST_PIECES} more" if len(pieces) > MOST_PIECES else ""
    if len(pieces) == 1:
        said = f"{as_code(typed)} is {among} to this model's tokenizer, which is no token of the model."
    else:
        said = f"{as_code(typed)} is not one token of this model but {len(pieces)}: {among}{more}."
    if spaced is not None:
        said += f" With a space before it, it is one: type {as_code(spaced)}."
    elif len(pieces) > 1:
        said += f" Type one of them, such as {as_code(pieces[0])}."
    return f"{said} What was chosen before still holds."


MOST_PIECES = 12


def not_in_vocabulary(raws: Sequence[bytes], name: str) -> str:
    """What becomes of chosen tokens when another model does not have them."""
    shown = " and ".join(as_code(show_token(raw)) for raw in raws)
    return f"{name} has no such token as {shown}: the choice is taken back."


def unlike_printed(printed: Iterable[float], ours: Iterable[float]) -> list[str]:
    """Where a text prints another last digit of four: "0.3389 where this is 0.3388", one for each."""
    pairs = ((fixed(a, 4), fixed(round(b, 12), 4)) for a, b in zip(printed, ours, strict=True))
    return [f"{theirs} where this is {own}" for theirs, own in pairs if theirs != own]


def term(number: str) -> str:
    """A number after a plus or minus sign: in brackets if it has a sign of its own."""
    return f"({number})" if number.startswith("−") else number


def counted(count: int, thing: str) -> str:
    """So many of a thing: "1 token", "1,200 tokens", "2 batches"."""
    plural = f"{thing}{'es' if thing.endswith(('s', 'x', 'ch', 'sh')) else 's'}"
    return f"{count:,} {thing if count == 1 else plural}"


def duration(seconds: float) -> str:
    """About how long, in the two largest units."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    return (
        f"{whole // 60} min {whole % 60} s" if whole < 3600 else f"{whole // 3600} h {whole % 3600 // 60} min"
    )
