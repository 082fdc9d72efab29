"""The bench: what is asked of a text, once for the five pages that say which part did it.

Its row of tabs stands under the question, and its bar under the tokens: the answer, the word that it stands
against, what is measured of them, and what a muted part gives. All four stand in the address and follow from
tab to tab, and with them the other text. As long as nobody chooses, the text says what is asked
(`gptviz.analysis.asked`), and of a changed model it is what the unchanged one is asked: what became of that
word?
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from gptviz import LanguageModel, Run
from gptviz.analysis.against import measured
from gptviz.analysis.asked import Asked, asked_after
from gptviz.analysis.other_texts import OtherText
from gptviz.analysis.patches import value_of
from gptviz.analysis.prompts import OF_OTHER
from gptviz.digits import fixed, percent
from gptviz.ui import runs
from gptviz.ui.components.saved import shortened
from gptviz.ui.runs import per_run
from gptviz.ui.shell import other_text, state
from gptviz.ui.shell.muted import GIVES
from gptviz.ui.shell.navigation import BENCH, link
from gptviz.ui.shell.params import Param, if_there, in_link
from gptviz.ui.shell.scene import Scene
from gptviz.ui.shell.target import (
    AGAINST,
    MEAN,
    OF_ALL,
    TARGET,
    Target,
    boxes,
    logits_at,
    token_box,
)
from gptviz.ui.teach import classroom
from gptviz.ui.words import as_code, compared_with, show_id

MEASURES = {"logit": "logit difference", "probability": "probability", "loss": "loss"}
# None: the difference where the text asks for one of two names or both words are chosen, else the probability
MEASURE: Param[str | None] = Param("measure", str, None, if_there)
# None: the page's own
BASELINE: Param[str | None] = Param("null", str, None, if_there, once="others")
PARAMS = (TARGET, AGAINST, MEASURE, BASELINE, *other_text.PARAMS)
USUAL = ("probability", "logit")  # what is measured as long as nobody chose; and of two words

OPENED = {
    "names": "one of the text's two names",
    "copied": "the word that came after these tokens last time",
    "fact": "a fact that the text asks for",
    "sequence": "the next of a sequence",
    "pronoun": "a pronoun that may follow here",
    "first two": "{}'s first choice",
}
IN_BOX = {
    "zero": "0",
    "mean": "its mean, this text",
    "sample": "its mean, a sample",
    OF_OTHER: "the other text’s",
}
NAMED = 80  # characters of the other text, where it is named


@dataclass(frozen=True)
class Question(Target):
    """What the bar asks: the two words, as `Target` has them, what is measured, and what a muted part gives.

    `kind` is `Asked.kind`, `measure` one of `MEASURES`. `baseline` is what the functions of `analysis` take:
    one of `ablation.BASELINES`, or the ids of the `other` text. `is_chosen`: somebody chose the answer.
    """

    kind: str
    measure: str
    baseline: str
    other: OtherText | None = None
    is_chosen: bool = False

    @property
    def null(self) -> str:
        """The baseline as the address has it, one of `GIVES`."""
        if self.other is not None:
            return OF_OTHER
        return self.baseline

    @property
    def difference(self) -> str:
        """The difference of the two logits, in words."""
        return f"the logit of {as_code(self.shown)} minus {compared_with(self.against_shown)}"

    @property
    def watched(self) -> str:
        """What is measured, in words: "the probability of `·mill`"."""
        if self.measure == "logit":
            return self.difference
        return f"the {self.measure} of {as_code(self.shown)}"

    @property
    def briefly(self) -> str:
        """The same in fewer words: of two words "the lead of `·Anna` over `·Tom`"."""
        if self.measure != "logit":
            return self.watched
        if self.against_shown is None:
            return self.difference
        return f"the lead of {as_code(self.shown)} over {as_code(self.against_shown)}"

    @property
    def axis(self) -> str:
        """The same for an axis or a file, without marks."""
        if self.measure == "logit":
            return f"logit of {self.shown} − {self.against_shown or 'the mean'}"
        return f"{self.measure} of {self.shown}"

    @property
    def gives(self) -> str:
        """What a muted part outputs, in words."""
        return GIVES[self.null]

    def in_files(self, scene: Scene) -> Scene:
        """The scene whose saved pictures name the other text, where a muted part's values are from there."""
        if self.other is None:
            return scene
        return replace(scene, files_say=(other_text.in_file(self.other.text),))

    def is_first(self, run: Run, position: int) -> bool:
        """Whether the answer is the model's first choice after a position."""
        return int(logits_at(run, position).argmax()) == self.token

    def number(self, value: float) -> str:
        """A measured value with its digits and its unit, for a sentence."""
        if self.measure == "probability":
            return percent(value)
        if self.measure == "loss":
            return f"{fixed(value, 2)} nats"
        return fixed(value, 2)

    def of(self, run: Run, position: int) -> float:
        """What is measured, after a position of a run."""
        values = measured(logits_at(run, position), self.token, self.against)
        return float(values[self.measure])

    def chance(self, run: Run, position: int) -> float:
        """The probability of the answer, whatever is measured."""
        return float(measured(logits_at(run, position), self.token, None)["probability"])


