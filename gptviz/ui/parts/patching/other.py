"""The other text on "Patching": where it is typed and chosen, and the clicks on both texts."""

import html
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import numpy as np
import streamlit as st

from gptviz import Edit
from gptviz.analysis.activation_patching import DIRECTIONS
from gptviz.analysis.alignment import filled, missing, side_by_side
from gptviz.analysis.counterpart import MOST
from gptviz.analysis.other_texts import ONE_TOKEN, OtherText, told_apart
from gptviz.analysis.patches import value_of
from gptviz.figures.theme import palette
from gptviz.models.loading import BUNDLED
from gptviz.ui.buttons import button
from gptviz.ui.sheet import Param, Scene, if_there, is_asked_for
from gptviz.ui.shell import changes, state
from gptviz.ui.shell.bench import asked_at
from gptviz.ui.shell.other_text import (
    MADE,
    OTHER,
    Known,
    in_file,
    offered,
    opened,
    pairs,
    without_patches,
)
from gptviz.ui.shell.prompt import read
from gptviz.ui.shell.target import logits_at
from gptviz.ui.words import as_code, capital, counted, escaped, show_id

DENOISING, NOISING = DIRECTIONS
# your text is the clean one, as it is where the field types a sentence
WAY = Param("patch_way", str, NOISING, if_there)

_BOX = "other_box"
_KIND = "other_kind"
_ONE_TOKEN = ""  # among the texts that are offered: the one that is yet to be made


@dataclass(frozen=True)
class Other:
    """The other text and its ids; `note` says how it was made, "" where somebody typed or chose it."""

    text: str
    ids: tuple[int, ...]
    note: str = ""


def ways() -> dict[str, str]:
    """Both directions in words, of the texts as they stand: to choose the other one turns them round."""
    into_yours = "The other’s values into yours"
    into_the_other = "Your values into the other"
    if WAY.value == DENOISING:
        return {
            NOISING: f"{into_the_other}: what breaks?",
            DENOISING: f"{into_yours}: what comes back?",
        }
    return {
        NOISING: f"{into_yours}: what breaks?",
        DENOISING: f"{into_the_other}: what comes back?",
    }


def both_called() -> tuple[str, str]:
    """Your text and the other one, with the field's words for them in brackets."""
    if WAY.value == DENOISING:
        return ("your text (corrupt)", "the other text (clean)")
    return ("your text (clean)", "the other text (corrupt)")


def choose(scene: Scene) -> Other | None:
    """Draw the box of the other text, what it can be, and both texts' tokens.

    None if there is nothing to patch from.
    """
    is_long = is_asked_for(scene.lm, len(scene.tokens), min(len(scene.tokens), MOST))
    unpatched = without_patches(scene.run)
    offers = offered(unpatched, scene.position, scene.special)
    text, note = opened(scene, offers, is_long)
    st.session_state[_BOX] = (text or "").replace("\n", "⏎")
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key="gv_other_texts"
    ):
        st.caption("The other text:", width="content")
        st.text_input(
            "The other text",
            key=_BOX,
            placeholder="Change one word, keep the number of tokens, press Enter",
            label_visibility="collapsed",
            on_change=_typed,
        )
        _offer(offers, text)
    request = "Patching needs a second text. Type one above, with one word changed and the same number of "
    request += (
        "tokens, or let the model change one token (this takes a while for a text of this length)."
    )
    if text is None:
        failure = (
            "We found no text that differs in one token and makes the model predict something else."
        )
        was_tried = MADE.value or not is_long
        st.info(
            f"{failure} Type one above, with the same number of tokens." if was_tried else request
        )
        return None
    reading = read(scene.lm, text, scene.special)
    if reading.refusal or not reading.ids:
        st.warning(reading.refusal or request)
        return None
    other = Other(text, tuple(reading.ids), note)
    _rows(scene, other)
    if scene.run.ids == other.ids:
        st.warning(
            "The two texts are the same, so a patch changes nothing. Change a word of one of them."
        )
    return other


