"""What the Tokens page says, for tokenizers of every kind."""

import tiktoken
from hypothesis import given
from hypothesis import strategies as st

from gptviz.analysis.tokens import place_of, spellings, spread_characters
from gptviz.tokenizer import encode, get_encoding
from gptviz.tokenizer.steps import show_work
from gptviz.trace import tokens_of
from gptviz.ui.views.tokens import words

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


def test_a_token_of_merges_a_byte_a_whole_and_a_special_one():
    assert "`·hello` is a whole piece. Its 6 bytes took 5 merges, at rank " in look_for(GPT2, "oh hello", 1)
    assert "the last rank is the token's id, 23748." in look_for(GPT2, "oh hello", 1)
    assert "one of 2 tokens in the piece `你`. " in look_for(GPT2, "你", 1)
    assert "It is a single byte, where all merging begins: no merge was needed." in look_for(GPT2, "你", 1)
    assert "It is looked up as a whole: no merge was needed." in look_for(CHARACTERS, "你", 0)
    assert "`<|endoftext|>` is id 50256, a special token" in look_for(GPT2, "<|endoftext|>", 0, special=True)


def test_spaces_and_spellings():
    table = spellings(GPT2, "The")
    assert "`The` is id 464, and `·The` is id 383:" in words.about_spaces(table)
    assert list(words.joined(table)["ids"])[:2] == ["464", "383"]
    assert words.about_spaces(table).endswith("Capitals make other tokens, too.")


def test_a_space_that_stays_alone_and_a_script_without_capitals():
    table = spellings(get_encoding("mini"), "東")
    assert list(table["ids"]) == [[230, 157, 177], [32, 230, 157, 177]]  # the bytes e6 9d b1 after 20
    assert words.about_spaces(table) == (
        "`東` is ids 230, 157, 177, and `·東` is the same after id 32: here no merge joins the space to "
        "what follows."
    )


def test_bytes_of_the_prompt_or_of_the_example():
    found = spread_characters(GPT2, encode(GPT2, "a 東京"))
    assert "In your prompt, `東` is 3 bytes in UTF-8 and 3 tokens here." in words.about_bytes(found, GPT2)
    assert "as an example, `你` is 3 bytes in UTF-8 and 2 tokens here." in words.about_bytes([], GPT2)
    alone = words.alone([], GPT2)
    assert list(alone["decoded"]) == ["\ufffd", "\ufffd", "你"]
    assert list(alone["bytes"]) == ["e4 bd", "a0", "e4 bd a0"]
    assert list(alone["tokens"]) == ["19526", "254", "19526, 254"]


def test_special_tokens_on_off_and_absent():
    assert "so the switch changes nothing" in words.about_special(GPT2, "Hello", False)
    assert "is 9 tokens with the switch off, 3 with it on" in words.about_special(
        GPT2, "a<|endoftext|>b", False
    )
    assert "characters, has no `<|endoftext|>`" in words.about_special(CHARACTERS, "Hello", True)


def test_a_tokenizer_that_has_every_character_whole_has_no_example_to_show():
    assert "every character of your prompt is one token" in words.about_bytes([], CHARACTERS)
    assert words.alone([], CHARACTERS).empty


@given(text=st.text(min_size=1, max_size=20), pick=st.integers(0, 100))
def test_any_token_can_be_spoken_of(text, pick):
    ids = encode(GPT2, text)
    assert look_for(GPT2, text, pick % len(ids))
    assert words.built(tokens_of(GPT2, ids)[pick % len(ids)]).startswith("#### How `")
