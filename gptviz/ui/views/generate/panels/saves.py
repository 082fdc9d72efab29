"""The panel "What the cache saves": multiply-adds and milliseconds a token, with it and without it."""

import time
from dataclasses import dataclass, field, replace
from statistics import median

import numpy as np
import pandas as pd
import streamlit as st
import torch
from streamlit.delta_generator import DeltaGenerator

from gptviz.analysis import decoding_cost
from gptviz.analysis.decoding_time import written_again
from gptviz.engine.past import attend, past_bytes
from gptviz.engine.sampling import distribution
from gptviz.engine.sampling import draw as draw_one
from gptviz.fast import kernels
from gptviz.figures.decoding_cost import cost_bars
from gptviz.ui.shell.details import in_code, in_numbers, program
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Scene
from gptviz.ui.views.generate.panels import words
from gptviz.ui.views.generate.panels.links import text_so_far
from gptviz.ui.views.generate.panels.saves_snippet import both_ways
from gptviz.ui.views.generate.written import Written, WrittenStep
from gptviz.ui.views.panel import panel
from gptviz.ui.words import as_code, show_id

WAYS = {"With the cache": True, "Without the cache": False}
WAY = "generate_way"
MEASURED = "generate_measured"  # in the session: what was measured, for one text
SECONDS = 6.0  # of writing again at a click: nothing interrupts it, and others wait for the model


@dataclass
class Measured:
    """Milliseconds a step, in order, by whether the cache was used; `same` of `checked` tokens came again.

    `about` is all that they depend on: the text, the model with its changes, and how the tokens were drawn.
    """

    about: Written
    took: dict[bool, list[float]] = field(default_factory=lambda: {True: [], False: []})
    same: int = 0
    checked: int = 0


def draw(scene: Scene, written: Written) -> None:
    """The panel, for the text that was written; closed it costs nothing."""
    with panel("What the cache saves", ":material/speed:", "generate_saves_box") as opened:
        if opened:
            _draw(scene, written)


def _draw(scene: Scene, written: Written) -> None:
    config, count = scene.lm.config, len(written.steps)
    if not count:
        st.info(words.NOTHING_WRITTEN)
        return
    number = scene.lm.model.tok_emb.weight.element_size()
    causal = scene.lm.is_causal
    table = decoding_cost.steps(config, len(written.prompt), count, number, causal)
    chosen = min(written.chosen, count - 1)
    row, sums = table.iloc[chosen], table.sum()
    tokens, cached, with_cache, without = (
        int(row[name]) for name in ("tokens", "cached", "with_cache", "without_cache")
    )
    said = words.saved(chosen + 1, tokens, cached, with_cache, without, causal)
    prose(said, "token", "key", "value", "block", "cache")
    unit, size = _unit(float(table["without_cache"].max()))
    labels = [show_id(scene.lm, i) for i in written.new]
    scene.chart(
        cost_bars(
            range(1, count + 1),
            labels,
            table["without_cache"].to_numpy() / size,
            table["with_cache"].to_numpy() / size if causal else None,
            f"{unit} multiply-adds",
            chosen + 1,
            scene.mode,
        ),
        key="generate_work",
        alt="The multiply-adds that each token costs, with the cache and without it",
    )
    if count > 1:
        _say_totals(count, sums, causal)
    if causal:
        full = past_bytes(config, config.context_length, bytes_a_number=number)
        here = int(row["cache_bytes"]), int(row["tokens"])
        st.markdown(words.memory(*here, config.n_layers, config.emb_dim, number, full, config.context_length))
    measured = _write_again(scene, written)
    if any(measured.took.values()):
        _draw_times(scene, measured, labels, chosen)
    st.caption(words.NOT_COUNTED)
    in_numbers(table, "generate-cost", words.COST_TABLE, "the work of each token")
    in_code(
        [attend],
        program(both_ways, scene.load, **text_so_far(scene, written) | {"new": written.new}),
        key="in_code_saves",
        run=lambda: _run(scene, written),
    )


