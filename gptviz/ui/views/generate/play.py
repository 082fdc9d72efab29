"""The tree that is being written, in session and address; and the playing, token by token.

What plays, or did and was paused, is in the session alone: the browser's address follows in place (see the
component `writing`), so that its history has one step for all of the playing, and not one for each token.
"""

from dataclasses import replace

import streamlit as st

from gptviz import Edit, Run
from gptviz.engine.sampling import Sampling
from gptviz.ui.shell.params import Param, if_there
from gptviz.ui.shell.scene import Scene
from gptviz.ui.views import sampling as settings
from gptviz.ui.views.generate import tree as trees
from gptviz.ui.views.generate.derived import written_on
from gptviz.ui.views.generate.tree import LONGEST, Tree
from gptviz.ui.views.generate.written import Written

WRITING: Param[str | None] = Param("written", str, None)  # a Tree
STOP = Param("stop", str, "")

SPEEDS = {"1 a second": 1000, "2 a second": 500, "5 a second": 200, "as fast as it can": 0}
SPEED = Param("speed", str, "2 a second", if_there)

PARAMS = (WRITING, STOP, SPEED, *settings.PARAMS)

_PLAYED = "generate_played"  # in the session: the tree of a text that writes itself, or that did
_PLAYS, _BEGINS = "generate_plays", "begins"  # there while it does
SAID = "generate_said"  # a sentence about the last click, and the tree that it is about


def base(scene: Scene) -> Run:
    """The text up to the selected token: what is written comes after it."""
    return replace(scene.run, ids=scene.run.ids[: scene.position + 1])


def left_out(scene: Scene) -> list[Edit]:
    """The changes that are about tokens after the selected one, where another text is written."""
    return [edit for edit in scene.run.edits if not _fits(edit, scene)]


def able(scene: Scene) -> Scene:
    """The same scene with the changes that the text up to the selected token can have."""
    edits = tuple(edit for edit in scene.run.edits if _fits(edit, scene))
    return replace(scene, run=replace(scene.run, edits=edits))


def _fits(edit: Edit, scene: Scene) -> bool:
    try:
        edit.check(scene.lm.config, scene.position + 1)
    except ValueError:
        return False
    return True


def tree_of(scene: Scene) -> Tree:
    """The tree of this text, empty where none grew from it."""
    held = st.session_state.get(_PLAYED) or WRITING.value or ""
    return trees.parse(held, trees.name_of(base(scene).ids), scene.lm.config.vocab_size)


def played(tree: Tree) -> bool:
    """Whether the browser's address has to follow this tree in place."""
    return st.session_state.get(_PLAYED) == str(tree)


def plays(tree: Tree) -> bool:
    """Whether this is the tree that writes itself."""
    return played(tree) and is_on()


def is_on() -> bool:
    """Whether something writes itself in this session."""
    return _PLAYS in st.session_state


def agree_with_the_browser(tree: Tree) -> None:
    """Before anything writes the address: what plays stands there already, without a step of its history.

    Only where the playing begins is it a step like any other.
    """
    if not played(tree):
        return
    if st.session_state.get(_PLAYS) == _BEGINS:
        st.session_state[_PLAYS] = "goes on"
    else:
        WRITING.set(st.query_params.get(WRITING.name))


def delay() -> int:
    """Milliseconds between two tokens."""
    return SPEEDS[SPEED.within(tuple(SPEEDS))]


def can_go_on(written: Written, ended: bool) -> bool:
    """Whether another token can follow the chosen one: one that is written, or a new one."""
    count = len(written.steps)
    return written.chosen + 1 < count or not (ended or count >= LONGEST)


def keep(tree: Tree) -> None:
    """Callback: this tree from now on, and in the address; what plays is paused."""
    stop()
    WRITING.set(str(tree))


def play(scene: Scene, sampling: Sampling) -> None:
    """Callback: write the next token at once, and then go on by itself."""
    tree = tree_of(scene)
    written, ended = written_on(base(scene), sampling, tree, STOP.value)
    if can_go_on(written, ended):
        keep(trees.forward(tree, len(written.steps), ended))
    else:
        keep(trees.looking_at(tree, 0))  # once more, from the beginning
    st.session_state[_PLAYED], st.session_state[_PLAYS] = WRITING.value, _BEGINS


def turn(scene: Scene, sampling: Sampling) -> None:
    """Callback: the next token of what plays."""
    tree = tree_of(scene)
    if plays(tree):
        written, ended = written_on(base(scene), sampling, tree, STOP.value)
        st.session_state[_PLAYED] = str(trees.forward(tree, len(written.steps), ended))


def pause() -> None:
    """What was written stays."""
    st.session_state.pop(_PLAYS, None)


def forward(scene: Scene, sampling: Sampling) -> None:
    """Callback: one step."""
    tree = tree_of(scene)
    written, ended = written_on(base(scene), sampling, tree, STOP.value)
    keep(trees.forward(tree, len(written.steps), ended))


def go_to(scene: Scene, step: int) -> None:
    """Callback: look at a step."""
    keep(trees.looking_at(tree_of(scene), step))


def begin_again(scene: Scene) -> None:
    """Callback: nothing is written, no branch."""
    keep(Tree(name=trees.name_of(base(scene).ids)))


def choose_branch(scene: Scene, branch: int) -> None:
    """Callback: another branch."""
    keep(trees.on_branch(tree_of(scene), branch))


def branch_off(scene: Scene, sampling: Sampling, token: int) -> None:
    """Callback: this token at the chosen step instead; where it stands there on another branch, that one."""
    tree = tree_of(scene)
    written, _ = written_on(base(scene), sampling, tree, STOP.value)
    step = written.chosen
    owner = tree.owner(tree.branch, step)
    theirs, _ = written_on(base(scene), sampling, replace(tree, branch=owner), STOP.value)
    if owner != tree.branch and step < len(theirs.steps) and theirs.steps[step].id == token:
        keep(replace(tree, branch=owner, step=step))
        return
    try:
        keep(trees.fork(tree, step, token))
    except ValueError as error:
        say(str(error), tree)


def say(sentence: str, tree: Tree) -> None:
    """Under the picture, as long as the tree is the same."""
    st.session_state[SAID] = (sentence, str(tree))


def stop() -> None:
    """Nothing plays any more; what was written since is what the address says."""
    pause()
    st.session_state.pop(_PLAYED, None)
