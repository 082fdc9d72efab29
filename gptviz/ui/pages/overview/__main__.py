"""The whole way from the text to the next token, on one screen."""

from collections.abc import Sequence
from urllib.parse import urlencode

import pandas as pd
import streamlit as st

from gptviz import LanguageModel
from gptviz.analysis.overview import glance, token_table
from gptviz.analysis.reads import Sites, sites_of
from gptviz.both import Both
from gptviz.engine.reduction import Reduction
from gptviz.engine.trace import Token
from gptviz.model import GPTModel
from gptviz.ui import heads, sheet
from gptviz.ui.components.doors import draw_doors
from gptviz.ui.pages.overview.doors import doors
from gptviz.ui.shell import changes, guide, state
from gptviz.ui.shell.examples import example_row
from gptviz.ui.shell.navigation import PAGES, page_target
from gptviz.ui.shell.page import page
from gptviz.ui.shell.target import whole
from gptviz.ui.words import as_code, counted, prose, show_id


def needs(lm: LanguageModel, tokens: Sequence[Token]) -> tuple[Sites, tuple[Reduction, ...]]:
    """What the page reads of a pass: rows of numbers, and of the heads only what their pictures need."""
    changed = changes.made(changes.found(lm, len(tokens)))
    compared = (heads.rows_to_compare(lm.config, len(tokens)),) if changed else ()
    return sites_of(glance, lm), (heads.SMALL, *compared)


scene = page("Overview", needs)
config, position, seen = scene.lm.config, scene.position, sheet.of(scene, glance, scene.position)
best = int(seen.now.following["id"].iloc[0])


def chance(token: int) -> Both[float]:
    return Both(scene.run, scene.other).map(lambda run: whole(run, position, token, None)[1])


prose(
    f"The {'model' if scene.other is None else 'changed model'} reads your "
    f"{counted(len(scene.tokens), 'token')} in one pass. After {as_code(scene.label)} (position {position}) "
    f"it expects {as_code(show_id(scene.lm, best))}: {chance(best):%}.",
    *("token", "position"),
)
guide.offers()
query = urlencode(state.link())
cards = [
    {**card, "title": PAGES[card["page"]].title, "href": f"./{card['page']}{'?' if query else ''}{query}"}
    for card in doors(scene.run, position, scene.mode)
]
blocks = "the block" if config.n_layers == 1 else f"a block, of {config.n_layers} one after the other"
opened = draw_doors(
    cards,
    scene.mode,
    around={"first": 2, "last": 4, "label": blocks},
    saved=scene.saved("overview", "From a text to the next token, in six pictures"),
)
if opened is not None:
    st.switch_page(page_target(opened), query_params=state.link())
example_row()
prose(
    "**What you see** is one pass of a real GPT over your text, from left to right; nothing is made up. The "
    f"text becomes tokens, the tokens become rows of {config.emb_dim} numbers, these go through "
    f"{counted(config.n_layers, 'block')}, and the last row of all becomes a guess. In a block each row "
    f"reads those before it, through {counted(config.n_heads, 'attention head')}; then the feed-forward "
    "works on it by itself. A LayerNorm before each keeps the numbers in range, and what each makes is added "
    "to the row: that is the residual stream. Click a picture to look inside; click a token above to follow "
    "that one; type a text of your own."
    + ("" if scene.other is None else " Framed, dashed and outlined is the unchanged model."),
    *("block", "attention", "head", "LayerNorm", "feed-forward", "residual stream"),
)

# ---- details ----

sheet.numbers_of(
    "overview.csv",
    lambda: sheet.of(scene, token_table),
    "A row per token: its embeddings' lengths, and the variance (the spread, squared) of its numbers before "
    "the first and the last LayerNorm.",
)
sheet.numbers_of(
    "overview-norms",
    lambda: seen.map(lambda s: s.norms),
    "The selected token's spread (standard deviation) before and after each LayerNorm.",
    what="the LayerNorms",
)
if scene.other is not None:
    sheet.numbers_of(
        "overview-heads",
        lambda: Both(heads.marks_table(scene.run)),
        "A row per head: whether it is itself changed, and how far its pattern moved by what is changed (the "
        "mean total variation of its rows: 0 for none, 1 for all).",
        what="the heads",
    )


def following() -> pd.DataFrame:
    """The bars' tokens, with what the unchanged model gives them."""
    found = seen.now.following
    if scene.other is None:
        return found
    return found.assign(**{"unchanged probability": [chance(int(i)).was for i in found["id"]]})


sheet.numbers_of("overview-next", lambda: Both(following()), what="the next token")
sheet.code_of(
    scene,
    [GPTModel.forward, GPTModel.final_hidden],
    glance,
    position,
)
