"""What every page begins with, in three steps:

    frame = start_page("LayerNorm", choices=[NORM, DIMENSION])  # title, navigation, model
    prompt = read_text(frame)  # the text, its tokens, and what is changed in the model
    scene = trace(prompt, keep=["resid_mid"])  # one pass of the model, with hooks at these sites

A page without a text needs only the first. None of the three holds a model or a trace: see `scene`.
"""

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gptviz import Run, Trace
from gptviz.engine.reduction import Reduction
from gptviz.engine.sites import named
from gptviz.figures.theme import Mode, palette
from gptviz.ui import runs, words
from gptviz.ui.buttons import button
from gptviz.ui.components.kernel import mode_shown
from gptviz.ui.components.theme_watch import follow_theme
from gptviz.ui.models import in_use as models
from gptviz.ui.models.choice import Choice
from gptviz.ui.models.in_use import InUse
from gptviz.ui.models.switch import follow
from gptviz.ui.runs import Keep
from gptviz.ui.shell import (
    address,
    bench,
    changes,
    navigation,
    params,
    picture,
    prompt as prompt_box,
    state,
    strip as change_strip,
)
from gptviz.ui.shell.address import end_page
from gptviz.ui.shell.examples import example_row
from gptviz.ui.shell.limits import limits
from gptviz.ui.shell.navigation import COMPARE, FIRST, PAGES, link
from gptviz.ui.shell.notice import notice
from gptviz.ui.shell.params import Param
from gptviz.ui.shell.picker import facts, one_line, picker, which_gelu
from gptviz.ui.shell.scene import Frame, Prompt, Scene
from gptviz.ui.shell.slow import read_sample
from gptviz.ui.teach import claim, guide

HERE = Path(__file__).parent

# A file of ours: emoji and Material icons would be fetched from the internet as a favicon.
ICON = HERE.parents[1] / "assets" / "icon.svg"

STYLE, PRESENT_STYLE, BELOW = (
    (HERE / f"{name}.css").read_text("utf-8") for name in ("shell", "present", "below")
)

GIVEN = "gptviz_given"  # in a notebook's session: the trace that the page is of

# ---- the first step: title, navigation, model ----


def start_page(
    title: str, choices: Iterable[Param] = (), reads_text: bool = True, of_model: bool = True
) -> Frame:
    """Draw title and navigation, the model and its notices.

    `choices` are the page's own params: they follow the address. `reads_text` says that `read_text` follows:
    it may change what the address says, and writes it. `of_model` says that the page's pictures are of the
    model that is chosen.
    """
    st.set_page_config(
        page_title=f"{navigation.called(navigation.name_of(title), title)} · gptviz",
        page_icon=str(ICON),
        layout="wide",
        initial_sidebar_state=236,
    )
    navigation.ensure_navigation()
    mode = mode_shown()
    own = tuple(choices)
    name = navigation.name_of(title)
    state.load(own)
    with address.as_the_app():
        _style(mode)
    guide.arrive(name, own)
    bar = st.container(key="gv_bar")
    own_name, doors = _head(name, reads_text)
    model = _model(st.session_state.get(GIVEN))
    # the head stands there before a model is read, with the name for the session's last one
    if navigation.speak_of(model.lm):
        own_name.caption(navigation.called(name), width="content")
        st.set_page_config(page_title=f"{navigation.called(name, title)} · gptviz")
    if doors is not None:
        _draw_doors(name, doors)
    runs.use(model.key, model.lm)
    if not reads_text:
        params.store((*state.APP, *own))
    with address.as_the_app(), st.sidebar:
        st.markdown("### gptviz")
        with one_line(model):
            picker(model)
            st.caption(facts(model))
            which_gelu(model)
            prompt_box.special_switch()
        if not state.PRESENT.value:  # then they are above the page
            navigation.draw_links(name)
    notice(model)
    with bar:
        seen = guide.draw(name, model.lm, model.key, reads_text)
    if seen == guide.NOTHING and not reads_text:
        end_page()
    load = models.code_of(model)
    return Frame(model.key, load, mode, own, seen, reads_text, of_model)


