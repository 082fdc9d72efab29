"""The panel "Loops": greedy against temperature, the share that repeats, and the head that looks at it."""

from dataclasses import dataclass, replace
from html import escape

import numpy as np
import pandas as pd
import streamlit as st
from numpy.typing import NDArray

from gptviz import Edit, Run
from gptviz.analysis import repetition as numbers
from gptviz.analysis.repetition import other_heads, repeated, share_along, without_heads
from gptviz.engine.sampling import Sampling
from gptviz.figures.ghosts import UNCHANGED
from gptviz.figures.next_token import mixed
from gptviz.figures.repetition import repetition
from gptviz.figures.theme import palette
from gptviz.tokenizer import named_bytes, show_token
from gptviz.ui.shell.details import in_code, in_numbers, program
from gptviz.ui.shell.params import Param, if_there
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Scene
from gptviz.ui.views.generate.panels import derived
from gptviz.ui.views.generate.panels import loop_words as words
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
    texts = 4 if written.edits else 2
    if _slow(scene, written, count) and not st.toggle(
        words.ask_write(count, texts), key="generate_loops_ask"
    ):
        return
    both = _both(scene, written, written.edits, warm, count, n)
    old = _both(scene, written, (), warm, count, n, f"{UNCHANGED}, ") if written.edits else None
    greedy, _ = both
    loop = numbers.loop(greedy.ids)
    with sentence:
        prose(
            words.loops(_ends(both), _lengths(both), n, warm.temperature, warm.seed or 0)
            + ("" if old is None else f" {words.loops_unchanged(_ends(old))}"),
            "temperature",
            "token",
        )
        _say_loop(scene, greedy, loop)
    for place, text in zip(st.columns(2, gap="medium"), both, strict=True):
        with place:
            st.html(_as_html(scene, text))
    st.caption(words.REPEATS)
    run = Run(written.model, greedy.ids[-written.context :], written.edits)
    found = derived.induction(run)
    if found is None:
        st.info(words.NOTHING_REPEATS)
    else:
        _heads(scene, written, both, None if old is None else old[0], run, found, loop is not None)
    every = (*both, *(old or ()))
    in_numbers(lambda: _table(scene, every), "generate-loops", words.LOOPS_TABLE, "what repeats")
    _in_code(scene, written, warm, count, n, found)


def _in_code(
    scene: Scene, written: Written, warm: Sampling, count: int, n: int, found: Induction | None
) -> None:
    shown = {name: value for name, value in text_so_far(scene, written).items() if name != "new"}
    where: dict[str, object] = {}
    if found is not None:
        muted = found.muted(MUTED)
        others = other_heads(scene.lm, muted, found.apart)
        where = {"block": found.block, "head": found.head, "muted": muted, "others": others}
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


def _both(
    scene: Scene, written: Written, edits: tuple[Edit, ...], warm: Sampling, count: int, n: int, who: str = ""
) -> tuple[Text, Text]:
    """The greedy text and the drawn one, of the model with these edits; `who` stands before their names."""
    base = Run(written.model, written.prompt, edits)
    slow = _slow(scene, written, count)
    return (
        _write(base, GREEDY, count, n, f"{who}temperature 0", slow),
        _write(base, warm, count, n, f"{who}temperature {warm.temperature:g}", slow),
    )


def _ends(texts: tuple[Text, Text]) -> tuple[float, float]:
    return float(texts[0].share[-1]), float(texts[1].share[-1])


def _lengths(texts: tuple[Text, Text]) -> tuple[int, int]:
    return len(texts[0].new), len(texts[1].new)


def _slow(scene: Scene, written: Written, count: int) -> bool:
    """Whether writing so many tokens for each text takes long: a full context's passes, or a large model."""
    full = max(0, len(written.prompt) + count - written.context)
    texts = 4 if written.edits else 2
    return scene.lm.nbytes > WEIGHT_BYTES or is_asked_for(scene.lm, written.context, texts * full)