def draw_tabs(here: str) -> None:
    """Draw the bench's pages as tabs, above each of them; the one called `here` is marked."""
    if here not in BENCH:
        return
    query = state.link() | in_link(PARAMS)
    open_pages = classroom.open_pages() or BENCH
    with st.container(key="gv_tabs", horizontal=True, gap="small"):
        for name in BENCH:
            if name in open_pages or name == here:
                link(name, query, "tab" if name == here else "")


@per_run
def asked_at(run: Run, position: int) -> Asked:
    """What the run's text asks after a position; in a vocabulary of one token it is that token."""
    lm = runs.model(run)
    if lm.config.vocab_size < 2:
        return Asked("first two", 0, MEAN)
    return asked_after(lm, run.ids[: position + 1], logits_at(run, position))


def bar(
    scene: Scene,
    usual: str = "zero",
    only: str = "",
    gives: str = "",
    instead: int | None = None,
    two_words: bool = False,
) -> Question:
    """Draw the bar and return what is asked, made possible.

    `usual` is the page's baseline as long as nobody chose one. `only` says why the page measures the logit
    difference and nothing else, `gives` what its parts output whatever the baseline. `instead` is the id that
    the page sets the answer against as long as nobody chose another; with `two_words` never the mean of all.
    """
    asked = asked_at(scene.run.plain, scene.position)
    MEASURE.within(MEASURES)
    BASELINE.within(GIVES)
    null = BASELINE.value or usual
    other: OtherText | None = None
    about_other = ""
    if null == OF_OTHER and not gives:
        other, about_other = _other(scene, usual)
        if other is None:
            null = usual
    with boxes(scene, (TARGET, AGAINST), "set_bench", "center", "xsmall"):
        token = asked.answer
        if TARGET.value is not None:
            token = TARGET.value
        candidates: tuple[int | None, ...] = (instead, asked.instead, asked.answer)
        if asked.kind == "names":  # both are in the text, whatever else the page reads
            candidates = candidates[1:]
        usual_other = next((i for i in candidates if i is not None and i != token), MEAN)
        impossible = (None, token, MEAN) if two_words else (None, token)
        against: int | None = AGAINST.value
        if against in impossible:
            against = usual_other
        is_pair = asked.kind == "names" or None not in (TARGET.value, AGAINST.value)
        measure = MEASURE.value or USUAL[is_pair]
        if only:
            measure = "logit"
        also = (asked.answer, asked.instead, token, usual_other)
        whose = "the model" if scene.other is None else "the unchanged model"
        hint = (
            f"Opened with {OPENED[asked.kind].format(whose)}. Choose another token, or type any. "
        )
        small: Any = {"width": 112, "label_visibility": "collapsed"}
        _word("answer", f"{hint}Write · for a space.")
        token_box(scene, TARGET, "Answer", shown_id(scene.lm, asked.answer), also, **small)
        _word("instead of")
        token_box(scene, AGAINST, "Instead of", shown_id(scene.lm, usual_other), also, **small)
        _word("measured by")
        _choice(MEASURE, "Measured by", MEASURES, measure, 148)
        if gives:
            _word(gives)
        else:
            _word("a part that is off outputs")
            _choice(BASELINE, "A part that is off outputs", IN_BOX, null, 165)
        if only and (MEASURE.value not in (None, measure) or AGAINST.value in impossible[2:]):
            st.caption(f"({only})", width="content")
    if about_other:
        st.caption(about_other)
    shown = show_id(scene.lm, token)
    if AGAINST.value == token:
        st.caption(
            f"Both words are {as_code(shown)}. The page takes {as_code(shown_id(scene.lm, against))} in place "
            "of the second."
        )
    baseline = null
    if other is not None:
        baseline = value_of(other.ids)
    against_shown = None
    if against == MEAN:
        against = None
    else:
        against_shown = shown_id(scene.lm, against)
    is_chosen = TARGET.value is not None
    return Question(
        token, against, shown, against_shown, asked.kind, measure, baseline, other, is_chosen
    )


def _other(scene: Scene, usual: str) -> tuple[OtherText | None, str]:
    """The other text, where a muted part can give what it gives there, and a sentence about it, or why not."""
    other, about = other_text.beside(scene)
    if other is None:
        return None, f"{about} So a part that is off outputs {GIVES[usual]}."
    named = as_code(shortened(other.text, NAMED))
    how = ""
    if about:
        how = f" {about}"
    return other, f"The other text: {named}.{how} *Patching* has more of them."


def shown_id(lm: LanguageModel, token: int | None) -> str:
    """A token as the screen shows it, or what `MEAN` stands for."""
    if token is None or token == MEAN:
        return OF_ALL
    return show_id(lm, token)


def _word(said: str, help: str | None = None) -> None:
    """Draw a word of the bar's sentence, between its boxes."""
    st.caption(said, width="content", help=help)


def _choice(
    param: Param[str | None], label: str, names: Mapping[str, str], usual: str, width: int
) -> None:
    """Draw a box for a choice that stands for the page's own as long as it is empty."""
    param.choose(
        label,
        names,
        st.selectbox,
        index=None,
        placeholder=names[usual],
        label_visibility="collapsed",
        width=width,
    )
