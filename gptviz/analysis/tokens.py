"""The tables of the Tokens page: a prompt's tokens, other tokenizers on the same text, and two oddities.

The oddities are that one word is different tokens with a space or in capitals (`spellings`), and that some
characters are broken: no single token holds all of their UTF-8 bytes (`broken_characters`).

Every id comes from the encodings themselves (`gptviz.tokenizer`, `gptviz.tokenizer.simple`). `raw` is always
a token's or a piece's bytes.
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
from gptviz.tokenizer.regex import RULES, alternatives
from gptviz.tokenizer.simple import UNK, CharacterTokenizer, Cut, WordTokenizer, split_words
from gptviz.tokenizer.steps import Piece, own_piece, show_work, stages

# Shown as a broken character where the text has none: its three bytes are one token only in encodings that
# learnt from Chinese text.
EXAMPLE = "你"

# Chapter 1 of "Alice's Adventures in Wonderland" (1865): what the word and character tokenizers learn from.
CHAPTER = Path(__file__).parent.parent / "assets" / "text" / "alice_chapter_1.txt"


@dataclass(frozen=True)
class BrokenCharacter:
    """A character of a text whose UTF-8 bytes lie in several tokens, and these tokens, in order.

    `positions` and `ids` are theirs in the text, `raws` their bytes. A token may also hold bytes of the
    characters beside this one.
    """

    character: str
    positions: tuple[int, ...]
    ids: tuple[int, ...]
    raws: tuple[bytes, ...]


def token_table(encoding: tiktoken.Encoding, ids: Sequence[int]) -> pd.DataFrame:
    """Make a table with a row per token: position, id, token (as shown), bytes (hex), characters, part_of.

    `characters` counts the whole characters in the token. `part_of` names the broken characters of which the
    token holds some bytes, as "你 U+4F60, bytes 1-2 of 3"; it is empty if there are none.
    """
    raws = [token_bytes(encoding, id) for id in ids]
    part_names = _part_names(raws)
    return pd.DataFrame(
        {
            "position": range(len(raws)),
            "id": list(ids),
            "token": [show_token(raw) for raw in raws],
            "bytes": [raw.hex(" ") for raw in raws],
            "characters": [len(raw.decode("utf-8", "ignore")) for raw in raws],
            "part_of": [", ".join(part_names.get(position, [])) for position in range(len(raws))],
        }
    )


def _part_names(raws: Sequence[bytes]) -> dict[int, list[str]]:
    """Name what each token holds of broken characters: its position -> names for `part_of`."""
    names: dict[int, list[str]] = {}
    for character, byte_counts in _holders(raws):
        start = 1  # the number of the token's first byte in the character
        name = f"{show_token(character.encode())} U+{ord(character):04X}"
        for position, count in byte_counts.items():
            if count == 1:
                place = f"byte {start}"
            else:
                place = f"bytes {start}-{start + count - 1}"
            names.setdefault(position, []).append(f"{name}, {place} of {byte_counts.total()}")
            start += count
    return names


def _holders(raws: Sequence[bytes]) -> Iterator[tuple[str, Counter[int]]]:
    """Yield each broken character, and how many of its bytes the token at each position holds."""
    # of each byte of the text, the position of its token
    holder = [position for position, raw in enumerate(raws) for _ in raw]
    start = 0  # the byte of the text where the character starts
    # bytes that are no UTF-8 (ids may be cut anywhere) become surrogates of one byte each, never broken ones
    for character in b"".join(raws).decode("utf-8", "surrogateescape"):
        width = len(character.encode("utf-8", "surrogateescape"))
        byte_counts = Counter(holder[start : start + width])  # in the order of the positions
        if len(byte_counts) > 1:
            yield character, byte_counts
        start += width


def broken_characters(encoding: tiktoken.Encoding, ids: Sequence[int]) -> list[BrokenCharacter]:
    """List the broken characters of a text, given as ids, in the order of the text."""
    raws = [token_bytes(encoding, id) for id in ids]
    found = []
    for character, byte_counts in _holders(raws):
        positions = tuple(byte_counts)
        ids_there = tuple(ids[position] for position in positions)
        raws_there = tuple(raws[position] for position in positions)
        found.append(BrokenCharacter(character, positions, ids_there, raws_there))
    return found


def broken_character(
    encoding: tiktoken.Encoding, ids: Sequence[int]
) -> tuple[BrokenCharacter | None, bool]:
    """Find a broken character: the text's first one and True, or that of the EXAMPLE and False.

    None and False if the text has none, and the encoding has a token for the example.
    """
    in_text = broken_characters(encoding, ids)
    if in_text:
        return in_text[0], True
    in_example = broken_characters(encoding, encode(encoding, EXAMPLE))
    if in_example:
        return in_example[0], False
    return None, False


@dataclass(frozen=True)
class EndOfText:
    """<|endoftext|> in two ways: the tokens that it is as plain text, and its id as the special token.

    `typed` are these tokens as shown. `lengths` are two numbers of tokens of the whole text: with the switch
    "Special tokens" off and on. None if the text does not contain <|endoftext|>.
    """

    typed: tuple[str, ...]
    id: int
    lengths: tuple[int, int] | None


def end_of_text(encoding: tiktoken.Encoding, text: str) -> EndOfText | None:
    """Encode <|endoftext|> in both ways; None if the encoding has no such special token."""
    if END_OF_TEXT not in encoding.special_tokens_set:
        return None
    typed = tuple(show_token(token_bytes(encoding, id)) for id in encode(encoding, END_OF_TEXT))
    lengths = None
    if END_OF_TEXT in text:
        lengths = len(encode(encoding, text, False)), len(encode(encoding, text, True))
    return EndOfText(typed, encoding.encode_single_token(END_OF_TEXT), lengths)


def spellings(encoding: tiktoken.Encoding, word: str) -> pd.DataFrame:
    """Make a table of a word with and without a space before it, in several cases: other tokens each time.

    Columns: written, tokens (how many it is cut into), ids, cut (these tokens as shown). A form that is
    written like an earlier one is left out: a word without letters has no cases.
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
    text: str,
    encodings: Sequence[tiktoken.Encoding],
    learnt_from: str,
    special_tokens: bool = False,
) -> list[Cut]:
    """Cut a text by each encoding, then into words, characters and bytes.

    The word and the character tokenizer know the words and characters of the text `learnt_from`, and no
    other.
    """
    text = well_formed(text)
    cuts = [_cut_by(encoding, text, special_tokens) for encoding in encodings]
    words, characters = _fitted(learnt_from)
    word_ids = words.encode(text, special_tokens)
    unknown = word_ids.count(words.vocabulary.index(UNK))
    shown = tuple(words.vocabulary[id] for id in word_ids)
    n_words = len(words.vocabulary)
    cuts.append(Cut("words", n_words, shown, tuple(word_ids), unknown))

    known = [characters.known(character) for character in text]
    ids = tuple(
        characters.encode(character)[0] if is_known else None
        for character, is_known in zip(text, known, strict=True)
    )
    shown = tuple(show_token(character.encode()) for character in text)
    cuts.append(Cut("characters", len(characters.vocabulary), shown, ids, known.count(False)))

    raw = text.encode()
    one_by_one = tuple(bytes([byte]) for byte in raw)
    cuts.append(Cut("bytes", 256, tuple(f"{byte:02x}" for byte in raw), tuple(raw), 0, one_by_one))
    return cuts


