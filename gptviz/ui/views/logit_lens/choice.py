"""What the Logit lens page lets a person choose, all in the address: colour, depth, tokens to follow."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from gptviz.figures.lens import MEASURES
from gptviz.ui.shell import target
from gptviz.ui.shell.params import Param, if_there, whole
from gptviz.ui.shell.scene import Scene
from gptviz.ui.views.logit_lens.derived import token_names

MOST = 6  # tokens that are followed at once: more lines are a thicket

NAMES = {
    "probability": "Probability of the top token",
    "rank": "Rank of the followed token",
    "entropy": "Entropy",
    "kl": "Distance to the end",
}


class Tokens(Param[list[int]]):
    """Ids of tokens: in the address as "512.733", in the session as the list that a widget has."""

    def parse(self, text: str) -> list[int]:
        numbers = [whole(part) for part in text.split(".")[:MOST]]
        return list(dict.fromkeys(number for number in numbers if number is not None))

    def written(self, value: list[int]) -> str:
        return ".".join(map(str, value))


def known_ids(value: list[int], vocabulary: int) -> list[int]:
    return [i for i in value if i < vocabulary]


COLOUR = Param("lens_colour", str, MEASURES[0], if_there)
ROW: Param[int | None] = Param("lens_row", int, None, if_there)
PINNED = Tokens("pinned", str, [], known_ids)
PARAMS = (COLOUR, ROW, PINNED, *target.PARAMS[:1])


def colour() -> str:
    COLOUR.within(MEASURES)
    return COLOUR.widget(
        st.segmented_control,
        "Colour",
        options=MEASURES,
        format_func=NAMES.__getitem__,
        required=True,
        help="Entropy: how unsure the reading is. Distance to the end: how many bits a depth would need on "
        "top to answer as the model does in the end (KL divergence).",
    )


def depth(rows: Sequence[str], own: int) -> int:
    """The selected row; as long as nobody has chosen, the page's own."""
    chosen = ROW.within(len(rows))
    return own if chosen is None else chosen


def pinned(scene: Scene, offered: Sequence[int]) -> list[int]:
    """The tokens that are followed besides the chosen one: from those that any depth has among its ten."""
    chosen = PINNED.within(scene.lm.config.vocab_size)
    options = list(dict.fromkeys([*chosen, *offered]))
    labels = token_names(scene.run, tuple(options))
    found: list[int] = PINNED.widget(
        st.multiselect,
        "More tokens",
        options=options,
        format_func=lambda i: labels.get(i, str(i)),
        max_selections=MOST,
        placeholder="Tokens that some depth has among its ten most probable",
        help="In the order of the highest probability that they reach at any depth: those that peak in the "
        "middle and lose stand here, too. A click on a bar above follows its token as well.",
    )
    return found


def pin(token: int) -> None:
    """For callbacks: follow this token as well, or no longer."""
    now: list[Any] = [i for i in PINNED.value if i != token]
    PINNED.set(now if len(now) < len(PINNED.value) else [*now, token][-MOST:])
