"""How the prompt became numbers: pieces, bytes, merges, ids. And how other tokenizers cut it.

A piece is what the tokenizer's regular expression cuts from the text; merges then make its bytes one token or
several.
"""

from dataclasses import replace

import streamlit as st

from gptviz import tokenizer
from gptviz.analysis import tokens as numbers
from gptviz.tokenizer import steps
from gptviz.tokenizer.simple import split_words
from gptviz.ui import sheet, tables, words
from gptviz.ui.components import merges
from gptviz.ui.components.token_cards import token_cards
from gptviz.ui.components.tokenizer_rows import tokenizer_rows
from gptviz.ui.shell.prompt import READ_CHARACTERS

OFFLINE = ("mini", "gpt2")  # tokenizers that need no network: they are always compared
HELLO = "Hello, world!"  # the second text in the batch of words, beside the prompt
MOST_WORDS = 12  # words and punctuation marks of the prompt that are in the batch
MOST_RANKS = 12  # of a token's merges whose ranks are listed
SOURCES = ALICE, PROMPT = "a chapter of Alice", "this prompt"
# The text that the word and the character tokenizer learn their vocabularies from.
FIT = sheet.Param("tok_fit", str, ALICE, sheet.if_there)
# The name of one more tokenizer to compare with, from OpenAI's server; None without one.
MORE: sheet.Param[str | None] = sheet.Param("tok_more", str, None, sheet.if_there)


def ids_phrase(ids: list[int]) -> str:
    """Make a phrase of ids: "id 5" or "ids 5, 6"."""
    if len(ids) == 1:
        return f"id {ids[0]}"
    return f"ids {', '.join(map(str, ids))}"


frame = sheet.start_page("Tokens", choices=[FIT, MORE])
prompt = sheet.read_text(frame)
scene = sheet.trace(prompt, strip=False)  # this page draws the tokens below, in colours

encoding = scene.lm.tokenizer
text = scene.text[:READ_CHARACTERS]
token = scene.tokens[scene.position]
# The model has a token for each id below this one. Its tokenizer may have more: that of a model of characters gives
# the bytes that are none of them the ids from here on.
vocab_size = scene.lm.config.vocab_size
# A long prompt has more tokens than the model's context, and no more than the context is drawn.
pieces = steps.show_work(encoding, text, scene.special, limit=len(scene.tokens))
# the selected token is number `part_index` of its piece
piece_index, part_index = numbers.place_of(pieces, scene.position)
piece = pieces[piece_index]
shown = words.as_code(words.show_token(token.raw))
st.html(tables.STYLE)

# ---- the cards ----

about_cards = (
    "Each card is a token: its position, its text, its id and its bytes. A · stands for a space, a "
    "⏎ for a line break."
)
words.prose(about_cards, "token", "position", "·", "⏎")
if scene.other is not None:
    st.markdown(
        "A change of the model **does nothing here**: a text is cut into tokens before it is read."
    )
scene.strip(coloured=True)  # a position has one colour in the strip, the cards and the merges
picture = scene.saved("tokens", "The tokens of a text, with their ids and bytes")
token_cards(pieces, scene.tokens, scene.position, scene.select, saved=picture)

# ---- the merges ----

st.markdown(f"#### How {shown} was built")
if piece.special:
    own_merges = []  # looked up as a whole
else:
    own_merges = steps.merges_of_part(piece, part_index)
of_piece = "a whole piece"
if len(piece.parts) != 1:
    of_piece = f"one of {len(piece.parts)} tokens in the piece {words.as_code(words.show_token(piece.raw))}"
cut = (
    f"A regular expression first cuts the text; the line under the cards shows each piece. {shown} "
    f"is {of_piece}."
)
if piece.special:
    words.prose(
        f"{shown} is id {token.id}, {piece.kind}: it was looked up as a whole, and no merge made it."
    )
elif own_merges:
    ranks = ", ".join(str(merge.rank) for merge in own_merges[:MOST_RANKS])
    if len(own_merges) > MOST_RANKS:
        ranks += ", …"
    if len(own_merges) == 1:
        count = "1 merge"
    else:
        count = f"{len(own_merges)} merges"
    words.prose(
        f"{cut} Its {len(token.raw)} bytes took {count}, at rank {ranks}. Frequent pairs were "
        "learned first: they have low ranks and join first. The last rank is the token's id, "
        f"{token.id}.",
        "vocabulary",
    )
else:
    how = "looked up as a whole"
    if len(token.raw) == 1:
        how = "a single byte, where all merging begins"
    words.prose(f"{cut} It is {how}: no merge was needed.")
