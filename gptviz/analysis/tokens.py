"""What the Tokens page shows: a prompt's tokens as a table, other tokenizers on the same text, two puzzles.

Every id comes from the encodings themselves (`gptviz.tokenizer`, `gptviz.tokenizer.simple`).
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pandas as pd
import tiktoken

from gptviz.engine.language_model import LanguageModel
from gptviz.tokenizer import END_OF_TEXT, encode, show_token, token_bytes, well_formed
from gptviz.tokenizer.regex import GPT2_RULES, alternatives
from gptviz.tokenizer.simple import UNK, CharacterTokenizer, Cut, WordTokenizer, split_words
from gptviz.tokenizer.steps import Piece, own_piece, show_work, stages

# For a text whose every character lies in one token: three bytes that no English text makes one.
EXAMPLE = "你"

# Chapter 1 of "Alice's Adventures in Wonderland" (1865): what the word and character tokenizers learn from.
CHAPTER = Path(__file__).parent.parent / "assets" / "text" / "alice_chapter_1.txt"


@dataclass(frozen=True)
class Spread:
    """A character of the text whose UTF-8 bytes do not lie in one token, and the tokens that hold them."""

    character: str
    positions: tuple[int, ...]
    ids: tuple[int, ...]
    raws: tuple[bytes, ...]


def token_table(encoding: tiktoken.Encoding, ids: Sequence[int]) -> pd.DataFrame:
    """One row a token: position, id, token (as shown), bytes (hex), characters, part_of.

    `characters` counts the whole characters in the token; `part_of` names a character that the token
    holds only some bytes of, as "你 U+4F60, bytes 1-2 of 3", and is empty for the others.
    """
    raws = [token_bytes(encoding, id) for id in ids]
    parts = _broken_characters(raws)
    return pd.DataFrame(
        {
            "position": range(len(raws)),
            "id": list(ids),
            "token": [show_token(raw) for raw in raws],
            "bytes": [raw.hex(" ") for raw in raws],
            "characters": [len(raw.decode("utf-8", "ignore")) for raw in raws],
            "part_of": [", ".join(parts.get(position, [])) for position in range(len(raws))],
        }
    )


def _broken_characters(raws: Sequence[bytes]) -> dict[int, list[str]]:
    """Position -> the characters that this token holds some, but not all, bytes of."""
    found: dict[int, list[str]] = {}
    for character, holders in _in_several(raws):
        start = 1
        name = f"{show_token(character.encode())} U+{ord(character):04X}"
        for position, held in holders.items():
            if held == 1:
                place = f"byte {start}"
            else:
                place = f"bytes {start}-{start + held - 1}"
            found.setdefault(position, []).append(f"{name}, {place} of {holders.total()}")
            start += held
    return found


def _in_several(raws: Sequence[bytes]) -> Iterator[tuple[str, Counter[int]]]:
    """Every whole character that no single token holds: how many of its bytes are at which positions."""
    holder = [position for position, raw in enumerate(raws) for _ in raw]  # of each byte
    at = 0
    for character in b"".join(raws).decode("utf-8", "surrogateescape"):
        width = len(character.encode("utf-8", "surrogateescape"))
        holders = Counter(holder[at : at + width])
        if len(holders) > 1:
            yield character, holders
        at += width


def spread_characters(encoding: tiktoken.Encoding, ids: Sequence[int]) -> list[Spread]:
    """The characters of the text that no single token holds, in the order of the text."""
    raws = [token_bytes(encoding, id) for id in ids]
    return [
        Spread(character, tuple(at), tuple(ids[p] for p in at), tuple(raws[p] for p in at))
        for character, at in _in_several(raws)
    ]


def broken_character(encoding: tiktoken.Encoding, ids: Sequence[int]) -> tuple[Spread | None, bool]:
    """The first character of the text that no single token holds, and True; else an example's, and False.

    None where this encoding has a token for the example, too.
    """
    for tokens, own in ((ids, True), (encode(encoding, EXAMPLE), False)):
        found = spread_characters(encoding, tokens)
        if found:
            return found[0], own
    return None, False


@dataclass(frozen=True)
class EndOfText:
    """What becomes of <|endoftext|>: the tokens it is as plain text, and its id as the special token.

    `lengths` are the whole text's tokens with the switch off and on, None if the text does not hold it.
    """

    typed: tuple[str, ...]
    id: int
    lengths: tuple[int, int] | None


def end_of_text(encoding: tiktoken.Encoding, text: str) -> EndOfText | None:
    """None where the encoding has no such token."""
    if END_OF_TEXT not in encoding.special_tokens_set:
        return None
    typed = tuple(show_token(token_bytes(encoding, id)) for id in encode(encoding, END_OF_TEXT))
    lengths = None
    if END_OF_TEXT in text:
        lengths = len(encode(encoding, text, False)), len(encode(encoding, text, True))
    return EndOfText(typed, encoding.encode_single_token(END_OF_TEXT), lengths)


def spellings(encoding: tiktoken.Encoding, word: str) -> pd.DataFrame:
    """The same word to a reader, other tokens to the model: with and without a space, in other cases.

    Columns written, tokens (how many), ids, cut (the tokens as shown). Rows that would be written the
    same as an earlier one (a word without letters has no cases) are left out.
    """
    forms = [word, word.lower(), word.capitalize(), word.upper()]
    written = dict.fromkeys(space + form for form in forms for space in ("", " "))
    rows = []
    for text in written:
        ids = encode(encoding, text)
        shown = [show_token(token_bytes(encoding, id)) for id in ids]
        rows.append((show_token(text.encode()), len(ids), ids, shown))
    return pd.DataFrame(rows, columns=["written", "tokens", "ids", "cut"])


def compare(
    text: str, encodings: Sequence[tiktoken.Encoding], learnt_from: str, special_tokens: bool = False
) -> list[Cut]:
    """The text cut by each encoding, then into words, characters and bytes.

    The word and the character tokenizer know what occurs in `learnt_from`, and nothing else.
    """
    text = well_formed(text)
    cuts = [_cut_by(encoding, text, special_tokens) for encoding in encodings]
    words, characters = _fitted(learnt_from)
    word_ids = words.encode(text, special_tokens)
    unknown = word_ids.count(words.vocabulary.index(UNK))
    shown = tuple(words.vocabulary[id] for id in word_ids)
    cuts.append(Cut("words", len(words.vocabulary), shown, tuple(word_ids), unknown))

    known = [characters.known(character) for character in text]
    ids = tuple(characters.encode(c)[0] if k else None for c, k in zip(text, known, strict=True))
    shown = tuple(show_token(character.encode()) for character in text)
    cuts.append(Cut("characters", len(characters.vocabulary), shown, ids, known.count(False)))

    raw = text.encode()
    one_by_one = tuple(bytes([byte]) for byte in raw)
    cuts.append(Cut("bytes", 256, tuple(f"{byte:02x}" for byte in raw), tuple(raw), 0, one_by_one))
    return cuts


@dataclass(frozen=True)
class WordRow:
    """A text as a word tokenizer reads it in a batch: its tokens, the special ones among them, and ids."""

    text: str
    tokens: tuple[str, ...]
    ids: tuple[int, ...]


def word_batch(texts: Sequence[str], learnt_from: str, special_tokens: bool = False) -> list[WordRow]:
    """Several texts as one batch of words: each between [BOS] and [EOS], the shorter ones filled with [PAD].

    The tokenizer knows the words of `learnt_from`; any other is [UNK].
    """
    words, _ = _fitted(well_formed(learnt_from))
    rows = [words.encode(well_formed(text), special_tokens, bos=True, eos=True) for text in texts]
    batch = words.pad(rows)
    return [
        WordRow(text, tuple(words.vocabulary[id] for id in ids), tuple(ids))
        for text, ids in zip(texts, batch, strict=True)
    ]


@lru_cache(maxsize=8)
def _fitted(text: str) -> tuple[WordTokenizer, CharacterTokenizer]:
    return WordTokenizer.fit(text), CharacterTokenizer(text)


def _cut_by(encoding: tiktoken.Encoding, text: str, special_tokens: bool) -> Cut:
    ids = encode(encoding, text, special_tokens)
    raws = tuple(token_bytes(encoding, id) for id in ids)
    return Cut(encoding.name, encoding.n_vocab, tuple(map(show_token, raws)), tuple(ids), 0, raws)


def chapter() -> str:
    """The text that the word and the character tokenizer learn from, 11,000 characters of Lewis Carroll."""
    return CHAPTER.read_text(encoding="utf-8")


def word_near(text: str, piece: str) -> str:
    """A word to try spellings of: the piece without its space, or the first word of the text, or "the"."""
    own = piece.strip()
    if own.isalpha():
        return own
    return next((word for word in split_words(text) if word.isalpha()), "the")


def rules_table(encoding: tiktoken.Encoding, pieces: Sequence[Piece]) -> pd.DataFrame:
    """One row a rule of the encoding's regex, in its order: rule, takes, pieces (how many), examples.

    `takes` says in words what the rule is for, where it is one of GPT-2's; `examples` are the first few
    different pieces of this text.
    """
    rows = []
    for rule in alternatives(encoding._pat_str):
        own = [show_token(piece.raw) for piece in pieces if piece.rule == rule]
        examples = "  ".join(list(dict.fromkeys(own))[:8])
        rows.append((rule, GPT2_RULES.get(rule, ""), len(own), examples))
    return pd.DataFrame(rows, columns=["rule", "takes", "pieces", "examples"])


def place_of(pieces: Sequence[Piece], position: int) -> tuple[int, int]:
    """(index of the piece, of the part in it) of the token at `position`; ValueError beyond the last."""
    at = position
    for index, piece in enumerate(pieces):
        if at < len(piece.ids):
            return index, at
        at -= len(piece.ids)
    raise ValueError(f"there is no token at position {position}; the text has {position - at}")


def merge_rows(
    lm: LanguageModel, text: str, position: int, special_tokens: bool = False, whole_piece: bool = True
) -> list[tuple[bytes, ...]]:
    """Return the rows of the merges, from bytes to tokens: of the token at `position`, or of its piece."""
    pieces = show_work(lm.tokenizer, text, special_tokens)
    index, part = place_of(pieces, position)
    if whole_piece:
        piece = pieces[index]
    else:
        piece = own_piece(pieces[index], part)
    return [stage.parts for stage in stages(lm.tokenizer, piece)]
