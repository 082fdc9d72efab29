"""Every head of every block as one small picture: rows are blocks, columns are heads.

The picture is an indexed PNG: one byte a pixel, and of the 256 colours of its palette one is what the causal
mask hides. It weighs about as much as its numbers. `words_of` is what the grid says of each head.
"""

import io
from collections.abc import Iterable
from typing import NotRequired, TypedDict

import numpy as np
from PIL import Image

from gptviz.analysis.head_formulas import ROLES
from gptviz.analysis.head_roles import HeadRole
from gptviz.digits import fixed, percent, significant
from gptviz.figures.theme import Mode, palette, rgb, sample

STEPS = 254  # colours from attention 0 to attention 1
MASKED = 254  # the palette's entry for what the mask hides

# A head of a long text is pooled down to at most this many pixels across: about as many as a screen gives it.
# More would be averaged there, and what is strong in a long text would be lost among what is near zero.
THUMBNAIL_PX = 48


def thumbnails(attn: np.ndarray | Iterable[np.ndarray], mode: Mode) -> tuple[bytes, int]:
    """All heads in one PNG: (n_layers, H, T, T) attention weights from 0 to 1 -> (the file, pixels per head).

    `attn` may also be the blocks one after the other, (H, T, T) each, so that a long text's weights need
    never be in memory together. More than 48 tokens are pooled, each pixel showing the largest weight below
    it, so that a thin diagonal stays visible.
    """
    # (H, t, t) -> (t, H t)
    rows = [np.concatenate(_indexed(np.asarray(block)), axis=1) for block in attn]
    # n_layers of them: (n_layers t, H t)
    return _png(np.concatenate(rows, axis=0), mode), rows[0].shape[0]


def pool(weights: np.ndarray, size: int = THUMBNAIL_PX) -> np.ndarray:
    """(..., T, T) -> (..., t, t), t at most `size`: the largest weight in each of about equal squares."""
    n_tokens = weights.shape[-1]
    if n_tokens <= size:
        return weights
    starts = np.linspace(0, n_tokens, size, endpoint=False).astype(int)
    return np.maximum.reduceat(np.maximum.reduceat(weights, starts, axis=-2), starts, axis=-1)


def _indexed(weights: np.ndarray) -> np.ndarray:
    """(H, T, T) weights -> palette entries (H, t, t), uint8. A pooled pixel is masked where all of it is."""
    small = pool(np.asarray(weights, dtype=np.float32))
    entries = np.rint(np.clip(small, 0, 1) * (STEPS - 1)).astype(np.uint8)
    return np.where(np.tri(small.shape[-1], dtype=bool), entries, np.uint8(MASKED))


def _png(entries: np.ndarray, mode: Mode) -> bytes:
    image = Image.fromarray(entries, mode="P")
    image.putpalette(colour_table(mode).tobytes())
    file = io.BytesIO()
    image.save(file, format="PNG", optimize=False)
    return file.getvalue()


def colour_table(mode: Mode) -> np.ndarray:
    """The picture's 256 colours, (256, 3) uint8: attention 0 to 1, then masked."""
    colors = palette(mode)
    table = np.zeros((256, 3), dtype=np.uint8)
    table[:STEPS] = sample(colors.attention, np.linspace(0, 1, STEPS))
    table[MASKED] = rgb(colors.masked)
    return table


class Thumbnail(TypedDict):
    """The words about a head: its role, a label, a sentence without subject, and the length of its write.

    In a changed model also whether this head itself is changed (it is hatched), and how far its pattern
    moved, from 0 to 1 (it is tinted).
    """

    kind: str
    label: str
    says: str
    write: float
    changed: NotRequired[bool]
    moved: NotRequired[float]


def words_of(role: HeadRole, write: float, longest: float) -> Thumbnail:
    """The words about a head of this role and length of write; `longest` is the longest write."""
    label = ROLES[role.kind].label
    says = label
    if any(role.shares.values()):  # what looks at nothing does so over no tokens
        if role.share is None:
            says += f", over {fixed(role.spread, 1)} tokens"
        else:
            says += f", {percent(role.share)}"
    says += f". Bar: how much it adds to a token, a norm of {fixed(write, 1)} on average "
    says += f"(the largest: {fixed(longest, 1)})."
    return {"kind": role.kind, "label": label, "says": says, "write": round(write, 4)}


def moved_words(said: Thumbnail, moved: float, changed: bool) -> Thumbnail:
    """The same of a head of a changed model: whether it is itself changed, and how far its pattern moved."""
    says = said["says"]
    if changed:
        says += " It is changed."
    says += f" Its pattern moved by {significant(moved, 2)}."
    return {**said, "says": says, "moved": moved, "changed": changed}
