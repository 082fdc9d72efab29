"""The section "What is the story?": what heads do in sentences with two names, each role shown or not shown."""

from functools import partial

import streamlit as st

from gptviz.analysis import circuit_story
from gptviz.analysis.circuit_search import written
from gptviz.digits import fixed
from gptviz.ui import sheet
from gptviz.ui.sheet import Param, Scene, if_there
from gptviz.ui.words import capital, counted, percent, prose

STORY: Param[str | None] = Param("story", str, None, if_there)
PARAMS = (STORY,)


def draw(scene: Scene, baseline: str) -> None:
    """Draw the section; `baseline` is what the heads outside the circuit output."""
    st.subheader("What is the story?", anchor=False)
    prose(
        f"In {circuit_story.COUNT} ready-made sentences such as *When Mary and John went to the store, John gave "
        "a drink to*, the answer is Mary. Which head passes what to which, on the way there? Each role that the "
        "field knows is tested in this model.",
        "head",
    )
    if STORY.within(("on", "off")) != "on":
        sheet.button("Tell the story", "circuit_story", STORY.set, "on", icon="menu_book")
        return
    told = sheet.worked(
        scene.run,
        circuit_story.story,
        None,
        baseline,
        says="{} of {} sentences read".format,
        key="circuit_stop_story",
        stop=partial(STORY.set, "off"),
    )
    st.markdown(_first(told))
    st.markdown("\n".join(map(_line, told.claims)))
    st.markdown(_worth(told.worth))
    st.caption(
        "±: the standard error. A role is shown if a head passes on more than nine of ten heads do, if it looks "
        "where its name says, and if a mover copies, each by more than "
        f"{circuit_story.SURE:.0f} standard errors. Not shown does not say that there is none: the work may be "
        "spread over many heads. After Wang et al., *Interpretability in the Wild*, 2022."
    )
    caption = (
        "One row per role: what was changed, against which sentence, and the effect in logits of the right name "
        "minus the other. Above 0: for the right name."
    )
    with sheet.details("the story"):
        sheet.numbers_of("circuit-story", lambda: told.table, caption, "the story")


def _first(told: circuit_story.Story) -> str:
    """Say how well the model knows the answer."""
    mean = f"{fixed(told.difference, 2)} ± {fixed(told.difference_se, 2)}"
    text = (
        f"The model prefers the right name in **{told.right} of {told.n}** sentences; the logit of the right "
        f"name minus that of the other is {mean} on average."
    )
    if told.right < told.n / 2:
        text += " So this is mostly the story of a wrong answer."
    return text


def _line(claim: circuit_story.Claim) -> str:
    """One claim: role, what that is, verdict, heads, number."""
    role = f"**{capital(claim.role.name)}** ({claim.role.meaning})"
    number = f"{fixed(claim.effect, 2)} ± {fixed(claim.effect_se, 2)} logits, {claim.n} texts"
    if claim.shown:
        return f"- {role}: **shown**, {written(claim.heads)}, {number}. {claim.reason}"
    if claim.nearest is None:
        return f"- {role}: *not shown*. {claim.reason}"
    return f"- {role}: *not shown*. Nearest: {written([claim.nearest])}, {number}. {claim.reason}"


def _worth(worth: circuit_story.Worth) -> str:
    """Say what the story's heads are worth as a circuit."""
    heads = counted(len(worth.heads), "head")
    without = worth.without or "no head"
    least = fixed(min(worth.minimality), 2)
    return (
        f"**As a circuit** ({heads}: {written(worth.heads)}), the difference is {fixed(worth.circuit, 2)}, against "
        f"{fixed(worth.whole, 2)} in the model and {fixed(worth.empty, 2)} with no head. Faithfulness: off by "
        f"**{fixed(worth.faithfulness, 2)}**; of {len(worth.random)} random circuits of as many heads "
        f"{percent(worth.better_than_random)} are further off. Completeness: "
        f"{fixed(worth.completeness, 2)}, without {without}. Minimality: each head is worth {least} or more."
    )
