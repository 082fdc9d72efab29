"""The other text: typed, one of a known pair, or made from the prompt; and what is patched from it."""

from dataclasses import dataclass, replace

import streamlit as st

from gptviz import Edit
from gptviz.analysis.alignment import filled, missing, side_by_side
from gptviz.analysis.counterpart import MOST
from gptviz.analysis.patches import value_of
from gptviz.ui.shell import changes, state
from gptviz.ui.shell.params import Param, if_there
from gptviz.ui.shell.prompt import read
from gptviz.ui.shell.scene import Scene
from gptviz.ui.views.patching import derived, other_words, words
from gptviz.ui.views.patching.pairs import PAIRS, other_of
from gptviz.ui.views.patching.rows import pair_rows
from gptviz.ui.views.patching.words import DENOISING
from gptviz.ui.views.slow import is_asked_for
from gptviz.ui.words import show_id

OTHER: Param[str | None] = Param("other", str, None)
WAY = Param("patch_way", str, DENOISING, if_there)
SITE = Param("patch_site", str, "resid_pre", if_there)
MADE = Param("patch_made", bool, False)  # the other text is to be made from the prompt, however long it takes
PARAMS = (OTHER, WAY, SITE, MADE)

_BOX = "other_box"


@dataclass(frozen=True)
class Other:
    """The other text and its ids; `note` says where it comes from, if nobody typed it."""

    text: str
    ids: tuple[int, ...]
    note: str = ""


def choose(scene: Scene) -> Other | None:
    """Draw the box of the other text, and both texts' tokens; None where there is nothing to patch from."""
    found = _other(scene)
    st.session_state[_BOX] = "" if found is None else found.text.replace("\n", "⏎")
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="gv_other"):
        st.text_input(
            "Other text",
            key=_BOX,
            placeholder="Other text: nearly the same, as many tokens, one word another. Enter takes it.",
            label_visibility="collapsed",
            on_change=_typed,
        )
        st.button(
            "Make one",
            icon=":material/auto_fix_high:",
            key="other_make",
            help="From your prompt: of all changes of one token the one that moves the prediction most.",
            on_click=_make,
        )
    if found is None:
        st.info(other_words.NONE_FOUND if MADE.value or not _is_long(scene) else other_words.NOTHING_MADE)
        return None
    reading = read(scene.lm, found.text, scene.special)
    if reading.refusal or not reading.ids:
        st.warning(reading.refusal or other_words.NOTHING_MADE)
        return None
    other = replace(found, ids=tuple(reading.ids))
    _rows(scene, other)
    return other


def _other(scene: Scene) -> Other | None:
    if OTHER.value is not None:
        return Other(OTHER.value, ())
    known = None if MADE.value else other_of(scene.text)
    if known is not None:
        return Other(known, ())
    if _is_long(scene) and not MADE.value:
        return None
    made = derived.counterpart(scene.run.plain, scene.position, scene.special)
    if made is None:
        return None
    return Other(
        made.text,
        (),
        other_words.made(scene.labels[made.position], show_id(scene.lm, made.token), made.position),
    )


def _is_long(scene: Scene) -> bool:
    """Whether making the other text takes so long that it waits for a click."""
    return is_asked_for(scene.lm, len(scene.tokens), min(len(scene.tokens), MOST))


def _rows(scene: Scene, other: Other) -> None:
    ids = tuple(token.id for token in scene.tokens)
    roles = words.roles(WAY.value)
    labels = [show_id(scene.lm, i) for i in other.ids]
    columns = side_by_side(ids, other.ids)
    names = (f"prompt, {roles[0]}", f"other, {roles[1]}")
    pair_rows(names, scene.labels, labels, (ids, other.ids), columns, scene.mode)
    if ids == other.ids:
        st.warning(other_words.SAME)
    elif other.note:
        st.caption(other.note)


def lengths_differ(scene: Scene, other: Other) -> bool:
    """Whether they do: then it says which token to add, and offers to."""
    ids = tuple(token.id for token in scene.tokens)
    if len(ids) == len(other.ids):
        return False
    prompt_is_shorter = len(ids) < len(other.ids)
    shorter, longer = (ids, other.ids) if prompt_is_shorter else (other.ids, ids)
    added = [
        (
            show_id(scene.lm, longer[one.position]),
            show_id(scene.lm, shorter[one.before]) if one.before < len(shorter) else None,
            one.before,
        )
        for one in missing(shorter, longer)
    ]
    st.warning(other_words.different_counts(len(ids), len(other.ids), added, prompt_is_shorter))
    longer_now = filled(shorter, longer)
    text = scene.lm.decode(longer_now)
    if scene.lm.encode(text, special_tokens=scene.special) == longer_now:
        st.button(
            "Add it" if len(added) == 1 else "Add them",
            key="other_fill",
            type="primary",
            on_click=_take_prompt if prompt_is_shorter else OTHER.set,
            args=(text,),
        )
    return True


def pairs_row(scene: Scene, other: Other | None) -> None:
    """The pairs as buttons, and what to watch in the one that is shown: in the bundled model as it is."""
    changed = scene.run.edits if other is None else derived.pair_of(scene.run, other.ids).own.edits
    bundled = state.current().model.name == state.DEFAULT_MODEL.name and not changed
    shown = None if other is None else (scene.text, other.text)
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key="gv_pairs"):
        st.caption("Try:", width="content")
        for number, pair in enumerate(PAIRS):
            st.button(
                pair.label,
                key=f"pair_{number}",
                type="primary" if shown == (pair.text, pair.other) else "secondary",
                help=pair.watch if bundled else None,
                on_click=_take_pair,
                args=(number,),
            )
    for pair in PAIRS:
        if bundled and shown == (pair.text, pair.other):
            st.markdown(f"**What to watch:** {pair.watch}")


# ---- callbacks ----


def _typed() -> None:
    text = st.session_state[_BOX].replace("⏎", "\n")
    MADE.set(False)
    OTHER.set(text or None)


def _make() -> None:
    OTHER.set(None)
    MADE.set(True)


def _take_prompt(text: str) -> None:
    state.change(text=text)


def _take_pair(number: int) -> None:
    pair = PAIRS[number]
    state.change(text=pair.text, token=None)
    OTHER.set(pair.other)
    MADE.set(False)
    WAY.set(None)


def turn(scene: Scene, other: Other) -> None:
    """Callback of the switch of directions: the texts change places, the clean one stays the clean one.

    Patches that are made go the other way then: from the text that was the prompt.
    """
    before, after = value_of(other.ids), value_of(tuple(token.id for token in scene.tokens))
    ours = [
        (i, edit) for i, edit in enumerate(map(_read, changes.written())) if edit and edit.value == before
    ]
    for number, _ in reversed(ours):
        changes.remove(number)
    changes.add(*(replace(edit, value=after) for _, edit in ours))
    MADE.set(False)
    OTHER.set(scene.text)
    state.change(text=other.text)


def toggle(edit: Edit, other: Other) -> None:
    """Callback of a click on a cell: make the patch for the whole app, or undo it."""
    OTHER.set(other.text)
    MADE.set(False)
    texts = changes.written()
    if str(edit) in texts:
        changes.remove(texts.index(str(edit)))
    else:
        changes.add(edit)


def _read(text: str) -> Edit | None:
    try:
        return Edit.parse(text)
    except ValueError:
        return None  # it is kept as it is, and the strip says why it is not made
