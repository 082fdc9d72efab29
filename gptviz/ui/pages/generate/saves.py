"""What the cache saves: multiply-adds and milliseconds per token, with it and without it."""

import time
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from gptviz.analysis.decoding_cost import steps
from gptviz.analysis.decoding_time import written_again
from gptviz.digits import many, memory, significant
from gptviz.engine.past import attend, past_bytes
from gptviz.engine.sampling import distribution
from gptviz.engine.sampling import draw as draw_one
from gptviz.fast import kernels
from gptviz.figures.decoding_cost import cost_bars
from gptviz.ui import sheet
from gptviz.ui.pages.generate.written import Written
from gptviz.ui.shell.details import in_numbers
from gptviz.ui.shell.prose import prose
from gptviz.ui.shell.scene import Scene
from gptviz.ui.words import show_id

MEASURED = "generate_measured"  # in the session: what was measured, for one text
SECONDS = 6.0  # of writing again at a click: nothing interrupts it, and others wait for the model


@dataclass
class Measured:
    """Milliseconds (with the cache, without it) per step; `same` of `checked` tokens came again.

    `about` is all that they depend on: the text, the model with its changes, and how the tokens were drawn.
    """

    about: Written
    took: list[tuple[float, float]] = field(default_factory=list)
    same: int = 0
    checked: int = 0


def draw(scene: Scene, written: Written) -> None:
    """The work of each token, and at a click its time."""
    lm, config, count = scene.lm, scene.lm.config, len(written.steps)
    if not count:
        st.info("Nothing is written yet: press One step, or Play.")
        return
    number, chosen = lm.model.tok_emb.weight.element_size(), min(written.chosen, count - 1)
    sizes = config, len(written.prompt), count, number, lm.is_causal
    table = steps(*sizes)
    prose(sentence(table, chosen, lm.is_causal), "token", "key", "value", "block", "cache")
    size, unit = max(
        (s, name)
        for s, name in ((1e6, "million"), (1e9, "billion"), (1e12, "trillion"))
        if s == 1e6 or table["without_cache"].max() >= s
    )
    work = np.stack([table["with_cache"], table["without_cache"]], axis=1) / size
    draw_bars(scene, written, work, f"{unit} multiply-adds", "generate_work")
    if count > 1:
        sums = table.sum()
        without, through = many(sums["without_cache"]), f"{sums['tokens']:,.0f} tokens through the blocks"
        said = f"{without} multiply-adds for {through}"
        if lm.is_causal:
            times = significant(sums["without_cache"] / sums["with_cache"])
            said = (
                f"{many(sums['with_cache'])} multiply-adds for {sums['tokens'] - sums['cached']:,.0f} tokens "
                f"through the blocks. Without the cache: {without} for {sums['tokens']:,.0f} tokens, {times} "
                "times as many"
            )
        loop = "The book's own loop, which makes the logits of all positions and uses the last, has"
        prose(f"**All {count:,} so far:** {said}. {loop} {many(sums['all_logits'])}.", "logit")
    if lm.is_causal:
        read, context = table["tokens"][chosen], config.context_length
        now, full = (past_bytes(config, n, bytes_a_number=number) for n in (read, context))
        st.markdown(
            f"**The price is memory:** a key and a value per token and block. 2 × {config.n_layers} blocks × "
            f"{read:,} tokens × {config.emb_dim:,} numbers × {number} bytes = {memory(now)} now, "
            f"{memory(full)} with all {context:,} positions taken."
        )
    write_again(scene, written)
    st.caption(
        "Counted are the multiplications of matrices, each with the addition that follows. LayerNorm, "
        "softmax and GELU are left out: they are little beside these."
    )
    told = "Worked out from the model's sizes alone: a row per written token, in multiply-adds."
    in_numbers(table, "generate-cost", told, "the work of each token")

    def run() -> None:  # a step with the cache, by the book's lines, so that its shapes can be taken down
        with kernels.by_the_book():
            next(written_again(lm, written.prompt, [written.new[0], 0], True, first=1))

    sheet.code_of(scene, [attend, written_again], steps, *sizes, key="in_code_saves", run=run)


