"""A guess in four beats, and the whole machine as one picture to zoom into, down to a single number."""

from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from gptviz import LanguageModel
from gptviz.analysis import machine, overview
from gptviz.analysis.places import parse, resolve
from gptviz.analysis.reads import Sites, sites_of
from gptviz.both import Both
from gptviz.engine.architecture import architecture_of
from gptviz.engine.reduction import Reduction
from gptviz.teach.guides.way import way
from gptviz.ui import heads, runs, sheet, tables, words
from gptviz.ui.components.machine import machine as draw
from gptviz.ui.shell import navigation, picture, state
from gptviz.ui.teach import guide

SAID = "overview_said"  # in the session: why no word was written, and the text that this is said of


def reads(lm: LanguageModel, count: int) -> tuple[Sites, tuple[Reduction, ...]]:
    """The sites and reductions that the page needs, for the place in hand and where *Play* leads.

    The view of the whole model needs only the residual stream's lengths, reduced during the pass.
    """
    places = [(at, 0) for at, _ in stops]
    sites = machine.reading(lm)
    lengths = machine.LENGTHS
    if chosen.at:
        places.append((chosen.at, count - 1))
        sites = sites_of(machine.level, lm, chosen.at)
        lengths = ()
    return (*sites, *(site for place in places for site in sites_of(resolve, lm, *place))), lengths


picture.arrive()
chosen = parse(picture.AT.value)
named = state.TOKEN.value is not None or "token" in st.query_params
if chosen.kind == "cell" and chosen.query >= 0 and not named:
    state.TOKEN.set(chosen.query)  # the link of a cell names its query
frame = sheet.start_page("Overview", choices=[picture.AT])
prompt = sheet.read_text(frame, room_beside=True)
kind = architecture_of(frame.lm.config)
stops = way(kind)
sites, lengths = reads(frame.lm, len(prompt.tokens))
scene = sheet.trace(prompt, keep=sites, reduce=lengths)

config = scene.lm.config
position = scene.position
# another token was selected: its own cell
if chosen.kind == "cell" and 0 <= chosen.query != position:
    chosen = replace(chosen, query=position, key=min(chosen.key, position))
here = sheet.once(scene.run, resolve, chosen.at, position)
picture.stored()
now = sheet.once(scene.run, machine.level, here.at, position)
was = None
if scene.other is not None:
    runs.get(scene.other, scene.keep, scene.reduce)
    was = sheet.once(scene.other, machine.level, here.at, position, now["shown"])
both = Both(now, was)
about = picture.page_about(here)


def go(at: str) -> None:
    """Callback: to another place, whose block, head and token every page then shows."""
    if at == picture.GUESS:
        picture.AT.set(None)
    else:
        picture.AT.set(parse(at).at or picture.WHOLE)
    _, chosen = picture.page_about(parse(at)) or ("", {})
    for name in ("block", "head", "token"):
        if chosen.get(name, -1) >= 0:
            st.session_state[name] = chosen[name]


def write_next() -> None:
    """Callback: the run's likeliest token at the end of the text; or a sentence why that cannot be."""
    refusal = scene.write_next()
    st.session_state[SAID] = (refusal, state.TEXT.value)


def captions_of(level: Both[machine.Level]) -> list[list[Any]]:
    """A short sentence for each of the four beats: texts, and tokens as code."""
    here = {"code": scene.label}
    count = len(scene.tokens)
    cut = [f"{words.counted(count, 'token')}. A dot (·) is a space."]
    if not any("·" in label for label in scene.labels):
        cut = [f"The text is cut into {words.counted(count, 'token')}."]
    looks_back: list[Any] = [here, " takes nothing from earlier tokens."]
    # the three threads of the picture, the thickest first: each comes from another position
    positions = list(dict.fromkeys(one["key"] for one in level.now["reads"]))[:3]
    read = [scene.labels[read_from] for read_from in positions]
    if read:
        looks_back = [here, " looks back, and takes most from "]
        for number, label in enumerate(read):
            if number:
                looks_back.append(", ")
            looks_back.append({"code": label})
        looks_back.append(".")
    times = "Once"
    if config.n_layers > 1:
        times = f"{config.n_layers} times"
    thinks = [f"{times}: look back (purple), then feed-forward (gold), each token by itself."]
    best = level.now["next"][0]
    chance = level.map(lambda one: float(one["next"][0]["value"]))
    guesses: list[Any] = ["The model's guess after ", here, ": ", {"code": best["shown"]}]
    name = words.sign_name(best["shown"])
    if name:
        guesses.append(f" ({name})")
    guesses.append(f", {chance:%}.")
    return [cut, looks_back, thinks, guesses]


