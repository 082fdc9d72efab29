"""How the prompt became numbers: pieces, bytes, merges, ids. And how other tokenizers cut it."""

from typing import Any

import streamlit as st

from gptviz.analysis.tokens import place_of, rules_table, spellings, spread_characters, token_table, word_near
from gptviz.tokenizer.steps import bpe, show_work
from gptviz.ui.components.merges import WIDEST, merges
from gptviz.ui.components.token_cards import token_cards
from gptviz.ui.shell.details import in_code, in_numbers, program
from gptviz.ui.shell.prompt import READ_CHARACTERS
from gptviz.ui.shell.scene import Scene
from gptviz.ui.views.tokens import words
from gptviz.ui.views.tokens.comparison import comparison
from gptviz.ui.views.tokens.snippet import merge_rows


def draw(scene: Scene) -> None:
    """The page under the strip of chips."""
    encoding = scene.lm.tokenizer
    ids = [token.id for token in scene.tokens]
    pieces = show_work(encoding, scene.text[:READ_CHARACTERS], scene.special, limit=len(ids))
    piece, part = place_of(pieces, scene.position)
    selected = scene.tokens[scene.position]

    token_cards(pieces, scene.tokens, scene.position, scene.mode, scene.select)
    st.markdown(words.built(selected))
    merges(encoding, pieces[piece], part, scene.position, scene.mode)
    st.markdown(words.look_for(pieces[piece], selected))
    with st.expander("What the regex cut", icon=":material/content_cut:"):
        st.markdown(words.ABOUT_REGEX)
        columns: Any = {"rule": {"width": 170}, "takes": {"width": 390}, "pieces": {"width": 60}}
        st.dataframe(rules_table(encoding, pieces), hide_index=True, key="tok_rules", column_config=columns)

    st.subheader("The same text, other tokenizers", anchor=False)
    comparison(scene.text[:READ_CHARACTERS], encoding, scene.special, scene.mode)

    space, byte = st.columns(2, gap="large")
    with space:
        table = spellings(encoding, word_near(scene.text, pieces[piece].text))
        st.subheader("A space makes another token", anchor=False)
        st.markdown(words.about_spaces(table))
        st.dataframe(words.joined(table), hide_index=True, key="tok_spellings")
    with byte:
        st.subheader("A character in pieces", anchor=False)
        found = spread_characters(encoding, ids)
        st.markdown(words.about_bytes(found, encoding))
        st.dataframe(words.alone(found, encoding), hide_index=True, key="tok_bytes")

    st.subheader("Special tokens", anchor=False)
    st.markdown(words.about_special(encoding, scene.text[:READ_CHARACTERS], scene.special))

    in_numbers(
        lambda: token_table(encoding, ids),
        "tokens.csv",
        "Every token of the prompt. `part_of` names the character that a token holds only some bytes of.",
    )
    in_code(
        [show_work, bpe],
        program(
            merge_rows,
            scene.load,
            text=scene.text[:READ_CHARACTERS],
            position=scene.position,
            special_tokens=scene.special,
            whole_piece=len(pieces[piece].raw) <= WIDEST,
        ),
    )
