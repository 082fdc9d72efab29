"""The sentences of "Patching": numbers in, Markdown out. Tokens come as the screen shows them.

The prompt is the text whose pass is patched, the other text is where the values come from. For denoising the
prompt is the corrupt text and the other the clean one, for noising the other way round.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gptviz.analysis.activation_patching import SHARES_FROM
from gptviz.digits import fixed, percent, significant
from gptviz.ui.words import as_code

DENOISING, NOISING = "denoising", "noising"
LOGITS = "logits"  # how an effect is told where the two texts lie too close for shares: see SHARES_FROM
WAYS = {DENOISING: "Denoising: enough?", NOISING: "Noising: needed?"}
SITES = {"resid_pre": "Residual stream", "attn_out": "Attention", "mlp_out": "Feed-forward"}
PLACES = {
    "resid_pre": "the residual stream into",
    "attn_out": "what attention adds in",
    "mlp_out": "what the feed-forward adds in",
}
HEAD_SITES = {"z": "output z", "q": "queries", "k": "keys", "v": "values", "attn": "pattern"}
ONE_OF = {"z": "output z", "q": "queries", "k": "keys", "v": "values", "attn": "attention pattern"}


@dataclass(frozen=True)
class Said:
    """What the model says first after a text."""

    token: str
    probability: float


@dataclass(frozen=True)
class Cell:
    """A place of the map: block and position, the tokens of the prompt and of the other text, the effect."""

    block: int
    position: int
    token: str
    other: str
    effect: float

    @property
    def at(self) -> str:
        if self.token == self.other:
            return f"{as_code(self.token)} (position {self.position})"
        return f"{as_code(self.token)} | {as_code(self.other)} (position {self.position})"


def roles(way: str) -> tuple[str, str]:
    """What the prompt is, and what the other text is."""
    return ("corrupt", "clean") if way == DENOISING else ("clean", "corrupt")


def sentence(
    way: str, site: str, after: str, own: Said, other: Said, first: Cell, second: Cell | None, least: float
) -> str:
    """What stands above the map: what both texts make the model say, and the places that matter most."""
    if own.token == other.token:
        said = (
            f"After {as_code(after)} the model says {_said(own)} to your prompt, and the same to the other."
        )
    else:
        said = (
            f"After {as_code(after)} the model says {_said(own)} to your prompt, {_said(other)} to the other."
        )
    if abs(first.effect) < least:
        return (
            f"{said} No single place of {_what(site)} moves the answer: each is below {_amount(way, least)}."
        )
    said += f" {capital(PLACES[site])} block {first.block} at {first.at} {_does(way, first.effect)}"
    if second is not None and abs(second.effect) >= least:
        said += f", {_in(site)} block {second.block} at {second.at} {_short(way, second.effect)}"
    return f"{said}."


def _what(site: str) -> str:
    return {
        "resid_pre": "the residual stream but the difference itself",
        "attn_out": "attention",
        "mlp_out": "the feed-forwards",
    }[site]


def _in(site: str) -> str:
    return "that into" if site == "resid_pre" else "that in"


def _said(said: Said) -> str:
    return f"{as_code(said.token)} ({significant(said.probability)})"


def _amount(way: str, effect: float) -> str:
    return f"{significant(effect, 2)} logits" if way == LOGITS else percent(effect)


def _change(effect: float) -> str:
    return f"{'+' * (effect > 0)}{_amount(LOGITS, effect)}"


def _does(way: str, effect: float) -> str:
    if way == LOGITS:
        return f"moves the difference by **{_change(effect)}**"
    share = f"**{percent(abs(effect))}**"
    if way == DENOISING:
        return f"brings back {share} of the answer" if effect > 0 else f"moves it {share} further away"
    return f"is needed for {share} of the answer" if effect < 0 else f"held {share} of it back"


def _short(way: str, effect: float) -> str:
    if abs(effect) < 0.005:
        return "nothing"
    if way == LOGITS:
        return _change(effect)
    wanted = effect > 0 if way == DENOISING else effect < 0
    return f"{percent(abs(effect))}" if wanted else f"{percent(abs(effect))} the other way"


def then(way: str, what: str, effect: float) -> str:
    """After a sentence about places of a changed model: what one of them does in the unchanged one."""
    does = _does(way, effect) if abs(effect) >= 0.005 else "moves nothing"
    return f" (In the unchanged model {what} {does}.)"


FIRST, OUTPUT = "the first place named here", "the first head's output"  # what `then` is about


def scale(
    token: str,
    against: str,
    clean: float,
    corrupt: float,
    way: str,
    unchanged: tuple[float, float] | None = None,
) -> str:
    """What a cell's number is, with this pair's numbers, and `unchanged` those without the changes."""
    old = (
        f" ({fixed(unchanged[0], 2)} and {fixed(unchanged[1], 2)} in the unchanged model)"
        if unchanged
        else ""
    )
    said = (
        f"Measured: the logit of {as_code(token)} less that of {as_code(against)}, {fixed(clean, 2)} in the "
        f"clean text and {fixed(corrupt, 2)} in the corrupt one{old}. "
    )
    if way == LOGITS:
        close = abs(clean - corrupt) < SHARES_FROM
        said += (
            f"{'These lie' if close else 'Those of the unchanged model lie'} less than {SHARES_FROM:g} logit "
            "apart: the odds of the one word against the other are less than e = 2.72 times as high in one "
            "text as in the other. Percents of so little would mislead. So a cell is in logits: the "
            "difference with the patch minus the one without"
        )
    else:
        less = ", less 1: what is lost" if way == NOISING else ""
        said += f"A cell is (patched − corrupt) / (clean − corrupt){less}"
    return f"{said}. Colours end at −1 and 1."


def unit(told: str) -> str:
    """What stands behind a cell's number."""
    return " logits" if told == LOGITS else ""