def sentence(table: pd.DataFrame, chosen: int, causal: bool) -> str:
    """Return what the chosen token cost, and why."""
    row = table.iloc[chosen]
    said = f"**Token {chosen + 1}** cost {many(row['with_cache'])} multiply-adds"
    if not causal:
        return (
            f"{said}: all {row['tokens']:,} tokens went through the blocks. A change here depends on the "
            "whole text, so each new token changes every earlier one: no key and no value can be kept, and "
            "**no cache is used**."
        )
    if row["cached"]:
        times = significant(row["without_cache"] / row["with_cache"])
        return (
            f"{said}: one token went through the blocks, since keys and values of the {row['cached']:,} "
            f"before it were in the cache. Without the cache all {row['tokens']:,} would have gone through "
            f"again, for {many(row['without_cache'])}: {times} times as much."
        )
    why = f"nothing of the {row['tokens']:,} tokens was in the cache yet"
    if chosen:
        why = f"the context is full and slides, so all {row['tokens']:,} tokens stand at other positions"
    return f"{said}, with or without a cache: {why}."


def draw_bars(scene: Scene, written: Written, values: np.ndarray, unit: str, key: str) -> None:
    """Two bars per step: values (S, 2) with the cache and without it."""
    labels = [show_id(scene.lm, i) for i in written.new[: len(values)]]
    quick, chosen = (
        (values[:, 0] if scene.lm.is_causal else None),
        min(written.chosen, len(written.steps) - 1),
    )
    bars = cost_bars(range(1, len(values) + 1), labels, values[:, 1], quick, unit, chosen + 1, scene.mode)
    scene.chart(bars, key=key, alt=f"What each token costs in {unit}, with the cache and without it")


def write_again(scene: Scene, written: Written) -> None:
    """The button; a click writes the same tokens again both ways, some seconds of them at most."""
    lm, steps = scene.lm, written.steps
    measured: Measured | None = st.session_state.get(MEASURED)
    about = replace(written, chosen=0, branch=0)
    if measured is None or measured.about != about:
        measured = Measured(about)
    told = "The same tokens once more, with the cache and without it: each step's pass is timed."
    if st.button(
        "Write it again, and time it", key="generate_time_again", icon=":material/timer:", help=told
    ):
        if len(measured.took) == len(steps):
            measured = Measured(about)
        st.session_state[MEASURED], place, began = measured, st.empty(), time.monotonic()
        ways = (
            written_again(lm, written.prompt, written.new, cached, len(measured.took))
            for cached in (True, False)
        )
        for (quick, logits), (slow, _) in zip(*ways, strict=True):
            step = steps[len(measured.took)]
            measured.took.append((quick, slow))
            if not step.forced:  # drawn by the number that drew it the first time
                measured.checked += 1
                measured.same += (
                    draw_one(distribution(logits, written.sampling), step.point or 0.0) == step.id
                )
            place.markdown(f"{len(measured.took)} of {len(steps)} tokens")
            if time.monotonic() - began > SECONDS:
                break
        place.empty()
    if not (done := len(measured.took)):
        return
    if done < len(steps):
        st.caption(
            f"Stopped after {done} of {len(steps)} tokens, to leave the model to others. Press again to go "
            "on."
        )
    took = np.array(measured.took)
    quick, slow = np.median(took, axis=0)
    said = f"{significant(quick, 2)} ms with the cache and {significant(slow, 2)} ms without"
    said = (
        f"{said}, {significant(slow / quick, 2)} times as long"
        if lm.is_causal
        else f"{significant(slow, 2)} ms"
    )
    tokens = (
        "Every token"
        if measured.same == measured.checked
        else f"{measured.same} of {measured.checked} tokens"
    )
    again = f" {tokens} came out the same again." if measured.checked else ""
    st.markdown(f"**Measured on this machine**, the median step: {said}.{again}")
    draw_bars(scene, written, took, "milliseconds", "generate_times")
    frame: dict[str, Any] = {
        "step": range(1, done + 1),
        "token": [show_id(lm, i) for i in written.new[:done]],
    }
    frame |= {"with_cache_ms": took[:, 0], "without_cache_ms": took[:, 1]}
    told = "Measured on this machine, the model's passes only; other visitors' work may stand between."
    in_numbers(pd.DataFrame(frame), "generate-times", told, "what was measured")