def _style(mode: Mode) -> None:
    colors = palette(mode)
    style = STYLE
    for name, color in (
        ("ON_ACCENT", colors.paper),
        ("ACCENT", colors.accent),
        ("QUIET", colors.quiet),
    ):
        style = style.replace(name, color)
    style += (
        PRESENT_STYLE + BELOW if state.PRESENT.value else f"@media (max-width: 640px) {{ {BELOW} }}"
    )
    st.html(f"<style>{style}</style>{words.STYLE}")


def _head(name: str, prompted: bool) -> tuple[DeltaGenerator, DeltaGenerator | None]:
    """Draw the page's question as its heading; above it, small, its name and what can be done with it.

    Return two places that say what pages are called: that of the name and, while somebody presents, of the doors.
    """
    door = PAGES[name]
    with st.container(key="gv_title", gap=None):
        above = st.container(
            key="gv_name", horizontal=True, vertical_alignment="center", gap="small"
        )
        st.title(door.question, anchor=False)
        with above:
            own_name = st.empty()
            own_name.caption(navigation.called(name), width="content")
            if prompted and name != FIRST:
                _place(name)
            with st.container(key="gv_present", horizontal=True, gap="small", width="content"):
                doors = _way(name, prompted)
                _present_switch()
    bench.draw_tabs(name)
    follow_theme(name)
    return own_name, doors


def _place(name: str) -> None:
    """Draw the way to where this happens in the picture of the model."""
    query = state.link() | {"at": picture.place_of(name)}
    icon = ":material/center_focus_strong:"
    told = "See where this happens in the model."
    with st.container(key="gv_place", width="content"):
        link(FIRST, query, label="In the picture", icon=icon, help=told)


def _way(name: str, prompted: bool) -> DeltaGenerator | None:
    """While somebody presents: the text; return the place of the doors. Else: what to compare with."""
    if state.PRESENT.value:
        if prompted:
            with st.popover("Text", icon=":material/edit:", type="tertiary", key="present_text"):
                prompt_box.box()
        return st.container(horizontal=True, gap="small", width="content")
    if prompted and name != COMPARE:
        told = "Compare with another text, another model, or the unchanged model."
        link(COMPARE, state.link(), label="Compare with …", icon=":material/compare:", help=told)
    return None


def _draw_doors(name: str, place: DeltaGenerator) -> None:
    """Draw all pages, and the ones before and after, by the names that they have for the session's model."""
    with place:
        with st.popover("Pages", icon=":material/menu:", type="tertiary"):
            navigation.draw_links(name)
        icons = ("arrow_back", "arrow_forward")
        for other, icon in zip(navigation.neighbours(name), icons, strict=True):
            label = navigation.called(other)
            icon = f":material/{icon}:"
            link(other, state.link(), label=label, icon=icon, width="content")


def _present_switch() -> None:
    """For a projector: full width, large type, no sidebar."""
    presenting = state.PRESENT.value
    label = "Present"
    icon = "open_in_full"
    told = "For a projector: full width, large type, no sidebar."
    if presenting:
        label = "Stop presenting"
        icon = "close_fullscreen"
        told = ""
    how: Any = {"type": "tertiary", "help": told or None}
    button(label, "present_switch", state.PRESENT.set, not presenting, icon=icon, **how)


def _model(given: Trace | None) -> InUse:
    if given is not None:
        return InUse(given.lm.plain, f"given|{id(given)}", Choice(), Choice(), None)
    try:
        return models.in_use(state.model())
    except ValueError as error:  # not even the bundled one: a setting of the server is wrong
        prompt_box.box()  # what was typed stays in sight
        st.error(f"No model can be loaded: {words.escaped(str(error))}")
        end_page()