with prompt.beside or st.container():
    told = "Write the model's guess at the end of the text, and see it guess again."
    sheet.button("Next word", "next_word", write_next, icon="play_arrow", help=told)
refusal, of_text = st.session_state.get(SAID, (None, None))
if of_text != state.TEXT.value:
    refusal = None

more = None
if about is not None:
    page, page_choices = about
    query = urlencode(state.link() | {name: str(value) for name, value in page_choices.items()})
    more = {"page": page, "title": navigation.PAGES[page].title, "href": f"./{page}?{query}"}
path = [(one.at, one.name) for one in here.path]
beside = [(one.at, one.name) for one in here.beside(config)]
played = [
    {"at": sheet.once(scene.run, resolve, at, position).at, "says": text} for at, text in stops
]
saved = scene.saved(
    "overview", f"From a text to the next token: {here.name}", here.at.replace(".", "-")
)
where = (path, scene.labels, position, beside, kind.named.words)
table = tables.joined(both.map(machine.table))
guess = None
look = None
if not picture.AT.value:
    guess = captions_of(both)
    look = sheet.example_row(says=False)
opened = draw(here.kind, both, table, *where, more, played, go, scene.select, saved, guess)
if opened is not None and about is not None:
    for name, value in page_choices.items():
        st.session_state[name] = value
    st.switch_page(navigation.page_target(opened), query_params=state.link())
if refusal:
    st.caption(refusal)
if guess is None:
    guide.offers()
    sheet.example_row()
else:
    # in one row, so that a teacher sees the tour and the lessons without scrolling
    with st.container(horizontal=True, gap="medium", vertical_alignment="center"):
        with st.container(key="gv_guess_links", horizontal=True, gap="small", width="content"):
            navigation.link("why", state.link(), label="Why this?", width="content")
            navigation.link("knock_out", state.link(), label="Switch a head off", width="content")
        guide.offers()
    if look is not None:
        st.caption(look)
blocks = "In the one block"
if config.n_layers > 1:
    blocks = f"In each of the {config.n_layers} blocks"
text = (
    "**What you see** is one pass of a real GPT over your text; nothing is made up. Each token is "
    f"a list of {config.emb_dim} numbers. Follow its ribbon from left to right: the larger the "
    f"numbers, the thicker the ribbon. {blocks}, attention (purple) fetches information from the "
    f"tokens so far with {words.counted(config.n_heads, 'head')}; then the feed-forward layer "
    "(gold) works on each token alone. Both add their result to the ribbon: that running sum is "
    "the residual stream. The purple lines show the largest contributions from other tokens to the "
    "selected one. Click anything to zoom in (or use Ctrl and the wheel, or two fingers). Press Esc "
    "to zoom out."
)
if scene.other is not None:
    text += " Dashed outline: the model before your change."
words.prose(text, "token", "block", "attention", "head", "feed-forward", "residual stream")

# ---- details ----

spread = "spread (standard deviation)"
squared = "variance (the spread, squared)"
if not kind.centred:
    spread = "root mean square"
    squared = "mean square"
with sheet.details():
    sheet.numbers_of("overview-place", lambda: both.map(machine.table), what="this picture")
    caption = (
        f"One row per token: the norms of its embeddings, and the {squared} of its "
        f"numbers before the first and the last {scene.norm}."
    )
    sheet.numbers_of("overview.csv", lambda: sheet.of(scene, overview.token_table), caption)
    caption = f"The selected token's {spread} before and after each {scene.norm}."
    sheet.numbers_of(
        "overview-norms",
        lambda: sheet.of(scene, overview.spreads, position),
        caption,
        what=f"the {scene.norm}s",
    )
    if scene.other is not None:
        caption = (
            "One row per head: whether your change is in the head itself, and how far the change moved "
            "its attention pattern (the mean total variation of its rows: 0 for none, 1 for all)."
        )
        sheet.numbers_of(
            "overview-heads", lambda: heads.marks_table(scene.run), caption, what="the heads"
        )
    sheet.code_of(scene, ["model", "hidden"], machine.level, here.at, position)
