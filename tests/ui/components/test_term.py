"""A term is plain text with a definition, whatever stands in either."""

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gptviz.ui.components.term import term, term_style


def read(html):
    found = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag, attributes):
            found.append((tag, dict(attributes)))

        def handle_data(self, data):
            found.append(data)

    reader = Reader()
    reader.feed(html)
    reader.close()
    return found


TEXT = st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1).filter(str.strip)


@given(TEXT, TEXT)
def test_no_character_leaves_its_place(words, definition):
    (tag, attributes), *shown = read(term(words, definition))
    assert (tag, "".join(shown)) == ("span", words)
    assert attributes["data-definition"] == " ".join(definition.split())
    assert attributes["tabindex"] == "0"


def test_a_term_without_a_definition_is_refused():
    with pytest.raises(ValueError, match="needs words and a definition"):
        term("logit", " ")


def test_the_style_has_every_colour_filled_in():
    assert term_style("light") != term_style("dark")
    assert not {"INK", "PANEL", "GRID"} & set(term_style("dark").split())
