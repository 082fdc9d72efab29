"""What a new model does to the prompt: the text stays, its tokens may not, and a sentence says where."""

from dataclasses import dataclass

import streamlit as st

from gptviz.analysis.alignment import differences, same_place
from gptviz.tokenizer import show_token
from gptviz.ui.words import as_code, counted, escaped

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
    current = Pieces(key, name, (text, special), raws)
    before: Pieces | None = st.session_state.get(_READ)
    st.session_state[_READ] = current
    if (
        before is not None
        and before.key != current.key
        and before.prompt == current.prompt
        and before.raws
        and raws
    ):
        if token is not None and token < len(before.raws):
            token = same_place(before.raws, raws, token)
        st.session_state[_SAID] = (current.key, current.prompt, sentence(before, current))
    notice = st.session_state.get(_SAID)
    return token, notice[2] if notice is not None and notice[:2] == (
        current.key,
        current.prompt,
    ) else None


def sentence(before: Pieces, now: Pieces) -> str | None:
    """A sentence on where two models cut the same text differently; None where they do not."""
    count_before = len(before.raws)
    count_after = len(now.raws)
    names = escaped(before.name), escaped(now.name)
    count = f"{names[1]} reads {count_after} tokens; {names[0]} read {count_before}."
    try:
        changes = differences(before.raws, now.raws)
    except ValueError:  # a tokenizer that cannot say every character
        return count
    if not changes and now.name == before.name:
        return None
    if not changes:
        return f"{names[0]} and {names[1]} split this text into the same tokens."
    shown = [
        f"{_tokens(before.raws, change.before)} → {_tokens(now.raws, change.after)}"
        for change in changes[:MOST_SHOWN]
    ]
    hidden = len(changes) - len(shown)
    if sum(map(len, before.raws)) == sum(map(len, now.raws)):  # else one reads only its beginning
        count = (
            f"{names[0]} split this text into {count_before} tokens, {names[1]} into {count_after}."
        )
    if hidden:
        shown.append(f"and {counted(hidden, 'more place')}")
    return f"{count} What changed: {'; '.join(shown)}."


def _tokens(raws: tuple[bytes, ...], positions: range) -> str:
    return " ".join(as_code(show_token(raws[i])) for i in positions)