saved = scene.saved("merges", f"How {words.show_token(token.raw)} was built from its bytes")
merges.merges(encoding, piece, part_index, scene.position, saved=saved)
with st.expander("What the regex cut", icon=":material/content_cut:"):
    st.markdown(
        "Before any merge, a regular expression cuts the text from left to right: at each place "
        "the first of these rules that matches takes its piece. No token reaches across a cut, so "
        "`cat.`, `cat!` and `cat?` take no room in the vocabulary."
    )
    st.dataframe(
        numbers.rules_table(encoding, pieces),
        hide_index=True,
        key="tok_rules",
        column_config={"rule": {"width": 170}, "takes": {"width": 390}, "pieces": {"width": 60}},
    )

# ---- other tokenizers ----

st.subheader("The same text, other tokenizers", anchor=False)


@st.cache_data(ttl=60, max_entries=20, show_spinner="Fetching the tokenizer …")
def problem(name: str) -> str | None:
    """Return a sentence that says why the encoding cannot be had, or None if it can.

    The answer is kept for a minute (`ttl`), so that not every click waits for a server out of reach.
    """
    try:
        tokenizer.get_encoding(name)
    except ValueError as error:
        return str(error)
    return None


@st.fragment
def comparison() -> None:
    """Draw the text as several tokenizers cut it, a row each.

    The rows: mini, gpt2, the model's own tokenizer if it is neither of them, one more of tiktoken's if it is chosen
    and can be had, then words, characters and bytes.
    """
    with st.container(horizontal=True, vertical_alignment="top", gap="medium"):
        source = FIT.choose("Words and characters are learnt from", SOURCES)
        others = [name for name in tokenizer.encoding_names() if name not in OFFLINE]
        none = {"index": None, "placeholder": "none", "width": 230}
        more = MORE.choose("One more, from OpenAI's server", others, st.selectbox, **none)
    if source == PROMPT:
        learnt_from = text
    else:
        learnt_from = numbers.chapter()
    order = [*OFFLINE, encoding.name]
    if more is not None:
        order.append(more)
    encodings = [encoding]
    for name in order:
        if name == encoding.name:  # the model's own, which is there already
            continue
        wrong = problem(name)
        if wrong is not None:
            st.warning(words.escaped(wrong))
        else:
            encodings.append(tokenizer.get_encoding(name))
    encodings.sort(key=lambda known: order.index(known.name))
    cuts = numbers.compare(text, encodings, learnt_from, scene.special)
    # Of the model's own tokenizer, the tokens that this model has: a tokenizer may have more ids than its
    # model, or fewer.
    own_index = encodings.index(encoding)
    own_vocabulary = min(encoding.n_vocab, vocab_size)
    cuts[own_index] = replace(cuts[own_index], vocabulary=own_vocabulary)
    tokenizer_rows(cuts, saved=scene.saved("tokenizers", "The same text, cut by other tokenizers"))
    st.caption(
        "Few tokens, or a small vocabulary: never both. A word that a word tokenizer has not seen "
        "is lost in `[UNK]`, and a character tokenizer has no id for a new character. Byte pair "
        "encoding starts from all 256 bytes, so it can write anything, and gives what is frequent "
        "a token of its own."
    )
    words_in_a_batch(learnt_from)


def words_in_a_batch(learnt_from: str) -> None:
    """Draw two texts of words with their ids, and the special tokens that make them a batch."""
    all_words = split_words(text)
    # `word_batch` takes texts, and cuts this one into the same words again
    start = " ".join(all_words[:MOST_WORDS])
    batch = numbers.word_batch([start, HELLO], learnt_from, scene.special)
    rows = []
    for name, row in zip(("your prompt", HELLO), batch, strict=True):
        pairs = zip(row.tokens, row.ids, strict=True)
        rows.append(tables.Row([name, " | ".join(f"{token} {id}" for token, id in pairs)]))
    words.prose(
        "**Words have ids, too**: their places in the sorted vocabulary, with four special tokens "
        "behind them. `[BOS]` begins a text and `[EOS]` ends it. `[PAD]` makes the shorter text of "
        "a batch as long as the longer. `[UNK]` stands for a word that it did not learn.",
        "vocabulary",
        "special token",
    )
    st.html(tables.table("words in a batch", ["text", "words, each with its id"], rows))
    if len(all_words) > MOST_WORDS:
        st.caption(f"The first {MOST_WORDS} words and punctuation marks of your prompt.")


comparison()

# ---- a space, a character, the end of a text ----

