"""`page()`: the frame of every page. It draws title, prompt and chips, and hands over the Scene."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gptviz import CaptureError, LanguageModel, Trace
from gptviz.figures import Figure
from gptviz.figures.theme import Mode, palette
from gptviz.trace import Token
from gptviz.ui import glossary
from gptviz.ui.components.chart import chart
from gptviz.ui.components.chips import chips
from gptviz.ui.components.theme_watch import follow_theme
from gptviz.ui.models import in_use as models
from gptviz.ui.models.choice import Choice
from gptviz.ui.models.in_use import InUse
from gptviz.ui.models.notice import notice
from gptviz.ui.models.picker import picker
from gptviz.ui.models.switch import follow
from gptviz.ui.runs import Keep, trace_cache
from gptviz.ui.shell import address, state
from gptviz.ui.shell import prompt as prompt_box
from gptviz.ui.shell.navigation import PAGES, draw_links, ensure_navigation
from gptviz.ui.shell.prompt import Reading
from gptviz.ui.shell.state import Prompt
from gptviz.ui.words import show_id

# A file of ours: emoji and Material icons would be fetched from the internet as a favicon.
ICON = Path(__file__).resolve().parents[2] / "assets" / "icon.svg"

STYLE = """
<style>
  .block-container, [data-testid="stMainBlockContainer"] { max-width: 1240px; }
  [data-testid="stMainBlockContainer"] { padding-left: 2.5rem; padding-right: 2.5rem; }
  .st-key-gv_title h1 { font-size: 1.7rem; padding: 0; }
  .st-key-gv_title p { opacity: 0.75; }
  .st-key-gv_prompt textarea { font-size: 1.1rem; line-height: 1.45; }
  button[kind^="primary"]:enabled, button[kind^="primary"]:enabled p { color: ON_ACCENT; }
  @media (max-width: 640px) {
    [data-testid="stMainBlockContainer"] { padding-left: 1rem; padding-right: 1rem; }
  }
</style>
"""


@dataclass(frozen=True)
class Scene:
    """What a page has in front of it: one prompt, read by one model, captured.

    `key` tells the model from every other, for caches; `load` is what `gptviz.load` needs to give it.
    """

    lm: LanguageModel
    key: str
    load: str
    trace: Trace
    text: str
    tokens: list[Token]
    position: int
    mode: Mode
    truncated: bool
    special: bool

    def select(self, position: int) -> None:
        """Select a token; for callbacks, so that the next run shows it."""
        state.change(token=max(0, min(position, len(self.tokens) - 1)))

    def append(self, token_id: int) -> None:
        """Extend the prompt by a token's text; for callbacks."""
        refusal = prompt_box.append(self.lm, self.tokens, token_id)
        if refusal:
            st.toast(refusal)

    def chart(
        self,
        fig: Figure,
        key: str,
        alt: str,
        height: int | None = None,
        on_select: Callable[[], Any] | None = None,
    ) -> None:
        """Draw a figure with its picture downloads. `on_select` runs when a point is clicked; the points
        are then in st.session_state[key]."""
        chart(fig, key, alt, self.mode, height, on_select)

    def chips(self, key: str, highlight: Mapping[int, str] | None = None) -> None:
        """The strip of tokens once more, with roles underlined: {position: "query" or "key" ...}."""
        chips(self.tokens, self.position, self.mode, self.select, key=key, highlight=highlight)


def page(
    title: str,
    keep: Iterable[str | tuple[str, int]] | None = (),
    question: str | None = None,
    choices: address.Choices | None = None,
) -> Scene:
    """The first line of a page: the frame is drawn, the prompt is read and traced.

    `keep` lists the sites that the page reads, as in `LanguageModel.trace`. `question` is the line
    under the title; without it the page's own from `PAGES`. `choices` are the page's own parameters in
    the address that clicks change as well as widgets (see `address`). Ends the run with a sentence when there
    is nothing to show.
    """
    mode = _head(title, question)
    prompt = state.current()
    prompt_box.box(prompt)
    strip = st.container(key="gv_chips")
    model = _model(prompt, strip)
    lm = model.lm
    reading = prompt_box.read(lm, prompt.text, prompt.special)
    raws = tuple(token.raw for token in lm.tokens(reading.ids))
    token, switched = follow(model, prompt.text, prompt.special, raws, prompt.token)
    if token is not None and reading.ids:
        prompt = state.change(token=min(token, len(reading.ids) - 1))
    address.read(choices or {})
    state.write_address(prompt, choices or {})
    _sidebar(prompt, model)
    with strip:
        notice(model, _choose)
        _end_unless_readable(reading)
        if reading.notice:
            st.warning(reading.notice)
        if switched:
            st.caption(switched)
        trace = _traced(model, reading, None if keep is None else tuple(keep))
    scene = Scene(
        lm=lm,
        key=model.key,
        load=models.code_of(model),
        trace=trace,
        text=prompt.text,
        tokens=trace.tokens,
        position=len(trace) - 1 if prompt.token is None else prompt.token,
        mode=mode,
        truncated=reading.truncated,
        special=prompt.special,
    )
    following = None if reading.truncated else _following(lm, trace)
    with strip:
        chips(scene.tokens, scene.position, scene.mode, scene.select, following=following)
    return scene


def _head(title: str, question: str | None) -> Mode:
    """What stands above the prompt; gives back whether the browser is in light or dark."""
    st.set_page_config(
        page_title=f"{title} · gptviz", page_icon=str(ICON), layout="wide", initial_sidebar_state=236
    )
    ensure_navigation()
    mode: Mode = "dark" if st.context.theme.type == "dark" else "light"
    st.html(STYLE.replace("ON_ACCENT", palette(mode).paper) + glossary.STYLE)
    with st.container(key="gv_title", horizontal=True, vertical_alignment="bottom", gap="small"):
        st.title(title, anchor=False, width="content")
        st.markdown(
            question or next((q for name, _, q in PAGES.values() if name == title), ""), width="content"
        )
        follow_theme()
    return mode


def _model(prompt: Prompt, strip: DeltaGenerator) -> InUse:
    try:
        return models.in_use(prompt.model)
    except ValueError as error:  # not even the bundled one: a setting of the server is wrong
        strip.error(f"No model can be loaded: {error}")
        st.stop()


def _choose(choice: Choice) -> None:
    state.change(model=choice)


def _traced(model: InUse, reading: Reading, keep: Keep | None) -> Trace:
    try:
        return trace_cache().get(model.key, model.lm, reading.ids, keep)
    except CaptureError as error:
        st.error(f"Nothing is shown, since the model did not do what it should: {error}")
        st.stop()


def _sidebar(prompt: Prompt, model: InUse) -> None:
    with st.sidebar:
        st.markdown("### gptviz")
        draw_links(prompt)
        st.space("small")
        picker(model, _choose)
        prompt_box.special_switch(prompt)


def _end_unless_readable(reading: Reading) -> None:
    """End the run with a sentence where there is nothing that the model could read."""
    if reading.refusal:
        st.warning(reading.refusal)
        st.stop()
    if not reading.ids:
        st.info("The prompt is empty. Type a text, and press Run or Ctrl+Enter.")
        st.stop()


def _following(lm: LanguageModel, trace: Trace) -> dict[str, Any]:
    """The most probable next token, for the end of the strip."""
    best = trace.next_tokens(k=1).iloc[0]
    shown = show_id(lm, int(best["id"]))
    return {
        "shown": shown,
        "title": f"The most probable next token is `{shown}`, with probability {best['probability']:.3f}",
        "id": int(best["id"]),
        "probability": float(best["probability"]),
    }
