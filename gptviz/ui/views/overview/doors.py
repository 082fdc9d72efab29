"""The Overview's row of small pictures, each a door to its page."""

import base64
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from gptviz import LanguageModel, Run, Token
from gptviz.analysis.overview import SITES, Glance, around, glance
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

DOORS = ("tokens", "embeddings", "attention", "layernorm", "next_token")  # what happens to a text, in order

DIMENSIONS = 48  # of the embedding in the small strips: more would be narrower than a pixel


def doors(scene: Scene) -> None:
    """Draw the five doors; a click on one goes to its page."""
    query = urlencode(state.link())
    cards = [
        {**card, "title": PAGES[card["page"]][0], "href": f"./{card['page']}{'?' if query else ''}{query}"}
        for card in pictures(scene.run, scene.position, scene.mode)
    ]
    saved = scene.saved("overview", "From a text to the next token, in five pictures")
    opened = draw_doors(cards, scene.mode, saved=saved)
    if opened is not None:
        st.switch_page(page_target(opened), query_params=state.link())


@per_run
def glanced(run: Run, position: int) -> Glance:
    return glance(runs.get(run, SITES), position)


@per_run
def pictures(run: Run, position: int, mode: Mode) -> list[dict[str, Any]]:
    """What stands behind the doors, for all who look at this token of this run."""
    lm, seen = runs.model(run), glanced(run, position)
    tokens = lm.tokens(run.ids)
    return [
        _tokens(tokens, position),
        _embeddings(seen, mode),
        _attention(run, lm.config, mode),
        _layernorm(seen, mode),
        _next_token(lm, tokens[position], seen),
    ]


def _tokens(tokens: list[Token], position: int) -> dict[str, Any]:
    chosen, near = tokens[position], around(tokens, position)
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


def _next_token(lm: LanguageModel, after: Token, seen: Glance) -> dict[str, Any]:
    bars = []
    for row in seen.following.itertuples():
        shown = show_id(lm, int(row.id))
        bars.append(
            {
                "shown": shown,
                "id": int(row.id),
                "probability": float(row.probability),
                "percent": words.percent(row.probability),
                "title": words.bar(shown, row.probability),
            }
        )
    return {
        "page": "next_token",
        "picture": {"draw": "bars", "bars": bars},
        "caption": words.next_token(lm.config.vocab_size, show_token(after.raw)),
    }


def _data_url(content: bytes, mime: str) -> str:
    return f"data:{mime};base64,{base64.b64encode(content).decode()}"
