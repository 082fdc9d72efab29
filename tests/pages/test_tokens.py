"""The Tokens page through AppTest: what is on it is what tiktoken says."""

import pytest

from gptviz.tokenizer import encode, get_encoding
from gptviz.tokenizer.steps import show_work, stages
from gptviz.ui.views.tokens.snippet import merge_rows

MINI = get_encoding("mini")
PROMPTS = {
    "one token": "a",
    "a blank": " ",
    "emoji": "A family 👨\u200d👩\u200d👧 and a flag 🇮🇹",
    "Chinese": "你好，世界",
    "code": 'def f(x):\n\treturn `x` + "$y$" * [1](2) ** 3  # <b>&amp;</b>',
    "tabs and NUL": "\t\x00\r\n \x1b[0m",
    "Markdown": "**bold** _x_ `` ` `` :red[no] $x^2$ <script>alert(1)</script>",
    "a long word": "a" * 10_000,
    "ten thousand letters": "The quick brown fox. " * 480,
    "only marks": "\u0301\u0302\ufffd\ufffe",
}


def table(at, column):
    """The table with this column; AppTest has no way to ask for a table's key."""
    (found,) = [element.value for element in at.dataframe if column in element.value.columns]
    return found


def text(at):
    return "\n".join(element.value for element in [*at.markdown, *at.caption])


@pytest.mark.parametrize("prompt", PROMPTS.values(), ids=PROMPTS.keys())
def test_any_prompt_makes_a_page(run_page, prompt):
    at = run_page("tokens", text=prompt)
    assert at.title[0].value == "Tokens"
    assert "was built" in text(at)
    spelled = table(at, "written")
    for row in spelled.itertuples():
        written = row.written.replace("·", " ")
        assert row.ids == ", ".join(map(str, encode(MINI, written)))
        assert row.tokens == len(encode(MINI, written))
    rules = table(at, "rule")
    shown = encode(MINI, prompt)[:256]
    assert rules["pieces"].sum() == len(show_work(MINI, prompt, limit=len(shown)))


def test_empty_prompt_is_a_sentence(run_page):
    assert "The prompt is empty" in run_page("tokens", text="").info[0].value


def test_the_selected_token_is_explained(run_page):
    """`The` at position 0 and `·the` later: each with its own merges."""
    position = encode(MINI, "The rabbit and the hat").index(encode(MINI, " the")[0])
    at = run_page("tokens", text="The rabbit and the hat", token=position)
    (piece,) = [piece for piece in show_work(MINI, "The rabbit and the hat") if piece.text == " the"]
    says = text(at)
    assert "#### How `·the` was built" in says
    ranks = ", ".join(str(merge.rank) for merge in piece.merges)
    assert f"took {len(piece.merges)} merges, at rank {ranks}." in says
    assert f"the last rank is the token's id, {piece.ids[0]}." in says


def test_a_character_in_pieces_is_this_prompts_own(run_page):
    at = run_page("tokens", text="東 rises")
    found = table(at, "decoded")
    assert list(found["decoded"])[-1] == "東"
    assert set(found["decoded"][:-1]) == {"\ufffd"}
    assert list(found["tokens"])[:-1] == [str(id) for id in encode(MINI, "東")]
    assert "In your prompt, `東` is 3 bytes" in text(at)
    assert "Your prompt has no such character" in text(run_page("tokens", text="The sun rises"))


def test_the_switch_for_special_tokens(run_page):
    prompt = "One.<|endoftext|>Two."
    off, on = (len(encode(MINI, prompt, switch)) for switch in (False, True))
    at = run_page("tokens", text=prompt)
    assert (
        f"The switch is **off**. Your prompt is {off} tokens with the switch off, {on} with it on."
        in text(at)
    )
    at = run_page("tokens", text=prompt, special="on", token=2)
    assert "The switch is **on**" in text(at)
    assert f"`<|endoftext|>` is id {MINI.eot_token}, a special token" in text(at)


def test_a_tokenizer_out_of_reach_is_a_sentence(run_page, monkeypatch):
    from gptviz.tokenizer import encodings as tokenizer

    def unreachable(name):
        raise ConnectionError(
            f"The tokenizer {name!r} must be downloaded, and its server could not be reached."
        )

    monkeypatch.setattr(tokenizer, "download_encoding", unreachable)
    at = run_page("tokens", text="Hello")
    at.selectbox(key="tok_more").select("cl100k_base").run()
    assert not at.exception
    assert "'cl100k_base' must be downloaded" in at.warning[0].value
    assert "Without a network there are: mini, gpt2" in at.warning[0].value


def test_in_numbers_is_the_table_of_tokens(run_page):
    at = run_page("tokens", text="The café")
    at.session_state["numbers_tokens"] = True
    at.run()
    found = table(at, "part_of")
    assert list(found["id"]) == encode(MINI, "The café")
    assert bytes.fromhex("".join(found["bytes"]).replace(" ", "")).decode() == "The café"


@pytest.mark.parametrize(
    ("prompt", "position", "special", "whole"),
    [
        ("Unbelievably so", 2, False, True),
        ('"""\\ {x} \' 你', 1, False, True),
        ("a<|endoftext|>b", 1, True, True),
        ("z" * 300, 4, False, False),
    ],
)
def test_in_code_is_the_same_picture(mini, prompt, position, special, whole, capsys):
    rows = merge_rows(mini, prompt, position, special, whole)
    ids = encode(MINI, prompt, special)
    raw = MINI.decode_single_token_bytes(ids[position])
    assert raw in rows[-1]
    assert len({b"".join(row) for row in rows}) == 1
    assert [len(row) for row in rows] == list(range(len(rows[0]), len(rows[-1]) - 1, -1))
    pieces = show_work(MINI, prompt, special)
    (piece,) = {p for p in pieces if sum(len(q.ids) for q in pieces[: pieces.index(p)]) <= position} - {
        p for p in pieces if sum(len(q.ids) for q in pieces[: pieces.index(p) + 1]) <= position
    }
    if whole:
        assert rows == [stage.parts for stage in stages(MINI, piece)]
    else:
        assert rows[-1] == (raw,)
