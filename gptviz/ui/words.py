"""Words that pages share: numbers and tokens as a person reads them, pieces of sentences, and the field's
terms, explained where they first stand.

A term has a dotted underline; its definition shows on hover, on a tap and on keyboard focus. The pages' words
stay plain Markdown: `explain` marks the terms in them, `prose` draws them.
"""

import html
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from gptviz.analysis.head_formulas import ROLES
from gptviz.analysis.head_roles import HeadRole
from gptviz.digits import (
    fixed as fixed,
    gigabytes as gigabytes,
    percent as percent,
    significant as significant,
    term as term,
    weight as weight,
)
from gptviz.engine.names import (
    is_named as is_named,
    is_piece as is_piece,
    is_whole as is_whole,
    show_id as show_id,
)
from gptviz.figures.next_token import loss_text as loss_text, probability_text as probability_text
from gptviz.text.as_text import as_code as as_code, escaped as escaped
from gptviz.tokenizer import show_token as show_token


def does(role: HeadRole, shown: Sequence[str]) -> str:
    """A head's role on a text, as a verb phrase: "looks at the token just before".

    `shown` are the text's tokens as the screen shows them.
    """
    if role.favourite is None or role.kind != "favourite":
        return ROLES[role.kind].does
    return f"keeps looking at {Place(shown[role.favourite], role.favourite)}"


def compared_with(against: str | None) -> str:
    """The other side of a logit difference, in words: "that of `x`", or the mean of all tokens."""
    if against is None:
        return "the mean over the vocabulary"
    return f"that of {as_code(against)}"


def towards(token: str, against: str | None) -> str:
    """A token and what it is compared with, in a sentence."""
    if against is None:
        other = "the mean over the vocabulary"
    else:
        other = as_code(against)
    return f"{as_code(token)} against {other}"


@dataclass(frozen=True)
class Place:
    """A token of the text, as the screen shows it."""

    token: str
    position: int

    def __str__(self) -> str:
        return f"{as_code(self.token)} (position {self.position})"


def nameless(token: str) -> str:
    """Why a row of the model without a token cannot go into the prompt."""
    return (
        f"{as_code(token)} is in the model's vocabulary, but its tokenizer has no token for it. A text cannot "
        "contain it, so your text stays as it was."
    )


def sign_name(token: str) -> str:
    """The name of a token that is one punctuation mark, since nobody sees it in a sentence: "full stop"."""
    mark = token.removeprefix("·")
    if len(mark) == 1 and unicodedata.category(mark).startswith("P"):
        return unicodedata.name(mark, "").lower()
    return ""


def no_single_token(typed: str, pieces: Sequence[str], spaced: str | None) -> str:
    """A warning about a typed text that is not exactly one token of the model.

    `pieces` are the tokens that it is read as; `spaced` is the text with a space before it, where
    that is a token.
    """
    if not pieces:
        return "You typed nothing. Choose a token or type one. Your last choice stays."
    among = ", ".join(as_code(piece) for piece in pieces[:MOST_PIECES])
    more = ""
    if len(pieces) > MOST_PIECES:
        more = f" and {len(pieces) - MOST_PIECES} more"
    if len(pieces) == 1:
        warning = f"This model's tokenizer reads {as_code(typed)} as {among}, "
        warning += "which is not a token of the model."
    else:
        warning = (
            f"{as_code(typed)} is not one token of this model, but {len(pieces)}: {among}{more}."
        )
    if spaced is not None:
        warning += f" With a space before it, it is one token: type {as_code(spaced)}."
    elif len(pieces) > 1:
        warning += f" Type one of them, such as {as_code(pieces[0])}."
    return f"{warning} Your last choice stays."


MOST_PIECES = 12


def not_in_vocabulary(raws: Sequence[bytes], name: str) -> str:
    """A sentence that the choice of these tokens is cleared: model `name` does not have them."""
    shown = " and ".join(as_code(show_token(raw)) for raw in raws)
    verb = is_or_are(len(raws))
    return f"{shown} {verb} not in the vocabulary of {escaped(name)}, so the choice is cleared."


def unlike_printed(printed: Iterable[float], ours: Iterable[float]) -> list[str]:
    """The numbers printed otherwise at four decimals, each as "0.3389 where this is 0.3388"."""
    pairs = ((fixed(a, 4), fixed(round(b, 12), 4)) for a, b in zip(printed, ours, strict=True))
    return [f"{theirs} where this is {our}" for theirs, our in pairs if theirs != our]


