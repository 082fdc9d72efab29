"""The Tokens page through AppTest: what is on it is what tiktoken says."""

import pytest

from gptviz.tokenizer import encode, get_encoding
from gptviz.tokenizer.steps import show_work
from tests.specs import opened, prose, table

MINI = get_encoding("mini")
PROMPTS = {
    "one token": "a",
    "emoji": "A family 👨\u200d👩\u200d👧 and a flag 🇮🇹",
    "code": 'def f(x):\n\treturn `x` + "$y$" * [1](2) ** 3  # <b>&amp;</b>',
    "tabs and NUL": "\t\x00\r\n \x1b[0m",
    "Markdown": "**bold** _x_ `` ` `` :red[no] $x^2$ <script>alert(1)</script>",
    "a long word": "a" * 10_000,
    "ten thousand letters": "The quick brown fox. " * 480,
}


def rules(at):
    """The table of the regex' rules, the page's only one that is no HTML."""
    (found,) = [element.value for element in at.dataframe if "rule" in element.value.columns]
    return found


@pytest.mark.parametrize("prompt", PROMPTS.values(), ids=PROMPTS.keys())
def test_any_prompt_makes_a_page(run_page, prompt):
    at = run_page("tokens", text=prompt)
    assert at.title[0].value == "How does text become numbers?"
    for written, count, ids, _ in table(at, "spellings"):
        expected = encode(MINI, written.replace("·", " "))
        assert ids == ", ".join(map(str, expected)) and count == str(len(expected))
    shown = encode(MINI, prompt)[:256]
    assert rules(at)["pieces"].sum() == len(show_work(MINI, prompt, limit=len(shown)))


def test_the_selected_token_is_explained(run_page):
    """`The` at position 0 and `·the` later: each with its own merges."""
    position = encode(MINI, "The rabbit and the hat").index(encode(MINI, " the")[0])
    at = run_page("tokens", text="The rabbit and the hat", token=position)
    (piece,) = [
        piece for piece in show_work(MINI, "The rabbit and the hat") if piece.text == " the"
    ]
    ranks = ", ".join(str(merge.rank) for merge in piece.merges)
    said = f"{len(piece.merges)} merges join its {len(piece.raw)} bytes, at ranks {ranks}."
    assert said in prose(at)


def test_a_character_in_pieces_is_this_prompts_own(run_page):
    at = run_page("tokens", text="東 rises")
    *pieces, whole = table(at, "pieces of a character")
    assert whole[2] == "東" and {row[2] for row in pieces} == {"\ufffd"}
    assert [row[0] for row in pieces] == [str(id) for id in encode(MINI, "東")]
    turning = prose(run_page("tokens", text="a\u202eb"))  # a line round, if it stood there itself
    assert "`\\u202e` is 3 bytes" in turning and "\u202e" not in turning
    example = run_page("tokens", text="The sun rises")
    assert table(example, "pieces of a character")[-1][2] == "你"


def test_the_switch_for_special_tokens(run_page):
    prompt = "One.<|endoftext|>Two."
    off, on = (len(encode(MINI, prompt, switch)) for switch in (False, True))
    at = run_page("tokens", text=prompt)
    assert f" {off} tokens" in prose(at) and f" {on} with it on" in prose(at)
    at = run_page("tokens", text=prompt, special="on", token=2)
    assert f"`<|endoftext|>` is id {MINI.eot_token}, " in prose(at)


def test_a_tokenizer_out_of_reach_is_a_sentence(run_page, monkeypatch):
    from gptviz.tokenizer import encodings as tokenizer

    def unreachable(name):
        raise ConnectionError(
            f"The tokenizer {name!r} must be downloaded, and its server could not be reached."
        )

    monkeypatch.setattr(tokenizer, "download_encoding", unreachable)
    at = run_page("tokens", text="Hello")
    at.selectbox(key="tok_more").select("cl100k_base").run()
    assert "'cl100k_base' must be downloaded" in at.warning[0].value
    assert "Without a network there are: mini, gpt2" in at.warning[0].value


def test_in_numbers_is_the_table_of_tokens(run_page):
    at = opened(run_page("tokens", text="The café"), "numbers_tokens")
    (found,) = [e.value for e in at.dataframe if "part_of" in e.value.columns]
    assert list(found["id"]) == encode(MINI, "The café")
    assert bytes.fromhex("".join(found["bytes"]).replace(" ", "")).decode() == "The café"
