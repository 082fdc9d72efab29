"""The section "What is the story?": what heads do with two names, and with a copied word, shown or not shown."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import streamlit as st

from gptviz import LanguageModel
from gptviz.analysis import circuit_story, copied_story
from gptviz.analysis.circuit_claims import LOOKS, SURE, Claim, Story, Worth
from gptviz.analysis.circuit_search import written
from gptviz.analysis.prompts import indirect_objects
from gptviz.digits import fixed
from gptviz.ui import sheet
from gptviz.ui.sheet import Param, Scene, if_there
from gptviz.ui.words import as_code, capital, counted, escaped, percent, prose

STORY: Param[str | None] = Param("story", str, None, if_there)
PARAMS = (STORY,)

NAMES = "on"
COPIED = "copied"
BUTTONS = {NAMES: "Tell the story of two names", COPIED: "Tell the story of a copied word"}
ROLE_WORDS = ("induction head", "previous-token head", "name mover", "S-inhibition head")
OF_NAMES = (
    "A head's number is by how much the difference moves when it alone is, on its way, as in the sentence with the "
    "right name at the second mention (previous token: with a third name at the first; backup: by how much more "
    "it writes for the right name when the name movers are off)"
)
OF_COPIES = (
    "A head's number is by how much the difference moves when it alone is, on its way, as in the text with another "
    "word behind the passage (previous and duplicate token: with another word at the passage's last token)"
)


def draw(scene: Scene, baseline: str, kind: str) -> None:
    """Draw the section; `baseline` is what muted heads output, `kind` what the text asks (`Asked.kind`)."""
    st.subheader("What is the story?", anchor=False)
    prose(
        "Which head passes what to which, on the way to the answer? The roles that the field knows are tested in "
        "this model, over many texts.",
        "head",
    )
    stories = [_draw_names, _draw_copied]
    if kind == "copied":
        stories.reverse()
    for draw_one in stories:
        draw_one(scene, baseline, kind)


def _draw_names(scene: Scene, baseline: str, kind: str) -> None:
    prose(
        "**Two names.** *When Mary and John went to the store, John gave a drink to*: the answer is Mary. There are "
        f"{circuit_story.COUNT} such ready-made sentences; some begin with John (BABA instead of ABBA). Every second "
        "one has the two names exchanged, so that a name the model likes to say does not count. Is there a name mover, "
        "an S-inhibition head?",
        *ROLE_WORDS,
        "ABBA",
    )
    if not _has_sentences(scene.lm):
        st.markdown(
            "It cannot be told here: too few of the sentences' names, places and things are one token of this "
            "model each."
        )
        return
    told = _told(scene, NAMES, "circuit_story", circuit_story.story, (None, baseline))
    if told is None:
        return
    mean = f"{fixed(told.difference, 2)} ± {fixed(told.difference_se, 2)}"
    text = (
        f"The model prefers the right name in **{told.right} of {told.n}** sentences. The difference, the logit of "
        f"the right name minus that of the other, is {mean} on average."
    )
    if told.right < told.n / 2:
        text += " So this is mostly the story of a wrong answer."
    st.markdown(text)
    _draw_claims(scene, told, OF_NAMES)


def _draw_copied(scene: Scene, baseline: str, kind: str) -> None:
    form = None
    where = "a passage of random words comes again"
    if kind == "copied":
        form = scene.run.ids[: scene.position + 1]
        where = "random words repeat where your text repeats"
    prose(
        f"**A copied word.** In {copied_story.COUNT} made texts {where}. The answer is what came next last time. Is "
        "there a previous-token head, an induction head?",
        *ROLE_WORDS,
    )
    asked = (form, baseline)
    told = _told(scene, COPIED, "copied_story", copied_story.copied_story, asked)
    if told is None:
        return
    one = copied_story.made_texts(scene.lm, form, 1)[0]
    mean = f"{fixed(told.difference, 2)} ± {fixed(told.difference_se, 2)}"
    st.markdown(
        f"The copied word is the model's first choice in **{told.first} of {told.n}** texts. The difference, its "
        f"logit minus that of a random word, is {mean} on average. The first text is "
        f"{as_code(scene.lm.decode(one.ids))}, and the answer {as_code(scene.lm.decode([one.answer]))}."
    )
    _draw_claims(scene, told, OF_COPIES)


def _told(
    scene: Scene, name: str, key: str, function: Callable[..., Story], asked: Sequence[Any]
) -> Story | None:
    """The story of this name where it is asked for; else a button that asks, or why it cannot be told."""
    if STORY.within((NAMES, COPIED, "off")) != name:
        sheet.button(BUTTONS[name], key, STORY.set, name, icon="menu_book")
        return None
    (job,) = sheet.several(
        scene.run,
        function,
        [tuple(asked)],
        says="{} of {} texts read".format,
        key="circuit_stop_story",
        stop=partial(STORY.set, "off"),
    )
    if job.refused:  # the rest of the page stays
        st.warning(f"The story cannot be told: {escaped(str(job.error))}.")
        return None
    return job.value


def _has_sentences(lm: LanguageModel) -> bool:
    """Whether the model has the sentences' words as single tokens; a model of characters has none of them."""
    try:
        return len(indirect_objects(lm, circuit_story.LEAST)) == circuit_story.LEAST
    except ValueError:  # a character that it does not know
        return False


