"""The panel "Loops": greedy against temperature, the share that repeats, and the head that looks at it."""

from dataclasses import dataclass, replace
from html import escape

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from gptviz import Run
from gptviz.analysis import repetition as numbers
from gptviz.analysis.repetition import repeated, share_along, without_heads
from gptviz.figures.next_token import mixed
from gptviz.figures.repetition import repetition
from gptviz.figures.theme import palette
from gptviz.sampling import Sampling
from gptviz.ui.shell.details import in_code, in_numbers, program
from gptviz.ui.shell.params import Param, if_there
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Scene
from gptviz.ui.views.generate.panels import derived, words
from gptviz.ui.views.generate.panels.derived import Induction
from gptviz.ui.views.generate.panels.links import attention_link, text_so_far
from gptviz.ui.views.generate.panels.loops_snippet import shares
from gptviz.ui.views.generate.written import Written
from gptviz.ui.views.panel import panel
from gptviz.ui.views.slow import is_asked_for
from gptviz.ui.words import show_id

COUNTS, PIECES = (30, 60, 120), (2, 3, 4, 6)
COUNT, PIECE = Param("loop_tokens", int, 60, if_there), Param("loop_piece", int, 3, if_there)
PARAMS = (COUNT, PIECE)

GREEDY = Sampling(temperature=0)
MUTED = 5  # heads at most
WEIGHT_BYTES = 2**29  # to read so many of a model's weights for 120 tokens takes some seconds


def draw(scene: Scene, written: Written) -> None:
    """The panel, for the text before what was written; closed it costs nothing."""
    with panel("Loops and dull text", ":material/repeat:", "generate_loops_box") as opened:
        if opened:
            _draw(scene, written)


@dataclass(frozen=True)
class Text:
    """What was written with some settings: ids, whether each repeats something, and the share so far."""

    name: str
    prompt: tuple[int, ...]
    new: tuple[int, ...]
    repeats: NDArray[np.bool_]
    share: NDArray[np.float64]

    @property
    def ids(self) -> tuple[int, ...]:
        return self.prompt + self.new


def _draw(scene: Scene, written: Written) -> None:
    sentence = st.container()
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        COUNT.within(COUNTS)
        PIECE.within(PIECES)
        count = COUNT.widget(st.selectbox, "Tokens", options=COUNTS, width=110)
        n = PIECE.widget(
            st.selectbox,
            "Pieces of",
            options=PIECES,
            width=110,
            help="So many tokens that stood together before.",
        )
    warm = written.sampling if not written.sampling.greedy else replace(written.sampling, temperature=1.0)
    if _slow(scene, written, count) and not st.toggle(words.ask_write(count), key="generate_loops_ask"):
        return
    greedy = _write(scene, written, GREEDY, count, n, "temperature 0")
    drawn = _write(scene, written, warm, count, n, f"temperature {warm.temperature:g}")
    with sentence:
        ends = float(greedy.share[-1]), float(drawn.share[-1])
        prose(words.loops(*ends, n, count, warm.temperature, warm.seed or 0), "temperature", "token")
        _say_loop(scene, greedy)
    for place, text in zip(st.columns(2, gap="medium"), (greedy, drawn), strict=True):
        with place:
            st.html(_as_html(scene, text))
    st.caption(words.REPEATS)
    run = Run(written.model, greedy.ids[-written.context :])
    found = derived.induction(run)
    if found is None:
        st.info(words.NOTHING_REPEATS)
    else:
        _heads(scene, written, (greedy, drawn), run, found)
    in_numbers(lambda: _table(scene, (greedy, drawn)), "generate-loops", words.LOOPS_TABLE, "what repeats")
    shown = {name: value for name, value in text_so_far(scene, written).items() if name != "new"}
    where = {} if found is None else {"block": found.block, "head": found.head, "muted": found.clear[:MUTED]}
    settings = {
        "temperature": warm.temperature,
        "top_k": warm.top_k,
        "top_p": warm.top_p,
        "seed": warm.seed or 0,
    }
    in_code(
        [repeated, share_along, without_heads],
        program(shares, scene.load, **shown, count=count, n=n, **settings, **where),
        key="in_code_loops",
    )


