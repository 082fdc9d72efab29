"""The Overview's row of small pictures, each a door to its page."""

import base64
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from gptviz import LanguageModel, Run, Token
from gptviz.analysis.embeddings import shared_scale
from gptviz.analysis.overview import Glance, folded, glance, sites
from gptviz.analysis.overview import around as tokens_around
from gptviz.config import GPTConfig
from gptviz.figures.strips import norm_lines, strip
from gptviz.figures.theme import Mode
from gptviz.tokenizer import show_token
from gptviz.ui import runs
from gptviz.ui.components.doors import draw_doors
from gptviz.ui.components.groups import shared_characters
from gptviz.ui.runs import per_run
from gptviz.ui.shell import state
from gptviz.ui.shell.navigation import PAGES, page_target
from gptviz.ui.shell.scene import Scene
from gptviz.ui.views import heads
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
        {**card, "title": PAGES[card["page"]][0], "href": f"./{card['page']}{'?' if query else ''}{query}"}
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
    tokens = lm.tokens(run.ids)
    return [
        _tokens(tokens, position),
        _embeddings(seen, mode),
        _layernorm(seen, mode),
        _attention(run, lm.config, mode),
        _feed_forward(seen, lm.config, mode),
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


def _embeddings(seen: Glance, mode: Mode) -> dict[str, Any]:
    n_tokens, size = seen.parts.shape[1:]
    shown = min(size, DIMENSIONS)
    strips = []
    for label, part in zip(("token", "+ position", "= what goes in"), seen.parts, strict=True):
        alt = words.strip_alt(label.lstrip("+= "), n_tokens, shown, size, seen.limit)
        image = strip(part[:, :shown], seen.limit, mode)
        strips.append({"label": label, "alt": alt, "image": _data_url(image, "image/png")})
    return {
        "page": "embeddings",
        "picture": {"draw": "strips", "strips": strips},
        "caption": words.embeddings(size),
    }


def _attention(run: Run, config: GPTConfig, mode: Mode) -> dict[str, Any]:
    png = heads.mosaic(run, mode)
    return {
        "page": "attention",
        "picture": {
            "draw": "image",
            "image": _data_url(png, "image/png"),
            "alt": words.attention_alt(config.n_layers, config.n_heads),
        },
        "caption": words.attention(config.n_layers, config.n_heads),
    }


def _feed_forward(seen: Glance, config: GPTConfig, mode: Mode) -> dict[str, Any]:
    before, after = seen.units
    block, fired = config.n_layers - 1, int((before > 0).sum())
    limits = [shared_scale(values, share=0.98).limit for values in (seen.units, seen.added)]
    labels = words.feed_forward_strips(len(before))
    strips = []
    for label, values, limit in zip(labels, (before, after, seen.added), (limits[0], *limits), strict=True):
        alt = words.units_alt(label.lstrip("= "), block, len(values), limit)
        image = strip(folded(values), limit, mode)
        strips.append({"label": label, "alt": alt, "image": _data_url(image, "image/png")})
    return {
        "page": "feed_forward",
        "picture": {"draw": "strips", "strips": strips},
        "caption": words.feed_forward(block, fired, len(before)),
    }


def _layernorm(seen: Glance, mode: Mode) -> dict[str, Any]:
    before = float(seen.before[0]), float(seen.before[-1])
    after = float(seen.after.min()), float(seen.after.max())
    svg = norm_lines(seen.before, seen.after, mode)
    return {
        "page": "layernorm",
        "picture": {
            "draw": "svg",
            "svg": svg,
            "alt": words.layernorm_alt(len(seen.norms), before, after),
        },
        "caption": words.layernorm(len(seen.norms), before, after),
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
                "percent": words.percent(row.probability),
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
