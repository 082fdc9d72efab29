"""What a new model does to the prompt: the text stays, its tokens may not, and a sentence says where."""

from dataclasses import dataclass

import streamlit as st

from gptviz.analysis.alignment import differences, same_place
from gptviz.tokenizer import show_token
from gptviz.ui.words import as_code, escaped

MOST_SHOWN = 5

_READ = "gptviz_last_pieces"
_SAID = "gptviz_switch_notice"


@dataclass(frozen=True)
class Pieces:
    """How a model cut the prompt: its tokens' bytes."""

    key: str
    name: str
    prompt: tuple[str, bool]  # text, special tokens
    raws: tuple[bytes, ...]


def follow(
    key: str, name: str, text: str, special: bool, raws: tuple[bytes, ...], token: int | None
) -> tuple[int | None, str | None]:
    """The selected token at the same place of the text, and what to say while it is the same text.

    `raws` are the tokens' bytes, as the model of this key and name cuts `text`, with special tokens or not.
    """
    now = Pieces(key, name, (text, special), raws)
    before: Pieces | None = st.session_state.get(_READ)
    st.session_state[_READ] = now
    if before is not None and before.key != now.key and before.prompt == now.prompt and before.raws and raws:
        if token is not None and token < len(before.raws):
            token = same_place(before.raws, raws, token)
        st.session_state[_SAID] = (now.key, now.prompt, sentence(before, now))
    said = st.session_state.get(_SAID)
    return token, said[2] if said is not None and said[:2] == (now.key, now.prompt) else None


def sentence(before: Pieces, now: Pieces) -> str | None:
    """A sentence on where two models cut the same text differently; None where they do not."""
    had = len(before.raws)
    has = len(now.raws)
    names = escaped(before.name), escaped(now.name)
    count = f"{names[1]} reads {has} tokens where {names[0]} read {had}."
    try:
        found = differences(before.raws, now.raws)
    except ValueError:  # a tokenizer that cannot say every character
        return count
    if not found and now.name == before.name:
        return None
    if not found:
        return f"The prompt's tokens are the same for {names[1]} as for {names[0]}."
    shown = [f"{_tokens(before.raws, d.before)} → {_tokens(now.raws, d.after)}" for d in found[:MOST_SHOWN]]
    more = len(found) - len(shown)
    if sum(map(len, before.raws)) == sum(map(len, now.raws)):  # else one reads only its beginning
        count = f"{names[0]} cut this text into {had} tokens, {names[1]} into {has}."
    if more:
        shown.append(f"and {more} more places")
    return f"{count} What changed: {'; '.join(shown)}."


def _tokens(raws: tuple[bytes, ...], positions: range) -> str:
    return " ".join(as_code(show_token(raws[i])) for i in positions)
