"""Which heads look at the answer, over many texts: the name movers, where the texts have names."""

from functools import partial

import pandas as pd

from gptviz import Run
from gptviz.analysis.answer_looks import LOOKS, answer_looks
from gptviz.ui import many, runs
from gptviz.ui.parts.heads import written
from gptviz.ui.runs import per_run
from gptviz.ui.sheet import Param, Scene, if_there
from gptviz.ui.shell import state
from gptviz.ui.shell.bench import Question
from gptviz.ui.words import as_code, prose

AT: Param[str] = Param("looks_at", str, LOOKS[0], if_there)
PARAMS = (AT, *many.PARAMS)
PASSES = 2  # of a text: one for the means, one for what the opened head writes
CALLED = {"to_answer": "At the answer", "to_against": "At what might be said instead"}


@per_run
def _in_this_text(run: Run, token: int, against: int | None, position: int) -> pd.DataFrame:
    """The same of one text: one pass."""
    aim = token if against is None else (token, against)
    return answer_looks(runs.model(run), list(run.ids), aim, position)


def draw(scene: Scene, explained: Question, block: int, head: int) -> written.Written | None:
    """Draw the section: each head's attention from the last token to the answer's, as a mean over a set.

    Of the page's own text the two words are those that the bar asks about. Below it what the opened head writes for
    them; None without a set.
    """
    AT.within(LOOKS)
    config = scene.lm.config
    names = [f"block {b} · head {h}" for b in range(config.n_layers) for h in range(config.n_heads)]
    wanted = {"to_answer": "the answer", "to_against": "what might be said instead"}[AT.value]
    prompts = many.section(
        scene,
        explained,
        answer_looks,
        {},
        LOOKS,
        (AT.value, 1),
        partial(_in_this_text, scene.run, explained.token, explained.against, scene.position),
        names,
        (f"what {{}} gives, from the last token, to {wanted}", "of its attention"),
        PASSES,
        choice=_choose,
        more=lambda _: _missing(scene, explained),
        color=scene.palette.output,
        grid=many.Grid(
            [f"block {b}" for b in range(config.n_layers)],
            [f"head {h}" for h in range(config.n_heads)],
            f"All heads: the mean attention to {wanted}. A hover says the standard error. A click opens a head: "
            "what it writes stands below.",
            f"What every head gives, from the last token, to {wanted}",
            scale="weight",
            pick=state.open_head,
        ),
    )
    if not prompts:
        return None
    return written.draw(scene, prompts, block, head)


def _missing(scene: Scene, explained: Question) -> str:
    """A sentence for a word of the bar that no head can look at, since it does not stand in the page's text."""
    token = explained.token
    shown: str | None = explained.shown
    if AT.value == LOOKS[1]:
        if explained.against is None:
            return " In the text above the answer stands against the mean of all tokens: there is none to look at."
        token = explained.against
        shown = explained.against_shown
    if token in scene.run.ids[: scene.position + 1]:
        return ""
    return f" In the text above there is no {as_code(shown or '')} up to the selected token, so no head can look at it."


def _choose() -> None:
    """Draw the choice: at which of the two words."""
    AT.choose("Where do the heads look?", CALLED, label_visibility="collapsed")
    prose(
        "A *name mover* looks from the last token at the name that is the answer, an *S-inhibition head* at the "
        "second mention of the other one (here all its mentions count). Looking is not yet doing: see *Why this "
        "token?* and *Switch parts off*."
    )
