"""The section "What is the story?": what heads do in sentences with two names, each role shown or not shown."""

from functools import partial

import streamlit as st

from gptviz import LanguageModel
from gptviz.analysis import circuit_story
from gptviz.analysis.circuit_search import written
from gptviz.analysis.prompts import indirect_objects
from gptviz.digits import fixed
from gptviz.ui import sheet
from gptviz.ui.sheet import Param, Scene, if_there
from gptviz.ui.shell.muted import GIVES
from gptviz.ui.words import capital, counted, escaped, percent, prose

STORY: Param[str | None] = Param("story", str, None, if_there)
PARAMS = (STORY,)


def draw(scene: Scene, baseline: str) -> None:
    """Draw the section; `baseline` is what the heads outside the circuit output."""
    st.subheader("What is the story?", anchor=False)
    prose(
        f"In {circuit_story.COUNT} ready-made sentences such as *When Mary and John went to the store, John gave "
        "a drink to*, the answer is Mary. Which head passes what to which, on the way there? The roles that the "
        "field knows are tested in this model, all but the backup name mover.",
        "head",
    )
    chosen = STORY.within(("on", "off"))
    if not _has_sentences(scene.lm):
        st.markdown(
            "It cannot be told here: too few of the sentences' names, places and things are one token of this "
            "model each."
        )
        return
    if chosen != "on":
        sheet.button("Tell the story", "circuit_story", STORY.set, "on", icon="menu_book")
        return
    (job,) = sheet.several(
        scene.run,
        circuit_story.story,
        [(None, baseline)],
        says="{} of {} sentences read".format,
        key="circuit_stop_story",
        stop=partial(STORY.set, "off"),
    )
    if job.refused:  # the rest of the page stays
        st.warning(f"The story cannot be told: {escaped(str(job.error))}.")
        return
    told = job.value
    st.markdown(_first(told))
    st.markdown("\n".join(map(_line, told.claims)))
    st.markdown(_worth(told, GIVES[baseline]))
    caption = (
        "±: the standard error. A head's number is by how much the difference falls when it alone is, on its way, "
        "as in the sentence with the right name at the second mention (previous token: with a third name at the "
        "first); of several heads it is the sum of what each passes on alone. A role is shown if a head (1) passes "
        "on more than 90 % of the heads do, (2) looks where the role says, with "
        f"{percent(circuit_story.LOOKS)} of its attention or more, (3) for movers, copies; each more than "
        f"{circuit_story.SURE:.0f} standard errors from 0. The numbers are from the sentences that chose the heads. "
        "Not shown does not say that there is none: the work may be spread over many heads. After Wang et al., "
        "*Interpretability in the Wild*, 2022."
    )
    if scene.run.edits:
        caption = f"This is the changed model. {caption}"
    st.caption(caption)
    about = (
        "One row per role: what was changed, against which sentence, and the effect in logits of the right name "
        "minus the other. Above 0: for the right name."
    )
    with sheet.details("the story"):
        sheet.numbers_of("circuit-story", lambda: told.table, about, "the story")


def _has_sentences(lm: LanguageModel) -> bool:
    """Whether the model has the sentences' words as single tokens; a model of characters has none of them."""
    try:
        return len(indirect_objects(lm, circuit_story.LEAST)) == circuit_story.LEAST
    except ValueError:  # a character that it does not know
        return False


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


def _worth(told: circuit_story.Story, gives: str) -> str:
    """Say what the story's heads are worth as a circuit, in which every other head `gives` something."""
    worth = told.worth
    heads = f"{counted(len(worth.heads), 'head')}: {written(worth.heads)}"
    if any(claim.shown for claim in told.claims):
        begins = f"**As a circuit** ({heads})"
    else:
        begins = (
            "**As a circuit**, as no role is shown, of the heads that pass most on to the logits "
            f"({heads})"
        )
    without = worth.without or "no head"
    least = fixed(min(worth.minimality), 2)
    return (
        f"{begins}, the difference is {fixed(worth.circuit, 2)}, against {fixed(worth.whole, 2)} in the model and "
        f"{fixed(worth.empty, 2)} with no head; every other head outputs {gives}. Faithfulness: off by "
        f"**{fixed(worth.faithfulness, 2)}**; of {len(worth.random)} random circuits of as many heads "
        f"{percent(worth.better_than_random)} are further off. Completeness: "
        f"{fixed(worth.completeness, 2)}, without {without}. Minimality (each head alone): each is worth {least} "
        "or more."
    )
