"""Words that pages share: pieces of sentences, and the field's terms, explained where they first stand.

A term has a dotted underline; its definition shows on hover, on a tap and on keyboard focus. The pages' words
stay plain Markdown: `explain` marks the terms in them, `prose` draws them.
"""

import html
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import streamlit as st

from gptviz.analysis.head_formulas import ROLES
from gptviz.analysis.head_roles import HeadRole
from gptviz.digits import fixed
from gptviz.engine.names import is_named as is_named
from gptviz.engine.names import is_piece as is_piece
from gptviz.engine.names import is_whole as is_whole
from gptviz.engine.names import show_id as show_id
from gptviz.tokenizer import show_token


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


# ---- terms ----

GLOSSARY = {
    "·": "A space: many tokens begin with one.",
    "⏎": "A line break.",
    "token": "A piece of text that the model reads as one unit: a word, part of a word, or a sign.",
    "vocabulary": "All the tokens that a model knows, each with a number: its id.",
    "byte pair encoding": "A way to cut text: it starts from single bytes and joins the pairs that were most "
    "frequent in training, again and again.",
    "special token": "A token that stands for no text, such as the end of a document.",
    "embedding": "The row of numbers that stands for a token, or for a position, inside the model.",
    "position": "A token's place in the text, counted from 0.",
    "dimension": "One of the numbers that stand for a token: each has its own place in the row.",
    "residual stream": "The row of numbers that each token carries through the model: every block reads it "
    "and adds to it.",
    "block": "One of the model's equal parts, passed one after the other: attention, then feed-forward.",
    "head": "One of the attentions that work side by side in a block, each with its own queries, keys and "
    "values.",
    "attention": "How a token takes over information from the tokens before it.",
    "attention weight": "How much of a token's attention goes to one other token; all that a token gives "
    "add up to 1.",
    "query": "The numbers with which a token asks what it is looking for.",
    "key": "The numbers with which a token says what it has to offer; it is compared with queries.",
    "value": "The numbers that a token hands over to those that attend to it.",
    "causal mask": "The rule that a token may look at itself and at what stands before it, never at what "
    "comes later.",
    "softmax": "It turns numbers into shares that add up to 1, the larger the number the larger the share.",
    "LayerNorm": "It brings a token's numbers to a common size before attention or feed-forward reads them.",
    "mean": "The average: the sum of the numbers divided by how many they are.",
    "variance": "How far numbers spread: the average of the squared distance from their mean.",
    "feed-forward": "The two matrices in a block that work on each token by itself, after attention.",
    "unit": "One of the numbers in the middle of a feed-forward: made by one row of its first matrix, it "
    "writes along one column of its second.",
    "GELU": "The function between the two matrices of a feed-forward: it lets what is above 0 through and "
    "leaves little of what is below.",
    "shortcut": "The way around attention or feed-forward: what went in is added to what comes out.",
    "logit": "The score that the model gives a token as the next one, before softmax makes it a probability.",
    "context": "The text that the model reads at once; it holds a fixed number of tokens.",
    "forward pass": "One run of a text through the model, from the tokens to the logits.",
    "temperature": "What logits are divided by: below 1 the favourites win more often, above 1 less often.",
    "top-k": "Only the k most probable tokens may be drawn.",
    "top-p": "Only the most probable tokens that together reach this share may be drawn.",
    "surprise": "How unlikely a token was, in bits: 1 bit for one in two, 10 bits for one in a thousand.",
    "entropy": "How unsure the model is, in bits: the surprise that it expects on average.",
    "KL divergence": "How far one distribution is from another, in bits: what it costs to expect the "
    "one where the other holds.",
    "logit lens": "Reading what the model would say next from inside it: the final LayerNorm and the output "
    "head, put to work at an earlier depth.",
    "perplexity": "Among how many equally likely tokens the model seems to choose, on average.",
    "cosine": "How alike the directions of two rows are: 1 the same, 0 at right angles, −1 opposite.",
    "dot product": "Two rows multiplied number by number and added up: large if they point the same way.",
    "parameter": "A number of the model that training has set.",
    "bias": "A learned number that is added to a result, the same for every token.",
    "induction head": f"A head that {ROLES['induction'].does}: so a passage can be continued that was seen "
    "only once.",
    "previous-token head": f"A head that {ROLES['previous'].does}.",
    "snapshot": "The whole model as it was after a certain step of its training, kept to be looked at.",
    "cache": "What is kept of the tokens that were read: their keys and values, in every block.",
    "attention sink": "A token, mostly the first, on which heads rest that look for nothing else.",
    "causal": "Looking only back: what comes later is hidden.",
}

