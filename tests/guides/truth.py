"""What a step's question has for an answer, worked out anew from the model."""

from gptviz import load
from gptviz.guides import keys
from gptviz.guides.keys import KEYS
from gptviz.ui.shell.state import DEFAULT_TEXT


def truth(lm, step, place):
    """The answer of this step's key, on the text, token and changes of this place."""
    lm = load(place["model"]) if place.get("model") else lm
    lm = lm.edited(*filter(None, place.get("edits", "").split(",")))
    arguments = keys.arguments(step.ask.key, step.ask.kind, step.ask.given)
    trace = lm.trace(place.get("text", DEFAULT_TEXT))
    position = int(place.get("token") or len(trace) - 1)
    return KEYS[step.ask.key][1](lm, trace, position, None, *arguments)
