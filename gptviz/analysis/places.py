"""The places of the machine's picture: from the whole down to a single number, each with an address.

A place is written as `block.4.head.3.cell.21.10`; the machine itself is "". In place of a number a word may
stand for what is so on this text: the "last" block, the head that writes most, the key that gets most, the
unit that writes most (each "strongest"), the "best" next token, the selected position ("here").
"""

import re
from dataclasses import dataclass, replace

import numpy as np
import torch

from gptviz.analysis import feed_forward
from gptviz.analysis.attention import edited_weights, rows_of_attention, write_lengths
from gptviz.analysis.reads import Sites, reads
from gptviz.engine.kinds import Config
from gptviz.engine.language_model import LanguageModel
from gptviz.engine.sites import scored
from gptviz.engine.trace import Trace

# kind -> how its address is written, and the kind that it lies in
_KINDS = {
    "machine": ("", None),
    "embedding": ("embedding", "machine"),
    "block": ("block.{block}", "machine"),
    "norm1": ("block.{block}.norm1", "block"),
    "attention": ("block.{block}.attention", "block"),
    "head": ("block.{block}.head.{head}", "attention"),
    "cell": ("block.{block}.head.{head}.cell.{query}.{key}", "head"),
    "norm2": ("block.{block}.norm2", "block"),
    "feed_forward": ("block.{block}.feed_forward", "block"),
    "unit": ("block.{block}.unit.{unit}", "feed_forward"),
    "final_norm": ("final_norm", "machine"),
    "out_head": ("out_head", "machine"),
    "logit": ("logit.{id}", "out_head"),
}
# what a word stands for, until `resolve` finds the number
LAST = -1
STRONGEST = -2
BEST = -3
HERE = -4
_WORDS = {"last": LAST, "strongest": STRONGEST, "best": BEST, "here": HERE}
_NUMBER = r"(\d{1,7}|last|strongest|best|here)"
_PATTERNS = {
    kind: re.compile(re.sub(r"\\{(\w+)\\}", lambda m: f"(?P<{m[1]}>{_NUMBER[1:]}", re.escape(form)))
    for kind, (form, _) in _KINDS.items()
}


@dataclass(frozen=True)
class Place:
    """One place. Block, head, query, key (positions), unit and id are -1 where its kind has none."""

    kind: str = "machine"
    block: int = LAST
    head: int = LAST
    query: int = LAST
    key: int = LAST
    unit: int = LAST
    id: int = LAST

    @property
    def at(self) -> str:
        """Its address."""
        words = {number: word for word, number in _WORDS.items()}
        named = {name: words.get(value, value) for name, value in vars(self).items()}
        return _KINDS[self.kind][0].format(**named)

    @property
    def name(self) -> str:
        """The name of this place within the place that contains it."""
        named = {
            "block": f"block {self.block}",
            "head": f"head {self.head}",
            "unit": f"unit {self.unit}",
        }
        called = {
            "machine": "the machine",
            "feed_forward": "feed-forward",
            "out_head": "output head",
            "cell": f"positions {self.query}, {self.key}",
        }
        return (named | called).get(self.kind, self.kind.replace("_", " "))

    @property
    def parent(self) -> "Place | None":
        """The place that contains it; None for the machine."""
        outer = _KINDS[self.kind][1]
        if outer is None:
            return None
        return replace(self, kind=outer)

    @property
    def path(self) -> "tuple[Place, ...]":
        """All places that contain it, from the machine down to itself."""
        return (*(self.parent.path if self.parent else ()), self)

    def beside(self, config: Config) -> "tuple[Place, ...]":
        """For a block, the block before and the block after, where the model has them."""
        neighbours = (self.block - 1, self.block + 1) if self.kind == "block" else ()
        return tuple(
            replace(self, block=block) for block in neighbours if 0 <= block < config.n_layers
        )


def parse(text: str) -> Place:
    """The place of this address, its words not yet resolved; the whole machine if it names none."""
    for kind, pattern in _PATTERNS.items():
        if match := pattern.fullmatch(text):
            numbers = match.groupdict().items()
            named = {name: _WORDS[word] if word in _WORDS else int(word) for name, word in numbers}
            return Place(kind, **named)
    return Place()


def possible(place: Place, config: Config, n_tokens: int) -> Place:
    """The place, or the nearest one around it that this model and text have; "last" as a number."""
    limits = {"block": config.n_layers, "head": config.n_heads, "query": n_tokens, "key": n_tokens}
    limits |= {"unit": config.hidden_dim, "id": config.vocab_size}
    for inner in reversed(place.path):
        named = {
            name: vars(inner)[name] for name in limits if f"{{{name}}}" in _KINDS[inner.kind][0]
        }
        if all(value < limits[name] for name, value in named.items()):
            last = {name: limits[name] - 1 for name, value in named.items() if value == LAST}
            return Place(**vars(inner) | last)
    return Place()


def _read_by_words(lm: LanguageModel, address: str, position: int) -> Sites:
    place = parse(address)
    sites: dict[str, Sites] = {
        "head": ("z",),
        "cell": ("z", *scored(lm), *edited_weights(lm)),
    }
    if place.block == LAST:
        block = lm.config.n_layers - 1
    else:
        block = place.block
    here = min(block, lm.config.n_layers - 1)
    if place.kind == "unit":
        return feed_forward.sites(lm, here)
    return tuple((str(site), here) for site in sites.get(place.kind, ()))


@reads(_read_by_words)
def resolve(lm: LanguageModel, t: Trace, address: str, position: int) -> Place:
    """The place that an address names on this text, seen from a position; what is not there is left out."""
    place = possible(parse(address), lm.config, len(t))
    if place.head == STRONGEST:
        out = lm.model.get_parameter(f"trf_blocks.{place.block}.att.out_proj.weight")
        wrote = write_lengths(t["z", place.block][:, position : position + 1], out)  # (H, 1)
        place = replace(place, head=int(wrote[:, 0].argmax()))
    if place.query == HERE:
        place = replace(place, query=position)
    if place.key == STRONGEST:
        row = rows_of_attention(t, place.block, torch.tensor([place.query]))[place.head, 0]
        place = replace(place, key=int(row.argmax()))
    if place.unit == STRONGEST:
        place = replace(
            place, unit=int(np.argmax(feed_forward.units(lm, t, place.block, position).writes))
        )
    if place.id == BEST:
        place = replace(place, id=int(t.logits(position).argmax()))
    return place
