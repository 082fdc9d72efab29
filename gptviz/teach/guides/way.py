"""What *Play* goes through on *Overview*: the places of the guide "The path of one token", and a sentence each."""

from gptviz.engine.architecture import Architecture
from gptviz.teach.guides import FOLDER, read

# in place of the guide's sentences, which say what a GPT-2 does there
_TURNED = (
    "First the model looks up a list of numbers for the token. Nothing is added for its position: that comes "
    "later."
)
_ONLY_SCALED = "An {norm} comes first: it rescales the numbers to mean square 1, then applies what it has learned."
_TURNED_BACK = (
    "Now the token looks at itself and at everything before it, with all heads at once. Queries and keys are "
    "turned by their positions first."
)
_LAST = "One more {norm}, and the list is ready for the guess."


def way(kind: Architecture) -> list[tuple[str, str]]:
    """(address, sentence) for each stop, with what a model of this kind does there."""
    other: dict[str, str] = {}
    if "position" not in kind.embedded:
        other |= {"embedding": _TURNED, "block.0.attention": _TURNED_BACK}
    if not kind.centred:
        other |= {"block.0.norm1": _ONLY_SCALED, "final_norm": _LAST}
    steps = read((FOLDER / "way.md").read_text("utf-8")).steps
    stops = [(dict(step.place).get("at", ""), step.text) for step in steps]
    return [(at, other.get(at, text).format(norm=kind.named.norm)) for at, text in stops]
