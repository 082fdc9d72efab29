"""A stranger's text is shown as it is: escaped or as code, nothing of it is alive."""

import pytest
from hypothesis import given, strategies as st
from markdown_it import MarkdownIt

from gptviz.text.as_text import JOINER, as_code, escaped
from tests.live import BAIT, HOST, TICKED, alive

SIGNS = [*"!-[]()<>`*_~#|$&\\{}:./@ =+1", "\n", "\n\n", "    ", "\r"]
WORDS = ["bait", "www.", "https://", HOST, BAIT, TICKED]
PIECES = st.lists(st.sampled_from(SIGNS + WORDS), max_size=14).map("".join)
PLAIN = ["gpt2-untrained", "GPTVIZ_ALLOW_PATHS=1", "line 4: there is no page 'nowhere'"]


@given(PIECES)
def test_nothing_of_any_text_is_alive(text):
    for shown in (escaped(text), as_code(text)):
        for sentence in (shown, f"**{shown}** is this.", f"It says {shown}, and ends."):
            assert not alive(sentence, "both")


@given(PIECES)
def test_what_is_read_is_the_text_itself(text):
    """But for line breaks, blanks around them, and the joiner before an address, which nobody sees."""
    tokens = MarkdownIt("commonmark").parse(f"It says {escaped(text)}.")
    assert [token.type for token in tokens] == ["paragraph_open", "inline", "paragraph_close"]
    assert {token.type for token in tokens[1].children} <= {
        "text",
        "text_special",
        "hardbreak",
        "softbreak",
    }
    read = "".join(token.content for token in tokens[1].children).replace(JOINER, "")
    assert "".join(read.split()) == "".join(f"It says {text}.".split())


@pytest.mark.parametrize(
    "text", ["gpt2-untrained", "GPTVIZ_ALLOW_PATHS=1", "line 4: there is no page 'nowhere'"]
)
def test_plain_words_stay_as_they_are(text):
    assert escaped(text) == text
