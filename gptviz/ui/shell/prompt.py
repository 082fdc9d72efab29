"""The prompt box: what a visitor types, on every page, and how a model reads it."""

from dataclasses import dataclass

import streamlit as st

from gptviz import LanguageModel
from gptviz.engine.tokens import Token
from gptviz.tokenizer import END_OF_TEXT, ENDS_OF_TEXT, needs_the_switch, well_formed, words_of
from gptviz.ui.buttons import button
from gptviz.ui.components.prompt import prompt
from gptviz.ui.shell import address, state
from gptviz.ui.words import escaped, is_named, nameless, show_id

# Tokenizing is quick, but not for a whole library pasted in: what comes after is not even counted.
READ_CHARACTERS = 100_000


@dataclass(frozen=True)
class PromptRead:
    """The prompt's ids, at most a context of them, and a sentence when that is not all of the text.

    `refusal` says why the model cannot read this text at all.
    """

    ids: list[int]
    notice: str | None
    refusal: str | None = None

    @property
    def truncated(self) -> bool:
        return self.notice is not None


def read(lm: LanguageModel, text: str, special: bool) -> PromptRead:
    """Tokenize a prompt of any length."""
    # a browser sends nothing else; whatever does is shown U+FFFD, not refused
    text = well_formed(text)
    ids = lm.encode(text[:READ_CHARACTERS], special_tokens=special)
    limit = lm.config.context_length
    if max(ids[:limit], default=0) >= lm.config.vocab_size:
        return PromptRead([], None, _unknown_character(lm, text[:READ_CHARACTERS]))
    if len(ids) <= limit and len(text) <= READ_CHARACTERS:
        return PromptRead(ids, None)
    if len(text) <= READ_CHARACTERS:
        count = f"{len(ids):,}"
    else:
        count = f"more than {len(ids):,}"
    return PromptRead(
        ids[:limit],
        f"Your text has {count} tokens; {escaped(lm.name)} reads at most {limit:,}. "
        f"You see the first {min(limit, len(ids)):,} tokens. Your whole text is kept.",
    )


def _unknown_character(lm: LanguageModel, text: str) -> str:
    # a character model's tokenizer gives what it never saw ids beyond the model's
    unknown = [
        c for c in dict.fromkeys(text) if max(lm.encode(c, begin=False)) >= lm.config.vocab_size
    ]
    if len(unknown) == 1:
        verb = "is"
        them = "it"
    else:
        verb = "are"
        them = "them"
    return (
        f"{escaped(lm.name)} knows only the {lm.config.vocab_size:,} tokens it was trained on, and "
        f"{', '.join(escaped(repr(c)) for c in unknown[:5])} {verb} not among them. "
        f"Remove {them} from your text, or choose another model."
    )


def lost() -> str | None:
    """A sentence if the address held only the beginning of a long text, and the server has no more of it."""
    characters = state.lost_characters()
    if characters is None:
        return None
    return (
        f"The text of this link had {characters:,} characters. A link contains only the first "
        f"{state.LINK_CHARACTERS:,}, and this server no longer has the rest. You see the first part."
    )


def box() -> None:
    """Draw the box with the prompt in it. Only what is run is read: half-typed text runs no model."""
    prompt(state.TEXT.value, address.page(), address.is_history_navigation(), state.TEXT.set)


def special_switch() -> None:
    """Draw the switch for special tokens, in the sidebar."""
    state.SPECIAL.drawn(  # the address is written when the tokens are known
        st.toggle,
        "Special tokens",
        help="On: `<|endoftext|>` is read as one special token. Off: it is read as plain text.",
    )


def special_hint(lm: LanguageModel) -> None:
    """Draw a sentence and the switch where the special token's name is typed and read as plain text."""
    if state.SPECIAL.value or END_OF_TEXT not in state.TEXT.value or not _has_special(lm):
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        hint = f"`{END_OF_TEXT}` is read as plain text now. It is also the name of a special token."
        st.caption(hint, width="content")
        button("Read it as the special token", "special_on", state.SPECIAL.set, True)


def _has_special(lm: LanguageModel) -> bool:
    """True if the model has a special token `END_OF_TEXT`, and not a word."""
    return _special(lm, END_OF_TEXT) is not None


def _special(lm: LanguageModel, name: str) -> int | None:
    """The id of the model's special token of this name; None if it has none, or a word."""
    if name in words_of(lm.tokenizer):
        return None
    ids = lm.encode(name, special_tokens=True, begin=False)
    if len(ids) > 1 or ids[0] >= lm.config.vocab_size:
        return None
    return ids[0]


def ends_the_text(lm: LanguageModel, token_id: int) -> bool:
    """True if the token is the special one for the end of a text."""
    return token_id in [_special(lm, name) for name in ENDS_OF_TEXT]


def append(lm: LanguageModel, tokens: list[Token], token_id: int) -> str | None:
    """Extend the prompt by a token and select the last one. A sentence if that cannot be done."""
    if len(tokens) >= lm.config.context_length:
        most = f"{escaped(lm.name)} reads at most {lm.config.context_length:,} tokens"
        return f"Your text is full: {most}. Shorten it to go on."
    if not is_named(lm, token_id):
        return nameless(show_id(lm, token_id))
    ids = [*(token.id for token in tokens), token_id]
    text = lm.decode(ids, begin=False)
    special = state.SPECIAL.value or needs_the_switch(lm.tokenizer, token_id)
    if lm.encode(text, special_tokens=special) != ids and "\ufffd" in lm.decode([token_id]):
        return "This token is only part of a character. A text cannot contain it, so nothing was added."
    state.change(text=text, token=None, special=special)
    return None
