"""The other text: the second one, beside the prompt, of the pages that say which part did it.

It was typed or chosen on *Patching*, is that of a known pair, or is made from the prompt; it follows from tab to
tab. A muted part may give what it gives there, at the same position, where the two texts are in step.
"""

from dataclasses import dataclass, replace

from gptviz import Run
from gptviz.analysis import counterpart as counterparts
from gptviz.analysis.alignment import are_in_step, differing
from gptviz.analysis.counterpart import MOST, Counterpart
from gptviz.analysis.other_texts import OtherText, other_texts
from gptviz.models.loading import DEFAULT_MODEL
from gptviz.ui import runs
from gptviz.ui.components.saved import shortened
from gptviz.ui.runs import per_run
from gptviz.ui.shell import state
from gptviz.ui.shell.examples import OF_THE_WORLD
from gptviz.ui.shell.params import Param
from gptviz.ui.shell.prompt import read
from gptviz.ui.shell.scene import Scene
from gptviz.ui.shell.slow import is_asked_for
from gptviz.ui.words import as_code, counted, escaped, show_id

OTHER: Param[str | None] = Param("other", str, None)
# the other text is to be made from the prompt, however long it takes
MADE = Param("patch_made", bool, False)

PARAMS = (OTHER, MADE)


@dataclass(frozen=True)
class Known:
    """A prompt and its other text; `watch` is what there is to see, with a bundled model as it is.

    `model` is the one that it is offered with; "" for any.
    """

    label: str
    text: str
    other: str
    watch: str
    model: str = ""


A_FACT = OF_THE_WORLD["A fact"].text

PAIRS = (
    Known(
        "A copied word",
        state.UNSAID_TEXT,
        state.UNSAID_TEXT.replace("mill", "barn"),
        "The answer stays at its own token until the last block, where attention moves it to the end.",
    ),
    Known(
        "She and he",
        "The king loved his daughter, but she did not love",
        "The king loved his daughter, but he did not love",
        "Up to block 3 the answer is at ·she | ·he; there one head, block 3 · head 7, moves it to ·love.",
    ),
    Known(
        "His and her",
        "The man took off",
        "The woman took off",
        "A short example: on its way through the blocks, the answer moves from the second token to the last.",
    ),
    Known(
        "An extra word",
        "The man took off",
        "The old woman took off",
        "One text has an extra token: the page says which one the other needs, and where.",
    ),
    Known(
        "An animal",
        state.DEFAULT_TEXT,
        state.DEFAULT_TEXT.replace("cow", "dog"),
        "Most of the answer stays at ·cow | ·dog until the last block, where attention moves it to the end.",
        DEFAULT_MODEL,
    ),
    Known(
        "A fact",
        A_FACT,
        A_FACT.replace("England", "France"),
        "Most of the answer stays at ·England | ·France until the last block, where attention moves it to the end.",
        DEFAULT_MODEL,
    ),
)


def pairs() -> list[Known]:
    """The pairs that are offered with the model in use, its own before those of any."""
    offered = [pair for pair in PAIRS if pair.model in ("", state.model().name)]
    return sorted(offered, key=lambda pair: pair.model == "")


@per_run
def made_from(run: Run, position: int, special: bool) -> Counterpart | None:
    """The other text that is made from the prompt."""
    return counterparts.counterpart(runs.model(run), run.ids, position, special, runs.get(run, ()))


def without_patches(run: Run) -> Run:
    """The run without its patches: those are of the other text, which is yet to be made."""
    edits = tuple(edit for edit in run.edits if edit.named is None or edit.named.name != "ids")
    return replace(run, edits=edits)


@per_run
def offered(run: Run, position: int, special: bool) -> tuple[OtherText, ...]:
    """The other texts that can be made from the prompt without trying what they do, the best first.

    None for ids that its text does not give: a prompt that was cut, or tokens that nobody typed.
    """
    lm = runs.model(run)
    text = lm.decode(run.ids, begin=False)
    if lm.encode(text, special_tokens=special) != list(run.ids):
        return ()
    own = runs.get(run, ())
    return tuple(other_texts(lm, text, position, special, own, last_resort=False))


def opened(scene: Scene, offers: tuple[OtherText, ...], is_long: bool) -> tuple[str | None, str]:
    """The other text that the page opens with, and how it was made: "" for one that was typed or chosen.

    It is the one that was chosen, that of a known pair, the best that has as many tokens, or else the text
    with one token changed, for which a long text waits until somebody asks.
    """
    if OTHER.value is not None:
        return OTHER.value, ""
    if not MADE.value:
        for pair in PAIRS:
            if pair.text == scene.text:
                return pair.other, ""
        if offers and offers[0].is_equal:
            return offers[
                0
            ].text, f"Made from your text: {offers[0].kind}.{_why_not_better(offers)}"
        if is_long:
            return None, ""
    unpatched = without_patches(scene.run)
    counterpart = made_from(unpatched, scene.position, scene.special)
    if counterpart is None:
        return None, ""
    old_token = as_code(scene.labels[counterpart.position])
    new_token = as_code(show_id(scene.lm, counterpart.token))
    whose = "the"
    if unpatched.edits:
        whose = "the changed model's"
    elif scene.run.edits:
        whose = "the unpatched model's"
    note = (
        f"Made from your text: {old_token} (position {counterpart.position}) became {new_token}. "
        f"Of all one-token changes that were tried, this one moves {whose} prediction most."
    )
    return counterpart.text, f"{note}{_why_not_better(offers)}"


def _why_not_better(offers: tuple[OtherText, ...]) -> str:
    """A sentence why the first of the texts that are out of step cannot be compared position by position."""
    unequal = next((offer for offer in offers if not offer.is_equal), None)
    if unequal is None:
        return ""
    return f" Not token by token: {unequal.kind}. {escaped(unequal.reason)}"


def kind_of(scene: Scene) -> str | None:
    """What the other text is to the prompt, as `gptviz.analysis.other_texts` calls it; None for any other text."""
    offers = offered(without_patches(scene.run), scene.position, scene.special)
    text = OTHER.value
    if text is None and not MADE.value and offers and offers[0].is_equal:
        text = offers[0].text
    return next((offer.kind for offer in offers if offer.text == text), None)


def beside(scene: Scene, tried: bool = True) -> tuple[OtherText | None, str]:
    """The other text and how it was made, where it can be read beside the prompt position by position.

    Else None, and a sentence why not. In step are texts of which one token differs, or whose words all begin at
    the same positions. Unless one is to be `tried`, which takes long, it is one that is known or made by words.
    """
    ids = scene.run.ids
    offers: tuple[OtherText, ...] = ()
    if OTHER.value is None:
        offers = offered(without_patches(scene.run), scene.position, scene.special)
    is_long = not tried or is_asked_for(scene.lm, len(ids), min(len(ids), MOST))
    text, note = opened(scene, offers, is_long)
    if text is None:
        return None, "This text has no other one yet: type one on *Patching*."
    reading = read(scene.lm, text, scene.special)
    if reading.refusal:
        return None, reading.refusal
    others = tuple(reading.ids)
    if others == ids:
        return None, "The other text is the same as yours."
    if len(others) != len(ids):
        whole = f"The other text has {counted(len(others), 'token')}, yours {len(ids)}."
        return None, whole
    if len(differing(ids, others)) > 1 and not are_in_step(scene.lm, ids, others):
        count = counted(len(ids), "token")
        return None, f"Both texts have {count}, but some words stand at other positions."
    return OtherText(note, text, others, True), note


def in_file(text: str) -> str:
    """The line of a saved picture that names the other text."""
    return f"Other text: {shortened(text, 76)}"
