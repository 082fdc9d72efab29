"""The branches of the text: a small tree, with how probable each is as a whole."""

from dataclasses import replace
from typing import Any

import streamlit as st

from gptviz import Run
from gptviz.digits import fixed, significant
from gptviz.engine.sampling import Sampling
from gptviz.tokenizer import show_token
from gptviz.ui.components.branches import branch_tree
from gptviz.ui.shell.details import in_numbers
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Scene
from gptviz.ui.views.both import caption
from gptviz.ui.views.generate import derived, play, words
from gptviz.ui.views.generate.keeping import text_of
from gptviz.ui.views.generate.tables import branch_table
from gptviz.ui.views.generate.tree import Tree
from gptviz.ui.views.generate.written import Written

SHOWN = 200  # characters of a branch's text


def all_written(scene: Scene, sampling: Sampling, tree: Tree) -> list[Written]:
    """Every branch as far as it came, in the tree's order."""
    base = play.base(scene)
    return [
        derived.written_on(base, sampling, replace(tree, branch=number, step=None), play.STOP.value)[0]
        for number in range(len(tree.branches))
    ]


def panel(scene: Scene, sampling: Sampling, tree: Tree) -> None:
    """The tree; a click goes to a branch."""
    st.markdown("#### Branches")
    found = all_written(scene, sampling, tree)
    prose(words.branches(len(found)), "perplexity")
    if not found[tree.branch].steps:
        return
    old = [unchanged(written) for written in found] if scene.run.edits else [None] * len(found)
    branch_tree(
        [_row(scene, tree, number, *both) for number, both in enumerate(zip(found, old, strict=True))],
        tree.branch,
        tree.chosen(len(found[tree.branch].steps)),
        scene.mode,
        lambda number: play.choose_branch(scene, number),
        saved=scene.saved("branches", "The branches of a text", f"seed{sampling.seed}"),
    )
    other = scene.run.edits or None
    if other is not None:
        st.markdown(words.branch_unchanged(found[tree.branch].log_probability, old[tree.branch]))
    in_numbers(
        lambda: branch_table(
            found,
            [branch.parent for branch in tree.branches],
            None if other is None else old,
        ),
        "branches",
        caption(words.BRANCHES, other),
        "the branches",
    )


def unchanged(written: Written) -> float | None:
    """ln of what the unchanged model gives the same text; None where that is longer than a context."""
    if len(written.ids) > written.context:
        return None
    return derived.given_in_all(Run(written.model, written.ids), len(written.steps))


def _row(scene: Scene, tree: Tree, number: int, written: Written, old: float | None) -> dict[str, Any]:
    """`old` is ln p of the branch in the unchanged model, where it is another and can read so much."""
    branch = tree.branches[number]
    own = text_of(scene.lm, written.new[branch.at :])[:SHOWN]
    perplexity = written.perplexity
    compared = {}
    if scene.run.edits:
        compared = {"unchanged": "" if old is None else fixed(old, 2), "unchanged_value": old}
    return compared | {
        "parent": branch.parent,
        "at": min(branch.at, len(written.steps)),
        "length": len(written.steps),
        "text": show_token(own.encode()).replace("·", " ").strip() or "…",
        "log_probability": written.log_probability,
        "log_p": fixed(written.log_probability, 2),
        "value": perplexity,
        "perplexity": "" if perplexity is None else significant(perplexity),
    }
