"""The Overview's row of small pictures, each a door to its page."""

import base64
from collections.abc import Callable
from functools import partial
from typing import Any
from urllib.parse import urlencode

import numpy as np
import streamlit as st
from numpy.typing import NDArray

from gptviz import LanguageModel, Run, Token
from gptviz.analysis.embeddings import shared_scale
from gptviz.analysis.overview import Glance, folded, glance, sites
from gptviz.analysis.overview import around as tokens_around
from gptviz.both import alike
from gptviz.digits import percent
from gptviz.engine.config import GPTConfig
from gptviz.figures import head_grid
from gptviz.figures.strips import norm_lines, strip
from gptviz.figures.theme import Mode
from gptviz.tokenizer import show_token
from gptviz.ui import heads, runs
from gptviz.ui.components.doors import draw_doors
from gptviz.ui.components.groups import shared_characters
from gptviz.ui.runs import per_run
from gptviz.ui.shell import state
from gptviz.ui.shell.navigation import PAGES, page_target
from gptviz.ui.shell.scene import Scene
from gptviz.ui.views.overview import words
from gptviz.ui.words import show_id

# what happens to a text, in order; the three of `BLOCK` again in every block
DOORS = ("tokens", "embeddings", "layernorm", "attention", "feed_forward", "next_token")
BLOCK = ("layernorm", "attention", "feed_forward")

DIMENSIONS = 48  # of the embedding in the small strips: more would be narrower than a pixel


def doors(scene: Scene) -> None:
    """Draw the six doors; a click on one goes to its page."""
    query = urlencode(state.link())
    cards = [
        {**card, "title": PAGES[card["page"]].title, "href": f"./{card['page']}{'?' if query else ''}{query}"}
        for card in pictures(scene.run, scene.position, scene.mode)
    ]
    saved = scene.saved("overview", "From a text to the next token, in six pictures")
    layers = scene.lm.config.n_layers
    around = {"first": DOORS.index(BLOCK[0]), "last": DOORS.index(BLOCK[-1]), "label": words.block(layers)}
    opened = draw_doors(cards, scene.mode, around=around, saved=saved)
    if opened is not None:
        st.switch_page(page_target(opened), query_params=state.link())


@per_run
def glanced(run: Run, position: int) -> Glance:
    return glance(runs.get(run, sites(runs.model(run).config)), position)


@per_run
def unchanged(run: Run, position: int) -> dict[int, float] | None:
    """What the model as it is gives the tokens that are drawn, by id; None where nothing is changed."""
    if not run.edits:
        return None
    probabilities = runs.get(run.plain, ()).logits(position).double().softmax(dim=-1)  # (V,)
    return {int(i): float(probabilities[i]) for i in glanced(run, position).following["id"]}


@per_run
def pictures(run: Run, position: int, mode: Mode) -> list[dict[str, Any]]:
    """What stands behind the doors, for all who look at this token of this run."""
    lm, seen = runs.model(run), glanced(run, position)
    tokens, old = lm.tokens(run.ids), glanced(run.plain, position) if run.edits else None
    return [
        _tokens(tokens, position),
        _embeddings(seen, old, mode),
        _layernorm(seen, old, mode),
        _attention(run, lm.config, mode),
        _feed_forward(seen, old, lm.config, mode),
        _next_token(lm, tokens[position], seen, unchanged(run, position)),
    ]


def _tokens(tokens: list[Token], position: int) -> dict[str, Any]:
    chosen, near = tokens[position], tokens_around(tokens, position)
    rows = [
        {
            "shown": show_token(token.raw),
            "position": token.position,
            "id": token.id,
            "chosen": token.position == position,
        }
        for token in near
    ]
    return {
        "page": "tokens",
        "picture": {
            "draw": "tokens",
            "tokens": rows,
            "groups": shared_characters([token.raw for token in near]),
        },
        "caption": words.tokens(len(tokens), show_token(chosen.raw), chosen.id),
    }


def _strip(
    label: str,
    values: NDArray[np.float32],
    unchanged: NDArray[np.float32] | None,
    limit: float,
    describe: Callable[[str], str],
    mode: Mode,
) -> dict[str, Any]:
    """One of the strips of a door, with the `unchanged` values below it where they are others.

    `describe` names it for who does not see it.
    """

    def drawn(numbers: NDArray[np.float32], what: str) -> dict[str, Any]:
        return {"alt": describe(what), "image": _data_url(strip(numbers, limit, mode), "image/png")}

    what = label.lstrip("+= ")
    made = {"label": label, **drawn(values, what)}
    if unchanged is not None and not alike(values, unchanged):
        made["unchanged"] = drawn(unchanged, words.unchanged(what))
    return made


