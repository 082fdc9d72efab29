"""How the prompt became numbers: pieces, bytes, merges, ids. And how other tokenizers cut it."""

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

OFFLINE = ("mini", "gpt2")
HELLO = "Hello, world!"  # a text beside the prompt
MOST_WORDS = 12  # words of it
SOURCES = ALICE, PROMPT = "a chapter of Alice", "this prompt"
FIT = sheet.Param("tok_fit", str, ALICE, sheet.if_there)
MORE: sheet.Param[str | None] = sheet.Param("tok_more", str, None, sheet.if_there)


def ids_of(ids: list[int]) -> str:
    """ "id 5" or "ids 5, 6"."""
    if len(ids) == 1:
        return f"id {ids[0]}"
    return f"ids {', '.join(map(str, ids))}"


frame = sheet.start_page("Tokens", choices=[FIT, MORE])
prompt = sheet.read_text(frame)
scene = sheet.trace(prompt, strip=False)

encoding = scene.lm.tokenizer
text = scene.text[:READ_CHARACTERS]
token = scene.tokens[scene.position]
size = scene.lm.config.vocab_size  # bytes that a model has no token for have ids from there on
pieces = steps.show_work(encoding, text, scene.special, limit=len(scene.tokens))
place, part = numbers.place_of(pieces, scene.position)
piece = pieces[place]
shown = words.as_code(words.show_token(token.raw))
st.html(tables.STYLE)

# ---- the cards ----

said = (
    "Each card is a token: its position, its text, its id and its bytes. A · stands for a space, a "
    "⏎ for a line break."
)
words.prose(said, "token", "position", "·", "⏎")
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
    own = []
else:
    own = steps.merges_of_part(piece, part)
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
elif own:
    ranks = ", ".join(str(merge.rank) for merge in own[:12])
    if len(own) > 12:
        ranks += ", …"
    if len(own) == 1:
        count = "1 merge"
    else:
        count = f"{len(own)} merges"
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
merges.merges(encoding, piece, part, scene.position, saved=saved)
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
    """Why the encoding cannot be had, or None; asked again after a minute, not at every click."""
    try:
        tokenizer.get_encoding(name)
    except ValueError as error:
        return str(error)
    return None


@st.fragment
def comparison() -> None:
    """Draws mini, gpt2, words, characters and bytes, and one more of tiktoken's if it can be reached."""
    with st.container(horizontal=True, vertical_alignment="top", gap="medium"):
        source = FIT.choose("Words and characters are learnt from", SOURCES)
        others = [name for name in tokenizer.encoding_names() if name not in OFFLINE]
        none = {"index": None, "placeholder": "none", "width": 230}
        more = MORE.choose("One more, from OpenAI's server", others, st.selectbox, **none)
    known = [encoding]
    for name in dict.fromkeys([*OFFLINE, *([more] if more else [])]):
        if name != encoding.name and (wrong := problem(name)):
            st.warning(words.escaped(wrong))
        elif name != encoding.name:
            known.append(tokenizer.get_encoding(name))
    known.sort(key=lambda one: [*OFFLINE, encoding.name, more].index(one.name))
    cuts = numbers.compare(
        text, known, text if source == PROMPT else numbers.chapter(), scene.special
    )
    mine = known.index(encoding)
    cuts[mine] = replace(cuts[mine], vocabulary=min(encoding.n_vocab, size))
    tokenizer_rows(cuts, saved=scene.saved("tokenizers", "The same text, cut by other tokenizers"))
    st.caption(
        "Few tokens, or a small vocabulary: never both. A word that a word tokenizer has not seen "
        "is lost in `[UNK]`, and a character tokenizer has no id for a new character. Byte pair "
        "encoding starts from all 256 bytes, so it can write anything, and gives what is frequent "
        "a token of its own."
    )
    words_in_a_batch(text if source == PROMPT else numbers.chapter())


def words_in_a_batch(learnt_from: str) -> None:
    """Draw two texts of words with their ids, and the special tokens that make them a batch."""
    all_words = split_words(text)
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
        st.caption(f"The first {MOST_WORDS} words of your prompt.")


comparison()

# ---- a space, a character, the end of a text ----

space, byte = st.columns(2, gap="large")
with space:
    st.subheader("What a space changes", anchor=False)
    written = numbers.spellings(encoding, numbers.word_near(scene.text, piece.text))
    plain = words.as_code(written["written"].iloc[0])
    ids = list(written["ids"].iloc[0])
    spaced = words.as_code(written["written"].iloc[1])
    others = list(written["ids"].iloc[1])
    found = written[written["ids"].map(max) < size]
    both = f"{plain} is {ids_of(ids)}, and {spaced} is "
    if max(others) >= size:
        both = (
            f"This model has no token for a character of {spaced}, a word with a space before it."
        )
    elif others[-len(ids) :] == ids:
        both += f"the same after {ids_of(others[: -len(ids)])}: no merge joins the space to what follows."
    else:
        both = (
            f"The space belongs to the word after it. {both}{ids_of(others)}: to the model as "
            "different as any two tokens, until training has taught it what they share."
        )
    st.markdown(both + (" Capitals make other tokens, too." if len(found) > 2 else ""))
    rows = [
        tables.Row(
            [way.written, str(way.tokens), ", ".join(map(str, way.ids)), " | ".join(way.cut)]
        )
        for way in found.itertuples()
    ]
    st.html(tables.table("spellings", ["written", "#tokens", "ids", "cut"], rows))
with byte:
    st.subheader("A character in pieces", anchor=False)
    spread, of_prompt = numbers.broken_character(encoding, scene.run.ids)
    if spread is None or max(spread.ids) >= size:
        st.markdown(
            "To this tokenizer every character of your prompt is one token: none comes apart."
        )
    else:
        whose = "Your prompt has none that comes apart; as an example, "
        if of_prompt:
            whose = "In your prompt, "
        said = "Tokens are made of bytes, and a character is one to four of them. "
        raw = spread.character.encode()
        said += (
            f"{whose}{words.as_code(words.show_token(raw))} is {len(raw)} bytes in UTF-8 and "
            f"{len(spread.ids)} tokens. One of them alone is no character: decoded, it prints as "
            "`\\ufffd`, �; this app shows its bytes, "
            f"{words.as_code(words.show_token(spread.raws[0]))}."
        )
        st.markdown(said)
        pairs = [(str(i), raw) for i, raw in zip(spread.ids, spread.raws, strict=True)]
        pairs.append((", ".join(map(str, spread.ids)), b"".join(spread.raws)))
        rows = [
            tables.Row([ids, raw.hex(" "), raw.decode("utf-8", "replace")]) for ids, raw in pairs
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
    whole_piece=len(piece.raw) <= merges.WIDEST,
)
