"""What the Tokens page says, for tokenizers of every kind."""

import re

import tiktoken
from hypothesis import given
from hypothesis import strategies as st

from gptviz.analysis.tokens import broken_character, end_of_text, place_of, spellings
from gptviz.engine.trace import tokens_of
from gptviz.tokenizer import encode, get_encoding
from gptviz.tokenizer.steps import show_work
from gptviz.ui.views.tokens import words
from gptviz.ui.views.tokens.tables import pieces_table, spellings_table
from tests.golden_files import check

GPT2 = get_encoding("gpt2")
CHARACTERS = tiktoken.Encoding(
    "characters",
    pat_str=r"(?s:.)",
    mergeable_ranks={bytes([byte]): byte for byte in range(256)} | {"你".encode(): 256},
    special_tokens={},
)


def look_for(encoding, text, position, special=False):
    pieces = show_work(encoding, text, special)
    piece, _ = place_of(pieces, position)
    return words.look_for(pieces[piece], tokens_of(encoding, encode(encoding, text, special))[position])


def spaces(encoding, word):
    table = spellings(encoding, word)
    plain, spaced = table.iloc[0], table.iloc[1]
    return words.about_spaces(
        (plain["written"], plain["ids"]), (spaced["written"], spaced["ids"]), capitals=len(table) > 2
    )


def test_every_sentence():
    two = [encode(GPT2, text) for text in ("a 東京", "The sun rises")]
    check(
        "tokens_words",
        {
            "built": words.built(tokens_of(GPT2, encode(GPT2, "`"))[0]),
            "cards": words.CARDS,
            "changed": words.CHANGED,
            "regex": words.ABOUT_REGEX,
            "look for: merges": look_for(GPT2, "oh hello", 1),
            "look for: a byte": look_for(GPT2, "你", 1),
            "look for: a whole piece": look_for(CHARACTERS, "你", 0),
            "look for: special": look_for(GPT2, "<|endoftext|>", 0, special=True),
            "spaces": spaces(GPT2, "The"),
            "spaces: no merge, no capitals": spaces(get_encoding("mini"), "東"),
            "bytes: of the prompt": words.about_bytes(*broken_character(GPT2, two[0])),
            "bytes: of the example": words.about_bytes(*broken_character(GPT2, two[1])),
            "bytes: none": words.about_bytes(*broken_character(CHARACTERS, encode(CHARACTERS, "a"))),
            "special: off, not in the text": words.about_special(end_of_text(GPT2, "Hello"), "gpt2", False),
            "special: on": words.about_special(end_of_text(GPT2, "a<|endoftext|>b"), "gpt2", True),
            "special: none": words.about_special(end_of_text(CHARACTERS, "Hello"), "characters", True),
        },
    )


def cells(html):
    return [re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr class=.*?</tr>", html)]


def test_the_tables_have_the_encodings_own_ids():
    assert cells(spellings_table(spellings(GPT2, "The")))[:2] == [
        ["The", "1", "464", "The"],
        ["·The", "1", "383", "·The"],
    ]
    spread, own = broken_character(GPT2, encode(GPT2, "no such character"))
    assert not own and spread is not None
    assert cells(pieces_table(spread)) == [
        ["19526", "e4 bd", "\ufffd"],
        ["254", "a0", "\ufffd"],
        ["19526, 254", "e4 bd a0", "你"],
    ]


def test_what_becomes_of_the_end_of_text():
    found = end_of_text(GPT2, "a<|endoftext|>b")
    assert found is not None and found.lengths == (9, 3) and found.id == 50256
    assert "".join(found.typed) == "<|endoftext|>"
    assert end_of_text(CHARACTERS, "<|endoftext|>") is None


@given(text=st.text(min_size=1, max_size=20), pick=st.integers(0, 100))
def test_any_token_can_be_spoken_of(text, pick):
    ids = encode(GPT2, text)
    assert look_for(GPT2, text, pick % len(ids))
    assert words.built(tokens_of(GPT2, ids)[pick % len(ids)]).startswith("#### How `")
