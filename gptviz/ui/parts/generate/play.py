"""The text that is being written, in session and address; its buttons, and the playing, token by token.

What plays, or did and was paused, is in the session alone: the browser's address follows in place (see the
component `writing`), so that its history has one step for all of the playing, and not one for each token.
"""

import time
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gptviz import Edit, Run
from gptviz.engine.generate import end_of_text
from gptviz.engine.sampling import Sampling
from gptviz.tokenizer import needs_the_switch
from gptviz.ui.buttons import button
from gptviz.ui.parts.generate import tree as trees
from gptviz.ui.parts.generate.tree import LONGEST, Tree
from gptviz.ui.parts.generate.written import Written, growing, text_of, written_on
from gptviz.ui.sheet import Param, Scene, if_there
from gptviz.ui.shell import address, sampling, state
from gptviz.ui.shell.placed import placed
from gptviz.ui.shell.sampling import WRITTEN, name_of
from gptviz.ui.words import escaped, is_named, nameless, show_id

STOP = Param("stop", str, "")
SPEEDS = {"1 a second": 1000, "2 a second": 500, "5 a second": 200, "as fast as it can": 0}
SPEED = Param("speed", str, "2 a second", if_there)
PARAMS = (WRITTEN, STOP, SPEED, *sampling.PARAMS)

SEED = 1  # until another is chosen
SLIDER = "generate_step"
PATIENCE = 0.4  # seconds without a bar

_PLAYED = "generate_played"  # in the session: the tree of a text that writes itself, or that did
# in the session while it writes itself
_PLAYS = "generate_plays"
_BEGINS = "begins"
_SAID = "generate_said"  # a sentence about the last click, and the tree that it is about


def fitting(scene: Scene) -> tuple[Scene, list[Edit]]:
    """Return the scene without the changes that are about later tokens than the selected one; and those.

    Another text is written there.
    """

    def fits(edit: Edit) -> bool:
        try:
            edit.check(scene.lm.config, scene.position + 1)
        except ValueError:
            return False
        return True

    fitting_edits = tuple(edit for edit in scene.run.edits if fits(edit))
    run = replace(scene.run, edits=fitting_edits)
    left_out = [edit for edit in scene.run.edits if edit not in fitting_edits]
    return replace(scene, run=run, other=run.plain if fitting_edits else None), left_out


def tree_of(scene: Scene) -> Tree:
    """The tree of this text, empty if none grew from it."""
    text = st.session_state.get(_PLAYED) or WRITTEN.value or ""
    return trees.parse(
        text, name_of(scene.run.ids[: scene.position + 1]), scene.lm.config.vocab_size
    )