def _embeddings(seen: Glance, old: Glance | None, mode: Mode) -> dict[str, Any]:
    n_tokens, size = seen.parts.shape[1:]
    shown = min(size, DIMENSIONS)

    def describe(what: str) -> str:
        return words.strip_alt(what, n_tokens, shown, size, seen.limit)

    strips = [
        _strip(
            label,
            seen.parts[part][:, :shown],
            None if old is None else old.parts[part][:, :shown],
            seen.limit,
            describe,
            mode,
        )
        for part, label in enumerate(("token", "+ position", "= what goes in"))
    ]
    return {
        "page": "embeddings",
        "picture": {"draw": "strips", "strips": strips},
        "caption": words.embeddings(size, any("unchanged" in drawn for drawn in strips)),
    }


def _attention(run: Run, config: GPTConfig, mode: Mode) -> dict[str, Any]:
    png = heads.mosaic(run, mode)
    marks, said = None, ""
    if run.edits:
        side = head_grid.mosaic_side(len(run))
        marks = {"side": side, "gap": head_grid.GAP_PX, "heads": heads.marks(run)}
        said = heads.marks_say(run)
    return {
        "page": "attention",
        "picture": {
            "draw": "heads",
            "image": _data_url(png, "image/png"),
            "alt": words.attention_alt(config.n_layers, config.n_heads),
            "marks": marks,
        },
        "caption": words.attention(config.n_layers, config.n_heads, said),
    }


def _feed_forward(seen: Glance, old: Glance | None, config: GPTConfig, mode: Mode) -> dict[str, Any]:
    block, both = config.n_layers - 1, [seen] if old is None else [seen, old]
    parts = list(zip(*([*one.units, one.added] for one in both), strict=True))  # three, of one run or of two
    units, added = (shared_scale(np.stack(rows), 0.98).limit for rows in ([*parts[0], *parts[1]], parts[2]))
    strips = []
    labels = words.feed_forward_strips(len(seen.units[0]))
    for label, part, limit in zip(labels, parts, (units, units, added), strict=True):
        describe = partial(words.units_alt, block=block, count=len(part[0]), limit=limit)
        values, *other = map(folded, part)
        strips.append(_strip(label, values, other[0] if other else None, limit, describe, mode))
    fired = [int((one.units[0] > 0).sum()) for one in both]
    return {
        "page": "feed_forward",
        "picture": {"draw": "strips", "strips": strips},
        "caption": words.feed_forward(
            block,
            len(seen.units[0]),
            fired[0],
            None if old is None else fired[1],
            drawn=any("unchanged" in made for made in strips),
        ),
    }


def _layernorm(seen: Glance, old: Glance | None, mode: Mode) -> dict[str, Any]:
    before = float(seen.before[0]), float(seen.before[-1])
    after = float(seen.after.min()), float(seen.after.max())
    unchanged = None if old is None else (old.before, old.after)
    if unchanged and all(map(alike, (seen.before, seen.after), unchanged)):
        unchanged = None
    svg = norm_lines(seen.before, seen.after, mode, unchanged)
    return {
        "page": "layernorm",
        "picture": {
            "draw": "svg",
            "svg": svg,
            "alt": words.layernorm_alt(len(seen.norms), before, after),
        },
        "caption": words.layernorm(
            len(seen.norms),
            before,
            after,
            None if old is None else float(old.before[-1]),
            drawn=unchanged is not None,
        ),
    }


def _next_token(
    lm: LanguageModel, after: Token, seen: Glance, before: dict[int, float] | None
) -> dict[str, Any]:
    bars = []
    for row in seen.following.itertuples():
        shown = show_id(lm, int(row.id))
        ghost = None if before is None else before[int(row.id)]
        bars.append(
            {
                "shown": shown,
                "id": int(row.id),
                "probability": float(row.probability),
                "percent": percent(row.probability),
                "title": words.bar(shown, row.probability, ghost),
                "ghost": ghost,
            }
        )
    return {
        "page": "next_token",
        "picture": {"draw": "bars", "bars": bars},
        "caption": words.next_token(lm.config.vocab_size, show_token(after.raw)),
    }


def _data_url(content: bytes, mime: str) -> str:
    return f"data:{mime};base64,{base64.b64encode(content).decode()}"