# ---- the second step: the prompt, its tokens, and what is changed in the model ----


def read_text(frame: Frame, room_beside: bool = False) -> Prompt:
    """Draw the prompt and read it, with the changes that are made in the model.

    Ends the page with a sentence where the model can read nothing. While somebody presents, the box of a page
    about a text is behind a button above the page. With `room_beside` there is a place beside the box.
    """
    has_box = not (state.PRESENT.value and frame.reads_text)
    beside = None
    if room_beside:
        row = st.container(key="gv_text", horizontal=True, vertical_alignment="bottom", gap="small")
        with row:
            if has_box:
                prompt_box.box()
            beside = st.container(key="gv_beside", width="content")
    elif has_box:
        prompt_box.box()
    place = st.container(key="gv_chips")
    changes_place = st.container(key="gv_changes")
    lm = frame.lm
    text = state.TEXT.value
    special = state.SPECIAL.value
    given: Trace | None = st.session_state.get(GIVEN)
    reading = prompt_box.read(lm, text, special)
    if given is not None:
        reading = prompt_box.PromptRead([token.id for token in given.tokens], None)
    tokens = tuple(lm.tokens(reading.ids))
    raws = tuple(token.raw for token in tokens)
    token, switched = follow(frame.key, lm.name, text, special, raws, state.TOKEN.value)
    if reading.ids:
        state.TOKEN.set(token)
        state.TOKEN.within(len(reading.ids))
    # once: each time would be a step of the browser's history
    params.store((*state.APP, *frame.params))
    with place:
        _end_unless_readable(reading)
        for said in (reading.notice, prompt_box.lost()):
            if said:
                st.warning(said)
        if switched:
            st.caption(switched)
        limits(frame.key, lm, text)
        prompt_box.special_hint(lm)
    if frame.seen == guide.NOTHING:
        end_page()
    listed = changes.found(lm, len(tokens))
    edits = changes.made(listed) if given is None else given.edits
    run = Run(frame.key, tuple(reading.ids), edits)
    if any(edit.named is not None and edit.named.name == "sample" for edit in run.edits):
        with changes_place:
            read_sample(run, "changes_sample_stop", partial(state.EDITS_OFF.set, True))
    return Prompt(
        **vars(frame),
        run=run,
        other=run.plain if run.edits else None,
        text=text,
        tokens=tokens,
        position=len(tokens) - 1 if state.TOKEN.value is None else state.TOKEN.value,
        special=special,
        truncated=reading.truncated,
        place=place,
        changes=listed,
        changes_place=changes_place,
        beside=beside,
    )


def _end_unless_readable(reading: prompt_box.PromptRead) -> None:
    if reading.refusal:
        st.warning(reading.refusal)
        end_page()
    if not reading.ids:
        st.info("Your text is empty. Type something and press Enter, or try one of these.")
        example_row()
        end_page()


# ---- the third step: one pass of the model, with hooks ----


def trace(
    prompt: Prompt,
    keep: Keep = (),
    reduce: Iterable[Reduction] = (),
    strip: bool = True,
) -> Scene:
    """Run the model once over the prompt, and keep what it computes at the sites `keep`.

    `keep` is as in `LanguageModel.trace`, or has functions that say which sites a model has for it
    (`gptviz.engine.sites.start`); `reduce` is made of other sites during the pass. Then the tokens
    stand under the prompt, with what the changes did; with `strip` off the page draws the tokens, by
    `Scene.strip`. Ends the page with a sentence where the model fails.
    """
    sites = keep if keep is None else named(prompt.lm, keep)
    scene = Scene(**vars(prompt), keep=sites, reduce=tuple(reduce))
    scene.get(scene.keep, scene.reduce)  # one pass gives all that the page reads
    with scene.changes_place:
        change_strip.draw(scene.run, scene.changes, scene.position, scene.labels, prompt.plain_lm)
    claim.notice(scene)
    if strip:
        scene.strip()
    return scene
