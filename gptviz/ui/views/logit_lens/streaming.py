"""Reading the grid's columns part by part, with a progress bar and a stop, and no more unasked than is quick.

A part is a few neighbouring positions. What is read stays: the parts with the runs' other numbers, which of
them this session has asked for in the session. So a click that interrupts loses at most a part.
"""

from dataclasses import dataclass, field

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gptviz import Run
from gptviz.engine.config import GPTConfig
from gptviz.ui.shell.scene import Scene
from gptviz.ui.views.logit_lens import derived, words
from gptviz.ui.views.logit_lens.derived import Part

UNASKED = 2**36  # multiply-adds at the output head: GPT-2 124M's 25 rows at 64 tokens, a second or two
PART = UNASKED // 2
LONGEST = 64  # positions of a part, where the vocabulary is small
QUIET = 2**33  # up to here nobody needs a progress bar
AT_ONCE = 8  # parts that are read before the grid shows them

_ASKED = "lens_asked"


@dataclass
class Asked:
    """What a session has read of a run: columns, and by token those whose ranks were asked for."""

    run: Run
    read: dict[int | None, set[Part]] = field(default_factory=dict)  # None: without any token's ranks
    all: bool = False

    def parts(self, token: int | None) -> set[Part]:
        return self.read.setdefault(token, set())


def work(config: GPTConfig) -> int:
    """Multiply-adds at the output head for the rows of one position."""
    return (1 + 2 * config.n_layers) * config.vocab_size * config.emb_dim


def parts_of(config: GPTConfig, n_tokens: int) -> list[Part]:
    """All positions in parts, equally long but for the last."""
    length = max(1, min(LONGEST, PART // work(config)))
    return [(start, min(start + length, n_tokens)) for start in range(0, n_tokens, length)]


def unasked(config: GPTConfig, n_tokens: int, position: int) -> list[Part]:
    """What is read without being asked for: all where that is quick, else around the selected token."""
    parts = parts_of(config, n_tokens)
    if n_tokens * work(config) <= UNASKED:
        return parts
    here = next(i for i, (start, stop) in enumerate(parts) if start <= position < stop)
    return parts[max(0, here - 1) : here + 1]


def read(scene: Scene, token: int | None, place: DeltaGenerator) -> tuple[Part, ...]:
    """The parts that the grid has: at least the unasked ones, which are read here and now.

    `token` is the one whose ranks are wanted: they need the whole vocabulary's logits once more.
    """
    read = _asked(scene).parts(token)
    missing = [p for p in unasked(scene.lm.config, len(scene.tokens), scene.position) if p not in read]
    _read(scene, token, missing, place)
    place.empty()
    return tuple(sorted(read))


def offer(scene: Scene, token: int | None, place: DeltaGenerator) -> DeltaGenerator | None:
    """Where not all is read: a sentence that says so, with the button that reads the rest.

    Where that was asked for: the button that stops it, and what is given back, the place of `go_on`'s bar.
    """
    asked, missing = _asked(scene), _missing(scene, token)
    if not missing:
        return None
    with place.container(horizontal=True, vertical_alignment="center", gap="small", key="lens_offer"):
        if asked.all:
            st.button("Stop", key="lens_stop", type="primary", on_click=_ask_for_all, args=(scene, False))
            return st.empty()
        rows, count = len(derived.names(scene.run)), len(scene.tokens)
        st.button(f"Read all {count:,} columns", key="lens_all", on_click=_ask_for_all, args=(scene, True))
        read = count - sum(stop - start for start, stop in missing)
        st.caption(words.limit(rows, count, read, scene.lm.config.vocab_size))
    return None


def go_on(scene: Scene, token: int | None, bar: DeltaGenerator) -> None:
    """Read more of the rest, and draw the page again; any click interrupts it. To be called at the end."""
    missing = _missing(scene, token)
    missing.sort(key=lambda part: abs(part[0] - scene.position))  # from the selected token outwards
    _read(scene, token, missing[:AT_ONCE], bar)
    st.rerun()


def _missing(scene: Scene, token: int | None) -> list[Part]:
    read = _asked(scene).parts(token)
    return [part for part in parts_of(scene.lm.config, len(scene.tokens)) if part not in read]


def _read(scene: Scene, token: int | None, missing: list[Part], place: DeltaGenerator | None) -> None:
    config, read = scene.lm.config, _asked(scene).parts(token)
    if sum(stop - start for start, stop in missing) * work(config) <= QUIET:
        place = None  # quick: a bar would only flicker
    total = len(parts_of(config, len(scene.tokens)))
    for part in missing:  # a click that came meanwhile ends the run here
        if place is not None:
            place.progress(len(read) / total, words.progress(len(read) + 1, total))
        derived.part(scene.run, *part)
        if scene.other is not None:
            derived.part(scene.other, *part)
        if token is not None:
            derived.part_followed(scene.run, *part, token)
        read.add(part)


def _asked(scene: Scene) -> Asked:
    found: Asked | None = st.session_state.get(_ASKED)
    if found is None or found.run != scene.run:
        found = st.session_state[_ASKED] = Asked(scene.run)
    return found


def _ask_for_all(scene: Scene, wanted: bool) -> None:
    _asked(scene).all = wanted