def _offer(offers: tuple[OtherText, ...], text: str | None) -> None:
    """Draw what the other text is as a box to choose from: those offered, and one that the model makes."""
    labels = {offer.text: _called(offer) for offer in offers}
    labels[_ONE_TOKEN] = capital(ONE_TOKEN)
    shown = text
    if MADE.value and OTHER.value is None:
        shown = _ONE_TOKEN
    st.session_state[_KIND] = None
    if shown in labels:
        st.session_state[_KIND] = shown
    hint = "What your text became. One other token: of all changes of one, that which moves the prediction most."
    st.selectbox(
        "What the other text is",
        options=list(labels),
        format_func=labels.__getitem__,
        index=None,
        placeholder="Made from yours …",
        key=_KIND,
        label_visibility="collapsed",
        width=270,
        help=hint,
        on_change=_offered,
    )


def _called(offer: OtherText) -> str:
    """What an other text is called; one that is not in step with its number of tokens."""
    if offer.is_equal:
        return capital(offer.kind)
    return f"{capital(offer.kind)} ({counted(len(offer.ids), 'token')})"


def in_files(scene: Scene, other: Other) -> Scene:
    """The scene whose saved pictures name the other text."""
    return replace(scene, files_say=(in_file(other.text),))


def answer_of(scene: Scene, other: Other) -> int:
    """The word that the other text is asked for; where that is your text's, the one that it makes likelier by most."""
    mine = scene.run.plain
    theirs = replace(mine, ids=other.ids)
    answer = asked_at(theirs, scene.position).answer
    if answer != asked_at(mine, scene.position).answer or scene.lm.config.vocab_size < 2:
        return answer
    mine_says, theirs_says = (logits_at(run, scene.position) for run in (mine, theirs))  # (V,) each
    return told_apart(mine_says, theirs_says)[1]


def lengths_differ(scene: Scene, other: Other) -> bool:
    """Compare the texts' numbers of tokens; if they differ, say which tokens to add, and offer to.

    True if they differ.
    """
    ids = scene.run.ids
    if len(ids) == len(other.ids):
        return False
    offers = offered(without_patches(scene.run), scene.position, scene.special)
    reason = next((offer.reason for offer in offers if offer.text == other.text), "")
    prompt_is_shorter = len(ids) < len(other.ids)
    shorter, longer = sorted((ids, other.ids), key=len)
    if prompt_is_shorter:
        names = ("Your text", "the other text")
    else:
        names = ("The other text", "your text")
    places = []
    for gap in missing(shorter, longer)[:3]:
        place = "at the end"
        if gap.before < len(shorter):
            place = (
                f"before {as_code(show_id(scene.lm, shorter[gap.before]))} (position {gap.before})"
            )
        places.append(f"{as_code(show_id(scene.lm, longer[gap.position]))} {place}")
    needs = "We patch position by position, so both texts need the same number of tokens."
    if reason:
        st.warning(f"{needs} {escaped(reason)} Choose one of the texts above that has as many.")
        return True
    count = len(longer) - len(shorter)
    if count == 1:
        tokens = "1 token"
    else:
        tokens = f"{count} tokens"
    if count > 3:
        places.append(f"and {count - 3} more")
    st.warning(
        f"{needs} "
        f"{names[0]} has {len(shorter)}, {names[1]} {len(longer)}: add {tokens} to it, for example "
        f"{', '.join(places)}."
    )
    filled_ids = filled(shorter, longer)
    text = scene.lm.decode(filled_ids, begin=False)
    if scene.lm.encode(text, special_tokens=scene.special) == filled_ids:
        if prompt_is_shorter:
            add = partial(state.change, text=text)
        else:
            add = partial(OTHER.set, text)
        button("Add it" if count == 1 else "Add them", "other_fill", add, primary=True)
    return True


def pairs_row(scene: Scene, other: Other | None, changed: bool) -> None:
    """Draw the pairs as buttons, and what to watch in the shown one: in a bundled model as it is."""
    bundled = state.model().name in BUNDLED and not changed
    if other is None:
        pair_shown = None
    else:
        pair_shown = (scene.text, other.text)
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key="gv_pairs"):
        st.caption("Try:", width="content")
        for number, pair in enumerate(pairs()):
            hint = pair.watch if bundled else None
            chosen = pair_shown == (pair.text, pair.other)
            button(pair.label, f"pair_{number}", _take_pair, pair, primary=chosen, help=hint)
    for pair in pairs():
        if bundled and pair_shown == (pair.text, pair.other):
            st.markdown(f"**What to watch:** {pair.watch}")


