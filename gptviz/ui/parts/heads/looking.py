"""Which heads look at the answer, over many texts: the name movers, where the texts have names."""

import pandas as pd

from gptviz import Run
from gptviz.analysis.answer_looks import LOOKS, answer_looks
from gptviz.ui import many, runs
from gptviz.ui.runs import per_run
from gptviz.ui.sheet import Param, Scene, if_there
from gptviz.ui.words import prose

AT: Param[str] = Param("looks_at", str, LOOKS[0], if_there)
PARAMS = (AT, *many.PARAMS)
CALLED = {"to_answer": "At the answer", "to_against": "At what might be said instead"}


@per_run
def _in_this_text(run: Run, position: int) -> pd.DataFrame:
    """The same of one text, for the token that the model says first: one pass."""
    return answer_looks(runs.model(run), list(run.ids), position=position)


def draw(scene: Scene) -> None:
    """Draw the section: each head's attention from the last token to the answer's, as a mean over a set."""
    AT.within(LOOKS)
    here = _in_this_text(scene.run, scene.position)
    names = [f"block {row.block} · head {row.head}" for row in here.itertuples()]
    wanted = {"to_answer": "the answer", "to_against": "what might be said instead"}[AT.value]
    many.section(
        scene,
        answer_looks,
        {},
        LOOKS,
        (AT.value, 1),
        here,
        names,
        (f"what {{}} gives, from the last token, to {wanted}", "of its attention"),
        1,
        choice=_choose,
    )


def _choose() -> None:
    """Draw the choice: at which of the two words."""
    AT.choose("Where do the heads look?", CALLED, label_visibility="collapsed")
    prose(
        "A *name mover* looks from the last token at the name that is the answer, an *S-inhibition head* at the "
        "other one. Looking is not yet doing: see *Why this token?* and *Knock-out*."
    )
