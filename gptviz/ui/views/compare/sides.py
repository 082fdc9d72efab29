"""The right side of the comparison: what it differs in from the left one, which is what the app has in hand.

?vs=text, model or edits, with ?vs_text, ?vs_model or ?vs_edits; without it the model, or in a changed model
the changes; ?vs_block and ?vs_head where the two models'
heads are not the same ones; ?vs_all=on where many passes were asked for.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from gptviz import KNOWN_MODELS, Edit, LanguageModel, Run
from gptviz.analysis.compare import Alignment
from gptviz.checkpoints.hub import HUB_MODELS
from gptviz.engine.config import GPTConfig
from gptviz.engine.trace import Token
from gptviz.loading import on_disk
from gptviz.ui import runs
from gptviz.ui.models import in_use as models
from gptviz.ui.models.browsers import uploads
from gptviz.ui.models.choice import UPLOAD, Choice, is_a_name
from gptviz.ui.models.in_use import InUse, label_of
from gptviz.ui.shell import prompt, state
from gptviz.ui.shell.change_words import says
from gptviz.ui.shell.params import Param, at_most_last, if_there
from gptviz.ui.shell.scene import Scene
from gptviz.ui.views.compare import words
from gptviz.ui.words import escaped

TEXT, MODEL, EDITS = "text", "model", "edits"
_CHOICE = "compare_differs"  # the widget's key
DIFFERS = {TEXT: "the text", MODEL: "the model", EDITS: "the changes"}

VS: Param[str | None] = Param("vs", str, None, if_there)  # None: as `asked` has it
VS_TEXT: Param[str | None] = Param("vs_text", str, None)
VS_MODEL: Param[str | None] = Param("vs_model", str, None)
VS_EDITS: Param[str | None] = Param("vs_edits", str, None)
VS_BLOCK: Param[int | None] = Param("vs_block", int, None, at_most_last)
VS_HEAD: Param[int | None] = Param("vs_head", int, None, at_most_last)
VS_ALL = Param("vs_all", bool, False)  # of long texts all heads, which takes a while
PARAMS = (VS, VS_TEXT, VS_MODEL, VS_EDITS, VS_BLOCK, VS_HEAD, VS_ALL)

# the same model before and after training
TWINS = {"mini": "mini-untrained", "gpt2": "gpt2-untrained"}
TWINS |= {untrained: trained for trained, untrained in TWINS.items()}


@dataclass(frozen=True)
class Sides:
    """Both sides: their runs and tokens, which tokens belong together, and what is compared.

    `names` are what the screen calls the two; `code` is the right model in Python, `text` its text.
    """

    differs: str
    run: Run
    other: Run
    tokens: tuple[Token, ...]
    other_tokens: tuple[Token, ...]
    pairs: Alignment
    chosen: int  # which pair
    names: tuple[str, str]
    code: str
    text: str

    @property
    def one_text(self) -> bool:
        return self.differs != TEXT

    @property
    def identical(self) -> bool:
        return self.run == self.other

    def partner(self, right: int) -> int:
        """The left position that a position of the right side belongs to."""
        own = self.pairs.right
        return self.pairs.left[next((i for i, other in enumerate(own) if other >= right), len(own) - 1)]

    @property
    def at(self) -> tuple[int, int]:
        """The two positions that are compared."""
        return self.pairs.pairs[self.chosen]


@dataclass(frozen=True)
class Right:
    """What the right side reads: a model by its key, a text, and edits that fit both."""

    key: str
    code: str
    text: str
    run: Run
    name: str


def differs(scene: Scene) -> str:
    """Draw the choice what the two sides differ in."""
    st.session_state[_CHOICE] = asked(scene)
    st.segmented_control(
        "The right side differs in",
        key=_CHOICE,
        options=list(DIFFERS),
        format_func=DIFFERS.__getitem__,
        required=True,
        on_change=lambda: VS.set(st.session_state[_CHOICE]),
    )
    return asked(scene)


def asked(scene: Scene) -> str:
    """Return what was chosen; where nothing was, a changed model is set beside the unchanged one.

    What an address says of another model or text is a choice, too: so it was before there were changes.
    """
    chosen = VS.within(DIFFERS)
    if chosen is not None:
        return chosen
    others = any(param.value is not None for param in (VS_TEXT, VS_MODEL, VS_BLOCK, VS_HEAD))
    return MODEL if scene.other is None or others else EDITS


def right(scene: Scene, kind: str) -> Right | None:
    """Draw the box for the right side and read it; None, with a sentence, where there is nothing to read."""
    if kind == TEXT:
        return _other_text(scene)
    return _other_model(scene) if kind == MODEL else _other_edits(scene)


# ---- another text ----


def _other_text(scene: Scene) -> Right | None:
    text = VS_TEXT.widget(
        st.text_input,
        "The other text",
        value=None,
        placeholder=without_beginning(scene.text) or "type the other text",
        max_chars=state.LINK_CHARACTERS,
        help="Left empty: your text without its first sentence, or without its first word.",
    )
    text = text or without_beginning(scene.text)
    if not text:
        st.info(words.NO_OTHER_TEXT)
        return None
    return _read(scene.key, scene.plain_load, text, scene.special, scene.run.edits, "the other text")


def without_beginning(text: str) -> str:
    """A text without its first sentence, or if it has one only, without its first word."""
    for pattern in (r"\A.*?[.!?。!?]\s*(?=\S)", r"\A\s*\S+\s+(?=\S)"):
        found = re.match(pattern, text, flags=re.DOTALL)
        if found:
            return text[found.end() :]
    return ""


# ---- another model ----


def _at_hand() -> list[str]:
    """Names of models that need no download: the catalogue's, and this browser's own."""
    hub = [name for name in HUB_MODELS if on_disk(name) is not None]
    return [*KNOWN_MODELS, *hub, *(f"{UPLOAD}{upload.number}" for upload in uploads())]


def _other_model(scene: Scene) -> Right | None:
    own = state.current().model
    names = [name for name in _at_hand() if name != own.name]
    asked = VS_MODEL.value
    if asked is not None and asked not in names:
        if asked == own.name or not is_a_name(asked):
            VS_MODEL.set(None)
        else:
            names.append(asked)  # somebody else's file: a sentence says why not
    first = TWINS.get(own.name)
    first = first if first in names else names[0]
    name = VS_MODEL.widget(
        st.selectbox,
        "The other model",
        options=names,
        format_func=lambda name: label_of(Choice(name)),
        index=None,
        placeholder=label_of(Choice(first)),
    )
    choice = own.named(name or first)
    try:
        key, lm = models.load(choice)
    except ValueError as error:
        st.warning(f"{label_of(choice)} cannot be compared: {error}")
        return None
    runs.use(key, lm)
    code = models.code_of(InUse(lm, key, choice, choice, None))
    return _read(key, code, scene.text, scene.special, (), lm.name)


# ---- other edits ----


def _other_edits(scene: Scene) -> Right | None:
    text = VS_EDITS.widget(
        st.text_input,
        "Changes on the right",
        value=None,
        placeholder="none: the model as it is",
        help="As in the address: `z.4.3=zero, mlp_out.2=mean`. On the left are those that you have made.",
    )
    try:
        edits = tuple(Edit.parse(part) for part in (text or "").split(",") if part.strip())
        for edit in edits:
            edit.check(scene.lm.config, len(scene.run))
    except ValueError as error:
        st.warning(words.no_edit(escaped(str(error))))
        edits = ()
    name = "unchanged" if not edits else words.changed_by([says(edit) for edit in edits])
    return _read(scene.key, scene.plain_load, scene.text, scene.special, edits, name)


def _read(key: str, code: str, text: str, special: bool, edits: Sequence[Edit], name: str) -> Right | None:
    lm = runs.model(key)
    reading = prompt.read(lm, text, special)
    if reading.refusal or not reading.ids:
        st.warning(reading.refusal or words.NO_OTHER_TEXT)
        return None
    if reading.notice:
        st.warning(f"On the right: {reading.notice}")
    fit = tuple(edit for edit in edits if _fits(edit, lm.config, len(reading.ids)))
    if len(fit) < len(edits):
        st.warning(words.left_out([says(edit) for edit in edits if edit not in fit]))
    return Right(key, code, text, Run(key, tuple(reading.ids), fit), name)


def _fits(edit: Edit, config: GPTConfig, n_tokens: int) -> bool:
    try:
        edit.check(config, n_tokens)
    except ValueError:
        return False
    return True


def names(scene: Scene, kind: str, other: Right) -> tuple[str, str]:
    """What the screen calls the two sides: a changed model nowhere by its own name alone."""
    edits, own = scene.run.edits, scene.lm.name
    if kind == MODEL:
        return words.changed(own) if edits else own, other.name
    if kind == EDITS:
        return words.changed_by([says(edit) for edit in edits]) if edits else "unchanged", other.name
    texts = (("your text", edits), (other.name, other.run.edits))
    left, right = (words.by_changed(text) if made else text for text, made in texts)
    return left, right


def tokens_of(run: Run) -> tuple[Token, ...]:
    lm: LanguageModel = runs.model(run)
    return tuple(lm.tokens(run.ids))