# ---- both texts, one above the other ----

WHOLE = 90  # columns that are all drawn; of more only those near a difference
NEAR = 6

STYLE = f"<style>\n{Path(__file__).with_suffix('.css').read_text('utf-8')}</style>"


def _rows(scene: Scene, other: Other) -> None:
    """Draw a column a position: where the texts differ is marked, a missing token is a gap."""
    ids = (scene.run.ids, other.ids)
    labels = (scene.labels, [show_id(scene.lm, i) for i in other.ids])
    columns = side_by_side(*ids)

    def kind_of(own_index: int | None, other_index: int | None) -> str:
        if own_index is None or other_index is None:
            return "differs gap"
        if ids[0][own_index] == ids[1][other_index]:
            return ""
        return "differs"

    def cell(column: tuple[int | None, int | None], kind: str) -> str:
        own_index, other_index = column
        if other_index is None:
            position = own_index
        else:
            position = other_index
        if own_index is None:
            mine = ""
        else:
            mine = html.escape(labels[0][own_index])
        if other_index is None:
            theirs = ""
        else:
            theirs = html.escape(labels[1][other_index])
        return (
            f'<div class="{kind}" data-testid="pair-token" data-differs="{bool(kind):d}" '
            f'title="position {position}">'
            f"<span>{mine}</span><span>{theirs}</span></div>"
        )

    kinds = np.array([kind_of(*column) for column in columns])
    is_near = np.ones(len(kinds), dtype=bool)
    if len(kinds) > WHOLE:
        is_near = np.convolve(kinds != "", np.ones(2 * NEAR + 1), "same")[: len(kinds)] > 0
    roles = both_called()
    cells = [f"<div><b>{roles[0]}</b><b>{roles[1]}</b></div>"]
    for is_drawn, group in groupby(zip(is_near, columns, kinds, strict=True), key=itemgetter(0)):
        members = list(group)
        alike = f"<span>… {len(members)} alike</span>"
        left_out = [f'<div class="equal">{alike}{alike}</div>']
        if is_drawn:
            cells += [cell(column, kind) for _, column, kind in members]
        else:
            cells += left_out
    colors = palette(scene.mode)
    style = STYLE
    for name in ("accent", "paper", "panel"):
        style = style.replace(name.upper(), getattr(colors, name))
    st.html(f'{style}<div class="gv-pair" data-testid="pair">{"".join(cells)}</div>')


# ---- callbacks ----


def _choose(other: str | None, from_prompt: bool = False) -> None:
    OTHER.set(other)
    MADE.set(from_prompt)


def _typed() -> None:
    _choose(st.session_state[_BOX].replace("⏎", "\n") or None)


def _offered() -> None:
    """Callback of the box of offers: one of them, the one that is made; with none, what the page opens with."""
    chosen = st.session_state[_KIND]
    _choose(chosen or None, chosen == _ONE_TOKEN)


def _take_pair(pair: Known) -> None:
    state.change(text=pair.text, token=None)
    _choose(pair.other)
    WAY.set(None)


def turn(scene: Scene, other: Other) -> None:
    """Callback of the switch of directions: the texts change places, so that the clean one stays clean.

    Patches then go the other way: from the text that was the prompt.
    """
    other_value = value_of(other.ids)
    prompt_value = value_of(scene.run.ids)
    numbered_edits = enumerate(map(changes.parsed, changes.written()))
    patches = [
        (number, edit) for number, edit in numbered_edits if edit and edit.value == other_value
    ]
    for number, _ in reversed(patches):
        changes.remove(number)
    changes.add(*(replace(edit, value=prompt_value) for _, edit in patches))
    _choose(scene.text)
    state.change(text=other.text)


def toggle(edit: Edit, other: Other) -> None:
    """Callback of a click on a cell: make the patch for the whole app, or undo it."""
    _choose(other.text)
    changes.toggle(edit)