def _write(base: Run, sampling: Sampling, count: int, n: int, name: str, slow: bool) -> Text:
    bar, prompt = st.empty(), base.ids
    new: tuple[int, ...] = ()
    for new in derived.written_on(base, sampling, count):
        if slow:
            bar.progress(len(new) / count, name)
    bar.empty()
    ids, start = prompt + new, len(prompt)
    return Text(name, prompt, new, repeated(ids, n)[start:], share_along(ids, start, n))


def _say_loop(scene: Scene, greedy: Text, found: numbers.Loop | None) -> None:
    if found is None:
        st.markdown(words.NO_LOOP)
        return
    first = max(found.start, len(greedy.prompt))  # a prompt may go round already
    piece = greedy.ids[first : first + found.period]
    shown = show_token(b"".join(named_bytes(scene.lm.tokenizer, i) for i in piece))
    st.markdown(words.goes_round(first - len(greedy.prompt) + 1, found.period, shown))


def _heads(
    scene: Scene,
    written: Written,
    texts: tuple[Text, Text],
    old: Text | None,
    run: Run,
    found: Induction,
    round: bool,
) -> None:
    """The head that looks most at what followed before, along both texts, and what is lost without it.

    `old` is the unchanged model's greedy text, where the model is changed.
    """
    block, head = found.block, found.head
    if found.clear:
        said = words.induction(block, head, found.share, len(found.clear), round)
        prose(said, "induction head", "block", "head")
    else:
        st.markdown(words.no_induction(block, head, found.share))
    plain = None if old is None else derived.induction(run.plain)
    if plain is not None:
        st.markdown(words.induction_unchanged(plain.block, plain.head, plain.share))
    given = {text.name: _given(written, text, block, head) for text in texts}
    scene.chart(
        repetition(
            {text.name: text.share for text in texts},
            given,
            {text.name: [show_id(scene.lm, i) for i in text.new] for text in texts},
            f"block {block}, head {head}",
            scene.mode,
            None if old is None else (old.name, old.share),
        ),
        key="generate_loops",
        alt="The share of each text that repeats, and a head's attention to what followed before",
    )
    if len(texts[0].ids) > written.context:
        st.caption(words.window(written.context))
    if not scene.lm.is_causal:
        st.caption(words.WHOLE_TEXT)
    _say_muted(scene, run, found, min(len(texts[0].new), len(run) - 1))
    attention_link(scene, run.ids, len(run) - 1, block, head, "generate_loops_link")


def _say_muted(scene: Scene, run: Run, found: Induction, some: int) -> None:
    """What the last `some` tokens lose without those heads, and without others drawn at random."""

    def mean(run: Run, heads: tuple[tuple[int, int], ...] = ()) -> float:
        return float(derived.without_heads(run, heads)[-some:].mean())

    muted = found.muted(MUTED)
    sets = other_heads(scene.lm, muted, found.apart)
    others = (float(np.mean([mean(run, heads) for heads in sets])), len(sets)) if sets else None
    unchanged = mean(run.plain) if run.edits else None
    tokens = f"the greedy text's {some} tokens"
    st.markdown(words.muted(muted, mean(run), mean(run, muted), tokens, others, unchanged))


def _given(written: Written, text: Text, block: int, head: int) -> NDArray[np.float32]:
    """Of each written token, what the head then gave to what had followed before; NaN for nothing."""
    window = text.ids[-written.context :]
    rows = derived.followed_by(Run(written.model, window, written.edits), block, head)
    cut = len(text.ids) - len(window)
    at = np.arange(len(text.prompt) - 1, len(text.ids) - 1) - cut  # where each was written from
    return np.where(at >= 0, rows[np.maximum(at, 0)], np.nan).astype(np.float32)


def _as_html(scene: Scene, text: Text) -> str:
    """The text with what repeats marked; a character that lacks bytes shows as the replacement sign."""
    colors, lm = palette(scene.mode), scene.lm
    mark = mixed(colors.paper, colors.positive, 0.35)
    spans = []
    for i, again in zip(text.new, text.repeats, strict=True):
        shown = escape(lm.decode([i])).replace("\n", "⏎\n")
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