DIRECTIONS = (
    "**Denoising** puts clean values into the corrupt text: is this one place *enough* to bring the answer "
    "back (a share of 1: all of it)? **Noising** puts corrupt values into the clean text: is this one place "
    "*needed* (a share of −1: without it all is lost)? The switch lets the two texts change places."
)

WATCH = {
    "resid_pre": (
        "Follow the colour down the blocks: it stands where the answer is carried. In the first row that is "
        "the token that differs, since a patch there puts in the other token itself. Where the colour jumps "
        "to another position an attention has moved the answer."
    ),
    "attn_out": (
        "A coloured cell is an attention that fetched something for this position: look for the block that "
        "hands the answer to the last one."
    ),
    "mlp_out": "A coloured cell is a feed-forward that worked on what its token had by then.",
}

CLICK = (
    "A click puts that cell's value into your prompt for the whole app, on every page, until it is undone; "
    "the "
    "tinted cells are all that it can reach: later blocks, at this position and after it."
)

HEADS = (
    "The same for one head at a time, at all positions: its **output** z, its **queries**, its **keys**, its "
    "**values**, or its **pattern** (where it looks). Where the values matter and the pattern does not, the "
    "head looks at the same places in both texts, and finds something else there."
)


def head_sentence(
    way: str,
    block: int,
    head: int,
    effect: float,
    parts: Mapping[str, float],
    after: Sequence[tuple[int, int, float]],
) -> str:
    """The head whose output moves most, and what of it does so; `parts` are its effects by site."""
    inside = {site: size for site, size in parts.items() if site != "z"}
    most = max(inside, key=lambda site: abs(inside[site]))
    said = f"Block {block} · head {head} moves most: its output {_does(way, effect)}"
    rest = [f"its {ONE_OF[site]} {_short(way, size)}" for site, size in inside.items() if site != most]
    alone = f"its {ONE_OF[most]} alone {_short(way, inside[most])}"
    said = f"{said}, {alone}, {', '.join(rest[:-1])} and {rest[-1]}."
    others = ", ".join(f"block {b} · head {h} ({_short(way, size)})" for b, h, size in after)
    return f"{said} Next come the outputs of {others}." if others else said


def same_answer(token: str) -> str:
    return (
        f"The model says {as_code(token)} after both texts. Choose above which two words to compare, or "
        "change "
        "the other text until it makes the model say something else."
    )


def no_scale(token: str, against: str, clean: float, corrupt: float) -> str:
    return (
        f"The two texts do not differ in this: {as_code(token)} less {as_code(against)} is "
        f"{fixed(clean, 3)} in the "
        f"clean text and {fixed(corrupt, 3)} in the corrupt one, so there is nothing that a patch could "
        "bring back. "
        "Choose two other words, or change a text."
    )


def together(count: int, effect: float, way: str) -> str:
    """What all patches that were clicked do at once."""
    what, them = ("This patch is", "it") if count == 1 else (f"These {count} patches are", "them")
    if way == LOGITS:
        does = "moves the difference by "
        share = _change(effect)
    else:
        does = {DENOISING: "brings back ", NOISING: "takes away "}[way]
        share = f"{percent(effect if way == DENOISING else -effect)} of the answer"
    does = does if count == 1 else does.replace("s ", " ", 1)
    return (
        f"{what} made in the whole app, and {does}{share}{' together' * (count > 1)}. The "
        f"maps and the sentence above them are of your prompt without {them}."
    )


def offer(passes: int) -> str:
    return f"Each place takes a pass of the model: {passes:,} of them for this text."


def patching(done: int, of: int) -> str:
    return f"{done} of {of} places patched"


def numbers(told: str) -> str:
    """Over the table of patches."""
    said = "Every patch: logit is the difference of the two logits in the patched pass, "
    if told == LOGITS:
        return f"{said}change that minus the one without a patch."
    return (
        f"{said}metric (patched − corrupt) / (clean − corrupt), effect the metric less that of the pass "
        "without a patch."
    )


TOKENS = "Both texts, position by position; – where one has no token."


def capital(text: str) -> str:
    """With its first letter large."""
    return text[:1].upper() + text[1:]