@dataclass(frozen=True)
class Writer:
    """A text that is written on from the selected token, with these settings; its methods are callbacks."""

    scene: Scene
    sampling: Sampling

    @property
    def base(self) -> Run:
        """The text up to the selected token: what is written comes after it."""
        return replace(self.scene.run, ids=self.scene.run.ids[: self.scene.position + 1])

    @property
    def tree(self) -> Tree:
        return tree_of(self.scene)

    def written(self, tree: Tree | None = None, plain: bool = False) -> Written:
        """The text of the branch on the screen; with `plain`, as the unchanged model writes it.

        With `tree` the text of another tree.
        """
        if plain:
            base = self.base.plain
        else:
            base = self.base
        return written_on(base, self.sampling, tree or self.tree, STOP.value)

    # ---- callbacks ----

    def keep(self, tree: Tree) -> None:
        """Show this tree and put it into the address; pause what plays."""
        stop()
        WRITTEN.set(str(tree))

    def forward(self) -> None:
        """Go one step on."""
        self.keep(self._forward())

    def _forward(self) -> Tree:
        tree = self.tree
        written = self.written(tree)
        return trees.forward(tree, len(written.steps), written.ended)

    def go_to(self, step: int) -> None:
        self.keep(trees.looking_at(self.tree, int(step)))

    def play(self) -> None:
        """Write the next token at once, then go on alone; at the end, start again from the beginning."""
        self.keep(self._forward() if self.written().goes_on else trees.looking_at(self.tree, 0))
        st.session_state[_PLAYED] = WRITTEN.value
        st.session_state[_PLAYS] = _BEGINS

    def turn(self, _step: int) -> None:
        """Write the next token of what plays."""
        if plays(self.tree):
            st.session_state[_PLAYED] = str(self._forward())

    def begin_again(self) -> None:
        """Drop all that was written, and every branch."""
        self.keep(Tree(name=name_of(self.base.ids)))

    def choose_branch(self, branch: int) -> None:
        self.keep(trees.on_branch(self.tree, branch))

    def branch_off(self, token: int) -> None:
        """Put this token at the chosen step; if it stands there on another branch, show that one."""
        tree = self.tree
        step = self.written(tree).chosen
        owner = tree.owner(tree.branch, step)
        ids_there = self.written(replace(tree, branch=owner)).new
        if owner != tree.branch and ids_there[step : step + 1] == (token,):
            self.keep(replace(tree, branch=owner, step=step))
            return
        try:
            self.keep(trees.fork(tree, step, token))
        except ValueError as error:
            self._say(escaped(str(error)))

    def into_the_prompt(self) -> None:
        """Make the text on the screen the prompt, on all pages."""
        lm = self.scene.lm
        written = self.written()
        new_ids = list(written.new)
        if new_ids[-1] == end_of_text(lm):
            new_ids.pop()  # it ended the writing, and is no part of what was written
        unknown = next((i for i in new_ids if not is_named(lm, i)), None)
        if unknown is not None:
            self._say(nameless(show_id(lm, unknown)))
            return
        special = state.SPECIAL.value or any(needs_the_switch(lm.tokenizer, i) for i in new_ids)
        state.change(text=text_of(lm, [*written.base.ids, *new_ids]), token=None, special=special)
        self.begin_again()
        address.ask_for_the_page()  # the prompt is outside the fragment that the player is

    def _say(self, sentence: str) -> None:
        st.session_state[_SAID] = (sentence, str(self.tree))

    @property
    def said(self) -> str:
        """The sentence about the last click, as long as the tree is the same; "" without one."""
        sentence, about = st.session_state.get(_SAID, ("", ""))
        if about == str(self.tree):
            return sentence
        return ""

    # ---- drawn ----

    def catch_up(self, place: DeltaGenerator) -> None:
        """Write what a link asks for, part by part; a bar shows if it takes long, and a click ends it."""
        tree = self.tree
        began = time.monotonic()
        bar = None
        puts = tuple(sorted(tree.put(tree.branch).items()))
        for so_far in growing(self.base, self.sampling, puts, tree.length, STOP.value):
            done = len(so_far.steps)
            if done < tree.length and not so_far.ended and time.monotonic() - began > PATIENCE:
                bar = bar or place.empty()
                bar.progress(done / tree.length, f"writing token {done} of {tree.length}")
        if bar is not None:
            bar.empty()

    def buttons(self, written: Written, playing: bool) -> None:
        """Draw play or pause, back, one step, the slider over the steps, and the uses of the text."""

        count = len(written.steps)
        with st.container(
            key="generate_player", horizontal=True, vertical_alignment="center", gap="small"
        ):
            step_before = written.chosen - 1
            at_start = written.chosen == 0
            button(
                "Back",
                "generate_back",
                self.go_to,
                step_before,
                icon="skip_previous",
                disabled=at_start,
            )
            if playing:
                button("Pause", "generate_pause", pause, icon="pause", primary=True)
            else:
                hint = "Write token after token, a forward pass each. At the end, start once more."
                play_options: Any = {"disabled": not count and not written.goes_on, "help": hint}
                button(
                    "Play",
                    "generate_play",
                    self.play,
                    icon="play_arrow",
                    primary=True,
                    **play_options,
                )
            end = not written.goes_on
            button("One step", "generate_forward", self.forward, icon="skip_next", disabled=end)
            self._slider(written, playing)
            SPEED.choose(
                "Speed", tuple(SPEEDS), st.selectbox, width=165, label_visibility="collapsed"
            )
            text_options: Any = {"type": "tertiary", "disabled": not count or playing}
            hint = "Delete everything written here, all branches included."
            button(
                "Start over",
                "generate_again",
                self.begin_again,
                icon="restart_alt",
                help=hint,
                **text_options,
            )
            hint = "Make the text on the screen the prompt, on all pages."
            button(
                "Use this as the text",
                "generate_keep",
                self.into_the_prompt,
                help=hint,
                **text_options,
            )

    def _slider(self, written: Written, playing: bool) -> None:
        """Draw the slider over the steps; its last place is the token that is not written yet."""
        open_end = not written.ended and len(written.steps) < LONGEST
        last = len(written.steps) - (not open_end)
        place = written.chosen + 1
        hint = "The written token to show; the last place is the token to come."
        options = {
            "width": 220,
            "label_visibility": "collapsed",
            "disabled": not last or playing,
            "help": hint,
        }
        limits = {"min_value": 1, "max_value": max(last, 1) + 1, "value": place}
        placed(
            st.slider,
            "Token",
            SLIDER,
            place,
            lambda place: self.go_to(place - 1),
            **limits,
            **options,
        )


def writer(scene: Scene) -> Writer:
    """Draw temperature, filters, seed and where to stop; return the Writer with them."""
    row = st.container(
        key="generate_settings", horizontal=True, vertical_alignment="bottom", gap="small"
    )
    chosen = sampling.sampling_controls(row, scene.lm.config.vocab_size)
    hint = "Which random numbers draw the tokens: the same seed, the same text."
    seed = sampling.seed_input(row, hint, unset=SEED)
    stop_hint = "Stop writing once the new text contains these characters."
    STOP.widget(
        row.text_input, "Stop at", placeholder="nothing", width=130, max_chars=60, help=stop_hint
    )
    return Writer(scene, replace(chosen, seed=seed))


# ---- what plays ----


def played(tree: Tree) -> bool:
    """True if this tree writes itself, or did: the browser's address then follows it in place."""
    return st.session_state.get(_PLAYED) == str(tree)


def plays(tree: Tree) -> bool:
    """True if this is the tree that goes on writing by itself."""
    return played(tree) and _PLAYS in st.session_state


def agree_with_the_browser(tree: Tree) -> None:
    """Take over what the browser's address already says of what plays, before anything writes the address.

    Only where the playing begins does it add a step to the browser's history.
    """
    if not played(tree):
        return
    if st.session_state.get(_PLAYS) == _BEGINS:
        st.session_state[_PLAYS] = "goes on"
    else:
        WRITTEN.set(st.query_params.get(WRITTEN.name))


def delay() -> int:
    """Return the milliseconds between two tokens."""
    return SPEEDS[SPEED.within(tuple(SPEEDS))]


def pause() -> None:
    """Pause: what was written stays."""
    st.session_state.pop(_PLAYS, None)


def stop() -> None:
    """Stop playing: the text is again what the address says."""
    pause()
    st.session_state.pop(_PLAYED, None)