def _draw_claims(scene: Scene, told: Story, of_number: str) -> None:
    """Draw what a story claims, what its heads are worth, and how it was tested."""
    st.markdown("\n".join(_line(claim, told.difference) for claim in told.claims))
    prose(_worth(told), "faithfulness", "completeness", "minimality")
    over = ""
    if told.independent < told.n:
        over = f" over the {told.independent} pairs of sentences"
    caption = (
        f"±: the standard error{over}. {of_number}; of several heads it is the sum of what each passes on alone. "
        "A role is shown if a head (1) passes on more than 90 % of the heads do, (2) looks where the role says, with "
        f"{percent(LOOKS)} of its attention or more, (3) where it must copy, does so by its weights, too; each more "
        f"than {SURE:.0f} standard errors from 0. A role that passes something to heads with another role is tested "
        "only where that one is shown. The numbers are from the texts that chose the heads. Not shown does not say "
        "that there is none: the work may be spread over many heads. *Copy score*: the share of names (of words) that "
        "are among the five largest logits when the head looks at nothing else. *What each head does* asks another "
        "question, in ten passages of books: does a head look where its label says, and is it missed there? So its "
        "label may hold there while it passes nothing on in these texts. After Olsson et al., *In-context "
        "Learning and Induction Heads*, 2022, and Wang et al., *Interpretability in the Wild*, 2022."
    )
    if scene.run.edits:
        caption = f"This is the changed model. {caption}"
    st.caption(caption)
    about = (
        "One row per role: what was changed, against which text, and the effect in logits of the answer minus the "
        "other word, by which the difference falls (below 0: rises); `lost` is the same with the role's heads off "
        "together. A dash: not measured."
    )
    with sheet.details("the story"):
        sheet.numbers_of("circuit-story", lambda: told.table, about, "the story", "–")


def _line(claim: Claim, difference: float) -> str:
    """One claim: role, what that is, verdict, heads, number; `difference` is what it is a part of."""
    role = f"**{capital(claim.role.name)}** ({claim.role.meaning})"
    above = ""
    other_asks = claim.role.other in (circuit_story.OUTSIDE, copied_story.OUTSIDE)
    if claim.effect is not None and other_asks and 0 < difference < claim.effect:
        above = ", more than all of it, since the other text asks for the other word"
    rest = f"{claim.amount}{above}. {claim.reason}{claim.copying}{claim.muted}"
    if claim.shown:
        return f"- {role}: **shown**, {written(claim.heads)}: {rest}"
    if claim.strongest is None:
        return f"- {role}: *not shown*. {claim.reason}"
    return f"- {role}: *not shown*. The largest effect, of {written([claim.strongest])}: {rest}"


def _worth(told: Story) -> str:
    """Say what the story's heads are worth as a circuit."""
    worth = told.worth
    heads = f"{counted(len(worth.heads), 'head')}: {written(worth.heads)}"
    if any(claim.shown for claim in told.claims):
        begins = f"**As a circuit** ({heads})"
    else:
        begins = (
            "**As a circuit**, as no role is shown, of the heads that pass most on to the logits "
            f"({heads})"
        )
    where = "and that with no head taken out"
    if worth.without:
        where = f"and that with {worth.without} taken out of both"
    least = fixed(min(worth.minimality), 2)
    return (
        f"{begins}: {_kept(worth)} With these heads alone the difference is {fixed(worth.circuit, 2)}, against "
        f"{fixed(worth.whole, 2)} in the model and {fixed(worth.empty, 2)} with no head; every other head outputs "
        f"{worth.gives}. Faithfulness: off by **{fixed(worth.faithfulness, 2)}**; of {len(worth.random)} random "
        f"circuits of as many heads {percent(worth.better_than_random)} are further off. Completeness: circuit and "
        f"model are at most {fixed(worth.completeness, 2)} apart, {where}. Minimality: each head alone moves the "
        f"circuit by {least} or more."
    )


def _kept(worth: Worth) -> str:
    """Whether a circuit explains the difference, in a sentence."""
    if worth.share is None:
        return "heads make no difference here, so there is nothing to explain."
    share = percent(abs(worth.share))
    if worth.share < 0:
        share += " the other way"
    told = f"of the way from no head to the model it goes {share}."
    if worth.explains:
        return told
    return f"**it explains nothing of the answer**: {told}"
