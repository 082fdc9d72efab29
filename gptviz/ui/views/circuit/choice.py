"""What is chosen on the page "Circuit": who is in, what the others give, and how it is searched."""

from dataclasses import dataclass

import streamlit as st

from gptviz.analysis.circuit_passes import Head, all_heads
from gptviz.analysis.circuit_search import WAYS, Circuit, allowed, parse, written
from gptviz.ui.shell.params import Param, if_there
from gptviz.ui.shell.scene import Scene
from gptviz.ui.views import target
from gptviz.ui.views.circuit import derived, words
from gptviz.ui.views.circuit.derived import Asked, Heads
from gptviz.ui.views.circuit.words import Held, Measured

OTHERS: Param[str] = Param("others", str, "sample", if_there)
FORWARDS = Param("forwards", bool, True)
CIRCUIT: Param[str | None] = Param("circuit", str, None)  # None: what the search found, or all heads
SEARCH: Param[str | None] = Param("search", str, None, if_there)
SCORE: Param[str | None] = Param("score", str, None)  # what a link says of its circuit
SHEET: Param[str | None] = Param("sheet", str, None, if_there)  # None: its colours where that is quick
BESIDE: Param[str | None] = Param("sheet_unchanged", str, None, if_there)  # the unchanged model's, likewise
PARAMS = (*target.PARAMS, OTHERS, FORWARDS, CIRCUIT, SEARCH, SCORE, SHEET, BESIDE)

NOBODY = "none"  # the empty circuit, in an address


@dataclass(frozen=True)
class Chosen:
    """The circuit on the screen: its heads, how F is called, and what F is.

    `unchanged` is F of the whole unchanged model, where it is another.
    """

    heads: Heads
    held: Held
    of: int
    measured: Measured
    unchanged: float | None = None


def controls() -> None:
    OTHERS.within(words.OTHERS)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        OTHERS.widget(
            st.segmented_control,
            "Every other head gives",
            options=tuple(words.OTHERS),
            format_func=words.OTHERS.__getitem__,
            required=True,
        )
        FORWARDS.widget(st.toggle, "The feed-forwards stay")


def buttons(scene: Scene) -> None:
    SEARCH.within((*WAYS, "both"))
    everyone = all_heads(scene.lm)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        for way, label in words.SEARCHES.items():
            done = SEARCH.value in (way, "both")
            st.button(
                label,
                key=f"circuit_{way}",
                icon=":material/search:",
                help=words.SEARCH_HELP,
                disabled=done,
                on_click=_search,
                args=(way,),
            )
        for key, label, heads in (("all", "All heads", everyone), ("none", "No head", [])):
            st.button(label, key=f"circuit_{key}", type="tertiary", on_click=take, args=(tuple(heads),))


def _search(way: str) -> None:
    """Callback: search in this way, too, and show what is found."""
    SEARCH.set(way if SEARCH.value in (None, way) else "both")
    CIRCUIT.set(None)
    SCORE.set(None)


def take(heads: Heads) -> None:
    """Callback: these heads are the circuit."""
    CIRCUIT.set(written(heads) or NOBODY)
    SCORE.set(None)


def toggle(heads: Heads, head: Head) -> None:
    take(tuple(sorted(set(heads) ^ {head})))


def searches_of(scene: Scene, asked: Asked) -> dict[str, Circuit]:
    """What was searched for, by its way."""
    ways = WAYS if SEARCH.value == "both" else [way for way in WAYS if way == SEARCH.value]
    return {way: derived.search(scene.run, asked, way, lambda: SEARCH.set(None)) for way in ways}


def chosen_of(scene: Scene, asked: Asked, searches: dict[str, Circuit], measured: Measured) -> Chosen:
    everyone = tuple(all_heads(scene.lm))
    best = min(searches.values(), key=lambda found: (not found.kept, len(found.heads)), default=None)
    heads = everyone if best is None else best.heads
    if CIRCUIT.value is not None:
        try:
            heads = tuple(parse("" if CIRCUIT.value == NOBODY else CIRCUIT.value, scene.lm))
        except ValueError as error:
            st.warning(words.unreadable(str(error)))
    whole, value, empty = derived.values(scene.run, asked, heads)
    unchanged = None
    if scene.other is not None:
        logit, probability = target.whole(scene.other, asked.position, asked.token, asked.against)
        unchanged = probability if asked.against is None else logit
    held = Held(whole, value, empty, allowed(whole, empty))
    return Chosen(heads, held, len(everyone), measured, unchanged)
