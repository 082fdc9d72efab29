"""The chat templates that came with a model's tokenizer, as texts, and what the first makes of the text typed."""

import streamlit as st

from gptviz.tokenizer import begins_of
from gptviz.tokenizer.chat import DEFAULT
from gptviz.tokenizer.chat_text import chat_text
from gptviz.ui import sheet, words
from gptviz.ui.buttons import button
from gptviz.ui.shell import state

HEIGHT = 320  # pixels of a template, which may have hundreds of lines
# Whether a person asked what the template makes of the text.
MADE = sheet.Param("tok_chat", bool, False)


def chat_template(scene: sheet.Scene) -> None:
    """Draw what a chat template is, and those of the model behind headings that open; nothing without one."""
    chat = scene.lm.chat
    if not (chat.templates or chat.not_read):
        return
    st.subheader("Chat template", anchor=False)
    around = "gptviz puts nothing around what you type"
    if begins_of(scene.lm.tokenizer):
        around = f"{around} but the token at position 0"
    words.prose(
        "Programs for chats have this model's **chat template** write one text out of all turns of a chat. "
        f"The model sees nothing but the tokens of that text, and {around}.",
        "special token",
    )
    for name, text in chat.templates:
        label = "The template, a program in the language Jinja"
        if name != DEFAULT:
            label = f"Another template: {words.escaped(name)}"
        with st.expander(label, icon=":material/forum:"):
            st.code(text, language="jinja2", wrap_lines=True, height=HEIGHT)
    if chat.not_read:
        st.caption(f"Not everything is shown. {words.escaped(chat.not_read)}")
    if chat.template is None:
        return
    if MADE.value:
        _made(scene)
    else:
        button("See what it makes of your text", "tok_chat_on", MADE.set, True, icon="forum")


def _made(scene: sheet.Scene) -> None:
    """Draw the text that the template makes of the prompt as one turn, and a button that types it."""
    try:
        text = chat_text(scene.lm.chat, scene.text)
    except ValueError as error:
        st.warning(f"There is nothing to show: {words.escaped(str(error))}.")
        return
    st.markdown("Of your text, as one turn of a user, the template makes this text:")
    st.code(text, language=None, wrap_lines=True)
    begin = scene.lm.decode(begins_of(scene.lm.tokenizer))
    button(
        "Type this text, with special tokens read",
        "tok_chat_type",
        _type,
        text.removeprefix(begin),
        icon="edit",
        help="It takes the place of your text, and its tokens stand above.",
    )


def _type(text: str) -> None:
    """Callback: put a text into the box and read its special tokens as such."""
    MADE.set(False)
    state.change(text=text, token=None, special=True)