def _say_totals(count: int, sums: pd.Series, causal: bool) -> None:
    if not causal:
        tokens, without, loop = (int(sums[name]) for name in ("tokens", "without_cache", "all_logits"))
        prose(words.totals_without(count, tokens, without, loop), "logit")
        return
    work = (int(sums[name]) for name in ("with_cache", "without_cache", "all_logits"))
    prose(words.totals(count, int(sums["tokens"] - sums["cached"]), int(sums["tokens"]), *work), "logit")


def _unit(largest: float) -> tuple[str, float]:
    for size, name in ((1e12, "trillion"), (1e9, "billion")):
        if largest >= size:
            return name, size
    return "million", 1e6


# ---- measured here ----


def _write_again(scene: Scene, written: Written) -> Measured:
    """The switch and the button; a click writes the same tokens again, some seconds of them at most."""
    measured: Measured | None = st.session_state.get(MEASURED)
    about = replace(written, chosen=0, branch=0)
    if measured is None or measured.about != about:
        measured = Measured(about)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        way = "Without the cache"
        if scene.lm.is_causal:  # else there is only the one
            way = st.segmented_control(
                "Write these tokens again",
                options=tuple(WAYS),
                default="With the cache",
                required=True,
                key=WAY,
                help="The same tokens, once more: each step's pass is timed.",
            )
        pressed = st.button("Write again", key="generate_time_again", icon=":material/timer:")
    place = st.empty()
    if pressed:
        st.session_state[MEASURED] = measured
        _measure(scene, written, WAYS[way], measured, place)
    done = len(measured.took[WAYS[way]])
    if 0 < done < len(written.steps):
        st.caption(words.some_left(done, len(written.steps)))
    return measured


def _measure(scene: Scene, written: Written, cached: bool, measured: Measured, place: DeltaGenerator) -> None:
    lm, took = scene.lm, measured.took[cached]
    if len(took) == len(written.steps):
        took.clear()
    first, began = len(took), time.monotonic()
    for ms, logits in written_again(lm, written.prompt, written.new, cached, first):
        step = written.steps[len(took)]
        took.append(ms)
        if not step.forced:
            measured.checked += 1
            measured.same += _again(logits, written, step) == step.id
        text = lm.decode(written.new[: len(took)]).replace("\n", "⏎")
        place.markdown(f"{as_code(text[-200:])}  \n{words.took(len(took), sum(took))}")
        if time.monotonic() - began > SECONDS:
            return


def _again(logits: torch.Tensor, written: Written, step: WrittenStep) -> int:
    """The token that these logits (V,) give, drawn by the number that drew it the first time."""
    return draw_one(distribution(logits, written.sampling), step.point or 0.0)


def _draw_times(scene: Scene, measured: Measured, labels: list[str], chosen: int) -> None:
    with_cache, without = (np.array(measured.took[cached]) for cached in (True, False))
    middles = [median(times) if len(times) else None for times in (with_cache, without)]
    most = max(len(with_cache), len(without))
    st.markdown(words.measured(most, middles[0], middles[1], measured.same, measured.checked))
    gap = np.full(most, np.nan)
    slow, quick = (np.concatenate([took, gap[len(took) :]]) for took in (without, with_cache))
    scene.chart(
        cost_bars(
            range(1, most + 1),
            labels[:most],
            slow,
            quick if scene.lm.is_causal else None,
            "milliseconds",
            chosen + 1,
            scene.mode,
        ),
        key="generate_times",
        alt="The milliseconds that each token took, with the cache and without it",
    )
    in_numbers(
        pd.DataFrame(
            {
                "step": range(1, most + 1),
                "token": labels[:most],
                "with_cache_ms": quick,
                "without_cache_ms": slow,
            }
        ),
        "generate-times",
        words.TIMES_TABLE,
        "what was measured",
        missing="–",
    )


def _run(scene: Scene, written: Written) -> None:
    """A step with the cache, by the book's lines, so that its shapes can be taken down."""
    with kernels.by_the_book():
        next(written_again(scene.lm, written.prompt, [written.new[0], 0], True, first=1))