def plural(thing: str) -> str:
    """The plural of a noun: "tokens", "batches"."""
    ending = "s"
    if thing.endswith(("s", "x", "ch", "sh")):
        ending = "es"
    return f"{thing}{ending}"


def counted(count: int, thing: str) -> str:
    """A count with its noun: "1 token", "1,200 tokens", "2 batches"."""
    noun = thing if count == 1 else plural(thing)
    return f"{count:,} {noun}"


def is_or_are(count: int) -> str:
    """The verb behind a count: "is" behind 1, "are" behind any other."""
    if count == 1:
        return "is"
    return "are"


def listed(names: Sequence[str]) -> str:
    """Names as a sentence lists them: "a", "a and b", "a, b and c"."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def capital(text: str) -> str:
    """A text as it stands at the beginning of a sentence."""
    return text[:1].upper() + text[1:]


def duration(seconds: float) -> str:
    """About how long, in the two largest units."""
    minutes, seconds_left = divmod(round(seconds), 60)
    if minutes < 60:
        if minutes:
            return f"{minutes} min {seconds_left} s"
        return f"{seconds_left} s"
    return f"{minutes // 60} h {minutes % 60} min"


# ---- terms ----

# what a head's label says stands once
_GIVEN = {role: formula.does for role, formula in ROLES.items()}
# "term: definition" each
_LINES = Path(__file__).with_name("glossary.txt").read_text("utf-8").splitlines()
GLOSSARY = dict(line.format(**_GIVEN).split(": ", 1) for line in _LINES)

STYLE = f"<style>\n{Path(__file__).with_suffix('.css').read_text('utf-8')}</style>"

# What Markdown reads first, in this order: an escaped sign; code, from a run of backticks to the next of the
# same length on its line; a run of backticks that opens nothing.
_READ_FIRST = re.compile(r"(\\.|(`+)(?!`)[^\n]*?(?<!`)\2(?!`)|`+)")


def defined(name: str, shown: str | None = None) -> str:
    """HTML of a term with its definition; `shown` is its form on the screen, "tokens" for "token".

    Raises ValueError for a term that is not in the glossary.
    """
    if name not in GLOSSARY:
        raise ValueError(f"{name!r} is not in the glossary; it has {', '.join(GLOSSARY)}")
    text = html.escape(shown or name)
    definition = html.escape(GLOSSARY[name])
    return (
        f'<span class="gv-term" tabindex="0" role="note" aria-label="{text}: {definition}" '
        f'data-definition="{definition}">{text}</span>'
    )


def explain(markdown: str, *terms: str) -> str:
    """Markdown with the first occurrence of each of these terms as HTML, singular or plural.

    Everything else that could be HTML is escaped, so that the result may be drawn as HTML; code stays as it
    is. A term that does not occur is left out; one that is not in the glossary raises ValueError.
    """
    pieces = _READ_FIRST.split(markdown)  # text, what is read first, its backticks, text, ...
    parts = [
        html.escape(text, quote=False) if i % 3 == 0 else text for i, text in enumerate(pieces)
    ]
    marked: list[str] = []

    def mark(name: str, shown: str) -> str:
        # a number in signs of private use, so that no later term is found inside a definition
        marked.append(defined(name, shown))
        return f"\ue000{len(marked) - 1}\ue001"

    for name in sorted(terms, key=len, reverse=True):  # "attention weight" before "attention"
        defined(name)  # it must be in the glossary even if the text does not have it
        for i in range(0, len(parts), 3):
            hit = _form(name).search(parts[i])
            if hit:
                parts[i] = (
                    f"{parts[i][: hit.start()]}{mark(name, hit.group())}{parts[i][hit.end() :]}"
                )
                break
    text = "".join(part or "" for i, part in enumerate(parts) if i % 3 < 2)
    return re.sub("\ue000(\\d+)\ue001", lambda match: marked[int(match[1])], text)


def _form(name: str) -> re.Pattern[str]:
    """A term as it may stand in a sentence: with a capital, in the plural."""
    if name.endswith("y"):
        stem = f"{re.escape(name[:-1])}(?:y|ies)"
    else:
        stem = f"{re.escape(name)}s?"
    return re.compile(rf"(?<![\w-]){stem}(?![\w-])", re.IGNORECASE)


def prose(markdown: str, *terms: str) -> None:
    """Draw Markdown; the first occurrence of each of these terms explains itself.

    A line never ends between a number and its percent sign or power of ten.
    """
    text = markdown.replace(" %", "\xa0%").replace(" × 10", "\xa0×\xa010")
    st.markdown(explain(text, *terms), unsafe_allow_html=True)
