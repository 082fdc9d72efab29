"""How the prompt became numbers: pieces, bytes, merges, ids. And how other tokenizers cut it."""

from typing import Any

import streamlit as st

from gptviz.analysis import tokens as numbers
from gptviz.tokenizer import show_token
from gptviz.tokenizer.steps import Piece, bpe, show_work
from gptviz.ui.components.merges import WIDEST, merges
from gptviz.ui.components.token_cards import token_cards
from gptviz.ui.shell.details import in_code, in_numbers, program
from gptviz.ui.shell.prompt import READ_CHARACTERS
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Scene
from gptviz.ui.tables import STYLE
from gptviz.ui.views.tokens import words
from gptviz.ui.views.tokens.comparison import comparison
from gptviz.ui.views.tokens.snippet import merge_rows
from gptviz.ui.views.tokens.tables import pieces_table, spellings_table


def draw(scene: Scene) -> None:
    """The page under the strip of chips."""
    st.html(STYLE)
    text = scene.text[:READ_CHARACTERS]
    pieces = show_work(scene.lm.tokenizer, text, scene.special, limit=len(scene.tokens))
    piece = pieces[numbers.place_of(pieces, scene.position)[0]]
    prose(words.CARDS, "token", "position", "·", "⏎")
    if scene.other is not None:
        st.markdown(words.CHANGED)
    scene.strip(coloured=True)  # a position has one colour in the strip, the cards and the merges
    saved = scene.saved("tokens", "The tokens of a text, with their ids and bytes")
    token_cards(pieces, scene.tokens, scene.position, scene.mode, scene.select, saved=saved)
    _merges(scene, pieces)
    _regex(scene, pieces)
    st.subheader("The same text, other tokenizers", anchor=False)
    comparison(scene, text)
    space, byte = st.columns(2, gap="large")
    with space:
        _spellings(scene, piece)
    with byte:
        _bytes(scene)
    st.subheader("Special tokens", anchor=False)
    found = numbers.end_of_text(scene.lm.tokenizer, text)
    prose(words.about_special(found, scene.lm.tokenizer.name, scene.special))
    _details(scene, piece)


def _merges(scene: Scene, pieces: list[Piece]) -> None:
    at, part = numbers.place_of(pieces, scene.position)
    selected = scene.tokens[scene.position]
    st.markdown(words.built(selected))
    prose(words.look_for(pieces[at], selected), "vocabulary")
    saved = scene.saved("merges", f"How {show_token(selected.raw)} was built from its bytes")
    merges(scene.lm.tokenizer, pieces[at], part, scene.position, scene.mode, saved=saved)


def _regex(scene: Scene, pieces: list[Piece]) -> None:
    with st.expander("What the regex cut", icon=":material/content_cut:"):
        st.markdown(words.ABOUT_REGEX)
        columns: Any = {"rule": {"width": 170}, "takes": {"width": 390}, "pieces": {"width": 60}}
        table = numbers.rules_table(scene.lm.tokenizer, pieces)
        st.dataframe(table, hide_index=True, key="tok_rules", column_config=columns)


def _spellings(scene: Scene, piece: Piece) -> None:
    found = numbers.spellings(scene.lm.tokenizer, numbers.word_near(scene.text, piece.text))
    plain, spaced = found.iloc[0], found.iloc[1]
    st.subheader("What a space changes", anchor=False)
    st.markdown(
        words.about_spaces(
            (plain["written"], plain["ids"]), (spaced["written"], spaced["ids"]), capitals=len(found) > 2
        )
    )
    st.html(spellings_table(found))


def _bytes(scene: Scene) -> None:
    st.subheader("A character in pieces", anchor=False)
    spread, own = numbers.broken_character(scene.lm.tokenizer, scene.run.ids)
    st.markdown(words.about_bytes(spread, own))
    if spread is not None:
        st.html(pieces_table(spread))


def _details(scene: Scene, piece: Piece) -> None:
    in_numbers(
        lambda: numbers.token_table(scene.lm.tokenizer, scene.run.ids),
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
            whole_piece=len(piece.raw) <= WIDEST,
        ),
    )
