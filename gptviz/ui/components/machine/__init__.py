"""The one picture as a component: a place of the machine at a time, and the movement between them.

It is given what `gptviz.analysis.machine.level` gives, of the run and of the unchanged model, and knows
nothing else. `layout.js` says where everything stands, as a pure function; `machine.js` draws that and moves.
`paths` draws the whole machine with threads from heads to a reader on it (`paths.js`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gptviz.both import Both, alike
from gptviz.digits import significant
from gptviz.ui.components.kernel import Component, Event, On, among, packed, parts, text
from gptviz.ui.components.saved import Saved

_component = Component("machine")
GUESS = -1  # the guess, where a reader's block would stand


@dataclass(frozen=True)
class Paths:
    """What heads pass to the readers alone; L blocks, H heads.

    `effects` (L, H), NaN for a head that no path leads from; `written` (L, H), what stands in its cell. `readers`
    are reads, ("q", block, head), none for the guess. `threads` are (block, head, position, effect). `unit`
    follows an effect, `word` is what the guess compares, `key` says what the colours mean, a text a line. With
    `also`, a click adds a reader.
    """

    effects: Both[NDArray[np.float64]]
    written: Sequence[Sequence[str]]
    readers: Sequence[tuple[str, int, int]]
    threads: Sequence[tuple[int, int, int, float]]
    unit: str
    word: str
    key: Sequence[str]
    also: bool


def machine(
    kind: str,
    levels: Both[dict[str, Any]],
    table: pd.DataFrame,
    path: Sequence[tuple[str, str]],
    tokens: Sequence[str],
    position: int,
    sides: Sequence[tuple[str, str]],
    names: Mapping[str, str],
    more: Mapping[str, str] | None,
    way: Sequence[Mapping[str, str]],
    go: Callable[[str], Any],
    select: On,
    saved: Saved | None = None,
    guess: Sequence[Sequence[Any]] | None = None,
) -> str | None:
    """Draw a place; `go(at)` runs when another is asked for, `select(position)` when a token is.

    `kind` is the place's (see `gptviz.analysis.places`), `levels` its numbers, `table` the same
    for those who do not see the picture.
    `path` is (address, name) of all that the place lies in, itself last; `sides` of those beside it. `tokens`
    are all of the text's, and `names` are what its "norm" and "activation" are called. `more` is the page about
    the place: "page", "title" and "href"; that page is returned if it was clicked. `way` is what *Play* goes
    through: "at" and a sentence, "says".
    With `guess`, four sentences in pieces as a level's, the machine is drawn as the guess that it makes, in
    four beats, each with its sentence; its *Look inside* asks for "machine", and the way back for "guess".
    """
    level = sent(levels)
    numbers = {name: value for name, value in level.items() if name not in ("says", "shown")}
    rows = [[_cell(value) for value in row] for row in table.to_numpy(dtype=object)]
    data: dict[str, Any] = {
        "kind": kind,
        "at": path[-1][0],
        "level": numbers,
        "says": spoken(level["says"]),
    }
    data |= {
        "table": [[*table.columns], *rows],
        "path": [*path],
        "tokens": [*tokens],
        "position": position,
    }
    data |= {"sides": [*sides], "names": {**names}, "more": more, "way": [*way]}
    if guess is not None:
        data["guess"] = [spoken(caption) for caption in guess]
    events: dict[str, Event] = {
        "at": (text(60), go),
        "position": (among(range(len(tokens))), select),
        "page": (among({more["page"]} if more else set()), None),
    }
    page: str | None = _component("machine", data, events, saved).get("page")
    return page


def paths(
    levels: Both[dict[str, Any]],
    drawn: Paths,
    table: pd.DataFrame,
    name: str,
    names: Mapping[str, str],
    tokens: Sequence[str],
    position: int,
    read_by: Callable[[int, int, int], Any],
    key: str,
    saved: Saved | None = None,
) -> None:
    """Draw the machine with the paths on it; a click on a head is `read_by(block, head, also)`.

    `levels` are the whole machine's; `also` is 1 where the head is to be one more reader, and the guess's block
    is `GUESS`. `name` says what is drawn, `table` the same for those who do not see the picture.
    """
    n_blocks, n_heads = drawn.effects.now.shape
    level = sent(levels)
    rows = [[_cell(value) for value in row] for row in table.to_numpy(dtype=object)]
    threads = [
        dict(zip(("block", "head", "position", "effect"), thread, strict=True))
        for thread in drawn.threads
    ]
    sent_paths = {
        "heads": n_heads,
        "effects": sent(drawn.effects),
        "written": [*map(list, drawn.written)],
        "readers": [*map(list, drawn.readers)],
        "threads": threads,
        "unit": drawn.unit,
        "word": drawn.word,
        "key": [*drawn.key],
        "also": drawn.also,
    }
    data: dict[str, Any] = {
        "kind": "machine",
        "at": "",
        "level": {part: value for part, value in level.items() if part not in ("says", "shown")},
        "says": [name],
        "table": [[*table.columns], *rows],
        "path": [("", "the paths")],
        "tokens": [*tokens],
        "position": position,
        "sides": [],
        "names": {**names},
        "way": [],
        "paths": sent_paths,
    }
    events = {
        "reader": parts(
            read_by,
            block=among(range(GUESS, n_blocks)),
            head=among(range(n_heads)),
            also=among({0, 1}),
        )
    }
    _component(key, data, events, saved)


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return significant(value, 3)
    return str(value)


def sent(both: Both[Any]) -> Any:
    """A level as the browser gets it: arrays as base64 float32, numbers as they are. The unchanged model's
    stand beside them as "was", if they differ."""
    value = both.now
    if both.was is None:
        unchanged = both.now
    else:
        unchanged = both.was
    if isinstance(value, dict):
        return {name: sent(Both(value[name], unchanged[name])) for name in value}
    if isinstance(value, list):
        return [sent(Both(*pair)) for pair in zip(value, unchanged, strict=True)]
    if isinstance(value, np.ndarray):
        return {"of": packed(value)} | (
            {} if alike(value, unchanged) else {"was": packed(unchanged)}
        )
    if isinstance(value, int | float) and not alike(value, unchanged):
        return {"now": value, "was": unchanged}
    return value


def spoken(pieces: Sequence[Any]) -> list[str]:
    """A sentence of texts, numbers and {"code": a token} as text and code in turn."""
    texts = [""]
    for piece in pieces:
        if isinstance(piece, dict) and "code" in piece:
            texts += [piece["code"], ""]
        else:
            if isinstance(piece, dict):
                value = Both(**piece)
            else:
                value = Both(piece)
            digits = "3"
            if isinstance(value.now, str):
                digits = ""
            elif isinstance(value.now, int):
                digits = ".0"
            texts[-1] += value.arrow(digits)
    return texts