space, byte = st.columns(2, gap="large")
with space:
    st.subheader("What a space changes", anchor=False)
    written = numbers.spellings(encoding, numbers.word_near(scene.text, piece.text))
    # The first row is the word as the prompt has it ("the" if it has none), the second has a space before it. The
    # others are the same two in lower case, with a capital and in capitals, where these are written differently.
    plain = words.as_code(written["written"].iloc[0])
    plain_ids = list(written["ids"].iloc[0])
    spaced = words.as_code(written["written"].iloc[1])
    spaced_ids = list(written["ids"].iloc[1])
    known_ways = written[written["ids"].map(max) < vocab_size]  # which the model has all tokens of
    both = f"{plain} is {ids_phrase(plain_ids)}, and {spaced} is "
    if max(spaced_ids) >= vocab_size:
        both = (
            f"This model has no token for a character of {spaced}, a word with a space before it."
        )
    elif spaced_ids[-len(plain_ids) :] == plain_ids:
        space_ids = spaced_ids[: -len(plain_ids)]
        both += f"the same after {ids_phrase(space_ids)}: no merge joins the space to what follows."
    else:
        both = (
            f"The space belongs to the word after it. {both}{ids_phrase(spaced_ids)}: to the model as "
            "different as any two tokens, until training has taught it what they share."
        )
    # more than the word with and without a space: other cases of it, too
    if len(known_ways) > 2:
        both += " Capitals make other tokens, too."
    st.markdown(both)
    rows = [
        tables.Row(
            [way.written, str(way.tokens), ", ".join(map(str, way.ids)), " | ".join(way.cut)]
        )
        for way in known_ways.itertuples()
    ]
    st.html(tables.table("spellings", ["written", "#tokens", "ids", "cut"], rows))
with byte:
    st.subheader("A character in pieces", anchor=False)
    # a character whose bytes lie in several tokens: the prompt's first, or an example
    broken, is_of_prompt = numbers.broken_character(encoding, scene.run.ids)
    # without one, or with an example whose bytes the model has no tokens for
    if broken is None or max(broken.ids) >= vocab_size:
        st.markdown("No character of your prompt comes apart: each lies whole in one token.")
    else:
        whose = "Your prompt has none that comes apart; as an example, "
        if is_of_prompt:
            whose = "In your prompt, "
        character = broken.character.encode()
        st.markdown(
            "Tokens are made of bytes, and a character is one to four of them. "
            f"{whose}{words.as_code(words.show_token(character))} is {len(character)} bytes in UTF-8 and "
            f"{len(broken.ids)} tokens. One of them alone is no character: decoded, it prints as "
            "`\\ufffd`, �; this app shows its bytes, "
            f"{words.as_code(words.show_token(broken.raws[0]))}."
        )
        # each of the tokens alone, then all of them together
        ids_and_bytes = [(str(id), raw) for id, raw in zip(broken.ids, broken.raws, strict=True)]
        ids_and_bytes.append((", ".join(map(str, broken.ids)), b"".join(broken.raws)))
        rows = [
            tables.Row([ids, raw.hex(" "), raw.decode("utf-8", "replace")])
            for ids, raw in ids_and_bytes
        ]
        st.html(tables.table("pieces of a character", ["tokens", "bytes", "decoded"], rows))

st.subheader("Special tokens", anchor=False)
end = numbers.end_of_text(encoding, text)
name = words.as_code(tokenizer.END_OF_TEXT)
if end is None:
    words.prose(
        f"This model's tokenizer, {words.escaped(encoding.name)}, has no {name}: all that you type is text."
    )
else:
    switch = "on" if scene.special else "off"
    in_prompt = "Your prompt does not hold it, so the switch changes nothing."
    if end.lengths is not None:
        off, on = end.lengths
        in_prompt = f"Your prompt is {off} tokens with the switch off, {on} with it on."
    words.prose(
        f"{name} marks where a text ends in training. Typed into a prompt it is plain text, "
        f"{len(end.typed)} tokens: {' '.join(map(words.as_code, end.typed))}. With *Special "
        f"tokens* on, in the sidebar, it is one token, id {end.id}. The switch is **{switch}**. "
        f"{in_prompt}"
    )

caption = "Every token of the prompt. `part_of` names the character that a token holds only some bytes of."
sheet.numbers_of("tokens.csv", lambda: numbers.token_table(encoding, scene.run.ids), caption)
sheet.code_of(
    scene,
    [steps.show_work, steps.bpe],
    numbers.merge_rows,
    text=text,
    position=scene.position,
    special_tokens=scene.special,
    # as the picture of the merges: of a piece too long for a screen, only the selected token's own bytes
    whole_piece=len(piece.raw) <= merges.WIDEST,
)
