"""How one token came about: the merges of its piece as rows of parts that join.

The first row is the piece's bytes; between neighbours stands the rank at which they would merge, and the
lowest one, in ink, joins in the next row; the last row is the tokens with their ids.
"""

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import tiktoken

from gptviz.tokenizer import show_token
from gptviz.tokenizer.steps import Piece, Stage, own_piece, stages
from gptviz.ui.components.kernel import COLOURS, Component
from gptviz.ui.components.saved import Saved

# A piece of more bytes than this does not fit on a screen: only the selected token's own bytes are shown.
WIDEST = 24
COLUMN = 46  # pixels a byte: five digits of a rank fit between two

_component = Component("merges")


def merges(
    encoding: tiktoken.Encoding, piece: Piece, part: int, position: int, saved: Saved | None = None
) -> None:
    """Draw the merges. `part` is the selected token's place in the piece, `position` in the prompt."""
    data = merges_data(encoding, piece, part, position)
    _component("merges", data, saved=saved)


def merges_data(
    encoding: tiktoken.Encoding, piece: Piece, part: int, position: int
) -> dict[str, Any]:
    """The data that the component draws: stages with their sentences, and the tokens at the end."""
    if len(piece.raw) > WIDEST:
        piece = own_piece(piece, part)
        part = 0
        first = position
    else:
        first = position - part
    start = sum(len(raw) for raw in piece.parts[:part])
    chosen_bytes = range(start, start + len(piece.parts[part]))
    replay = stages(encoding, piece)
    return {
        "stages": [_stage(replay, index, piece, chosen_bytes) for index in range(len(replay))],
        "tokens": [{"id": id, "position": first + i} for i, id in enumerate(piece.ids)],
        "width": COLUMN,
        "colours": COLOURS,
    }


def _part(raw: bytes, is_mine: bool) -> dict[str, Any]:
    """A token of a stage; `is_mine` if it is part of the token that is chosen."""
    shown = show_token(raw)
    hex = raw.hex(" ")
    if len(raw) == 1:
        size = "1 byte"
    else:
        size = f"{len(raw)} bytes"
    return {
        "shown": shown,
        "bytes": len(raw),
        "hex": hex,
        "title": f"“{shown}”: {size}, {hex}",
        "mine": is_mine,
    }


def _stage(
    replay: Sequence[Stage], index: int, piece: Piece, chosen_bytes: range
) -> dict[str, Any]:
    stage = replay[index]
    starts = accumulate(map(len, stage.parts), initial=0)
    return {
        "parts": [
            _part(raw, start in chosen_bytes)
            for raw, start in zip(stage.parts, starts, strict=False)
        ],
        "ranks": list(stage.ranks),
        "titles": [_pair_title(stage, i) for i in range(len(stage.ranks))],
        "chosen": stage.chosen,
        "joined": piece.merges[index - 1].start if index else None,
        "says": _sentence(replay, index, piece),
    }


def _pair_title(stage: Stage, i: int) -> str:
    joined = show_token(stage.parts[i] + stage.parts[i + 1])
    rank = stage.ranks[i]
    if rank is None:
        return f"“{joined}” is no token: these two cannot merge."
    order = "a lower rank goes first"
    if i == stage.chosen:
        order = "the lowest rank here: they merge next"
    return f"“{joined}” is the token of rank {rank}; {order}."


def _sentence(replay: Sequence[Stage], index: int, piece: Piece) -> list[str]:
    """Text and code in turn: [text, code, text, ...]."""
    stage = replay[index]
    last = len(replay) - 1
    piece_text = show_token(piece.raw)
    parts = len(stage.parts)
    if last == 1:
        done = "After 1 merge"
    else:
        done = f"After {last} merges"
    if piece.special:
        return ["", piece_text, f" is {piece.kind}: it is looked up, and neither cut nor merged."]
    if last == 0 and parts > 1:
        return [f"None of these {parts} bytes makes a token with its neighbour: each stays alone."]
    if last == 0 and len(piece.raw) > 1:
        return ["", piece_text, " is in the vocabulary as a whole: it is looked up, not merged."]
    if last == 0:
        return ["", piece_text, f" is a single byte, {piece.raw.hex()}: nothing to merge."]
    if stage.chosen is None and parts > 1:
        return [f"{done} no neighbours make a token any more: {parts} tokens are left."]
    if stage.chosen is None:
        return [f"{done} all bytes are one token: ", piece_text, ", id ", str(piece.ids[0]), "."]
    possible = sum(rank is not None for rank in stage.ranks)
    left, right = (show_token(raw) for raw in stage.parts[stage.chosen : stage.chosen + 2])
    rank = stage.ranks[stage.chosen]
    why = "the only pair that makes a token"
    if possible > 1:
        why = f"the lowest of {possible}"
    return ["Next, ", left, " and ", right, f" merge: rank {rank} is {why}."]