STYLE = """<style>
.gv-term {
  text-decoration: underline dotted 1px; text-underline-offset: 0.22em; cursor: help;
  position: relative; anchor-name: --gv-term; anchor-scope: --gv-term;
}
.gv-term:hover::after, .gv-term:focus::after {
  content: attr(data-definition);
  position: absolute; z-index: 1000; left: 0; top: 1.6em; width: max-content; max-width: min(22rem, 80vw);
  padding: 0.45rem 0.7rem; border-radius: 6px; font: 400 0.95rem/1.4 "Source Sans", sans-serif;
  text-align: left; white-space: normal; letter-spacing: normal;
  color: light-dark(#fff, #1d2026); background: light-dark(#2b2f38, #f0f1f4);
  box-shadow: 0 2px 10px rgba(0, 0, 0, 0.25);
}
@supports (position-area: bottom span-right) {
  .gv-term { position: static; }
  .gv-term:hover::after, .gv-term:focus::after {
    position: fixed; left: auto; top: auto; margin: 4px 0; position-anchor: --gv-term;
    position-area: bottom span-right; position-try-fallbacks: flip-inline, flip-block, flip-inline flip-block;
  }
}
</style>"""

# What Markdown reads first, in this order: an escaped sign; code, from a run of backticks to the next of the
# same length on its line; a run of backticks that opens nothing.
_READ_FIRST = re.compile(r"(\\.|(`+)(?!`)[^\n]*?(?<!`)\2(?!`)|`+)")


def defined(name: str, shown: str | None = None) -> str:
    """HTML of a term with its definition; `shown` is what stands on the screen for it, "tokens" for "token".

    Raises ValueError for a term that is not in the glossary.
    """
    if name not in GLOSSARY:
        raise ValueError(f"{name!r} is not in the glossary; it has {', '.join(GLOSSARY)}")
    text, definition = html.escape(shown or name), html.escape(GLOSSARY[name])
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
    parts = [html.escape(text, quote=False) if i % 3 == 0 else text for i, text in enumerate(pieces)]
    marked: list[str] = []

    def mark(name: str, shown: str) -> str:
        # a number in signs of private use, so that no later term is found inside a definition
        marked.append(defined(name, shown))
        return f"\ue000{len(marked) - 1}\ue001"

    for name in sorted(terms, key=len, reverse=True):  # "attention weight" before "attention"
        defined(name)  # it must be in the glossary even if the text does not have it
        for i in range(0, len(parts), 3):
            found = _form(name).search(parts[i])
            if found:
                parts[i] = f"{parts[i][: found.start()]}{mark(name, found.group())}{parts[i][found.end() :]}"
                break
    text = "".join(part or "" for i, part in enumerate(parts) if i % 3 < 2)
    return re.sub("\ue000(\\d+)\ue001", lambda match: marked[int(match[1])], text)


def _form(name: str) -> re.Pattern[str]:
    """A term as it may stand in a sentence: with a capital, in the plural."""
    stem = f"{re.escape(name[:-1])}(?:y|ies)" if name.endswith("y") else f"{re.escape(name)}s?"
    return re.compile(rf"(?<![\w-]){stem}(?![\w-])", re.IGNORECASE)


def prose(markdown: str, *terms: str, width: Literal["stretch", "content"] | int = "stretch") -> None:
    """Draw Markdown; the first occurrence of each of these terms explains itself."""
    st.markdown(explain(markdown, *terms), unsafe_allow_html=True, width=width)