@dataclass(frozen=True)
class WordRow:
    """A row of a batch of words: the text, its tokens (with [BOS], [EOS] and [PAD]) and their ids."""

    text: str
    tokens: tuple[str, ...]
    ids: tuple[int, ...]


def word_batch(
    texts: Sequence[str], learnt_from: str, special_tokens: bool = False
) -> list[WordRow]:
    """Encode several texts as one batch of words: [BOS] text [EOS], the shorter rows filled up with [PAD].

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
    """The word and the character tokenizer that know this text."""
    return WordTokenizer.fit(text), CharacterTokenizer(text)


def _cut_by(encoding: tiktoken.Encoding, text: str, special_tokens: bool) -> Cut:
    """The text as one encoding cuts it; no character is unknown to it."""
    ids = encode(encoding, text, special_tokens)
    raws = tuple(token_bytes(encoding, id) for id in ids)
    return Cut(encoding.name, encoding.n_vocab, tuple(map(show_token, raws)), tuple(ids), 0, raws)


def chapter() -> str:
    """Read what the word and the character tokenizer learn from: 11,000 characters of Lewis Carroll."""
    return CHAPTER.read_text(encoding="utf-8")


def word_near(text: str, piece: str) -> str:
    """Choose a word for `spellings`: the piece without its space, else the text's first word, else "the"."""
    stripped = piece.strip()
    if stripped.isalpha():
        return stripped
    return next((word for word in split_words(text) if word.isalpha()), "the")


def rules_table(encoding: tiktoken.Encoding, pieces: Sequence[Piece]) -> pd.DataFrame:
    """Make a table with a row per rule of the encoding's regex, in its order: rule, takes, pieces, examples.

    A rule is one alternative of the regex that cuts a text into pieces. `takes` says in words what a rule of
    a known regex takes, and is empty for others; `pieces` is how many it cut from this text; `examples` are the
    first eight different ones.
    """
    rows = []
    for rule in alternatives(encoding._pat_str):
        shown = [show_token(piece.raw) for piece in pieces if piece.rule == rule]
        examples = "  ".join(list(dict.fromkeys(shown))[:8])
        rows.append((rule, RULES.get(rule, ""), len(shown), examples))
    return pd.DataFrame(rows, columns=["rule", "takes", "pieces", "examples"])


def place_of(pieces: Sequence[Piece], position: int) -> tuple[int, int]:
    """Find the token at `position`, from 0: the index of its piece, and its index among the piece's tokens.

    Raises ValueError for a negative position and for one beyond the last token.
    """
    first = 0  # the position of the piece's first token
    for index, piece in enumerate(pieces):
        if first <= position < first + len(piece.ids):
            return index, position - first
        first += len(piece.ids)
    raise ValueError(f"there is no token at position {position}; the text has {first}")


def merge_rows(
    lm: LanguageModel,
    text: str,
    position: int,
    special_tokens: bool = False,
    whole_piece: bool = True,
) -> list[tuple[bytes, ...]]:
    """List the stages of byte pair encoding for the piece that the token at `position` is in.

    Each row has the bytes of the parts at that stage, from single bytes to tokens. Without `whole_piece` they
    are those of this token alone. A negative position counts from the end, as in a Trace; ValueError for one
    that the text does not have.
    """
    pieces = show_work(lm.tokenizer, text, special_tokens)
    count = sum(len(piece.ids) for piece in pieces)
    if -count <= position < 0:
        position += count
    index, part = place_of(pieces, position)
    if whole_piece:
        piece = pieces[index]
    else:
        piece = own_piece(pieces[index], part)
    return [stage.parts for stage in stages(lm.tokenizer, piece)]
