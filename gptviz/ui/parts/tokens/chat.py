"""The chat templates that came with a model's tokenizer, as the texts that they are."""

import streamlit as st

from gptviz.tokenizer import begins_of
from gptviz.tokenizer.chat import DEFAULT
from gptviz.ui import sheet, words

HEIGHT = 320  # pixels of a template, which may have hundreds of lines


def chat_template(scene: sheet.Scene) -> None:
    """Draw what a chat template is, and those of the model behind a heading that opens; nothing without one."""
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
