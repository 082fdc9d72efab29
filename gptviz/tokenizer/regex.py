"""Where an encoding's regex cuts a text, and which of its rules makes each cut."""

from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

import regex
import tiktoken

# The alternatives of GPT-2's regex in words; the first that matches at a place cuts there.
GPT2_RULES = {
    "'(?:[sdmt]|ll|ve|re)": "an English ending with its apostrophe: 's 'd 'm 't 'll 've 're",
    r" ?\p{L}++": "letters of any script, with one space before them",
    r" ?\p{N}++": "digits and other numbers, with one space before them",
    r" ?[^\s\p{L}\p{N}]++": "punctuation, symbols and emoji, with one space before them",
    r"\s++$": "blanks at the end of the text",
    r"\s+(?!\S)": "blanks, all but the last one when something follows",
    r"\s": "a single blank that no word takes along",
}

# ... and those of the others in `patterns`; where a rule is in two of them, it means the same
RULES = GPT2_RULES | {
    r"\p{N}": "one digit or another number",
    r"\s+(?![^\s\p{N}])": "blanks, all but the last one when something follows that is no digit",
    "(?i:'s|'t|'re|'ve|'m|'ll|'d)": "an English ending with its apostrophe, in small or large letters",
    r"[^\r\n\p{L}\p{N}]?\p{L}+": "letters of any script, with one space or sign before them",
    r"\p{N}{1,3}": "digits and other numbers, up to three",
    r" ?[^\s\p{L}\p{N}]+[\r\n]*": "punctuation, symbols and emoji, with one space before, and ends of lines after",
    r"\s*[\r\n]+": "blanks up to the last end of a line",
    r"\s+": "the blanks that are left",
    r"(?s:.)": "one character",
}


def cut(pattern: str, text: str) -> Iterator[tuple[int, str, str]]:
    """(start, piece, rule) for every match of an encoding's regex, as tiktoken's own engine finds them.

    The `regex` module knows a later Unicode than tiktoken's engine: thousands of characters that are
    letters to the one are unassigned to the other. Those are hidden behind a code point that is
    unassigned for ever, one for one, so that the places of the cuts are tiktoken's.
    """
    rules, compiled = _compiled(pattern)
    unassigned = _asking(r"\p{Cn}")
    unknown = unassigned.decode(unassigned.encode_ordinary(text))
    if unknown:
        shadow = text.translate(dict.fromkeys(map(ord, unknown), "\ufffe"))
    else:
        shadow = text
    for match in compiled.finditer(shadow):
        yield match.start(), text[match.start() : match.end()], rules[match.lastindex - 1]


def alternatives(pattern: str) -> list[str]:
    r"""The rules of a regex: what stands between its outermost `|`.

    >>> alternatives(r"'(?:s|t)| ?\p{L}+|[|]")
    ["'(?:s|t)", ' ?\\p{L}+', '[|]']
    """
    rules = [""]
    depth = 0
    in_set = False
    position = 0
    while position < len(pattern):
        if pattern[position] == "\\":
            step = pattern[position : position + 2]
        else:
            step = pattern[position]
        position += len(step)
        if step == "|" and depth == 0 and not in_set:
            rules.append("")
            continue
        rules[-1] += step
        if in_set:
            in_set = step != "]"
        else:
            in_set = step == "["
            depth += (step == "(") - (step == ")")
    return rules


@lru_cache(maxsize=16)
def _compiled(pattern: str) -> tuple[list[str], regex.Pattern[str]]:
    """The rules, and the same regex with each of them as a group, so that a match says which it was."""
    rules = alternatives(pattern)
    return rules, regex.compile("|".join(f"({rule})" for rule in rules))


@lru_cache(maxsize=8)
def _asking(kind: str) -> tiktoken.Encoding:
    r"""A question to tiktoken's regex engine: `encode` keeps the characters of a kind, as `\p{Cn}`, alone."""
    single_bytes = {bytes([byte]): byte for byte in range(256)}
    return tiktoken.Encoding(
        "asking", pat_str=kind, mergeable_ranks=single_bytes, special_tokens={}
    )


@lru_cache(maxsize=8)
def members(kind: str) -> str:
    r"""All characters that are of a kind to tiktoken's engine, as JavaScript writes them inside of [ ].

    >>> members("[a-c]"), members("x")
    ('\\u{61}-\\u{63}', '\\u{78}-\\u{78}')
    """
    asking = _asking(kind)
    all_characters = "".join(map(chr, (*range(0xD800), *range(0xE000, 0x110000))))
    codes = [ord(character) for character in asking.decode(asking.encode_ordinary(all_characters))]
    starts = [code for before, code in pairwise([-2, *codes]) if code != before + 1]
    stops = [code for code, after in pairwise([*codes, -2]) if after != code + 1]
    return "".join(
        f"\\u{{{start:x}}}-\\u{{{stop:x}}}" for start, stop in zip(starts, stops, strict=True)
    )
