"""The end of the text with the most probable next token after it, as HTML with its numbers in data-*."""

from html import escape

from gptviz.analysis.next_token import Candidates
from gptviz.figures.ghosts import UNCHANGED
from gptviz.figures.next_token import probability_text
from gptviz.figures.theme import Mode, palette
from gptviz.tokenizer import show_token
from gptviz.ui.views.next_token import words

TAIL = 36  # characters of the prompt before the predicted token


def headline(
    before: bytes, found: Candidates, predicted: str, mode: Mode, was: tuple[str, int, float] | None = None
) -> str:
    """The last of `before`, and `predicted`, the token with the most logit, with the probability of its bar.

    `before` are the bytes of all tokens up to the selected one, shown together, so that a character of
    several tokens is one. `was` is the token that the unchanged model has there: as shown, its id, and its
    probability.
    """
    colors = palette(mode)
    text = show_token(before).replace("·", " ")
    tail = ("…" if len(text) > TAIL else "") + text[-TAIL:]
    best = found.table.iloc[0]
    return (
        '<div data-testid="headline" style="font-size: 1.15rem; line-height: 1.5; overflow-wrap: anywhere">'
        f'<span style="color: {colors.quiet}">{escape(tail)}</span>'
        f'<b data-testid="predicted" data-id="{int(best["id"])}" style="color: {colors.accent}; '
        f'border-bottom: 2px solid {colors.accent}; white-space: pre">{escape(predicted)}</b>'
        f'<span style="color: {colors.quiet}; font-size: 0.9rem; margin-left: 0.7em">'
        f"{probability_text(float(best['probability']))}</span>{_unchanged(was, mode)}</div>"
    )


def _unchanged(was: tuple[str, int, float] | None, mode: Mode) -> str:
    if was is None:
        return ""
    shown, token, probability = was
    colors = palette(mode)
    return (
        f'<span style="color: {colors.quiet}; font-size: 0.9rem; margin-left: 1.2em">{UNCHANGED} '
        f'<b data-testid="predicted-unchanged" data-id="{token}" data-probability="{probability}" '
        f'style="border-bottom: 2px dashed {colors.ghost}; white-space: pre">{escape(shown)}</b> '
        f"{probability_text(probability)}</span>"
    )


def uncertainty(found: Candidates, unchanged: Candidates | None = None) -> str:
    """The entropy of the bars."""
    was = None if unchanged is None else unchanged.entropy
    said = escape(words.uncertainty(found.entropy, found.kept, was))
    ghost = "" if was is None else f' data-unchanged-nats="{was.nats}"'
    return (
        f'<div data-testid="entropy" data-nats="{found.entropy.nats}"{ghost} style="font-size: 0.92rem">'
        f"{said}</div>"
    )
