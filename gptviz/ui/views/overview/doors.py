"""The Overview's row of small pictures, each a door to its page."""

import base64
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from gptviz import Run, Token
from gptviz.analysis.overview import Glance, around, smaller_attention
from gptviz.figures.sheet import mosaic, pool
from gptviz.figures.strips import norm_lines, strip
from gptviz.figures.theme import Mode, position_color
from gptviz.tokenizer import show_token
from gptviz.ui import runs
from gptviz.ui.components.kernel import saving_component
from gptviz.ui.runs import per_run
from gptviz.ui.shell import state
from gptviz.ui.shell.navigation import PAGES, page_target
from gptviz.ui.shell.scene import Scene
from gptviz.ui.views.overview import words
from gptviz.ui.words import show_id

DIMENSIONS = 48  # of the embedding in the small strips: more would be narrower than a pixel

_component = saving_component("doors")


def doors(scene: Scene, glance: Glance) -> None:
    """Draw the five doors; a click on one goes to its page."""
    cards = [
        _tokens(scene),
        _embeddings(scene, glance),
        _attention(scene),
        _layernorm(scene, glance),
        _next_token(scene, glance),
    ]
    for card in cards:
        card["title"] = PAGES[card["page"]][0]
        card["href"] = _address(card["page"])
    opened = _component(key="doors", data={"doors": cards}, on_page_change=lambda: None).page
    if opened in PAGES:
        st.switch_page(page_target(opened), query_params=state.link())


def _address(name: str) -> str:
    params = urlencode(state.link())
    return f"./{name}?{params}" if params else f"./{name}"


def _tokens(scene: Scene) -> dict[str, Any]:
    chosen = scene.tokens[scene.position]
    rows = [
        {
            "shown": show_token(token.raw),
            "position": token.position,
            "id": token.id,
            "color": position_color(token.position, scene.mode),
            "chosen": token.position == scene.position,
        }
        for token in around(list(scene.tokens), scene.position)
    ]
    return {
        "page": "tokens",
        "picture": {"draw": "tokens", "tokens": rows},
        "caption": words.tokens(len(scene.tokens), show_token(chosen.raw), chosen.id),
    }


def _embeddings(scene: Scene, glance: Glance) -> dict[str, Any]:
    n_tokens, size = glance.parts.shape[1:]
    shown = min(size, DIMENSIONS)
    strips = []
    for label, part in zip(("token", "+ position", "= what goes in"), glance.parts, strict=True):
        alt = words.strip_alt(label.lstrip("+= "), n_tokens, shown, size, glance.limit)
        image = strip(part[:, :shown], glance.limit, scene.mode)
        strips.append({"label": label, "alt": alt, "image": _data_url(image, "image/png")})
    return {
        "page": "embeddings",
        "picture": {"draw": "strips", "strips": strips},
        "caption": words.embeddings(size),
    }


def _attention(scene: Scene) -> dict[str, Any]:
    config = scene.lm.config
    png = heads_picture(scene.run, scene.mode)
    return {
        "page": "attention",
        "picture": {
            "draw": "image",
            "image": _data_url(png, "image/png"),
            "alt": words.attention_alt(config.n_layers, config.n_heads),
        },
        "caption": words.attention(config.n_layers, config.n_heads),
    }


@per_run
def heads_picture(run: Run, mode: Mode) -> bytes:
    """The sheet of all heads; a long text's weights are never together in memory."""
    config = runs.model(run).config
    if len(run.ids) <= 256:
        trace = runs.get(run, ("attn",))
        return mosaic([trace["attn", b].numpy() for b in range(config.n_layers)], mode)
    return mosaic(smaller_attention(runs.model(run), run.ids, pool), mode)


def _layernorm(scene: Scene, glance: Glance) -> dict[str, Any]:
    before = float(glance.before[0]), float(glance.before[-1])
    after = float(glance.after.min()), float(glance.after.max())
    svg = norm_lines(glance.before, glance.after, scene.mode)
    return {
        "page": "layernorm",
        "picture": {
            "draw": "svg",
            "svg": svg,
            "alt": words.layernorm_alt(len(glance.norms), before, after),
        },
        "caption": words.layernorm(len(glance.norms), before, after),
    }


def _next_token(scene: Scene, glance: Glance) -> dict[str, Any]:
    bars = []
    for row in glance.following.itertuples():
        shown = show_id(scene.lm, int(row.id))
        bars.append(
            {
                "shown": shown,
                "id": int(row.id),
                "probability": float(row.probability),
                "percent": words.percent(row.probability),
                "title": words.bar(shown, row.probability),
            }
        )
    after: Token = scene.tokens[scene.position]
    return {
        "page": "next_token",
        "picture": {"draw": "bars", "bars": bars},
        "caption": words.next_token(scene.lm.config.vocab_size, show_token(after.raw)),
    }


def _data_url(content: bytes, mime: str) -> str:
    return f"data:{mime};base64,{base64.b64encode(content).decode()}"
