"""How a text becomes numbers: pieces, bytes, merges, ids. And how other tokenizers cut it.

A piece is what the tokenizer's regular expression cuts from the text; merges then make its bytes one token or
several.
"""

from dataclasses import replace

import streamlit as st

from gptviz import tokenizer
from gptviz.analysis import tokens as numbers
from gptviz.models.loading import BUNDLED
from gptviz.tokenizer import steps
from gptviz.tokenizer.simple import split_words
from gptviz.ui import sheet, tables, words
from gptviz.ui.components import merges
from gptviz.ui.components.token_cards import token_cards
from gptviz.ui.components.tokenizer_rows import tokenizer_rows
from gptviz.ui.parts.tokens.chat import MADE, chat_template
from gptviz.ui.shell.prompt import READ_CHARACTERS

OFFLINE = ("mini", "gpt2")  # tokenizers that need no network: they are always compared
HELLO = "Hello, world!"  # the second text in the batch of words, beside the prompt
MOST_WORDS = 12  # words and punctuation marks of the prompt that are in the batch
MOST_RANKS = 12  # of a token's merges whose ranks are listed
MOST_SPECIAL = 4  # special tokens that are named
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


frame = sheet.start_page("Tokens", choices=[FIT, MORE, MADE])
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
    "Your text is cut into tokens, and each token is replaced by a number, its id. A card shows a "
    "token's position, text, id and bytes; · stands for a space, ⏎ for a line break."
)
words.prose(about_cards, "token", "position", "·", "⏎")
if scene.other is not None:
    st.markdown(
        "Changing the model has **no effect on this page**: the text is cut into tokens before the "
        "model runs."
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
of_piece = "a piece of its own"
if len(piece.parts) != 1:
    of_piece = f"one of {len(piece.parts)} tokens in the piece {words.as_code(words.show_token(piece.raw))}"
cut = (
    "First, a fixed rule splits the text into pieces, often words (underlined above). "
    f"{shown} is {of_piece}."
)
if piece.special:
    words.prose(
        f"{shown} is id {token.id}, {piece.kind}: the tokenizer looks it up whole, without any merge."
    )
elif own_merges:
    ranks = ", ".join(str(merge.rank) for merge in own_merges[:MOST_RANKS])
    if len(own_merges) > MOST_RANKS:
        ranks += ", …"
    join = f"{len(own_merges)} merges join its {len(token.raw)} bytes, at ranks {ranks}"
    if len(own_merges) == 1:
        join = f"1 merge joins its {len(token.raw)} bytes, at rank {ranks}"
    words.prose(
        f"{cut} Then {join}. Frequent pairs were learned first, so they have low ranks and join "
        f"first. The last rank is the token's id, {token.id}.",
        "vocabulary",
    )
else:
    how = "The vocabulary has it whole"
    if len(token.raw) == 1:
        how = "It is a single byte, and merging starts from bytes"
    words.prose(f"{cut} {how}, so no merge was needed.")
saved = scene.saved("merges", f"How {words.show_token(token.raw)} was built from its bytes")
merges.merges(encoding, piece, part_index, scene.position, saved=saved)
with st.expander("How the text is split into pieces", icon=":material/content_cut:"):
    st.markdown(
        "Before any merge, a regular expression (regex) goes through the text from left to right. "
        "At each place, the first of these rules that matches cuts off a piece. No token crosses a "
        "cut, so `cat.`, `cat!` and `cat?` take up no room in the vocabulary."
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
        source = FIT.choose("Learn words and characters from", SOURCES)
        others = [name for name in tokenizer.encoding_names() if name not in (*OFFLINE, *BUNDLED)]
        none = {"index": None, "placeholder": "none", "width": 230}
        more = MORE.choose("Add one from OpenAI's server", others, st.selectbox, **none)
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
        "You can have short sequences or a small vocabulary, but not both. A word tokenizer turns "
        "every unknown word into `[UNK]`, and a character tokenizer has no id for a new character. "
        "Byte pair encoding starts from all 256 bytes, so it can write anything; frequent sequences "
        "get a token of their own."
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
        "**Words have ids, too**: their places in the sorted vocabulary, followed by four special "
        "tokens. `[BOS]` begins a text and `[EOS]` ends it. `[PAD]` fills up the shorter text of a "
        "batch. `[UNK]` replaces a word that is not in the vocabulary.",
        "vocabulary",
        "special token",
    )
    st.html(tables.table("words in a batch", ["text", "words, each with its id"], rows))
    if len(all_words) > MOST_WORDS:
        st.caption(
            f"The table shows the first {MOST_WORDS} words and punctuation marks of your text."
        )


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
    capitals = "Capital letters make other tokens, too."
    if max(spaced_ids) >= vocab_size:
        both = (
            f"This model has no token for a character of {spaced}, a word with a space before it."
        )
    elif spaced_ids[-len(plain_ids) :] == plain_ids:
        space_ids = spaced_ids[: -len(plain_ids)]
        both = (
            f"{plain} is {ids_phrase(plain_ids)}, and {spaced} is the same after "
            f"{ids_phrase(space_ids)}: no merge joins the space to the word."
        )
    else:
        both = (
            f"The space belongs to the word after it: {plain} is {ids_phrase(plain_ids)}, but {spaced} "
            f"is {ids_phrase(spaced_ids)}. Tokens that look alike are unrelated to the model at first; "
            "it must learn which ones belong together."
        )
        capitals = "The same goes for capital letters."
    # more than the word with and without a space: other cases of it, too
    if len(known_ways) > 2:
        both = f"{both} {capitals}"
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
        st.markdown("No token of your text splits a character.")
    else:
        whose = "No token of your text splits one. An example from elsewhere: "
        if is_of_prompt:
            whose = "In your text, "
        character = broken.character.encode()
        st.markdown(
            "Tokens are made of bytes, and a character is one to four of them. "
            f"{whose}{words.as_code(words.show_token(character))} is {len(character)} bytes in UTF-8 and "
            f"{len(broken.ids)} tokens. One of them alone is no character: decoded, it prints as "
            "`\\ufffd`, �. This app shows its bytes instead: "
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
switch = "on" if scene.special else "off"
special = sorted(tokenizer.typed_specials(encoding), key=encoding.encode_single_token)
if end is None and special:
    special_names = list(map(words.as_code, special[:MOST_SPECIAL]))
    if len(special) > MOST_SPECIAL:
        special_names.append(f"{len(special) - MOST_SPECIAL} more")
    words.prose(
        f"This model's tokenizer, {words.escaped(encoding.name)}, has no {name}. It has "
        f"{words.listed(special_names)}. If you type such a name, it is plain text; "
        f"with *Special tokens* on (in the sidebar), it is one token. The switch is **{switch}**."
    )
elif end is None:
    words.prose(
        f"This model's tokenizer, {words.escaped(encoding.name)}, has no {name}: everything you type is text."
    )
else:
    in_prompt = "Your text does not contain it, so the switch has no effect now."
    if end.lengths is not None:
        off, on = end.lengths
        in_prompt = f"Your text has {off} tokens with the switch off, {on} with it on."
    words.prose(
        f"{name} marks the end of a text in training. If you type it, it is plain text, "
        f"{words.counted(len(end.typed), 'token')}: {' '.join(map(words.as_code, end.typed))}. With "
        f"*Special tokens* on (in the sidebar), it is one token, id {end.id}. The switch is "
        f"**{switch}**. "
        f"{in_prompt}"
    )
for id in tokenizer.begins_of(encoding):
    words.prose(
        f"{words.as_code(words.show_id(scene.lm, id))}, id {id}, stands before every text, and nobody types it: "
        "so the model was trained."
    )
chat_template(scene)

caption = (
    "Every token of your text. `part_of` names the character of which a token has only some bytes."
)
with sheet.details():
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