def _slow(scene: Scene, written: Written, count: int) -> bool:
    """Whether writing twice so many tokens takes long: by the passes of a full context, or a large model."""
    full = max(0, len(written.prompt) + count - written.context)
    return scene.lm.nbytes > WEIGHT_BYTES or is_asked_for(scene.lm, written.context, 2 * full)


def _write(scene: Scene, written: Written, sampling: Sampling, count: int, n: int, name: str) -> Text:
    base, bar = Run(written.model, written.prompt), st.empty()
    new: tuple[int, ...] = ()
    for new in derived.written_on(base, sampling, count):
        if _slow(scene, written, count):
            bar.progress(len(new) / count, name)
    bar.empty()
    ids, start = written.prompt + new, len(written.prompt)
    return Text(name, written.prompt, new, repeated(ids, n)[start:], share_along(ids, start, n))


def _say_loop(scene: Scene, greedy: Text) -> None:
    found, start = numbers.loop(greedy.ids), len(greedy.prompt)
    if found is None or found.start < start:
        st.markdown(words.NO_LOOP)
        return
    piece = scene.lm.decode(greedy.ids[found.start : found.start + found.period])
    st.markdown(words.goes_round(found.start - start + 1, found.period, piece.strip().replace("\n", "⏎")))


def _heads(scene: Scene, written: Written, texts: tuple[Text, Text], run: Run, found: Induction) -> None:
    """The head that looks most at what followed before, along both texts, and what is lost without it."""
    block, head = found.block, found.head
    if found.clear:
        prose(words.induction(block, head, found.share, len(found.clear)), "induction head", "block", "head")
    else:
        st.markdown(words.no_induction(block, head, found.share))
    given = {text.name: _given(written, text, block, head) for text in texts}
    scene.chart(
        repetition(
            {text.name: text.share for text in texts},
            given,
            {text.name: [show_id(scene.lm, i) for i in text.new] for text in texts},
            f"block {block}, head {head}",
            scene.mode,
        ),
        key="generate_loops",
        alt="The share of each text that repeats, and a head's attention to what followed before",
    )
    if len(texts[0].ids) > written.context:
        st.caption(words.window(written.context))
    muted = found.clear[:MUTED] or ((block, head),)
    some = min(len(texts[0].new), len(run) - 1)
    before, after = (float(derived.without_heads(run, which)[-some:].mean()) for which in ((), muted))
    st.markdown(words.muted(muted, before, after, f"the greedy text's {some} tokens"))
    attention_link(scene, run.ids, len(run) - 1, block, head, "generate_loops_link")


def _given(written: Written, text: Text, block: int, head: int) -> NDArray[np.float32]:
    """Of each written token, what the head then gave to what had followed before; NaN for nothing."""
    window = text.ids[-written.context :]
    rows = derived.followed_by(Run(written.model, window), block, head)
    cut = len(text.ids) - len(window)
    at = np.arange(len(text.prompt) - 1, len(text.ids) - 1) - cut  # where each was written from
    return np.where(at >= 0, rows[np.maximum(at, 0)], np.nan).astype(np.float32)


def _as_html(scene: Scene, text: Text) -> str:
    """The text with what repeats marked; a character that lacks bytes shows as the replacement sign."""
    colors, lm = palette(scene.mode), scene.lm
    mark = mixed(colors.paper, colors.positive, 0.35)
    spans = []
    for i, again in zip(text.new, text.repeats, strict=True):
        shown = escape(lm.decode([i]))
        spans.append(f'<span style="background: {mark}">{shown}</span>' if again else shown)
    return (
        f'<div data-testid="loop_text" data-repeats="{int(text.repeats.sum())}"><b>{escape(text.name)}</b>'
        f'<p style="white-space: pre-wrap; margin: 0.2rem 0">{"".join(spans)}</p></div>'
    )


def _table(scene: Scene, texts: tuple[Text, ...]) -> pd.DataFrame:
    return pd.concat(
        [
            pd.DataFrame(
                {
                    "text": text.name,
                    "step": range(1, len(text.new) + 1),
                    "token": [show_id(scene.lm, i) for i in text.new],
                    "repeats": text.repeats,
                    "share": text.share,
                }
            )
            for text in texts
        ],
        ignore_index=True,
    )
